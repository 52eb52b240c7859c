"""The evidence of several functions under one kernel: a sum, with its derivatives."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence import LatentData, LatentObjective
from mercer.evidence.against_rest import AgainstRest
from mercer.kernels import RBF
from mercer.likelihoods import Logistic, Probit
from mercer.means import Constant, Zero
from mercer.params import Parameter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 2))
Y = 2.0 * np.eye(3)[RNG.integers(0, 3, 25)] - 1.0
DATA = LatentData(X, Y, RNG.uniform(0.5, 2.0, 25))
KERNEL = 1.4 * RBF([0.8, 1.5])
MEANS = [Zero(), Constant([0.2, -0.1, 0.4])]
LINKS = [Logistic(), Probit(Parameter(0.7))]


@pytest.mark.parametrize("mean", MEANS, ids=repr)
@pytest.mark.parametrize("likelihood", LINKS, ids=repr)
@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_it_is_the_sum_over_columns(mean, likelihood, inference):
    objective = AgainstRest(KERNEL, likelihood, mean, DATA, inference)
    total = 0.0
    for p in range(3):
        own = mean if isinstance(mean, Zero) else Constant(mean.value[p])
        data = replace(DATA, y=Y[:, p])
        one = LatentObjective(KERNEL, likelihood, own, data, inference)
        total += one.log_evidence(one.theta)[0]
    np.testing.assert_allclose(objective.log_evidence(objective.theta)[0], total, rtol=1e-7)


@pytest.mark.parametrize("mean", MEANS, ids=repr)
@pytest.mark.parametrize("likelihood", LINKS, ids=repr)
@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_gradient_against_differences(mean, likelihood, inference):
    objective = AgainstRest(KERNEL, likelihood, mean, DATA, inference)
    theta = objective.theta + 0.05 * np.cos(np.arange(objective.theta.size))
    value, gradient = objective.evaluate(theta)
    np.testing.assert_allclose(value, objective.value(theta), rtol=1e-8)
    for j in range(theta.size):
        step = 1e-4 * np.eye(theta.size)[j]
        wanted = (objective.value(theta + step) - objective.value(theta - step)) / 2e-4
        np.testing.assert_allclose(gradient[j], wanted, rtol=1e-4, atol=1e-4)


def test_a_copy_and_another_kernel():
    objective = AgainstRest(KERNEL, Logistic(), Zero(), DATA, "laplace")
    value = objective.value(objective.theta)
    again = copy(objective)
    np.testing.assert_allclose(again.value(again.theta), value, rtol=1e-9)
    other = objective.under(2.0 * RBF(1.0), Logistic(), objective.theta)
    assert isinstance(other, AgainstRest)
    assert other.value(other.theta) != value
    assert objective._jitter_for(objective.theta) == 0.0


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_after_an_evaluation_that_failed_it_goes_on(inference, monkeypatch):
    objective = AgainstRest(KERNEL, Logistic(), Zero(), DATA, inference)
    expected = objective.log_evidence(objective.theta)[0]
    solve, calls = objective.engine.solve, []

    def failing(problem, *rest):
        calls.append(problem)
        if len(calls) == 2:
            raise NotPositiveDefiniteError("for once")
        return solve(problem, *rest)

    monkeypatch.setattr(objective.engine, "solve", failing)
    with pytest.raises(NotPositiveDefiniteError):
        objective._height(list(objective.unpack(objective.theta)))
    monkeypatch.undo()
    assert objective.log_evidence(objective.theta)[0] == pytest.approx(expected, rel=1e-6)
