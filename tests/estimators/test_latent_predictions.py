"""Predictions of new observations: links, heavy tails, derivatives; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.utils import get_tags

from mercer import GPRegressor, means
from mercer.errors import MercerWarning, TooLargeError
from mercer.estimators import memory
from mercer.kernels import RBF
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Softmax,
    StudentT,
)
from mercer.metrics.gaussian import gaussian_interval
from mercer.params import Parameter

from .data import quiet_fit

RNG = np.random.default_rng(1)
X = RNG.uniform(-2.0, 2.0, (30, 2))
COUNTS = RNG.poisson(np.exp(X[:, 0])).astype(float)
Y = X[:, 0] + 0.1 * RNG.standard_normal(30)
NEW = RNG.uniform(-2.0, 2.0, (5, 2))
KERNEL = 1.0 * RBF([1.0, 2.0])


def held(likelihood, y, **options):
    return GPRegressor(KERNEL, likelihood, optimizer=None, **options).fit(X, y)


def log_rate(y, f):
    return Poisson().log_density(y, f)


def rate(f):
    return np.exp(f)


# Poisson counts, whose moments are found by quadrature.
BY_QUADRATURE = Custom(
    log_rate,
    log_concave=True,
    conditional_mean=rate,
    conditional_var=rate,
    initial=lambda y: np.log(y + 0.5),
)


@pytest.mark.parametrize("likelihood", [Poisson(), BY_QUADRATURE], ids=["closed", "quadrature"])
def test_derivatives_of_predictions_under_a_link(likelihood):
    model = held(likelihood, COUNTS)
    gradient = model.predict_gradient(NEW)
    step = 1e-5
    for j, e in enumerate(step * np.eye(2)):
        ahead, behind = (model.predict(NEW + s * e, return_std=True) for s in (1.0, -1.0))
        for found, up, down in zip(gradient, ahead, behind, strict=True):
            expected = (up - down) / (2 * step)
            np.testing.assert_allclose(found[:, j], expected, rtol=1e-5, atol=1e-5)


def test_derivatives_under_noise_that_is_added():
    model = held(StudentT(5.0, 0.2), Y)
    gradient = model.predict_gradient(NEW)
    step = 1e-5
    for j, e in enumerate(step * np.eye(2)):
        ahead, behind = (model.predict(NEW + s * e, return_std=True) for s in (1.0, -1.0))
        for found, up, down in zip(gradient, ahead, behind, strict=True):
            np.testing.assert_allclose(found[:, j], (up - down) / (2 * step), atol=1e-7)


def test_the_mean_alone_is_the_mean_with_its_spread():
    for likelihood, y in ((Poisson(), COUNTS), (StudentT(5.0, 0.2), Y), (Laplace(0.2), Y)):
        model = held(likelihood, y)
        for latent in (False, True):
            mean, _ = model.predict(NEW, return_std=True, latent=latent)
            np.testing.assert_allclose(model.predict(NEW, latent=latent), mean, rtol=1e-12)


def test_joint_covariances():
    model = held(Laplace(0.2), Y)
    mean, cov = model.predict(NEW, return_cov=True)
    _, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std)
    np.testing.assert_array_equal(mean, model.predict(NEW))


@pytest.mark.parametrize("likelihood", [Poisson(), BY_QUADRATURE], ids=["closed", "quadrature"])
def test_joint_covariances_under_a_link(likelihood):
    counts = held(likelihood, COUNTS)
    mean, latent = counts.predict(NEW, return_cov=True, latent=True)
    _, std = counts.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(np.sqrt(np.diag(latent)), std)
    rate, cov = counts.predict(NEW, return_cov=True)
    _, std = counts.predict(NEW, return_std=True)
    np.testing.assert_allclose(rate, np.exp(mean + 0.5 * np.diag(latent)), rtol=1e-7)
    expected = np.outer(rate, rate) * np.expm1(latent) + np.diag(rate)
    np.testing.assert_allclose(cov, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-7)


@pytest.mark.parametrize("df", [2.0, 1.5])
def test_tails_without_a_variance(df):
    model = held(StudentT(df, 0.1), Y)
    with pytest.warns(
        MercerWarning, match=r"has no variance.*Intervals and log densities"
    ) as caught:
        mean, std = model.predict(NEW, return_std=True)
    assert len(caught) == 1
    with pytest.warns(MercerWarning, match="has no variance"):
        model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(mean, model.predict(NEW, latent=True), rtol=1e-12)
    assert np.all(np.isinf(std))
    np.testing.assert_array_equal(model.predict_gradient(NEW).std, 0.0)
    low, high = model.predict_interval(NEW)
    assert np.all(np.isfinite(high - low))
    assert np.all(np.isfinite(model.log_predictive_density(NEW, mean)))
    with pytest.warns(MercerWarning, match=r"has no variance.*fix df above 2"):
        assert np.all(np.isinf(model.loo().std))


def test_tails_without_a_mean():
    model = held(StudentT(1.0, 0.1), Y)
    with (
        pytest.warns(MercerWarning, match=r"StudentT\(df=1.* no mean.* the median is predicted"),
        pytest.warns(MercerWarning, match="has no variance"),
    ):
        mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, model.predict(NEW, latent=True), atol=1e-9)
    assert np.all(np.isinf(std))
    with pytest.warns(MercerWarning, match="no mean"):
        model.predict(NEW)


def test_before_any_fit():
    mean, std = GPRegressor(KERNEL, StudentT(Parameter(4.0, fixed=True))).predict(NEW, True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(std, np.sqrt(1.0 + 2.0 * 0.3**2))  # a unit of spread
    np.testing.assert_allclose(GPRegressor(KERNEL, Poisson()).predict(NEW), np.exp(0.5))
    with pytest.raises(ValueError, match="exact inference is for Gaussian noise"):
        GPRegressor(KERNEL, Poisson(), inference="exact").predict(NEW)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"likelihood": Logistic()}, r"Logistic\(\) is a likelihood of classes.*use GPClassifier"),
        ({"likelihood": Softmax(3)}, "use GPClassifier"),
        ({"likelihood": StudentT}, r"did you forget the brackets: StudentT\(\)"),
        ({"likelihood": StudentT(), "inference": "exact"}, "chooses among 'laplace', 'ep', 'vi'"),
        ({"likelihood": Laplace(), "inference": "laplace"}, "0 almost everywhere.*'ep'"),
        ({"likelihood": Laplace(), "inference": "bounds"}, "inference must be one of 'auto'"),
        ({"likelihood": Gaussian(np.eye(30)), "inference": "ep"}, "use inference='exact'"),
        ({"likelihood": Laplace(), "objective": "loo"}, "objective='loo' goes with exact"),
        ({"likelihood": Laplace(), "normalize_y": True}, "normalize_y=True goes with exact"),
        ({"likelihood": Laplace(), "objective": "joint"}, "goes with inference='map', got"),
        ({"objective": "joint"}, "goes with inference='map', got inference='exact'"),
        (
            {"inference": "map", "objective": "joint", "n_restarts": 3},
            "from one start.*got n_restarts=3, give n_restarts=0",
        ),
        (
            {"inference": "map", "objective": "joint", "optimizer": min},
            "no gradient in all at once that a callable optimizer",
        ),
        (
            {"likelihood": Laplace(), "mean": means.Constant(estimate="integrate")},
            "integrated out under Gaussian noise alone",
        ),
    ],
)
def test_options_that_do_not_go_together(options, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor(**options).fit(X, Y)


def test_one_output():
    model = GPRegressor(KERNEL, Laplace(0.2), optimizer=None)
    with pytest.raises(ValueError, match=r"y has 2 columns.*for y in np.asarray\(Y\).T\]"):
        model.fit(X, np.column_stack([Y, Y]))
    assert model.fit(X, Y[:, None]).predict(NEW).shape == (5, 1)
    assert not get_tags(model).target_tags.multi_output
    assert get_tags(GPRegressor()).target_tags.multi_output


def test_memory_is_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 8 * 30**2)
    held(Gaussian(0.1), Y)
    with pytest.raises(TooLargeError, match="a fit with inference='ep' to 30 rows"):
        held(Laplace(0.1), Y)


def test_an_engine_that_has_not_settled_is_named(monkeypatch):
    from mercer.inference import ep

    solve = ep._solve
    monkeypatch.setattr(ep, "_solve", lambda *a, **k: solve(*a, **k | {"max_iterations": 0}))
    with pytest.warns(UserWarning, match="inference='ep' stopped before it had settled"):
        quiet = GPRegressor(KERNEL, Laplace(0.1), optimizer=None).fit(X, Y)
    assert quiet.status_ == "fixed"


def test_quiet_fits_are_quiet(recwarn):
    quiet_fit(GPRegressor(likelihood=Poisson()), X, COUNTS)
    assert not recwarn.list


NOISES = {
    "gaussian": None,
    "student": StudentT(4.0, 0.1),
    "laplace": Laplace(0.2),
    "huber": Huber(0.1),
    "insensitive": EpsilonInsensitive(0.1, 0.1),
    "mixture": MixtureNoise([0.8, 0.2], [0.0, 2.0], [0.1, 1.0]),
    "counts": Poisson(),
}


@pytest.mark.parametrize("name", NOISES)
def test_intervals_of_nearly_all(name):
    model = held(NOISES[name] or Gaussian(0.1), COUNTS if name == "counts" else Y)
    inner = model.predict_interval(NEW, 0.8)
    for coverage in (0.9, 1 - 1e-12, 1 - 2.0**-53):
        inner = is_an_interval(model, name, coverage, inner)


def is_an_interval(model, name, coverage, inner):
    """Hold the interval of a coverage to what it is; `inner` is one of less, which is in it."""
    low, high = outer = model.predict_interval(NEW, coverage)
    assert np.all(np.isfinite(low)) and np.all(np.isfinite(high))
    assert np.all(low <= inner[0]) and np.all(high >= inner[1])
    if name not in ("mixture", "counts"):
        mean = model.predict(NEW, latent=True)
        np.testing.assert_allclose(high - mean, mean - low, rtol=1e-12)
    low, high = model.predict_interval(NEW, coverage, latent=True)
    mean, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(high - mean, norm.isf(0.5 * (1 - coverage)) * std, rtol=1e-9)
    np.testing.assert_allclose(mean - low, high - mean, rtol=1e-9)
    return outer


@pytest.mark.parametrize("name", NOISES)
def test_both_ends_are_quantiles(name):
    model = held(NOISES[name] or Gaussian(0.1), COUNTS if name == "counts" else Y)
    mean, std = model.predict(NEW, return_std=True, latent=True)
    for end, level in zip(model.predict_interval(NEW, 0.9), (0.05, 0.95), strict=True):
        wanted = model.likelihood_.quantile(mean, std**2, level)
        np.testing.assert_allclose(end, wanted, rtol=1e-7, atol=1e-7)


class Lopsided(StudentT):
    """Exponential noise: what it is derived from is symmetric, and it is not."""

    def conditional_cdf(self, y, f):
        return -np.expm1(-np.maximum(np.asarray(y) - np.asarray(f), 0.0) / self.scale)


def test_an_interval_under_noise_derived_from_a_symmetric_one():
    model = held(StudentT(4.0, 0.1), Y)
    model.likelihood_ = Lopsided(4.0, 0.5)
    low, high = model.predict_interval(NEW, 0.9)
    mean, std = model.predict(NEW, return_std=True, latent=True)
    wanted = Lopsided(4.0, 0.5).quantile(mean, std**2, [[0.05], [0.95]])
    np.testing.assert_allclose([low, high], wanted)
    assert np.all(high - mean > 2.0 * (mean - low))


def test_the_normal_interval_of_nearly_all():
    low, high = gaussian_interval(np.zeros(1), np.ones(1), 1 - 2.0**-53)
    assert high[0] == -low[0] == pytest.approx(norm.isf(2.0**-54), rel=1e-12)
