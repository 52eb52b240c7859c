"""The penalty from which on nothing is in use."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import _largest_penalty
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._first_penalty import are_alike, rounding_of_first, slope_bound
from mercer.inference._largest_penalty import loss_without_functions
from mercer.inference.laplacian import largest_penalty, solve
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Huber, Laplace
from mercer.priors import Laplacian, WeightDecay

from .expansion_cases import (
    NOISES,
    Case,
    convex_optimum,
)

each_noise = pytest.mark.parametrize("name", NOISES)
shapes = pytest.mark.parametrize(
    "options",
    [{}, {"free": True, "mean": True}, {"weighted": True, "free": True}],
    ids=["plain", "free-mean", "weighted-free"],
)


@each_noise
@shapes
def test_zero_above_the_largest_penalty_alone(name, options):
    case = Case(name, **options)
    problem = case.problem()
    largest = largest_penalty(problem)
    above = solve(problem, lam=largest * (1 + 1e-9), tol=1e-10)
    assert above.coef.size == 0 and above.status == "certified"
    below = solve(problem, lam=largest * 0.998, tol=1e-10)
    assert below.coef.size > 0
    # what is left without columns
    null = convex_optimum(case, 1e4)
    assert above.objective == pytest.approx(null, rel=1e-6)


def test_largest_penalty_with_many_rows_at_the_kink():
    # a third of the targets are the median, and their pulls are whatever suits
    rng = np.random.default_rng(3)
    y = rng.integers(-1, 2, 60).astype(float)
    Phi = rng.normal(size=(60, 40))
    problem = ExpansionProblem.of(ArrayColumns(Phi), Laplace(1.0), y, H=np.ones((60, 1)))
    largest = largest_penalty(problem)
    assert solve(problem, lam=largest * (1 + 1e-6), tol=1e-12).coef.size == 0
    null = solve(problem, lam=1e6).objective
    below = solve(problem, lam=largest * 0.99, tol=1e-12)
    assert below.coef.size > 0 and below.objective < null * (1 - 1e-6)


def test_largest_penalty_of_targets_that_are_the_mean():
    problem = ExpansionProblem.of(ArrayColumns(np.ones((3, 2))), Laplace(1.0), np.zeros(3))
    assert largest_penalty(problem) == 0.0
    assert solve(problem, lam=1.0).objective == 0.0


def test_targets_that_are_tied_at_the_median_do_not_go_in_circles():
    """Of counts most rows are at kinks; the simplex method alone did not come back."""
    X = np.random.default_rng(3).normal(size=(80, 2))
    y = np.random.default_rng(1).poisson(0.15, 80).astype(float)
    for width, most in ((0.5, 1.0), (2.8, 1e-7)):
        columns = KernelColumns(RBF(width), X)
        problem = ExpansionProblem.of(columns, Laplace(1.0), y, H=np.ones((80, 1)))
        largest = largest_penalty(problem)
        assert 0.0 < largest < most
        found = solve(problem, lam=max(1.001 * largest, 1e-4))
        assert found.status == "certified" and not len(found.indices)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_slope_that_ties_leave_none_of_ends_the_search(seed, monkeypatch):
    """Rounding makes the least slope negative; conditions seemed to be new for ever then."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5, 5, (200, 1))
    y = np.where(rng.random(200) < 0.9, 0.0, rng.normal(size=200))
    columns = KernelColumns(RBF(0.3), x)
    problem = ExpansionProblem.of(columns, Laplace(1.0), y, H=np.ones((200, 1)))
    calls, solved = [], _largest_penalty._solved

    def counted(*programme):
        calls.append(1)
        assert len(calls) <= 200 // _largest_penalty._CONDITIONS + 1, "conditions are added again"
        return solved(*programme)

    monkeypatch.setattr(_largest_penalty, "_solved", counted)
    largest = largest_penalty(problem)
    assert calls and 0.0 < largest < 1e-5
    found = solve(problem, lam=largest)
    assert found.status == "certified" and not len(found.indices)


def test_a_programme_that_the_simplex_method_gives_up_is_solved_otherwise(monkeypatch):
    case = Case("laplace", free=True)
    wanted = largest_penalty(case.problem())
    monkeypatch.setattr(_largest_penalty, "_PIVOTS", 0)
    assert largest_penalty(case.problem()) == pytest.approx(wanted, rel=1e-6)
    monkeypatch.setattr(_largest_penalty, "_INTERIOR", 0)
    assert largest_penalty(case.problem()) >= wanted * (1.0 - 1e-9)


@pytest.mark.parametrize("place", [3, 5])
def test_what_is_rounding_does_not_depend_on_the_order_of_functions(place):
    """Functions may be of any size, and all of them count."""
    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(60, 200)), rng.normal(size=60)
    Phi[:, place] *= 1e6
    problem = ExpansionProblem.of(ArrayColumns(Phi), Laplace(1.0), y, H=np.ones((60, 1)))
    found = rounding_of_first(problem, Laplacian)
    wanted = 1e-7 * np.max(np.sum(np.abs(Phi - Phi.mean(axis=0)), axis=0))
    assert found == pytest.approx(wanted, rel=1e-12)
    assert rounding_of_first(problem, WeightDecay) == 0.0
    assert slope_bound(problem) == pytest.approx(np.max(np.sum(np.abs(Phi), axis=0)), rel=1e-12)
    # a heavy row pulls no more than all others together, which have to balance it
    weights = np.ones(60)
    weights[7] = 1e9
    problem = ExpansionProblem.of(ArrayColumns(Phi), Laplace(1.0), y, weights=weights)
    pulls = np.where(weights > 1.0, 59.0, 1.0)
    wanted = 1e-7 * np.max(pulls @ np.abs(Phi))
    assert rounding_of_first(problem, Laplacian) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("noise", [Gaussian(0.01), Huber(0.1, 1.0)])
@pytest.mark.parametrize("free", [True, False])
def test_few_targets_that_are_not_0_leave_pulls_at_all_rows(noise, count, free):
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-3, 3, (40, 2)), np.zeros(40)
    y[[7, 20][:count]] = 1.0
    H = np.ones((40, 1)) if free else None
    problem = ExpansionProblem.of(KernelColumns(RBF(1e7), X), noise, y, H=H)
    most = largest_penalty(problem)
    assert most <= slope_bound(problem)
    # beside a constant functions that are one have slopes of rounding, and are known for that
    assert (most <= rounding_of_first(problem, Laplacian)) == free
    assert are_alike(problem) == free


def test_targets_far_from_0_are_no_rounding_while_doubles_hold_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (100, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=100)
    for offset, known in ((1e6, True), (1e12, True), (1e15, False)):
        problem = ExpansionProblem.of(
            KernelColumns(RBF(0.5), X), Gaussian(0.01), y + offset, H=np.ones((100, 1))
        )
        assert (largest_penalty(problem) > rounding_of_first(problem, Laplacian)) == known


def test_functions_that_are_free_ones_to_rounding_are_alike():
    rng = np.random.default_rng(0)
    t, y = rng.normal(size=(40, 1)), rng.normal(size=40)
    H = np.hstack([np.ones((40, 1)), t])
    for bent, alike in ((0.0, True), (1e-6, False)):
        Phi = H @ rng.normal(size=(2, 300)) + bent * t**2
        assert are_alike(ExpansionProblem.of(ArrayColumns(Phi), Laplace(1.0), y, H=H)) == alike


def test_the_loss_without_functions_is_that_of_the_median():
    y = np.array([3.0, -1.0, 4.0, 10.0, 0.5])
    problem = ExpansionProblem.of(ArrayColumns(np.eye(5)), Laplace(2.0), y, H=np.ones((5, 1)))
    assert loss_without_functions(problem) == pytest.approx(np.sum(np.abs(y - 3.0)), rel=1e-12)


@pytest.mark.parametrize("far", [1e3, 1e10])
def test_a_far_target_is_no_measure_of_who_is_at_the_median(far):
    """By absolute distances it counts for its side alone, however far it is."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-5, 5, (60, 1))
    y = np.where(rng.random(60) < 0.4, 0.0, rng.normal(size=60))
    columns, found = KernelColumns(RBF(0.5), x), []
    for value in (10.0, far):
        y[0] = value
        problem = ExpansionProblem.of(columns, Laplace(1.0), y.copy(), H=np.ones((60, 1)))
        found.append(largest_penalty(problem))
    assert found[1] == pytest.approx(found[0], rel=1e-5)
