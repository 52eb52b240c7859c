"""The objective on the approximate engines: values, gradients, starts, and what comes of it."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.evidence import (
    Data,
    LatentData,
    LatentObjective,
    Objective,
    hessian,
    maximise,
)
from mercer.evidence.mean_start import begun_mean, mean_directions
from mercer.kernels import RBF, Linear, Periodic
from mercer.likelihoods import Gaussian, Huber, Laplace, Logistic, Poisson, Softmax, StudentT
from mercer.params import LogNormal, Parameter

N = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
F = np.sin(X[:, 0])
W = RNG.uniform(0.5, 2.0, N)
NOISY = F + 0.2 * RNG.standard_t(3, N)
TARGETS = {
    "StudentT": (StudentT(4.0, Parameter(0.3, prior=LogNormal(-1.0, 1.0))), NOISY),
    "Huber": (Huber(0.3, 1.0), NOISY),
    "Laplace": (Laplace(0.3), NOISY),
    "Gaussian": (Gaussian(0.2), NOISY),
    "Poisson": (Poisson(), RNG.poisson(np.exp(F)).astype(float)),
    "Logistic": (Logistic(), np.sign(F + 0.5 * RNG.normal(size=N))),
}
# Each engine once; the evidence of all pairs is in tests/estimators/test_evidence_gradients.py.
PAIRS = [("StudentT", "laplace"), ("StudentT", "ep"), ("Huber", "vi"), ("Logistic", "bounds")]


def kernel():
    return 1.3 * RBF(Parameter([0.8, 1.4], prior=LogNormal(0.1, 0.7)))


def make(name, engine, mean=None, weights=None):
    likelihood, y = TARGETS[name]
    mean = means.Zero() if mean is None else mean
    return LatentObjective(kernel(), likelihood, mean, LatentData(X, y, weights), engine)


def differences(function, theta, step=1e-4):
    return np.array(
        [
            (function(theta + step * e) - function(theta - step * e)) / (2 * step)
            for e in np.eye(theta.size)
        ]
    )


@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_gradient(name, engine):
    objective = make(name, engine, means.Linear(), W)
    assert objective.parameter_names[-3:] == ["mean.intercept", "mean.slope[0]", "mean.slope[1]"]
    theta = objective.theta + 0.1 * np.cos(np.arange(objective.theta.size))
    value, gradient = objective(theta)
    expected = differences(lambda t: objective(t)[0], theta)
    # EP's adjoints are exact where its sites are: to about 1e-6
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=2e-5)
    assert objective.value(theta) == pytest.approx(value, rel=1e-9)
    model = objective.unpack(theta)
    priors = sum(part.log_prior() for part in model)
    assert objective.log_evidence(theta)[0] == pytest.approx(value - priors, rel=1e-9)


@pytest.mark.parametrize("engine", ["laplace", "ep", "vi"])
@pytest.mark.parametrize("weights", [None, W])
def test_gaussian_noise_is_exact(engine, weights):
    latent = make("Gaussian", engine, means.Constant(0.3, estimate=None), weights)
    y = TARGETS["Gaussian"][1][:, None]
    exact = Objective(
        kernel(),
        Gaussian(0.2),
        means.Constant(0.3, estimate=None),
        Data(X, y, weights, np.ones(1)),
    )
    value, gradient = latent(latent.theta)
    expected, slopes = exact(exact.theta)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)
    one, other = latent.fitted(latent.theta), exact.fitted(exact.theta)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)
    for mine, theirs in zip(
        one.posterior.mean_and_var(X), other.posterior.mean_and_var(X), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_classes_that_are_coupled():
    Y = np.eye(3)[np.arange(N) % 3]
    objective = LatentObjective(
        kernel(), Softmax(3), means.Constant(), LatentData(X, Y, W), "laplace"
    )
    assert objective.theta.size == 6
    _, gradient = objective(objective.theta)
    expected = differences(lambda t: objective(t)[0], objective.theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)
    mode = LatentObjective(kernel(), Softmax(3), means.Constant(), LatentData(X, Y, W), "map")
    posterior, solution = mode.posterior(objective.theta)
    np.testing.assert_allclose(posterior.mean(X), solution.latent, atol=1e-8)
    # which is not in the middle
    assert np.any(np.abs(objective.posterior(objective.theta)[0].mean(X) - solution.latent) > 0.01)


@pytest.mark.parametrize(("name", "engine"), [("StudentT", "ep"), ("Poisson", "vi")])
def test_the_next_evaluation_starts_from_the_last(name, engine):
    objective = make(name, engine)
    assert objective.start == []
    objective(objective.theta)
    first = objective.posterior(objective.theta)[1].n_iterations
    assert first <= 2  # it was there already
    kept = objective.start
    other = make(name, engine)
    other.start = [a.tolist() for a in kept]
    assert other.posterior(other.theta)[1].n_iterations <= 2


def test_the_posterior_at_the_best_point_is_that_of_its_own_state():
    objective = make("StudentT", "laplace")
    maximise(objective, max_iter=3)
    best = objective._best
    objective(objective.theta + 1.0)
    _, solution = objective.posterior(best[1])
    priors = sum(part.log_prior() for part in objective.unpack(best[1]))
    assert solution.log_evidence + priors == pytest.approx(best[0], rel=1e-8)


def test_copies_go_on_by_themselves():
    objective = make("Poisson", "laplace")
    objective(objective.theta)
    other = copy.copy(objective)
    assert other.state is objective.state and other.jitter == objective.jitter == 0.0
    other(other.theta + 0.3)
    assert other.state is not objective.state


def test_a_matrix_that_cannot_be_factorised():
    rows = np.repeat(X[:5], 4, axis=0)
    objective = LatentObjective(
        Linear(), Gaussian(0.1), means.Zero(), LatentData(rows, NOISY), "laplace"
    )
    objective.hold_jitter(0.0)
    objective.evaluate = lambda theta: (_ for _ in ()).throw(NotPositiveDefiniteError("no"))
    with pytest.raises(NotPositiveDefiniteError):
        objective(objective.theta)
    at = objective.theta
    value = objective.value(at)
    penalty, gradient = objective(at + 0.1)
    assert penalty < value and np.all(np.isfinite(gradient)) and objective.failed
    assert not objective.take_jitter()  # the engine needs none there
    objective.hold_jitter(0.0)
    assert not objective.failed


def test_what_has_no_finite_evidence_has_no_value():
    objective = make("Poisson", "laplace")
    solution = SimpleNamespace(log_evidence=np.nan, state=None, jitter=0.0)
    objective.engine = SimpleNamespace(solve=lambda problem, start: solution)
    assert objective.value(objective.theta) == -np.inf


def test_starts():
    data = LatentData(X, TARGETS["Poisson"][1])
    objective = LatentObjective(
        Periodic().on(0) + RBF(), Poisson(), means.Constant(), data, "laplace"
    )
    rng = np.random.default_rng(0)
    drawn = objective.draw_theta(rng)
    assert drawn.shape == objective.theta.shape and drawn[-1] == objective.theta[-1]
    intervals = objective.start_intervals()
    assert intervals.shape == (objective.theta.size, 2) and np.all(np.isnan(intervals[-1]))
    names = np.array(objective.parameter_names)
    assert names[~np.isnan(intervals[:, 0])].tolist() == ["kernel.On.Periodic.periodicity"]


def test_the_best_of_several_kernels():
    objective = make("Poisson", "laplace")
    kernels = [kernel().with_theta(kernel().theta + shift) for shift in (-2.0, 0.1, 3.0)]
    values = [make("Poisson", "laplace").value(k.theta) for k in kernels]
    objective.begin_at_best(kernels)
    assert objective.kernel == kernels[int(np.argmax(values))]
    assert objective.state is None and objective.jitter is None


# --- the mean -------------------------------------------------------------------------------------


def test_coefficients_start_where_outliers_have_no_say():
    rows = np.column_stack([np.linspace(1990.0, 2020.0, 50), RNG.normal(size=50)])
    line = 3.0 + 2.0 * (rows[:, 0] - 2000.0) - rows[:, 1]
    wrong = line + np.where(np.arange(50) % 5 == 0, 1e6, 0.0)
    mean = begun_mean(means.Linear(), rows, wrong[:, None])
    np.testing.assert_allclose(mean(rows)[:, 0], line, atol=1e-3)
    constant = begun_mean(means.Constant(), rows, wrong[:, None])
    assert np.min(line) < constant.value < np.max(line)
    known = means.Constant(2.0)
    assert begun_mean(known, rows, wrong[:, None]) is known


def test_constant_targets_are_fitted_as_they_are():
    mean = begun_mean(means.Linear(), X, np.full((N, 1), 7.0), W)
    np.testing.assert_allclose(mean(X), 7.0, rtol=1e-12)


def test_directions_move_the_mean_alike():
    rows = np.column_stack([np.linspace(1990.0, 2020.0, 50), 1e-5 * RNG.normal(size=50)])
    latent = 1e4 * RNG.normal(size=(50, 1))
    mean = begun_mean(means.Linear(), rows, latent)
    T = mean_directions(mean, rows, latent)
    moved = np.array([mean.with_theta(mean.theta + t)(rows)[:, 0] for t in T.T])
    change = moved - mean(rows)[:, 0]
    size = np.sqrt(np.mean(change**2, axis=1))
    np.testing.assert_allclose(size, size[0], rtol=1e-6)
    assert 1e3 < size[0] < 1e5
    np.testing.assert_allclose(np.mean(change[1:], axis=1) / size[0], 0.0, atol=1e-6)
    assert mean_directions(means.Zero(), rows, latent).shape == (0, 0)


def in_units(unit):
    years = 2000.0 + 3.0 * X
    noise = StudentT(Parameter(4.0, fixed=True), 0.3 * unit)
    data = LatentData(years, unit * (NOISY + 0.2 * years[:, 0]))
    objective = LatentObjective(unit**2 * RBF([3.0, 3.0]), noise, means.Linear(), data, "laplace")
    objective.bounds[:4] = objective.theta[:4, None] + np.array([-5.0, 5.0])
    return objective


@pytest.mark.parametrize("unit", [1e7, 1e-7])
def test_the_search_does_not_depend_on_units(unit):
    plain = maximise(in_units(1.0))
    objective = in_units(unit)
    optimum = maximise(objective)
    assert optimum.status == "converged"
    assert optimum.value + N * np.log(unit) == pytest.approx(plain.value, abs=1e-3)
    np.testing.assert_allclose(optimum.theta[-3:] / unit, plain.theta[-3:], rtol=1e-3)


def test_second_derivatives_along_directions():
    objective = in_units(1e-7)
    theta, T = objective.theta, objective.directions.matrix()
    H = hessian(objective.evaluate, theta, directions=objective.directions)

    def along(z):
        return T.T @ objective.evaluate(theta + T @ z)[1]

    step = 1e-4
    expected = [(along(step * e) - along(-step * e)) / (2 * step) for e in np.eye(theta.size)]
    np.testing.assert_allclose(T.T @ H @ T, expected, rtol=1e-4, atol=1e-4)


def test_integrated_coefficients_are_refused():
    with pytest.raises(ValueError, match="under Gaussian noise alone; give the mean estimate='ml'"):
        make("Poisson", "laplace", means.Constant(estimate="integrate"))


# --- leave-one-out, and the mode ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "engine"), [("Poisson", "vi"), ("Logistic", "bounds"), ("Huber", "vi")]
)
def test_leave_one_out_is_near_refitting(name, engine):
    objective = make(name, engine)
    left = objective.leave_one_out(objective.theta)
    for i in (0, 7):
        others = np.arange(N) != i
        likelihood, y = TARGETS[name]
        data = LatentData(X[others], y[others])
        again = LatentObjective(kernel(), likelihood, means.Zero(), data, engine)
        mean, var = again.posterior(again.theta)[0].mean_and_var(X[i : i + 1])
        assert left.mean[i] == pytest.approx(mean[0, 0], abs=0.15 * np.sqrt(var[0, 0]))
        assert left.variance[i] == pytest.approx(var[0, 0], rel=0.3)


def test_leave_one_out_is_refused_where_there_is_none():
    objective = LatentObjective(
        kernel(), Softmax(2), means.Zero(), LatentData(X, np.eye(2)[np.arange(N) % 2]), "laplace"
    )
    if hasattr(objective.engine, "leave_one_out"):
        pytest.skip("the softmax has one")
    with pytest.raises(ValueError, match="no leave-one-out in closed form"):
        objective.leave_one_out(objective.theta)


def test_the_mode_has_a_posterior_and_no_evidence():
    objective = make("Laplace", "map")
    fit = objective.fitted(objective.theta)
    assert np.isnan(fit.log_evidence)
    assert fit.posterior.mean(X).shape == (N, 1)
    with pytest.raises(ValueError, match="has no evidence"):
        objective.log_evidence(objective.theta)
