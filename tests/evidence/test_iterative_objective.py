"""The objective of iterative fits: its gradient, what it holds, and what searches make of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data, Objective, maximise
from mercer.evidence.iterative import IterativeObjective
from mercer.inference.iterative import Settings
from mercer.kernels import RBF, Exponential
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

ROUGH = Settings(rank=15, n_probes=20)


def parts(n=60, outputs=1, weights=None, mean=None, kernel=None, scale=1.0, noise=0.1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    Y = np.sin(X[:, :1]) + 0.2 * rng.normal(size=(n, outputs)) + 1.0
    data = Data(X, Y, weights, np.full(outputs, scale))
    mean = means.Constant() if mean is None else mean
    return (1.3 * RBF([0.9, 1.4]) if kernel is None else kernel), Gaussian(noise), mean, data


WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, 60)
CASES = {
    "one output": {},
    "weights": {"weights": WEIGHTS},
    "several": {"outputs": 2, "scale": 2.5, "weights": WEIGHTS},
    "integrated": {"mean": means.Linear(estimate="integrate"), "weights": WEIGHTS},
    "weights beside noise that is fixed": {
        "weights": WEIGHTS,
        "noise": Parameter(0.1, fixed=True),
        "scale": 2.5,
    },
    "held": {"mean": means.Constant(0.7, estimate=None)},
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_exact_objective_where_nothing_is_estimated(case):
    given = parts(**CASES[case])
    exact = Objective(*given)
    found = IterativeObjective(*given, Settings(tol=1e-24), 0)
    theta = exact.theta + 0.1
    (value, gradient), (other, slope) = exact(theta), found(theta)
    assert other == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(slope, gradient, rtol=1e-6, atol=1e-7)
    assert found.value(theta) == pytest.approx(exact.value(theta), rel=1e-8)
    assert found.pivots is None
    assert not found.is_estimate
    own = np.concatenate([theta, given[2].theta])
    for one, two in zip(exact.log_evidence(own, True), found.log_evidence(own, True), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-7)


def test_a_search_holds_its_pivots_and_a_fit_chooses_its_own():
    objective = IterativeObjective(*parts(kernel=1.0 * Exponential(1.0)), ROUGH, 0)
    objective(objective.theta)
    held = objective.pivots
    assert objective.is_estimate
    assert len(held) == 15
    objective(objective.theta + 1.0)
    assert objective.pivots is held
    other = copy.copy(objective)
    assert other.pivots is held
    assert other(objective.theta)[0] == objective(objective.theta)[0]
    fit = objective.fitted(objective.theta + 1.0)
    assert not np.array_equal(fit.solution.pivots, held)
    assert fit.solution.std_error > 0


def test_a_search_over_estimates_ends_where_its_gradient_tells_nothing():
    objective = IterativeObjective(*parts(n=100, kernel=1.0 * Exponential(1.0)), ROUGH, 0)
    optimum = maximise(objective)
    assert optimum.status == "converged"
    assert optimum.value == max(optimum.values)


def test_a_noise_covariance_is_refused():
    kernel, _, mean, data = parts(n=5)
    with pytest.raises(ValueError, match="full noise covariance"):
        IterativeObjective(kernel, Gaussian(np.eye(5)), mean, data, ROUGH, 0)
