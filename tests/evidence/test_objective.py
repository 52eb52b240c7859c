"""The objective's value and gradient, for every mean, weight, criterion and number of outputs."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError
from mercer.evidence import Data, Objective, maximise, warn_of_search
from mercer.evidence.defaults import deviation
from mercer.kernels import RBF, Linear, Matern, Periodic
from mercer.likelihoods import Gaussian
from mercer.params import LogNormal, Parameter

MEANS = {
    "zero": means.Zero(),
    "constant": means.Constant(),
    "linear": means.Linear(),
    "constant, integrated": means.Constant(estimate="integrate"),
    "linear, integrated": means.Linear(estimate="integrate"),
    "held": means.Constant(1.5, estimate=None),
}


def data(outputs=1, weighted=False, n=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(n, outputs)) + 2.0
    weights = rng.uniform(0.5, 3.0, n) if weighted else None
    return Data(X, Y, weights, np.linspace(1.0, 1.7, outputs))


def differences(function, theta, step=1e-5):
    return np.array(
        [
            (function(theta + step * e) - function(theta - step * e)) / (2 * step)
            for e in np.eye(theta.size)
        ]
    )


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
@pytest.mark.parametrize("mean", MEANS)
def test_gradient(mean, criterion, weighted, outputs):
    kernel = 1.3 * RBF(Parameter([0.8, 1.4], prior=LogNormal(0.1, 0.7))) + 0.2 * Linear(0.5)
    objective = Objective(
        kernel,
        Gaussian(Parameter(0.2, prior=LogNormal(-1.0, 1.0))),
        MEANS[mean],
        data(outputs, weighted),
        criterion,
    )
    _, gradient = objective(objective.theta)
    expected = differences(lambda t: objective(t)[0], objective.theta)
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
@pytest.mark.parametrize("mean", MEANS)
def test_the_value_alone_is_the_same(mean, criterion, weighted):
    kernel = 1.3 * RBF(Parameter([0.8, 1.4], prior=LogNormal(0.1, 0.7)))
    parts = (kernel, Gaussian(0.2), MEANS[mean], data(2, weighted), criterion)
    alone, both = Objective(*parts), Objective(*parts)
    assert alone.value(alone.theta) == pytest.approx(both(both.theta)[0], rel=1e-12)
    assert alone.jitter == both.jitter == 0.0


def test_gradient_of_a_composed_kernel():
    kernel = Matern([0.9, 1.1], nu=2.5) * Periodic(1.2, 2.0).on(0) + (0.5 * RBF(2.0)) ** 2
    objective = Objective(kernel, Gaussian(0.2), means.Zero(), data())
    _, gradient = objective(objective.theta)
    expected = differences(lambda t: objective(t)[0], objective.theta)
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-6)


def test_fixed_parameters_are_left_out():
    kernel = 1.3 * RBF(Parameter([0.8, 1.4], fixed=True))
    objective = Objective(kernel, Gaussian(Parameter(0.2, fixed=True)), means.Zero(), data())
    assert objective.parameter_names == ["kernel.variance"]
    assert objective(objective.theta)[1].shape == (1,)


def test_hyperprior_is_added():
    plain = Objective(RBF(0.8), Gaussian(0.2), means.Zero(), data())
    prior = LogNormal(0.0, 0.5)
    with_prior = Objective(RBF(Parameter(0.8, prior=prior)), Gaussian(0.2), means.Zero(), data())
    difference = with_prior(with_prior.theta)[0] - plain(plain.theta)[0]
    assert difference == pytest.approx(float(prior.log_density(np.array(0.8))), rel=1e-12)


def test_units_of_the_outputs_enter_the_evidence():
    """Dividing targets by s and calling it their unit changes the kernel's units, nothing else."""
    rows = data()
    scaled = Data(rows.X, rows.Y, None, np.array([3.0]))
    in_units = Objective(9.0 * RBF(0.8), Gaussian(9.0 * 0.2), means.Constant(), rows)
    relative = Objective(1.0 * RBF(0.8), Gaussian(0.2), means.Constant(), scaled)
    assert in_units(in_units.theta)[0] == pytest.approx(relative(relative.theta)[0], rel=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_units_of_the_outputs_change_nothing_for_any_mean(mean):
    rows = data()
    scaled = Data(rows.X, rows.Y, None, np.array([3.0]))
    for criterion in ("evidence", "loo"):
        in_units = Objective(9.0 * RBF(0.8), Gaussian(1.8), MEANS[mean], rows, criterion)
        relative = Objective(1.0 * RBF(0.8), Gaussian(0.2), MEANS[mean], scaled, criterion)
        assert in_units(in_units.theta)[0] == pytest.approx(relative(relative.theta)[0], rel=1e-10)


def test_jitter_is_decided_by_the_first_evaluation():
    X = np.repeat(np.linspace(0, 1, 10), 2)[:, None]
    rows = Data(X, np.sin(X), None, np.ones(1))
    objective = Objective(RBF(1.0), Gaussian(np.zeros(20)), means.Zero(), rows)
    objective(objective.theta)
    decided = objective.jitter
    assert decided > 0
    objective(objective.theta - 2.0)  # would do with less
    assert objective.jitter == decided


def on_the_edge():
    X = np.linspace(0, 5, 40)[:, None]
    rows = Data(X, np.sin(X), None, np.ones(1))
    return Objective(RBF(0.2), Gaussian(np.zeros(40)), means.Zero(), rows)


def test_jitter_is_taken_up_for_the_last_point_that_failed():
    objective = on_the_edge()
    assert not objective.take_jitter()  # nothing has failed
    start, _ = objective(objective.theta)
    assert objective.jitter == 0.0 and not objective.failed
    long = np.log([1.0])
    penalty, _ = objective(long)
    assert penalty < start and objective.failed
    assert objective.take_jitter() and 0 < objective.jitter <= 1e-6
    assert not objective.failed
    value, gradient = objective(long)
    assert value > start
    # the jitter leaves a condition of 1e11: values round at 1e-6 or so, which a step of 1e-3 makes
    # 1e-3 of a slope near 100, while the differences of this smooth function are wrong by as little
    expected = differences(lambda t: objective(t)[0], long, step=1e-3)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3)
    objective.hold_jitter(0.0)
    assert objective(objective.theta)[0] == start


def test_a_search_ends_where_the_objective_is_flat_not_where_matrices_fail():
    optimum = maximise(on_the_edge())
    assert optimum.jitter > 0 and optimum.is_flat
    assert optimum.theta[0] > np.log(1.0)
    assert optimum.value == max(optimum.values)


def test_steps_too_far_take_up_no_jitter():
    """They are turned back, and the search ends where it would have."""
    X = np.random.default_rng(0).uniform(0, 5, size=(30, 1))
    rows = Data(
        X, np.sin(X) + 0.1 * np.random.default_rng(1).normal(size=(30, 1)), None, np.ones(1)
    )
    objective = Objective(1.0 * RBF(1.0), Gaussian(0.1), means.Zero(), rows)
    plain, limit = objective.evaluate, objective.theta + np.array([9.0, 1.0, 9.0])
    failures = []

    def evaluate(theta):
        if np.any(theta > limit):
            failures.append(theta)
            raise NotPositiveDefiniteError("too far")
        return plain(theta)

    objective.evaluate = evaluate
    optimum = maximise(objective)
    assert failures and optimum.status == "converged" and optimum.jitter == 0.0
    undisturbed = maximise(Objective(1.0 * RBF(1.0), Gaussian(0.1), means.Zero(), rows))
    np.testing.assert_allclose(optimum.theta, undisturbed.theta, atol=1e-2)


def test_weights_are_repetitions():
    rows = data()
    weights = np.ones(25)
    weights[[3, 7]] = 2.0, 3.0
    repeated = np.repeat(np.arange(25), weights.astype(int))
    for mean in MEANS.values():
        a = Objective(RBF(0.8), Gaussian(0.2), mean, Data(rows.X, rows.Y, weights, np.ones(1)))
        b = Objective(
            RBF(0.8),
            Gaussian(0.2),
            mean,
            Data(rows.X[repeated], rows.Y[repeated], None, np.ones(1)),
        )
        (va, ga), (vb, gb) = a(a.theta), b(b.theta)
        assert va == pytest.approx(vb, rel=1e-10)
        np.testing.assert_allclose(ga, gb, rtol=1e-8)


def test_a_failed_factorisation_is_a_finite_penalty_with_its_gradient(monkeypatch):
    objective = Objective(RBF(0.8), Gaussian(0.2), means.Zero(), data())
    start, _ = objective(objective.theta)

    def fail(*_):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr("mercer.evidence.objective.evidence", fail)
    there = objective.theta + np.array([0.5, -0.3])
    value, gradient = objective(there)
    assert np.isfinite(value) and value < start
    expected = differences(lambda t: objective(t)[0], there)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    # uphill is back towards where it worked
    assert gradient @ (objective.theta - there) > 0


def test_where_there_is_no_value_it_is_minus_infinity_and_not_begun_at(monkeypatch):
    objective = on_the_edge()
    start = objective.value(objective.theta)
    assert objective.value(np.log([1.0])) == -np.inf and not objective.failed
    objective.begin_at_best([RBF(1.0), RBF(0.2)])
    assert objective.kernel == RBF(0.2) and objective.value(objective.theta) == start


def test_failure_at_the_start_is_raised(monkeypatch):
    def fail(*_):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr("mercer.evidence.objective.evidence", fail)
    objective = Objective(RBF(0.8), Gaussian(0.2), means.Zero(), data())
    with pytest.raises(NotPositiveDefiniteError):
        objective(objective.theta)


def test_unknown_criterion():
    with pytest.raises(ValueError, match=r"'evidence'.*'loo'.*'aic'"):
        Objective(RBF(), Gaussian(0.2), means.Zero(), data(), "aic")


def test_the_best_start_is_not_given_the_jitter_that_another_needs():
    X = np.linspace(0.0, 1.0, 40)[:, None]
    Y = np.random.default_rng(0).normal(size=(40, 1))
    starts = [RBF(100.0), RBF(0.01)]
    objective = Objective(
        starts[0], Gaussian(np.zeros(40)), means.Zero(), Data(X, Y, None, np.ones(1))
    )
    objective.begin_at_best(starts)
    assert objective.kernel == starts[1] and objective.jitter is None
    objective(objective.theta)
    assert objective.jitter == 0.0


def test_deviations_of_any_size():
    values = np.array([[1.0, 1e9], [2.0, 1e9 + 3.0], [4.0, 1e9 + 1.0]])
    for unit in (1e-290, 1e-170, 1.0, 1e160, 1e290):
        np.testing.assert_allclose(deviation(unit * values), unit * values.std(axis=0), rtol=1e-7)
    np.testing.assert_allclose(
        deviation(values, np.array([2.0, 1.0, 0.0])), np.std(values[[0, 0, 1]], axis=0), rtol=1e-12
    )
    np.testing.assert_array_equal(deviation(np.full((3, 1), 1e300)), 0.0)


@pytest.mark.parametrize("mean", [means.Constant(), means.Linear()], ids=["constant", "linear"])
def test_the_evidence_of_a_mean_that_is_not_known_yet(mean):
    """Its coefficients are estimated, as in a search, and not taken for 0."""
    objective = Objective(1.3 * RBF(0.8), Gaussian(0.2), mean, data(2))
    value, gradient = objective.evaluate(objective.theta)
    assert objective.log_evidence(objective.theta)[0] == pytest.approx(value)
    both = objective.log_evidence(objective.theta, gradient=True)
    assert both[0] == pytest.approx(value)
    np.testing.assert_allclose(both[1], gradient)
    with pytest.raises(ValueError, match="theta"):
        objective.log_evidence([*objective.theta, 1.0])


def test_warnings_of_a_search_that_stopped():
    objective = Objective(RBF([1.0, 1.0]), Gaussian(0.1), means.Zero(), data())
    optimum = maximise(objective, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        warn_of_search(objective, optimum)
