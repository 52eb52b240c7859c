"""Linear programmes with highspy and without."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import _l1_simplex
from mercer.inference.laplacian import path, solve

from .expansion_cases import (
    LINEAR,
    NOISES,
    Case,
)

each_noise = pytest.mark.parametrize("name", NOISES)


@pytest.mark.parametrize("name", LINEAR)
def test_without_highspy(name, monkeypatch):
    case = Case(name, free=True, weighted=True)
    here = solve(case.problem(), lam=0.4)
    monkeypatch.setattr(_l1_simplex, "_highspy", lambda: None)
    there = solve(case.problem(), lam=0.4)
    assert there.status == "certified"
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert path(case.problem(), [1.0, 0.4])[1].objective == pytest.approx(here.objective, rel=1e-6)


@each_noise
@pytest.mark.parametrize("with_highspy", [True, False])
def test_columns_that_are_not_active_may_go(name, with_highspy, monkeypatch):
    if not with_highspy:
        monkeypatch.setattr(_l1_simplex, "_highspy", lambda: None)
    problem = Case(name, n=150, free=True).problem()
    best = solve(problem, lam=0.5)
    room = 3 * len(best.indices)
    assert best.n_columns > room
    found = solve(problem, lam=0.5, max_active=room)
    assert found.status == "certified"
    assert found.objective == pytest.approx(best.objective, rel=2e-6)


def test_a_programme_without_a_solution_says_so():
    highspy = pytest.importorskip("highspy")
    one = np.ones(1)
    for solver in (
        _l1_simplex._Highs(highspy, one, one, 2.0 * one),
        _l1_simplex._Anew(one, one, 2.0 * one),
    ):
        solver.add(np.ones((1, 1)))
        with pytest.raises(_l1_simplex.UnsolvedError, match=r"(?i)not solved: .*infeasible"):
            solver.solve(0.5 * one)


def test_a_programme_on_which_one_simplex_gets_stuck_is_left_to_the_other(monkeypatch):
    highspy = pytest.importorskip("highspy")
    solver = _l1_simplex._Highs(highspy, np.ones(3), np.zeros(3), np.ones(3))
    solver.add(np.ones((1, 3)))
    inner, strategies = solver.model, []

    class Stuck:
        """A solver whose dual simplex never ends."""

        def __getattr__(self, name):
            return getattr(inner, name)

        def run(self):
            strategies.append(inner.getOptionValue("simplex_strategy")[1])
            return inner.run()

        def getModelStatus(self):
            primal = strategies[-1] == _l1_simplex._PRIMAL
            status = highspy.HighsModelStatus
            return inner.getModelStatus() if primal else status.kUnknown

    solver.model = Stuck()
    assert np.sum(solver.solve(np.full(1, 2.0)).x) == pytest.approx(2.0)
    assert strategies[0] != _l1_simplex._PRIMAL and strategies[-1] == _l1_simplex._PRIMAL
    assert inner.getOptionValue("simplex_strategy")[1] == _l1_simplex._DUAL


@pytest.mark.parametrize("with_highspy", [True, False])
def test_steps_of_large_programmes_are_numbers_of_32_bits(with_highspy, monkeypatch):
    monkeypatch.setattr(_l1_simplex, "_PIVOTS", 2**31)
    if with_highspy:
        pytest.importorskip("highspy")
    else:
        monkeypatch.setattr(_l1_simplex, "_highspy", lambda: None)
    solver = _l1_simplex.solver_of(np.ones(3), np.zeros(3), np.ones(3))
    solver.add(np.ones((1, 3)))
    assert np.sum(solver.solve(np.full(1, 2.0)).x) == pytest.approx(2.0)
    if with_highspy:
        limit = solver.model.getOptionValue("simplex_iteration_limit")[1]
        assert limit == 2**31 - 1


def test_a_programme_that_takes_too_many_steps_is_given_up(monkeypatch):
    pytest.importorskip("highspy")
    solver = _l1_simplex.solver_of(np.ones(3), np.zeros(3), np.ones(3))
    solver.add(np.ones((1, 3)))
    monkeypatch.setattr(_l1_simplex, "_PIVOTS", 0)
    with monkeypatch.context() as none, pytest.raises(ArithmeticError, match="Iteration limit"):
        none.setattr(_l1_simplex, "_LAST_PIVOTS", 0)
        solver.solve(np.array([1.5]))
    # the last attempt has more
    assert np.sum(solver.solve(np.array([1.5])).x) == pytest.approx(1.5)
