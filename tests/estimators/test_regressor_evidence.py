"""Leave-one-out, the evidence, standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer import GPRegressor, load, means, save
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Gaussian
from mercer.posterior import prior
from mercer.registry import encode

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


def answers(model):
    return [
        *model.loo(),
        list(model.standard_errors().values()),
        model.hessian(),
        model.log_marginal_likelihood(model.theta_),
    ]


@pytest.mark.parametrize("outputs", [1, 2])
def test_another_posterior_changes_predictions_alone(outputs, tmp_path):
    y = Y if outputs == 1 else np.column_stack([Y, 30.0 * Y**2])
    weights = np.where(np.arange(40) % 7 == 0, 0.0, 1.5)
    model = fixed(normalize_y=True).fit(X, y, sample_weight=weights)
    before = answers(model)
    for posterior in (model.posterior_.prune(10)[0], prior(RBF(), means.Zero(), outputs)):
        model.posterior_ = posterior
        save(model, tmp_path / "model")
        for each in (model, load(tmp_path / "model")):
            assert np.all(np.isfinite(each.predict(X_NEW, return_std=True)))
            for mine, wanted in zip(answers(each), before, strict=True):
                np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("weights", [None, np.arange(40) % 3])
def test_the_training_inputs_are_kept_once(weights, tmp_path):
    rows = X.copy()
    model = fixed().fit(rows, Y, sample_weight=weights)
    kept = slice(None) if weights is None else weights > 0
    assert model.X_train_ is model.posterior_.basis.points
    rows[:] = 0.0
    np.testing.assert_array_equal(model.X_train_, X[kept])
    assert not model.X_train_.flags.writeable
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.X_train_ is again.posterior_.basis.points
    np.testing.assert_array_equal(again.X_train_, X[kept])
    assert sum(a.shape == model.X_train_.shape for a in encode(model).arrays.values()) == 1


def test_the_training_inputs_of_objects_are_kept_once():
    def overlap(a, b):
        return float(len(set(a) & set(b)))

    words = np.array(["sun", "moon", "stone", "sea"], dtype=object)
    model = GPRegressor(Callable(overlap), Gaussian(0.1), optimizer=None).fit(words, np.arange(4.0))
    assert model.X_train_ is model.posterior_.basis.points
    np.testing.assert_array_equal(model.X_train_.ravel(), words)


def test_the_leave_one_out_objective_with_weights_in_units_of_the_targets():
    y, weights = 50.0 + 30.0 * Y, np.where(np.arange(40) % 5 == 0, 2.0, 0.5)
    kernel, noise = 1.7 * RBF([1.0, 2.0, 0.7]), 0.2
    values = []

    def stay(minimised, start, bounds):
        values.append(-minimised(start)[0])
        return start, values[-1]

    model = GPRegressor(kernel, Gaussian(noise), mean="zero", objective="loo", optimizer=stay)
    model.set_params(normalize_y=True).fit(X, y, sample_weight=weights)
    # by hand: each row from the others, targets standardised with their weights
    centre = np.average(y, weights=weights)
    scale = np.sqrt(np.average((y - centre) ** 2, weights=weights))
    t, K, total = (y - centre) / scale, kernel(X), 0.0
    assert model.posterior_.scale == pytest.approx([scale])
    for i in range(40):
        rest = np.arange(40) != i
        Q = K[np.ix_(rest, rest)] + np.diag(noise / weights[rest])
        mean = K[i, rest] @ np.linalg.solve(Q, t[rest])
        variance = K[i, i] + noise - K[i, rest] @ np.linalg.solve(Q, K[rest, i])
        # the density of the target itself, in its own units
        total += weights[i] * norm.logpdf(y[i], centre + scale * mean, scale * np.sqrt(variance))
    assert values[0] == pytest.approx(total, rel=1e-9)


def test_a_given_noise_of_new_rows_is_kept_under_weights():
    known = np.linspace(0.1, 0.4, 40)
    weights = np.arange(40) % 4
    mine = fixed().set_params(likelihood=Gaussian(known, new_noise=3.0))
    mean = fixed().set_params(likelihood=Gaussian(known))
    for model, wanted in ((mine, 3.0), (mean, np.average(known, weights=weights))):
        model.fit(X, Y, sample_weight=weights)
        assert model.likelihood_.new_variance == pytest.approx(wanted, rel=1e-12)
        _, std = model.predict(X_NEW, return_std=True)
        _, latent = model.predict(X_NEW, return_std=True, latent=True)
        np.testing.assert_allclose(std**2 - latent**2, wanted, rtol=1e-9)


def test_leave_one_out_has_the_rows_that_were_fitted():
    weights = np.where(np.arange(40) % 5, 1.0, 0.0)
    model = fixed().fit(X, Y, sample_weight=weights)
    left = model.loo()
    assert len(left.mean) == len(left.std) == len(left.log_density) == len(model.X_train_) == 32
    for mine, theirs in zip(left, fixed().fit(X[weights > 0], Y[weights > 0]).loo(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
