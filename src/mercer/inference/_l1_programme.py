"""Losses that are linear in pieces, over some columns: a linear programme, solved in its dual form.

Laplacian and epsilon-insensitive noise and the soft margin make of

    F = sum_i w_i loss_i(f_i) + sum_j lam_j |theta_j|,   f = m + Phi theta + H beta

(BKM 102, 109) a linear programme. Its dual has n variables u, the pulls of the rows, in boxes:

    maximise  u'(y - m) - e sum_i |u_i|   with  |Phi_j'u| <= lam_j,  H'u = 0,  low <= u <= high,

e the zone of `Insensitive`. A column of the expansion is a row here, and is added in place: the
last solution stays feasible for the dual simplex method, which goes on from it. theta and beta are
the multipliers of the rows.

The programme is solved in units of its own, pulls in units of their reach, slopes of the penalties,
so that the tolerances of the solver are relative. What it finds is used for its basis alone, where
that is good: which rows are met exactly, and which pulls are between their bounds. Two square
systems then give the solution to rounding.

highspy, the extra `l1`, keeps a programme between calls; without it SciPy solves each anew.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve
from scipy.optimize import linprog

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Solved
from mercer.inference._losses import Insensitive

__all__ = ["Programme"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# What the solver may leave of violations, in units of the programme; less than 1e-10 it refuses.
_EXACT = 1e-9
# Of a solution that comes without its basis: pulls so near to a bound are at it, and multipliers of
# rows that are smaller are 0.
_NEAR = 1e-8


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
        """Return a solution for the bounds (k,) of the rows added."""


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
        self.model.run()
        if self.model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.model.clearSolver()  # rounding has spoiled the basis it went on from
            self.model.run()
            status = self.model.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                text = self.model.modelStatusToString(status)
                raise ArithmeticError(f"the linear programme was not solved: {text}")
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
            },
        )
        if found.x is None:
            raise ArithmeticError(f"the linear programme was not solved: {found.message}")
        multipliers = np.zeros(len(bound))
        if k:
            sides = -found.ineqlin.marginals
            multipliers[~fixed] = sides[:k] - sides[k:]
        if fixed.any():
            multipliers[fixed] = -found.eqlin.marginals
        x = np.clip(found.x, self.low, self.high)
        inside = (x > self.low + _NEAR) & (x < self.high - _NEAR)
        return Vertex(x, multipliers, inside, fixed | (np.abs(multipliers) > _NEAR))


class Programme:
    """The problem over columns that are added, for a loss that is linear in pieces.

    O(n k) memory for k columns.

    Parameters
    ----------
    problem : ExpansionProblem
        With the loss `Absolute`, `Insensitive` or `SoftMargin`.
    """

    def __init__(self, problem: ExpansionProblem) -> None:
        self.problem = problem
        loss = problem.loss
        low, high = problem.reach()
        self.zone = loss.zone if isinstance(loss, Insensitive) else 0.0
        # rows of weight 0 have no pull
        self.kept = np.flatnonzero(high > low)
        self.target = (loss.y - problem.mean)[self.kept]  # (n',)
        self.reach = np.maximum(high, -low)[self.kept]
        # x has the pulls in units of their reach; with a zone, those up and those down apart
        low, high = low[self.kept] / self.reach, high[self.kept] / self.reach
        cost = self.reach * self.target
        if self.zone:
            cost = np.concatenate([cost, -cost]) - self.zone * np.tile(self.reach, 2)
            low, high = np.zeros(2 * len(low)), np.concatenate([high, -low])
        self.unit = float(np.mean(np.abs(cost))) or 1.0
        self.cost, self.low, self.high = cost / self.unit, low, high
        module = _highspy()
        self.solver: Solver = (
            _Anew(self.cost, low, high) if module is None else _Highs(module, self.cost, low, high)
        )
        H = np.empty((problem.n, 0)) if problem.H is None else problem.H
        self.r = H.shape[1]
        self._columns: list[Floats] = []  # as they were given, H the first
        self._sizes = np.empty(0)  # what they are divided by in the programme
        self._waiting: list[Floats] = []  # columns whose penalties are not known yet
        self._append(H, np.zeros(self.r))

    def add(self, indices: Indices, A: Floats) -> None:
        """Add columns A (n, k), which are kept."""
        self._waiting.append(A)

    def keep(self, positions: Indices) -> None:
        """Forget all columns but those at these ascending positions; all have been solved for."""
        rows = np.concatenate([np.arange(self.r), self.r + np.asarray(positions)])
        kept, first = [], 0
        for A in self._columns:
            last = first + A.shape[1]
            kept.append(A[:, rows[(rows >= first) & (rows < last)] - first])
            first = last
        self._columns = [kept[0], np.concatenate([kept[0][:, :0], *kept[1:]], axis=1)]
        self._sizes = self._sizes[rows]
        self.solver.keep(rows)

    def _append(self, A: Floats, lam: Floats) -> None:
        """Make rows of columns, in units of their penalties, or of their values where that is 0."""
        largest = np.max(np.abs(self.reach[:, None] * A[self.kept]), axis=0, initial=0.0)
        # a penalty far below what the column can be must not make the row huge
        sizes = np.maximum(lam, 1e-6 * largest)
        sizes[sizes == 0.0] = 1.0
        sizes[lam == 0.0] = np.where(largest > 0, largest, 1.0)[lam == 0.0]
        self.solver.add(self._rows(A, sizes))
        self._columns.append(A)
        self._sizes = np.concatenate([self._sizes, sizes])

    def _rows(self, A: Floats, sizes: Floats) -> Floats:
        """Return the rows of the programme that are made of columns."""
        rows = (self.reach[:, None] * A[self.kept] / sizes).T
        return np.concatenate([rows, -rows], axis=1) if self.zone else rows

    def solve(self, lam: Floats) -> Solved:
        """Return the optimum for penalties (k,) of the columns added."""
        first = len(self._sizes) - self.r
        for A in self._waiting:
            self._append(A, lam[first : first + A.shape[1]])
            first += A.shape[1]
        self._waiting.clear()
        penalties = np.concatenate([np.zeros(self.r), lam])
        bound = penalties / self._sizes
        vertex = self.solver.solve(bound)
        found = [self._solved(vertex.x, vertex.multipliers, penalties)]
        exact = self._refined(vertex, bound)
        if exact is not None:
            found.insert(0, self._solved(*exact, penalties))
        # The refined solution has the lower F and the pulls that are feasible, unless the basis
        # was not that of a solution.
        best = min(found, key=lambda one: one.objective)
        if best is not found[0] and best.objective > found[0].objective * (1.0 - 1e-9):
            best = found[0]
        return best

    def _refined(self, vertex: Vertex, bound: Floats) -> tuple[Floats, Floats] | None:
        """Return x and multipliers from the basis alone; None where it does not determine them."""
        met, inside = np.flatnonzero(vertex.met), np.flatnonzero(vertex.inside)
        if len(met) != len(inside):
            return None
        x, multipliers = self._snapped(vertex), np.zeros(len(bound))
        if not len(met):
            return x, multipliers
        rows = self._picked(met)
        M = rows[:, inside]
        with np.errstate(all="ignore"):
            factor = lu_factor(M, check_finite=False)
            if not np.all(np.isfinite(factor[0])) or np.any(np.diagonal(factor[0]) == 0.0):
                return None
            side = np.where(rows @ vertex.x > 0, bound[met], -bound[met])
            for _ in range(2):
                x[inside] += lu_solve(factor, side - rows @ x, check_finite=False)
            for _ in range(2):
                rest = self.cost[inside] - M.T @ multipliers[met]
                multipliers[met] += lu_solve(factor, rest, trans=1, check_finite=False)
        good = np.all(np.isfinite(x)) and np.all(np.isfinite(multipliers))
        good = good and np.all(x >= self.low - _NEAR) and np.all(x <= self.high + _NEAR)
        return (np.clip(x, self.low, self.high), multipliers) if good else None

    def _snapped(self, vertex: Vertex) -> Floats:
        """Return x with all that is not inside at the nearer of its bounds, and 0 inside."""
        nearer = np.where(vertex.x - self.low < self.high - vertex.x, self.low, self.high)
        return np.where(vertex.inside, 0.0, nearer)

    def _picked(self, chosen: Indices) -> Floats:
        """Return rows of the programme by their numbers, which ascend."""
        out, first = [], 0
        for A in self._columns:
            last = first + A.shape[1]
            mine = chosen[(chosen >= first) & (chosen < last)]
            out.append(self._rows(A[:, mine - first], self._sizes[mine]))
            first = last
        return np.concatenate(out)

    def _solved(self, x: Floats, multipliers: Floats, penalties: Floats) -> Solved:
        """Return a solution in the problem's own units."""
        problem, half = self.problem, len(self.kept)
        x = x[:half] - x[half:] if self.zone else x
        u = np.zeros(problem.n)
        u[self.kept] = self.reach * x
        coef = self.unit * multipliers / self._sizes
        latent = np.array(problem.mean, dtype=float)
        first = 0
        for A in self._columns:
            part = coef[first : first + A.shape[1]]
            some = np.flatnonzero(part)
            if len(some):
                latent += A[:, some] @ part[some]
            first += A.shape[1]
        objective = problem.value(latent) + float(penalties @ np.abs(coef))
        return Solved(coef[self.r :], coef[: self.r], latent, problem.balanced(u), objective)

    def dual(self, u: Floats) -> float:
        """Return the value of the dual problem at a feasible u."""
        return self.problem.dual_value(u)
