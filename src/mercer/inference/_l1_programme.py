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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve

from mercer.inference._column_blocks import ColumnBlocks
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Solved
from mercer.inference._l1_simplex import Vertex, solver_of

__all__ = ["Programme"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Pulls so near to a bound are at it.
_NEAR = 1e-8
# Multipliers, in units of the targets, that are rounding if the objective is no better for them.
_ROUNDING = 1e-12


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
        self.zone = problem.loss.zone
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
        self.solver = solver_of(self.cost, low, high)
        H = np.empty((problem.n, 0)) if problem.H is None else problem.H
        self.r = H.shape[1]
        self._columns = ColumnBlocks(np.empty((problem.n, 0)))  # as they were given, H the first
        self._sizes = np.empty(0)  # what they are divided by in the programme
        self._waiting: list[Floats] = []  # columns whose penalties are not known yet
        self._append(H, np.zeros(self.r))

    def add(self, A: Floats) -> None:
        """Add columns A (n, k), which are kept."""
        self._waiting.append(A)

    def keep(self, positions: Indices) -> None:
        """Forget all columns but those at these ascending positions; all have been solved for."""
        rows = np.concatenate([np.arange(self.r), self.r + np.asarray(positions)])
        self._columns.keep(rows)
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
        self._columns.add(A)
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
        rows = self._rows(self._columns.take(met), self._sizes[met])
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

    def _solved(self, x: Floats, multipliers: Floats, penalties: Floats) -> Solved:
        """Return a solution in the problem's own units."""
        problem, half = self.problem, len(self.kept)
        x = x[:half] - x[half:] if self.zone else x
        u = np.zeros(problem.n)
        u[self.kept] = self.reach * x
        coef = self.unit * multipliers / self._sizes
        latent, objective = self._valued(coef, penalties)
        small = (np.abs(multipliers) <= _ROUNDING) & (coef != 0.0)
        small[: self.r] = False  # a free one may be that small
        if small.any():  # of a vertex where more conditions meet than it has coefficients
            fewer = np.where(small, 0.0, coef)
            own, value = self._valued(fewer, penalties)
            if value <= objective * (1.0 + _ROUNDING):
                coef, latent, objective = fewer, own, value
        return Solved(coef[self.r :], coef[: self.r], latent, problem.balanced(u), objective)

    def _valued(self, coef: Floats, penalties: Floats) -> tuple[Floats, float]:
        """Return latent values and the objective of coefficients, the free ones first."""
        latent = self.problem.mean + self._columns.times(coef)
        return latent, self.problem.value(latent) + float(penalties @ np.abs(coef))

    def dual(self, u: Floats) -> float:
        """Return the value of the dual problem at a feasible u."""
        return self.problem.dual_value(u)
