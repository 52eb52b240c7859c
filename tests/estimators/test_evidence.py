"""Leave-one-out, the evidence, standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer import GPRegressor, means
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed, make

LOO_MEANS = ["zero", "constant", "linear", means.Linear(estimate="integrate")]


@pytest.mark.parametrize("mean", LOO_MEANS, ids=str)
@pytest.mark.parametrize("outputs", [1, 2])
def test_leave_one_out_equals_refitting(mean, outputs):
    weights = np.ones(40)
    weights[4], weights[9] = 3.0, 0.5
    y = Y if outputs == 1 else np.column_stack([Y, 3.0 * Y**2])
    model = fixed().set_params(mean=mean, normalize_y=True).fit(X, y, sample_weight=weights)
    left = model.loo()
    for i in (0, 4, 9, 39):
        keep = np.arange(40) != i
        part = GPRegressor(
            model.kernel_, model.likelihood_, mean=mean, optimizer=None, normalize_y=False
        )
        # the same units as the fit to all rows
        scale = model.posterior_.scale
        offset = model.mean_(X) if isinstance(mean, str) and mean == "zero" else np.zeros((40, 1))
        part.fit(X[keep], ((y.reshape(40, -1) - offset) / scale)[keep], weights[keep])
        predicted, std = part.predict(X[[i]], return_std=True)
        np.testing.assert_allclose(left.mean[i], (predicted * scale + offset[[i]])[0].squeeze())
        np.testing.assert_allclose(left.std[i], (std * scale)[0].squeeze(), rtol=1e-9)
    np.testing.assert_allclose(left.log_density, norm.logpdf(y, left.mean, left.std), rtol=1e-10)


@pytest.mark.parametrize("mean", LOO_MEANS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_as_objective(mean, weighted):
    weights = np.linspace(0.5, 2.0, 40) if weighted else None
    options = {"mean": mean, "hyperprior": None}
    by_evidence = GPRegressor(1.0 * RBF(), **options).fit(X, Y, weights)
    start = by_evidence.kernel_, by_evidence.likelihood_
    by_loo = GPRegressor(*start, objective="loo", **options).fit(X, Y, weights)

    def density(model):
        return np.sum((1.0 if weights is None else weights) * model.loo().log_density)

    assert density(by_loo) > density(by_evidence) + 1e-4
    # and what was maximised is what `loo` reports
    assert by_loo.history_["value"].max() == pytest.approx(density(by_loo), rel=1e-9)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_evidence_gradient_runs_over_kernel_noise_and_mean(mean):
    model = GPRegressor(1.3 * RBF([1.0, 2.0, 0.7]), Gaussian(0.2), mean=mean, optimizer=None)
    model.fit(X, Y)
    theta = model.theta_ + 0.1
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert gradient.shape == theta.shape
    step = 1e-5
    for i, e in enumerate(step * np.eye(theta.size)):
        up, down = (model.log_marginal_likelihood(theta + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


def test_evidence_at_the_fit():
    model = GPRegressor().fit(X, Y)
    assert model.log_marginal_likelihood() == pytest.approx(
        model.log_marginal_likelihood(model.theta_), rel=1e-10
    )
    # the mean's coefficients are at their maximum
    _, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert abs(gradient[-1]) < 1e-8


def test_standard_errors_do_not_see_the_penalty(monkeypatch):
    from mercer.errors import NotPositiveDefiniteError

    model = GPRegressor().fit(X, Y)

    def fail(*_):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr("mercer.evidence.objective.evidence", fail)
    with pytest.raises(NotPositiveDefiniteError):
        model.standard_errors()


def test_standard_errors():
    X, y = make(150)
    model = GPRegressor(1.0 * RBF(), hyperprior=None).fit(X, y)
    errors = model.standard_errors()
    assert list(errors) == ["kernel.variance", "kernel.RBF.length_scale", "likelihood.noise"]
    # the noise of n rows is known to about sqrt(2/n) in its logarithm
    assert errors["likelihood.noise"] == pytest.approx(np.sqrt(2 / 150), rel=0.2)


def test_a_pruned_model_predicts_and_says_what_it_cannot():
    model = fixed().fit(X, Y)
    model.posterior_ = model.posterior_.prune(10)[0]
    assert np.all(np.isfinite(model.predict(X_NEW, return_std=True)))
    for ask in (
        model.loo,
        model.standard_errors,
        lambda: model.log_marginal_likelihood(model.theta_),
    ):
        with pytest.raises(ValueError, match="before `posterior_` is replaced"):
            ask()
