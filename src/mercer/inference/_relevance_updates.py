"""The regression engine's updates of all precisions and the noise at once, and its greedy growth.

All keep the functions' whole Gram matrix: O(M^3) a step at first, less as functions go. The steps
are those of `_relevance_together`; the noise goes with them by (BKM 135 corrected), or by EM's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.inference._relevance_evidence import Functions, Point, Terms, ascend, evaluate, limits
from mercer.inference._relevance_problem import RelevanceProblem, Report
from mercer.inference._relevance_rows import Rows
from mercer.inference._relevance_together import Together

__all__ = ["Updates"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Updates(Together):
    """A model whose precisions change together.

    Parameters
    ----------
    problem : RelevanceProblem
    rows : Rows
        Its rows.
    algorithm : {"fixed_point", "em", "greedy"}
    tol : float
        What a step must gain, in nats, for the next to be made.
    report : function, optional
    """

    def __init__(
        self,
        problem: RelevanceProblem,
        rows: Rows,
        algorithm: str,
        tol: float,
        report: Report | None = None,
    ) -> None:
        self.rows, self.terms = rows, Terms(problem, rows)
        super().__init__(self.terms, problem.always, algorithm, tol, report)
        self._A, self._G = rows.all()
        self.point: Point

    def begin(self, start: tuple[Indices, Floats, float] | None) -> None:
        """Begin with all functions that are not 0, or with one, or where another fit has ended."""
        v, D, P = self.terms.start, self.rows.D, self.rows.P
        some = np.flatnonzero(D > 0)
        if not len(some):
            some = np.array([0])
        if start is not None:
            indices, s, given = start
            v = self.terms.within(given) if self.terms.learns else v
            missing = np.setdiff1d(self._always, indices)
            s = np.append(s, np.maximum(D[missing], 1e-300) / v)
            self._take(np.append(indices, missing).astype(np.intp), s, v)
            return
        if self._algorithm == "greedy":
            if len(self._always):
                some = self._always
            else:
                some = some[[int(np.argmax(P[some] ** 2 / np.where(D[some] > 0, D[some], 1.0)))]]
        elif self.terms.learns:
            v *= 10.0
        # As if each function had explained its part of the targets' mean square.
        k = len(some)
        spread = max(self.rows.zz / self.rows.weight, self.terms.floor)
        s = np.where(D[some] > 0, D[some], 1.0) * k / (self.rows.weight * spread)
        self._take(some, s, v)

    def _functions(self, indices: Indices) -> Functions:
        rows = self.rows
        if len(indices) == rows.size:
            return Functions(self._A, self._G, rows.P, rows.z, rows.zz)
        G = self._G[np.ix_(indices, indices)]
        return Functions(self._A[:, indices], G, rows.P[indices], rows.z, rows.zz)

    def _take(self, indices: Indices, s: Floats, v: float) -> None:
        """Make these the model; precisions rise where functions are too alike for a factor."""
        of = self._functions(indices)
        point = evaluate(self.terms, of, s, v)
        while point is None:
            s = s + 1e-12 * np.maximum(np.diagonal(of.G), 1e-300) / v
            s, v = 4.0 * s, (2.0 * v if self.terms.learns else v)
            if v > self.terms.ceiling or not np.all(np.isfinite(np.append(s, v))):
                raise FloatingPointError("the functions' Gram matrix has no factor")
            point = evaluate(self.terms, of, s, v)
        self.indices, self.point = indices, point
        self.history.append(point.value)

    # --- what a step needs ----------------------------------------------------------------------

    def evaluate(self, indices: Indices, s: Floats, v: float) -> Point | None:
        """Return the evidence of some functions; None where there is none."""
        return evaluate(self.terms, self._functions(indices), s, v)

    def ascended(self, indices: Indices, at: Point, steps: int, tol: float) -> Point:
        """Return where Newton's steps in all precisions and the noise lead."""
        return ascend(self.terms, self._functions(indices), at, steps, tol)

    def limits(self, indices: Indices, v: float) -> tuple[Floats, Floats]:
        """Return the least and the greatest precisions."""
        return limits(np.maximum(np.diagonal(self._G)[indices], 1e-300), v)

    def noise(self, at: Point, gamma: Floats, em: bool) -> float:
        """Return the noise after a step: (BKM 135 corrected), or EM's."""
        terms, known = self.terms, float(np.sum(gamma))
        if not terms.learns:
            return at.v
        if em:
            left, freedom = at.error + at.v * known, terms.weight
        else:
            left, freedom = at.error, max(terms.weight - known, 1e-9 * terms.weight)
        return terms.within((left + 2.0 * terms.rate) / (freedom + 2.0 * terms.shape))

    def grow(self, max_iter: int) -> str:
        """Update until a step gains less than `tol`; return the status."""
        if self._algorithm == "greedy":
            self._tell()
            return self._greedy(max_iter)
        return super().grow(max_iter)

    # --- greedy growth --------------------------------------------------------------------------

    def _statistics(self, i: int) -> tuple[float, float]:
        """Return S and Q of one function outside the model."""
        at = self.point
        g = self._G[self.indices, i]
        u = solve_triangular(at.R, g, trans=1) / at.v
        S = self.rows.D[i] / at.v - float(u @ u)
        return S, float(self.rows.P[i] - g @ at.mu) / at.v

    def _greedy(self, max_iter: int) -> str:
        """Test functions one after the other, as at the end of (BKM 6.3).

        Each is given a large s_i, and one update (BKM 134) made of it: s_i becomes
        S (s_i + S)/Q^2. If it has increased the function is rejected, otherwise it stays, and the
        precisions of all are updated until that gains less than `tol`.
        """
        M, rejected, i = self.rows.size, 0, 0
        while self._step(False) >= self.tol and self.n_steps < max_iter:
            pass
        while self.n_steps < max_iter:
            if rejected >= M:
                if self._is_settled():
                    return "converged"
                rejected = 0
            if i in self.indices or self.rows.D[i] <= 0:
                i, rejected = (i + 1) % M, rejected + 1
                continue
            S, Q = self._statistics(i)
            guess = 1e6 * self.rows.D[i] / self.point.v
            if S <= 1e-9 * self.rows.D[i] / self.point.v or S * (guess + S) >= Q * Q * guess:
                i, rejected = (i + 1) % M, rejected + 1
                continue
            best, gain = self.terms.hyperprior.best_precision(np.array([S]), np.array([Q]))
            if not (np.isfinite(best[0]) and gain[0] >= self.tol):
                i, rejected = (i + 1) % M, rejected + 1
                continue
            indices = np.append(self.indices, i)
            found = self.evaluate(indices, np.append(self.point.s, best[0]), self.point.v)
            if found is None or found.value < self.point.value:
                i, rejected = (i + 1) % M, rejected + 1
                continue
            self.indices, self.point, rejected = indices, found, 0
            self.history.append(found.value)
            while self._step(False) >= self.tol and self.n_steps < max_iter:
                pass
            self._prune()
            self._tell()
            i = (i + 1) % M
        return "stopped"
