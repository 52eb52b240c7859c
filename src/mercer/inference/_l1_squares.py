"""L1-penalised least squares over some columns: what Gaussian noise makes of an expansion's MAP.

    F = sum_i w_i (y_i - f_i)^2/2 + sum_j lam_j |theta_j|,   f = m + Phi theta + H beta

(BKM 102, 109) by the homotopy on Gram matrices of the columns, H the first of them and free. They
square the condition number: what they give is refined with the residuals themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mercer.inference._column_blocks import ColumnBlocks
from mercer.inference._l1_generation import TINY, Solved
from mercer.inference._l1_quadratic import minimise_l1, minimise_l1_path

__all__ = ["Squares"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# How often the homotopy is run again with slopes as the residuals have them, and coefficients are
# corrected; the part of lam (of c, where there is no penalty) by which slopes may be off; and what
# a correction leaves of that at most if it is of use.
_AGAIN, _CORRECTIONS, _EXACT, _USEFUL = 2, 5, 1e-11, 0.3
# Residuals of this part of the targets are rounding.
_ROUNDING = 1e-14


class Squares:
    """Least squares with an L1 penalty over columns that are added.

    Parameters
    ----------
    y : (n,) array
    mean : (n,) array, optional
        m; 0 without it.
    H : (n, r) array, optional
        Functions without a penalty.
    weights : (n,) array, optional
        w >= 0; 1 without it.
    """

    def __init__(
        self,
        y: Floats,
        mean: Floats | None = None,
        H: Floats | None = None,
        weights: Floats | None = None,
    ) -> None:
        n = len(y)
        self.target = y if mean is None else y - mean
        self.mean, self.weights = mean, weights
        self._norm = float(np.sqrt(self.target @ self._weighted(self.target)))
        H = np.empty((n, 0)) if H is None else H
        self.r = H.shape[1]
        self._columns = ColumnBlocks(np.empty((n, 0)))
        self._G = np.empty((0, 0))
        self._c = np.empty(0)
        self._coef = np.empty(0)
        self.add(np.array(H, dtype=float, order="F"))

    def _weighted(self, A: Floats) -> Floats:
        if self.weights is None:
            return A
        return self.weights * A if A.ndim == 1 else self.weights[:, None] * A

    def add(self, A: Floats) -> None:
        """Add columns A (n, k), which are kept."""
        old, k = len(self._c), A.shape[1]
        G, weighted = np.empty((old + k, old + k)), self._weighted(A)
        G[:old, :old] = self._G
        for numbers, block in self._columns.parts():
            G[numbers, old:] = block.T @ weighted
        G[old:, :old] = G[:old, old:].T
        own = A.T @ weighted
        G[old:, old:] = 0.5 * (own + own.T)
        c = np.concatenate([self._c, weighted.T @ self.target])
        coef = np.concatenate([self._coef, np.zeros(k)])
        columns = ColumnBlocks(*self._columns.blocks, A)
        # Together, with no call between them in which Ctrl-C could be heard.
        self._G, self._c, self._coef, self._columns = G, c, coef, columns

    def keep(self, positions: Indices) -> None:
        """Forget all columns but those at these ascending positions."""
        kept = np.concatenate([np.arange(self.r), self.r + positions])
        self._columns.keep(kept)
        self._G = self._G[np.ix_(kept, kept)]
        self._c, self._coef = self._c[kept], self._coef[kept]

    def solve(self, lam: Floats) -> Solved:
        """Return the optimum for penalties (k,) of the columns added."""
        return self._refined(self._penalties(lam), self._coef)

    def solve_path(self, lam: Floats, multipliers: Floats) -> list[Solved]:
        """Return the optima for penalties t lam, t of the descending multipliers, by one homotopy.

        They are as exact as Gram matrices allow: `refine` makes them as exact as `solve` does.
        """
        path, _ = minimise_l1_path(self._G, self._c, self._penalties(lam), multipliers)
        parts = self._columns.times(path.T)
        penalties = self._penalties(lam)
        return [
            self._solved(coef, part, t * penalties)
            for coef, part, t in zip(path, parts.T, multipliers, strict=True)
        ]

    def refine(self, solved: Solved, lam: Floats) -> Solved:
        """Return the optimum near a solution that is one but for rounding."""
        return self._refined(
            self._penalties(lam), np.concatenate([solved.beta, solved.coef]), keep=False
        )

    def _penalties(self, lam: Floats) -> Floats:
        return np.concatenate([np.zeros(self.r), lam])

    def _refined(self, penalties: Floats, coef: Floats, *, keep: bool = True) -> Solved:
        c = self._c
        # c is 0 where targets are centred, to rounding of what it is a sum of, or exactly
        least = _ROUNDING / _EXACT * np.sqrt(np.diagonal(self._G)) * self._norm
        size = np.where(penalties > 0.0, penalties, np.maximum(np.abs(self._c), least) + TINY)
        start, best = coef, np.inf
        part = begun = self._columns.times(start)
        for _ in range(1 + _AGAIN):
            found = minimise_l1(self._G, c, penalties, start=coef).coef
            found, times, slopes = self._corrected(found, penalties, size)
            off = np.where(found != 0.0, np.abs(slopes - penalties * np.sign(found)), 0.0)
            off = np.maximum(off, np.abs(slopes) - penalties)
            worst = float(np.max(off / size, initial=0.0))
            if worst < best:
                coef, part, best = found, times, worst
            if worst <= _EXACT:
                break
            # c - G theta as the residuals have it: G alone has told it with its rounding
            c = slopes + self._G @ found
        solved = self._solved(coef, part, penalties)
        if best > _EXACT:  # where the Gram matrix tells next to nothing F may even have risen
            before = self._solved(start, begun, penalties)
            if not solved.objective <= before.objective:
                coef, solved = start, before
        if keep:
            self._coef = coef
        return solved

    def _corrected(
        self, coef: Floats, penalties: Floats, size: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return coefficients whose slopes are nearer to their penalties, their part of f, slopes.

        The active columns and their signs stay. Coefficients may be large and cancel: corrections
        are as exact as the residuals that they come from.
        """
        active = np.flatnonzero(coef)
        wanted = (penalties * np.sign(coef))[active]
        part, slopes = self._with_slopes(coef)
        off = slopes[active] - wanted
        worst = float(np.max(np.abs(off) / size[active], initial=0.0))
        if worst <= _EXACT:
            return coef, part, slopes
        try:
            factor = cho_factor(self._G[np.ix_(active, active)], lower=True)
        except LinAlgError:
            return coef, part, slopes
        for _ in range(_CORRECTIONS):
            trial = coef.copy()
            trial[active] += cho_solve(factor, off)
            if np.any((np.sign(trial) != np.sign(coef)) & (penalties > 0.0)):
                break
            times, found = self._with_slopes(trial)
            off = found[active] - wanted
            before, worst = worst, float(np.max(np.abs(off) / size[active]))
            if worst < before:
                coef, part, slopes = trial, times, found
            if worst <= _EXACT or worst > _USEFUL * before:
                break
        return coef, part, slopes

    def _with_slopes(self, coef: Floats) -> tuple[Floats, Floats]:
        part = self._columns.times(coef)
        return part, self._columns.slopes(self._weighted(self.target - part))

    def _solved(self, coef: Floats, part: Floats, penalties: Floats) -> Solved:
        """Return the solution of these coefficients, `part` of f being theirs."""
        e = self.target - part
        if np.linalg.norm(e) <= _ROUNDING * np.linalg.norm(self.target):
            e[:] = 0.0  # F would be noise, and no certificate could be told from it
        u = self._weighted(e)
        latent = np.array(part) if self.mean is None else self.mean + part
        objective = 0.5 * float(e @ u) + float(penalties @ np.abs(coef))
        return Solved(coef[self.r :], coef[: self.r], latent, u, objective)

    def dual(self, u: Floats) -> float:
        """Return u'(y - m) - sum_i u_i^2/(2 w_i): that of a u that is 0 where w is."""
        v = u if self.weights is None else np.zeros_like(u)
        if self.weights is not None:
            np.divide(u, self.weights, out=v, where=self.weights > 0)
        return float(u @ self.target - 0.5 * (u @ v))
