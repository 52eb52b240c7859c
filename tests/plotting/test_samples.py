"""plot_samples: draws from priors and posteriors."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import (
    GPRegressor,
    LaplacianProcessRegressor,
    RelevanceVectorRegressor,
    SparseGPRegressor,
    means,
)
from mercer.kernels import RBF, Linear
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_samples
from mercer.posterior import prior

from . import look


def draws(ax):
    return np.array([one.get_ydata() for one in ax.lines if one.get_label().startswith("_")]).T


def test_the_posterior(one, ax):
    model, X, y = one
    assert plot_samples(model, (-3, 3), n_samples=4, random_state=7, ax=ax) is ax
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None]))
    wanted = model.sample_y(x[:, None], 4, random_state=7, latent=True)
    np.testing.assert_allclose(draws(ax), wanted)
    at, low, high = look.band(ax, "95%")
    ends = model.predict_interval(at[:, None], 0.95, latent=True)
    np.testing.assert_allclose([low, high], ends, atol=1e-12)
    np.testing.assert_allclose(look.points(ax, "data"), np.column_stack([X, y]))
    assert ax.get_title(loc="left") == "4 draws from the posterior"


def test_observations(one, ax):
    model, _, _ = one
    plot_samples(model, (-3, 3), n_samples=1, latent=False, ax=ax)
    x, _ = look.line(ax, "mean")
    np.testing.assert_allclose(draws(ax), model.sample_y(x[:, None], 1))
    assert ax.get_ylabel() == "y"
    assert ax.get_title(loc="left") == "1 draw from the posterior"


def test_the_prior_of_a_kernel(ax):
    kernel = 2.0 * RBF(0.5)
    X = np.linspace(-2, 2, 30)[:, None]
    plot_samples(kernel, X, n_samples=3, random_state=1, ax=ax)
    np.testing.assert_allclose(
        draws(ax), prior(kernel).sample(X, 3, np.random.default_rng(1))[:, :, 0]
    )
    _, low, high = look.band(ax, "95%")
    np.testing.assert_allclose(
        [low, high], np.outer([-1, 1], np.full(30, 1.959964 * 2**0.5)), rtol=1e-6
    )
    assert ax.get_title(loc="left") == "3 draws from the prior"


def test_many_draws_have_the_right_spread(ax):
    plot_samples(Linear(1.0), (-2, 2), n_samples=400, ax=ax)
    x, _ = look.line(ax, "mean")
    np.testing.assert_allclose(draws(ax).std(axis=1), np.sqrt(1 + x**2), rtol=0.15)


def test_an_unfitted_model_shows_its_prior(ax):
    model = GPRegressor(RBF(2.0))
    plot_samples(model, (0, 1), ax=ax)
    x, _ = look.line(ax, "mean")
    np.testing.assert_allclose(draws(ax), model.sample_y(x[:, None], 5, latent=True))
    assert "prior" in ax.get_title(loc="left")


def test_the_prior_of_a_fitted_model(ax):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (30, 1))
    y = 100 + 40 * np.sin(X[:, 0]) + 4 * rng.standard_normal(30)
    model = GPRegressor(normalize_y=True, mean=means.Constant()).fit(X, y)
    plot_samples(model, of="prior", random_state=3, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.mean_(x[:, None])[:, 0])  # in the units of the targets
    at, low, high = look.band(ax, "95%")
    std = np.sqrt(model.kernel_.diag(at[:, None])) * model.posterior_.scale
    np.testing.assert_allclose(high - low, 2 * 1.959964 * std, rtol=1e-6)
    assert "data" not in look.labels(ax)


@pytest.mark.parametrize(
    "model",
    [
        RelevanceVectorRegressor(RBF(1.0), optimizer=None),
        RelevanceVectorRegressor(RBF(1.0), optimizer=None, augment=True),
        RelevanceVectorRegressor([RBF(1.0), RBF(0.3)], optimizer=None),
        LaplacianProcessRegressor(RBF(1.0), Gaussian(0.04), prior_scale=1.0, optimizer=None),
        SparseGPRegressor(RBF(1.0), approximation="sor", optimizer=None, n_inducing=9),
    ],
    ids=["relevance", "augmented", "kernels", "laplacian", "sor"],
)
def test_the_prior_of_a_sum_is_not_that_of_the_kernel(one, ax, model):
    _, X, y = one
    for targets in (y, np.column_stack([y, y**2])):
        fitted = clone(model).fit(X, targets)
        with pytest.raises(ValueError, match=r"one of the coefficients.*priors\.sample_functions"):
            plot_samples(fitted, X, of="prior", output=0, ax=ax)


def test_outputs(outputs, ax):
    model, _, _ = outputs
    plot_samples(model, output=1, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None])[:, 1])
    np.testing.assert_allclose(draws(ax), model.sample_y(x[:, None], 5, latent=True)[:, 1])
    with pytest.raises(ValueError, match="2 outputs"):
        plot_samples(model)


def test_scikit_learn(one, ax):
    _, X, y = one
    theirs = GaussianProcessRegressor(alpha=0.04).fit(X, y)
    plot_samples(theirs, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, theirs.predict(x[:, None]))
    ax.clear()
    plot_samples(2.0 * sk.RBF(1.5), (0, 1), ax=ax)
    assert draws(ax).shape == (200, 5)


def test_random_states(ax):
    for state in (np.random.RandomState(0), np.random.default_rng(0), None):
        plot_samples(RBF(1.0), (0, 1), random_state=state, ax=ax)


def test_counts_have_one_unit(counts, ax):
    model, X, _ = counts
    plot_samples(model, X, ax=ax)
    functions = model.sample_y(X, 5, latent=True)
    np.testing.assert_allclose(draws(ax), np.exp(functions))
    np.testing.assert_allclose(look.line(ax, "mean")[1], model.predict(X))
    _, *ends = look.band(ax, "95%")
    np.testing.assert_allclose(ends, np.exp(model.predict_interval(X, latent=True)))
    assert ax.get_ylabel() == "mean of y" and "data" in look.labels(ax)
    ax.clear()
    plot_samples(model, X, latent=True, ax=ax)
    np.testing.assert_allclose(draws(ax), functions)
    np.testing.assert_allclose(look.line(ax, "mean")[1], model.predict(X, latent=True))
    assert ax.get_ylabel() == "latent function of y" and "data" not in look.labels(ax)
    ax.clear()
    plot_samples(model, X, latent=False, ax=ax)
    np.testing.assert_allclose(draws(ax), model.sample_y(X, 5))
    ax.clear()
    plot_samples(model, X, of="prior", ax=ax)
    m, v = model.mean_(X)[:, 0], model.kernel_.diag(X)
    np.testing.assert_allclose(look.line(ax, "mean")[1], np.exp(m + 0.5 * v))
    assert np.all(draws(ax) > 0)


@pytest.mark.parametrize(
    ("what", "options", "text"),
    [
        (RBF(1.0), {}, r"give X: the rows.*\(low, high\)"),
        (RBF(1.0), {"X": np.ones((3, 2))}, "over one column, and there are 2"),
        (RBF(1.0), {"X": (0, 1), "of": "posterior"}, "a kernel has no posterior"),
        (GPRegressor(), {"X": (0, 1), "of": "posterior"}, "not fitted has no posterior"),
        (GPRegressor(), {"X": (0, 1), "of": "both"}, "of must be"),
        (object(), {"X": (0, 1)}, "a kernel, or a model with sample_y"),
        (RBF(1.0), {"X": (0, 1), "n_samples": 0}, "n_samples must be"),
        (RBF(1.0), {"X": (0, np.inf)}, "finite"),
    ],
)
def test_wrong_use(what, options, text):
    with pytest.raises(ValueError, match=text):
        plot_samples(what, **options)
    assert plt.get_fignums() == []


def test_more_columns(two):
    with pytest.raises(ValueError, match="plot_fit shows slices"):
        plot_samples(two[0])
