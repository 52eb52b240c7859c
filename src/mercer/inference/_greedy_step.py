"""Which row a greedy fit adds next (BKM 4.5): how far each candidate would lower L (BKM 78).

With [W; B] the orthogonal factor of `Factor`, r the residual and k_j the section of row j, adding
it lowers 2 L by

    (r'k_j - s2 f_j)^2 / (|k_j|^2 + s2 k_jj - |W'(k_j + s2 e_j)|^2),                 (BKM 87, 88)

the squared cosine of r with what the others leave of [k_j; s L^-1 k_Ij; ...]. It is exactly what
(BKM 89) says, and takes one product W'K_c for all candidates c at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._greedy_factor import Factor, Section
from mercer.inference._greedy_rows import GreedyRows

__all__ = ["AllRows", "Choice", "SomeRows", "starting_scores"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Of the squared length of a section so much may be rounding: less is not divided by.
_ROUNDING = 1e-13
# Steps whose candidates make an estimate: it falls by orders of magnitude within a few.
_LAST = 5


class Choice(NamedTuple):
    """The row that is to be added.

    row : its number
    column : (n,) its column of K
    section : what the chosen rows know of it
    part : (k,) W'k_j
    """

    row: int
    column: Floats
    section: Section
    part: Floats


def starting_scores(rows: GreedyRows, KY: Floats, lengths: Floats) -> Floats:
    """Return how far each row alone lowers 2 L, (n,): (y'k_j)^2 / (|k_j|^2 + s2 k_jj)."""
    lengths = lengths + rows.noise * rows.diagonal
    return _ratios(np.sum(KY**2, axis=1), lengths, lengths)


def _ratios(squares: Floats, lengths: Floats, before: Floats) -> Floats:
    """Return squares / lengths, where lengths are more than rounding of what they were before."""
    floor = np.maximum(_ROUNDING * before, np.finfo(float).tiny)
    return np.asarray(squares / np.maximum(lengths, floor))


class SomeRows:
    """Candidates drawn by chance, anew for each step.

    The best of 59 is with probability 0.95 among the best 5% of all rows (BKM 4.5). Rows of which
    the chosen ones leave nothing but rounding are not drawn again. What is drawn depends on the
    seed and the number of rows chosen alone, so that a choice may be broken off and taken up.

    Attributes
    ----------
    left : (n,) mask over the rows that may still be drawn
    excess : an estimate, from the candidates of the last steps, of sum_i r_i (K r - s2 f)_i / s2,
        which is twice how far (BKM 80) is from L with the dual r/s2; infinite before the first
    """

    def __init__(self, rows: GreedyRows, number: int, seed: int) -> None:
        self.rows, self.number, self.seed = rows, number, seed
        self.left = rows.diagonal > 0
        self.excess = np.inf
        self._terms: list[Floats] = []

    @property
    def work(self) -> float:
        """What a step takes beside its product, in values of the kernel."""
        return float(len(self.rows) * self.number)

    def choose(self, factor: Factor) -> Choice | None:
        """Return the best of some rows, or None where no row has anything to add."""
        found, attempt = None, 0
        while found is None:
            drawn = np.flatnonzero(self.left)
            if not drawn.size:
                break
            if drawn.size > self.number:
                rng = np.random.default_rng([self.seed, 0, factor.size, attempt])
                drawn = np.sort(rng.choice(drawn, self.number, replace=False))
            found, attempt = self._best(factor, drawn), attempt + 1
        return found

    def _best(self, factor: Factor, drawn: Indices) -> Choice | None:
        rows, noise = self.rows, self.rows.noise
        parts, slopes, lengths = rows.products(drawn, factor.W, factor.residual)
        whole = parts + noise * factor.W[drawn].T
        residual = factor.residual[drawn].T
        slopes -= noise * (rows.Y[drawn].T - residual)
        before = lengths + noise * rows.diagonal[drawn]
        after = before - np.einsum("ij,ij->j", whole, whole)
        self._estimate(np.sum(slopes * residual, axis=0))
        for i in np.argsort(-_ratios(np.sum(slopes**2, axis=0), after, before), kind="stable"):
            row = int(drawn[i])
            section = section_of(rows, factor, row)
            if section.is_new:
                return Choice(row, rows.column(row), section, parts[:, i])
            self.left[row] = False  # of no use
        return None

    def _estimate(self, terms: Floats) -> None:
        """Take r_i (K r - s2 f)_i of candidates, (c,), into the estimate of the sum of all rows.

        The terms have either sign, and nearly cancel by chance: a standard error is added.
        """
        self._terms = [*self._terms[1 - _LAST :], terms]
        terms = np.concatenate(self._terms)
        mean = max(float(np.mean(terms)), 0.0) + float(np.std(terms) / np.sqrt(len(terms)))
        self.excess = mean * len(self.rows) / self.rows.noise

    def retarget(self, factor: Factor) -> None:
        """Take the targets that rows and factor have now: of these there is no estimate yet."""
        self.excess, self._terms = np.inf, []


class AllRows:
    """All rows as candidates: one product K w a step, whatever the number of rows chosen.

    With t = (K + s2) w for a new column w of W the slopes r'k_j - s2 f_j lose t_j w'y, and the
    squared lengths of what is left of the sections lose t_j^2.
    """

    def __init__(self, rows: GreedyRows, KY: Floats, lengths: Floats) -> None:
        self.rows = rows
        self.left = rows.diagonal > 0
        self.excess = np.inf  # as that of `SomeRows`, but exact
        self._slopes = KY.copy()
        self._before = lengths + rows.noise * rows.diagonal
        self._lengths = self._before.copy()
        self._size = 0  # columns of W that slopes and lengths know of

    def choose(self, factor: Factor) -> Choice | None:
        """Return the best of all rows, or None where no row has anything to add."""
        self._follow(factor)
        self.excess = max(float(np.sum(self._slopes * factor.residual)) / self.rows.noise, 0.0)
        scores = _ratios(np.sum(self._slopes**2, axis=1), self._lengths, self._before)
        scores[~self.left] = -1.0
        for row in map(int, np.argsort(-scores, kind="stable")):
            if not self.left[row]:
                return None
            section = section_of(self.rows, factor, row)
            if section.is_new:
                column = self.rows.column(row)
                return Choice(row, column, section, column @ factor.W)
            self.left[row] = False
        return None

    @property
    def work(self) -> float:
        """What a step takes, in values of the kernel."""
        return float(len(self.rows) ** 2)

    def retarget(self, factor: Factor) -> None:
        """Take the targets that rows and factor have now: another product."""
        self._follow(factor)
        residual = factor.residual
        fitted = self.rows.Y - residual
        self._slopes = self.rows.times(residual) - self.rows.noise * fitted
        self.excess = np.inf

    def _follow(self, factor: Factor) -> None:
        """Take note of the rows that were added since the last time, however that ended."""
        for k in range(self._size, factor.size):
            w = factor.W[:, k : k + 1]
            t = self.rows.times(w) + self.rows.noise * w
            slopes = self._slopes - t @ (w.T @ self.rows.Y)
            lengths = self._lengths - t[:, 0] ** 2
            self._slopes, self._lengths, self._size = slopes, lengths, k + 1


def section_of(rows: GreedyRows, factor: Factor, row: int) -> Section:
    """Return what the chosen rows know of another one."""
    cross = rows.block(np.array(factor.indices, dtype=np.intp), np.array([row]))[:, 0]
    return factor.section(float(rows.diagonal[row]), cross)
