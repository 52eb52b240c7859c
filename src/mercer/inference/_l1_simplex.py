"""Linear programmes to which rows are added: by HiGHS, which keeps them, or anew by SciPy.

highspy, the extra `l1`, keeps a programme and its basis between calls, where the dual simplex
method goes on; without it SciPy solves each from nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

__all__ = ["Solver", "UnsolvedError", "Vertex", "solver_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Steps at the most, in units of variables and rows, of which programmes rarely take as many as one:
# rounding can make the simplex go in circles. The last attempt has more.
_PIVOTS, _LAST_PIVOTS = 10, 100
# The solver's numbers of its two kinds of simplex; the second is for where the first gets stuck.
_DUAL, _PRIMAL = 1, 4
# What the solver may leave of violations, in units of the programme; less than 1e-10 it refuses.
_EXACT = 1e-9
# Of a solution that comes without its basis: pulls so near to a bound are at it, and multipliers of
# rows that are smaller are 0.
_NEAR = 1e-8


class UnsolvedError(ArithmeticError):
    """A programme that the solver has given up."""


class Vertex(NamedTuple):
    """A solution of max c'x with |A x| <= bound and x in a box.

    x : (N,) the variables
    multipliers : (k,) of the rows
    inside : (N,) the variables between their bounds
    met : (k,) the rows that hold with equality, as many as are inside if the basis is known
    """

    x: Floats
    multipliers: Floats
    inside: Mask
    met: Mask


class Solver(Protocol):
    """max c'x with |A x| <= bound and x in [low, high], to which rows are added."""

    def add(self, A: Floats) -> None:
        """Add rows A (k, N)."""

    def keep(self, rows: Indices) -> None:
        """Forget all rows but these, which ascend."""

    def solve(self, bound: Floats) -> Vertex:
        """Return a solution for the bounds (k,) of the rows added; raise UnsolvedError."""


def _highspy() -> Any:
    """Return the module, None where it is not installed."""
    try:
        return import_module("highspy")
    except ImportError:
        return None


class _Highs:
    """Keeps the programme and its basis."""

    def __init__(self, highspy: Any, cost: Floats, low: Floats, high: Floats) -> None:
        self.highspy, self.N = highspy, len(cost)
        self.bound = np.empty(0)
        self.model = highspy.Highs()
        for name, value in {
            "output_flag": False,
            "presolve": "off",  # of dense rows nothing can be removed
            "solver": "simplex",
            "parallel": "off",
            "primal_feasibility_tolerance": _EXACT,
            "dual_feasibility_tolerance": _EXACT,
        }.items():
            self.model.setOptionValue(name, value)
        self.model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.model.addVars(self.N, low, high)
        self.model.changeColsCost(self.N, np.arange(self.N, dtype=np.int32), cost)

    def add(self, A: Floats) -> None:
        k, N = A.shape
        if not k:
            return
        starts = N * np.arange(k, dtype=np.int32)
        places = np.tile(np.arange(N, dtype=np.int32), k)
        values = np.ascontiguousarray(A).reshape(-1)
        self.model.addRows(k, np.zeros(k), np.zeros(k), k * N, starts, places, values)
        self.bound = np.concatenate([self.bound, np.zeros(k)])

    def keep(self, rows: Indices) -> None:
        gone = np.setdiff1d(np.arange(len(self.bound)), rows).astype(np.int32)
        self.model.deleteRows(len(gone), gone)
        self.bound = self.bound[rows]

    def solve(self, bound: Floats) -> Vertex:
        for row in np.flatnonzero(bound != self.bound):
            self.model.changeRowBounds(int(row), -bound[row], bound[row])
        self.bound, highspy = bound.copy(), self.highspy
        size = self.N + len(bound)
        self.model.setOptionValue("simplex_iteration_limit", _pivots(size, _PIVOTS))
        self.model.run()
        status = self.model.getModelStatus()
        for strategy, each in ((_DUAL, _PIVOTS), (_PRIMAL, _LAST_PIVOTS)):
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self.model.clearSolver()  # rounding has spoiled the basis it went on from
            self.model.setOptionValue("simplex_strategy", strategy)
            self.model.setOptionValue("simplex_iteration_limit", _pivots(size, each))
            try:
                self.model.run()
            finally:
                self.model.setOptionValue("simplex_strategy", _DUAL)
            status = self.model.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            text = self.model.modelStatusToString(status)
            raise UnsolvedError(f"the linear programme was not solved: {text}")
        found, basis = self.model.getSolution(), self.model.getBasis()
        within = highspy.HighsBasisStatus.kBasic
        return Vertex(
            np.array(found.col_value),
            np.array(found.row_dual)[: len(bound)],
            np.array([status == within for status in basis.col_status], dtype=bool),
            np.array([status != within for status in basis.row_status], dtype=bool),
        )


class _Anew:
    """Solves each programme from nothing, by SciPy."""

    def __init__(self, cost: Floats, low: Floats, high: Floats) -> None:
        self.cost, self.low, self.high = cost, low, high
        self.A = np.empty((0, len(cost)))

    def add(self, A: Floats) -> None:
        self.A = np.concatenate([self.A, A])

    def keep(self, rows: Indices) -> None:
        self.A = self.A[rows]

    def solve(self, bound: Floats) -> Vertex:
        fixed = bound == 0.0
        A, b = self.A[~fixed], bound[~fixed]
        k = len(b)
        found: Any = linprog(
            -self.cost,
            np.concatenate([A, -A]) if k else None,
            np.concatenate([b, b]) if k else None,
            self.A[fixed] if fixed.any() else None,
            np.zeros(np.count_nonzero(fixed)) if fixed.any() else None,
            np.column_stack([self.low, self.high]),
            method="highs-ds",
            options={
                "presolve": False,
                "primal_feasibility_tolerance": _EXACT,
                "dual_feasibility_tolerance": _EXACT,
                "maxiter": _pivots(len(self.cost) + k, _LAST_PIVOTS),
            },
        )
        if found.x is None:
            raise UnsolvedError(f"the linear programme was not solved: {found.message}")
        multipliers = np.zeros(len(bound))
        if k:
            sides = -found.ineqlin.marginals
            multipliers[~fixed] = sides[:k] - sides[k:]
        if fixed.any():
            multipliers[fixed] = -found.eqlin.marginals
        x = np.clip(found.x, self.low, self.high)
        inside = (x > self.low + _NEAR) & (x < self.high - _NEAR)
        return Vertex(x, multipliers, inside, fixed | (np.abs(multipliers) > _NEAR))


def _pivots(size: int, each: int) -> int:
    """Return how many steps a programme may take: so many for each variable and row, in 32 bits."""
    return min(each * size, 2**31 - 1)


def solver_of(cost: Floats, low: Floats, high: Floats) -> Solver:
    """Return the programme max c'x with x in [low, high], without rows, for what is installed."""
    module = _highspy()
    return _Anew(cost, low, high) if module is None else _Highs(module, cost, low, high)
