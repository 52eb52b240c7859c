"""Feature selection by successive tangents."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from mercer.inference._columns import KernelColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference._reweighted import _Reweighting
from mercer.inference.laplacian import solve
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Gaussian, Logistic
from mercer.priors import FeatureSelection, Laplacian

from .expansion_cases import (
    LINEAR,
    NOISES,
    Case,
    dense,
    losses,
    penalty,
    values_at,
)

each_noise = pytest.mark.parametrize("name", NOISES)


@each_noise
def test_feature_selection_never_rises(name):
    case = Case(name, free=True)
    problem, seen = case.problem(), []
    first = solve(problem, Laplacian, 0.5)
    found = solve(problem, FeatureSelection, 0.5, report=seen.append)
    values = [one.objective for one in seen]
    begin = np.sum(losses(name, case.y, first.latent)) + penalty(
        case, FeatureSelection, 0.5, dense(first, case)
    )
    assert values[0] <= begin * (1 + 1e-12)
    assert np.all(np.diff(values) <= 1e-12 * begin)
    assert found.objective == values[-1] < begin
    assert found.status == "certified"
    # the start decides, and a stationary point is its own successor
    again = solve(problem, FeatureSelection, 0.5, start=found)
    assert again.objective == pytest.approx(found.objective, rel=1e-6)
    assert again.objective <= found.objective * (1 + 1e-12)


def test_functions_that_the_laplacian_prior_leaves_out_are_found():
    """Coefficients far larger than s cost lam |theta_j| there, and no more than the unit here."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (120, 1))
    y = np.sin(X[:, 0]) + 1e-3 * rng.standard_normal(120)
    problem = ExpansionProblem.of(KernelColumns(RBF(3.0), X), Gaussian(1e-6), y)
    values = []
    for lam in 10.0 ** np.arange(-4.0, -0.5, 0.25):
        found = solve(problem, FeatureSelection, lam)
        assert found.status == "certified"
        values.append(found.objective)
        prior = problem.scale(lam), problem.loss.unit
        own = 0.5 * np.sum((y - found.latent) ** 2)
        own -= prior[1] * np.sum(np.expm1(-np.abs(found.coef) / prior[0]))
        assert found.objective == pytest.approx(own, rel=1e-9)
    # 120 rows of noise leave 60 units, and ten functions or so cost one each
    assert np.max(values) < 100 * problem.loss.unit


@pytest.mark.parametrize("seed", [6, 7, 8, 45, 289])
def test_labels_that_can_be_told_apart_are_followed_to_the_end(seed):
    """F falls towards a limit there, slowly while curvature is added, as if that were the end."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 40))
    X = rng.normal(size=(n, 2))
    y = np.where(np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = ExpansionProblem.of(KernelColumns(Tanh(2.0, 1.0), X), Logistic(), y)
    lam = 10 ** rng.uniform(-2.0, 0.5)
    found = solve(problem, FeatureSelection, lam)
    assert found.status == "certified"
    twice = np.sum(np.log1p(np.exp(-2.0 * y * found.latent)))
    twice += np.sum(1.0 - np.exp(-2.0 * lam * np.abs(found.coef)))
    assert found.objective <= twice * (1.0 + 1e-6)


def test_a_start_of_another_problem():
    case, other = Case("gaussian", free=True), Case("gaussian", free=True)
    other.Phi = other.Phi[:, ::-1]  # the same values of f, by other coefficients
    start = solve(other.problem(), FeatureSelection, 0.5)
    found = solve(case.problem(), FeatureSelection, 0.5, start=start)
    f = values_at(found, case)
    np.testing.assert_allclose(found.latent, f, atol=1e-9)
    objective = np.sum(losses("gaussian", case.y, f)) + penalty(
        case, FeatureSelection, 0.5, dense(found, case)
    )
    assert found.objective == pytest.approx(objective, rel=1e-9)
    with pytest.raises(ValueError, match="start must be of"):
        solve(Case("gaussian").problem(), start=start)
    with pytest.raises(ValueError, match="functions up to number"):
        solve(case.problem(), start=start._replace(indices=np.array([9999])))


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("solved", [0, 1])
def test_a_programme_that_is_given_up_is_the_last(name, solved, monkeypatch):
    case, calls = Case(name, free=True), []
    first = solve(case.problem(), Laplacian, 0.5)
    whole = solve(case.problem(), FeatureSelection, 0.5)
    sound = Generation.solve

    def failing(self, lam):
        calls.append(lam)
        if len(calls) > 1 + solved:  # the first is for the Laplacian prior
            raise UnsolvedError("the linear programme was not solved: Unknown")
        return sound(self, lam)

    monkeypatch.setattr(Generation, "solve", failing)
    found = solve(case.problem(), FeatureSelection, 0.5)
    assert len(calls) == 2 + solved
    assert found.status == "stopped"
    assert found.dual == 0.0  # nothing is proved
    begin = np.sum(losses(name, case.y, first.latent)) + penalty(
        case, FeatureSelection, 0.5, dense(first, case)
    )
    assert whole.objective * (1 - 1e-9) <= found.objective <= begin * (1 + 1e-9)
    np.testing.assert_allclose(found.latent, values_at(found, case), atol=1e-9)


@pytest.mark.parametrize(("seed", "width"), [(2, 0.05), (3, 0.05), (2, 0.1)])
def test_what_rounding_hides_of_functions_without_a_penalty_is_not_certified(seed, width):
    """Their slope is 0 but for rounding, and what it gains over a long way is not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 1))
    y = np.where(np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)
    H = np.ones((40, 1))
    problem = ExpansionProblem.of(KernelColumns(RBF(width), X), Logistic(), y, H=H)
    found = solve(problem, FeatureSelection, problem.loss.unit)
    A = np.column_stack([RBF(width)(X)[:, found.indices], H])
    theta = cvxpy.Variable(A.shape[1])
    margin = cvxpy.multiply(y, A @ theta)
    convex = found.penalties @ cvxpy.abs(theta[:-1])
    loss = cvxpy.sum(cvxpy.logistic(-margin))
    cvxpy.Problem(cvxpy.Minimize(loss + convex)).solve(solver="CLARABEL")
    # a bound for the tangent problem is one for the fall of F from where it touches
    own = problem.value(found.latent) + found.penalties @ np.abs(found.coef)
    best = problem.value(A @ theta.value) + found.penalties @ np.abs(theta.value[:-1])
    assert best < own * (1.0 - 1e-4)  # Clarabel goes further with the same functions
    assert found.status == "stopped"
    assert found.objective - found.dual >= (own - best) * (1.0 - 1e-6)


def test_an_interruption_before_the_first_tangent_proves_nothing(monkeypatch):
    """What is proved of the Laplacian problem is no bound of this one."""
    problem, calls = Case("gaussian").problem(), []
    solved = Generation.solve

    def second(self, lam):
        calls.append(lam)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return solved(self, lam)

    monkeypatch.setattr(Generation, "solve", second)
    found = solve(problem, FeatureSelection, 0.5)
    assert found.status == "interrupted" and found.dual == 0.0 < found.objective


@pytest.mark.parametrize("broken", [1e-2, 1e-4])
def test_an_interrupt_of_a_richer_start_leaves_what_was_proved(monkeypatch, broken):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (120, 1))
    y = np.sin(X[:, 0]) + 1e-3 * rng.standard_normal(120)
    problem = ExpansionProblem.of(KernelColumns(RBF(3.0), X), Gaussian(1e-6), y)
    whole = Generation.solve

    def interrupted(self, lam):
        if np.ndim(lam) == 0 and lam < 1.5 * broken:
            raise KeyboardInterrupt
        return whole(self, lam)

    monkeypatch.setattr(Generation, "solve", interrupted)
    found = solve(problem, FeatureSelection, 1.0)
    assert found.status == "interrupted" and np.isfinite(found.objective) and len(found.indices)
    f = problem.columns.take(found.indices) @ found.coef
    np.testing.assert_allclose(found.latent, f, atol=1e-8)


def test_a_richer_start_that_is_not_proved_is_left(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (120, 1))
    y = np.sin(X[:, 0]) + 1e-3 * rng.standard_normal(120)
    problem = ExpansionProblem.of(KernelColumns(RBF(3.0), X), Gaussian(1e-6), y)
    whole, calls = _Reweighting.settled, []

    def unproved(self, best, report=None):
        calls.append(found := whole(self, best, report))
        return found if len(calls) == 1 else found._replace(status="stopped")

    monkeypatch.setattr(_Reweighting, "settled", unproved)
    found = solve(problem, FeatureSelection, 1.0)
    assert calls[1].objective < calls[0].objective
    assert found.status == "certified" and found.objective == calls[0].objective


def test_a_start_is_judged_by_where_it_leads():
    """Among scales that are all but the same the one found was twice as far from the least F."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2300, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=2300))[:300]
    weights = np.random.default_rng(3).choice((0, 1, 2), 300).astype(float)
    some, noise = weights > 0, Gaussian(0.07114)
    columns = KernelColumns(RBF([2.874, 12.68, 60.58]), X[:300][some])
    H = np.ones((np.sum(some), 1))
    problem = ExpansionProblem.of(columns, noise, y[some], H=H, weights=weights[some])
    values = []
    for scale in (0.405, 0.41, 0.5):
        found = solve(problem, FeatureSelection, problem.loss.unit / scale)
        assert found.status == "certified"
        values.append(found.objective)
    assert max(values) < 1.1 * min(values)


def test_an_interrupt_on_the_way_from_a_richer_start_is_told(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (120, 1))
    y = np.sin(X[:, 0]) + 1e-3 * rng.standard_normal(120)
    problem = ExpansionProblem.of(KernelColumns(RBF(3.0), X), Gaussian(1e-6), y)
    whole, calls = _Reweighting.settled, []

    def interrupted(self, best, report=None):
        calls.append(best)
        found = whole(self, best, report)
        return found if len(calls) == 1 else found._replace(status="interrupted")

    monkeypatch.setattr(_Reweighting, "settled", interrupted)
    assert solve(problem, FeatureSelection, 1.0).status == "interrupted" and len(calls) == 2


@pytest.mark.parametrize(
    ("seed", "loss"), [(764, Logistic()), (1325, "quadratic_soft_margin"), (0, Logistic())]
)
def test_labels_are_certified_by_the_function_that_coefficients_make(seed, loss):
    """Steps that are doubled bring its rounding to the size of what is proved."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    problem = ExpansionProblem.of(KernelColumns(RBF(2.0), X), loss, y)
    lam = 0.01
    found = solve(problem, FeatureSelection, lam)
    f = RBF(2.0)(X)[:, found.indices] @ found.coef
    np.testing.assert_allclose(found.latent, f, atol=1e-8 * np.max(np.abs(f)))
    prior = -problem.loss.unit * np.sum(np.expm1(-np.abs(found.coef) / problem.scale(lam)))
    assert found.objective == pytest.approx(problem.value(f) + prior, rel=1e-9)
    assert found.status == "certified" and found.dual >= found.objective * (1 - 1e-6)
