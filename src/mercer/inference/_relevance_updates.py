"""Updates of all precisions at once: the fixed point of (BKM 134, 135), EM, and greedy growth.

All keep the functions' whole Gram matrix: O(M^3) a step at first, less as functions go.

At a maximum of the penalised evidence gamma_j + 2 h'(s_j) = s_j mu_j^2 with gamma_j =
1 - s_j Xi_jj and h' the slope of the hyperprior's logarithm in ln s, which for a Gamma density is
(BKM 134 corrected) s_j = (gamma_j + 2a)/(mu_j^2 + 2b). Solved for s_j with gamma and mu held it is
a step of the fixed-point algorithm. The step of EM solves 1 + 2 h'(s_j) = s_j (mu_j^2 + Xi_jj): it
never lowers the evidence, and takes the place of a fixed-point step that would.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.inference._relevance_evidence import (
    Functions,
    Point,
    Terms,
    ascend,
    covariance,
    evaluate,
)
from mercer.inference._relevance_problem import RelevanceProblem, Report
from mercer.inference._relevance_rows import Rows

__all__ = ["Updates", "solve_precisions"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# A function whose gamma is less than this goes if the evidence does not fall by it.
_UNDETERMINED = 1e-2
_HALVINGS = 2
_ROUNDING = 1e-10
_LARGEST, _SMALLEST = 1e12, 1e-14  # precisions, in units of b A_j'A_j


def solve_precisions(
    terms: Terms, share: Floats, square: Floats, low: Floats, high: Floats
) -> Floats:
    """Return s between low and high with share + 2 h'(s) = s square, (k,)."""
    if terms.is_flat:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            s = np.maximum(share, 0.0) / square
        return np.clip(np.where(np.isnan(s), high, s), low, high)
    bottom, top = np.log(low), np.log(high)
    for _ in range(64):
        middle = 0.5 * (bottom + top)
        s = np.exp(middle)
        more = share + 2.0 * terms.hyperprior.slope(s) > s * square
        bottom, top = np.where(more, middle, bottom), np.where(more, top, middle)
    return np.asarray(np.exp(0.5 * (bottom + top)))


class Updates:
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
        self.rows, self.terms, self.tol, self._report = rows, Terms(problem, rows), tol, report
        self._algorithm = algorithm
        self._always = np.unique(np.asarray(problem.always, dtype=np.intp))
        self.history: list[float] = []
        self.n_steps = 0
        self._A, self._G = rows.all()
        self.indices: Indices
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
            if v > self.terms.ceiling or not np.all(np.isfinite(s)):
                raise FloatingPointError("the functions' Gram matrix has no factor")
            point = evaluate(self.terms, of, s, v)
        self.indices, self.point = indices, point
        self.history.append(point.value)

    # --- steps ----------------------------------------------------------------------------------

    def grow(self, max_iter: int) -> str:
        """Update until a step gains less than `tol`; return the status."""
        self._tell()
        if self._algorithm == "greedy":
            return self._greedy(max_iter)
        while self.n_steps < max_iter:
            gain = self._step(self._algorithm == "em")
            gain += self._prune()
            self._tell()
            if gain < 1e-3 * self.tol and self._is_settled():
                return "converged"
        return "stopped"

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self.n_steps, self.point.value, len(self.indices))

    def _is_settled(self) -> bool:
        """Whether no direction is left: if only the pace is gone, Newton's steps end it."""
        of = self._functions(self.indices)
        before = self.point.value
        self.point = ascend(self.terms, of, self.point, 50, 1e-9)
        self.history.append(self.point.value)
        return self.point.value - before < self.tol and self._prune() == 0.0

    def _limits(self, of: Functions, v: float) -> tuple[Floats, Floats]:
        D = np.maximum(np.diagonal(of.G), 1e-300) / v
        return _SMALLEST * D, _LARGEST * D

    def _step(self, em: bool) -> float:
        """Update precisions and noise, and return what it has gained."""
        self.n_steps += 1
        at, terms, of = self.point, self.terms, self._functions(self.indices)
        d = np.diagonal(covariance(at.R))
        gamma = np.clip(1.0 - at.s * d, 0.0, 1.0)
        low, high = self._limits(of, at.v)
        found = None
        if not em:
            s = solve_precisions(terms, gamma, at.mu**2, low, high)  # (BKM 134)
            v = at.v
            if terms.learns:  # (BKM 135 corrected)
                freedom = max(terms.weight - float(np.sum(gamma)), 1e-9 * terms.weight)
                v = terms.within((at.error + 2.0 * terms.rate) / (freedom + 2.0 * terms.shape))
            for _ in range(1 + _HALVINGS):
                found = evaluate(terms, of, s, v)
                if found is not None and found.value >= at.value:
                    break
                found, s, v = None, np.sqrt(s * at.s), float(np.sqrt(v * at.v))
        if found is None:
            s = solve_precisions(terms, np.ones(len(d)), at.mu**2 + d, low, high)
            v = at.v
            if terms.learns:
                left = at.error + at.v * float(np.sum(gamma))
                v = terms.within((left + 2.0 * terms.rate) / (terms.weight + 2.0 * terms.shape))
            found = evaluate(terms, of, s, v)
            if found is None or found.value < at.value:  # by rounding
                found = at
        gain, self.point = found.value - at.value, found
        self.history.append(found.value)
        return gain

    def _prune(self) -> float:
        """Leave functions out that nothing is known of (s -> infinity); return what it gains."""
        gained = 0.0
        while len(self.indices) > 1:
            at = self.point
            xi = np.diagonal(covariance(at.R))
            gamma = 1.0 - at.s * xi
            now = 0.5 * (np.log(at.s * xi) + at.mu**2 / xi)
            if not self.terms.is_flat:
                now = now + self.terms.hyperprior.log_hyper(at.s)
            goes = (gamma < _UNDETERMINED) & (now <= 0.0) & ~np.isin(self.indices, self._always)
            if not np.any(goes):
                break
            kept = np.flatnonzero(~goes)
            found = self._without(kept) if len(kept) else None
            if found is None:  # they are not independent: only the one that gains most
                kept = np.delete(np.arange(len(now)), int(np.argmin(np.where(goes, now, np.inf))))
                found = self._without(kept)
            if found is None:
                break
            gained += found.value - at.value
            self.indices, self.point = self.indices[kept], found
            self.history.append(found.value)
        return gained

    def _without(self, kept: Indices) -> Point | None:
        at = self.point
        found = evaluate(self.terms, self._functions(self.indices[kept]), at.s[kept], at.v)
        if found is None or found.value < at.value - _ROUNDING * (1.0 + abs(at.value)):
            return None
        return found._replace(value=max(found.value, at.value))

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
            found = evaluate(
                self.terms, self._functions(indices), np.append(self.point.s, best[0]), self.point.v
            )
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
