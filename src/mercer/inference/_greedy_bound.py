"""The lower bound of a greedy fit (BKM 80): the best of several duals, and when to ask for them.

A bound on L_min stays one whatever rows are added later, so the best so far is kept, and what it
leaves of the Gap is known after every step for nothing. What costs is a better one: each product
with K takes as long as some hundred steps where there are many rows. Therefore duals on all rows
are tried when the candidates of the last steps, a sample of the rows, say that it may be enough,
and when the steps since the last time have taken longer than it will.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.inference import quadratic
from mercer.inference._greedy_dual import SubsetDual
from mercer.inference._greedy_factor import Factor
from mercer.inference._greedy_rows import GreedyRows
from mercer.inference.duals import Dual, LowRank, RowProblem, refined_dual, residual_dual

__all__ = ["DUALS", "LowerBound"]

Floats = NDArray[np.float64]

#: What the duals are called: "best" has all of the others.
DUALS = ("best", "subset", "residual", "refined")

# Rows that must have been added since the last time, as a part of those there were.
_GROWTH = 0.1
# The estimated gap of the residual dual at which it is tried, in units of what is wanted. As long
# as it is twice that, what refining takes away is of the order of the rest.
_NEAR = 2.0
# Refining ends where no other dual could take more than this part of what is left.
_SHARE = 0.2
_STEPS = 20  # conjugate gradients at most
_EPS = float(np.finfo(float).eps)
# Bounds no farther from 0 than so many times what may be rounding of them are 0.
_NOTHING = 4.0
# Products that a look may take, and rows chosen whose product with a candidate takes as long as the
# candidate's value of the kernel: what decides when a look is overdue.
_PRODUCTS, _AS_LONG = 8.0, 100.0


class LowerBound:
    """The best bound so far, less what may be rounding of it and of L at the solution.

    Parameters
    ----------
    rows : GreedyRows
    dual : one of `DUALS`
    subset : SubsetDual or None
        The second subset of rows, where it is asked for.

    Attributes
    ----------
    value : the bound, summed over outputs
    rounding : what was taken off it: L and its bounds are sums over the rows of what is as large as
        the targets' squares, however small they are themselves
    source : which dual it is from
    n_products : products with K so far
    """

    def __init__(self, rows: GreedyRows, dual: str, subset: SubsetDual | None) -> None:
        self.rows, self.dual, self.subset = rows, dual, subset
        self.source, self.n_products = "none", 0
        self._begin_at_targets()
        self._problem = RowProblem(rows.Y, rows.noise, self._times, rows.root)
        self._best: Dual | None = None
        self._slack = np.inf  # what L_min may be above the bound
        self._size, self._work = 0, 0.0  # rows there were at the last look, and work since

    def _begin_at_targets(self) -> None:
        """Take the bound that any function has, -|y|^2/2."""
        self._square = 0.5 * float(np.sum(self.rows.Y**2))
        self.rounding = len(self.rows) * _EPS * self._square
        self.value = -self._square - self.rounding

    def _times(self, A: Floats) -> Floats:
        self.n_products += 1
        return self.rows.times(A)

    def begin(self, KY: Floats) -> None:
        """Take the best multiple of the targets as a dual, of which the product is known."""
        if self.dual == "subset":
            return
        Y, noise = self.rows.Y, self.rows.noise
        squares = np.einsum("ip,ip->p", Y, Y)
        curvature = noise * squares + np.einsum("ip,ip->p", Y, KY)
        t = np.divide(squares, curvature, out=np.zeros_like(squares), where=curvature > 0)
        self._take(Dual.of(self._problem, Y * t, KY * t), "targets")

    def retarget(self) -> None:
        """Take the targets that the rows have now: what was a dual is one for them too."""
        self._begin_at_targets()
        self._slack, self._size = np.inf, 0
        self._problem = RowProblem(self.rows.Y, self.rows.noise, self._times, self.rows.root)
        last, self._best, source = self._best, None, self.source
        if last is not None:
            self._take(Dual.of(self._problem, last.A, last.KA), source)
        if self.subset is not None:
            self.subset.retarget()
            self._prove(self.subset.lower, "subset")

    def below(self, upper: float) -> float:
        """Return what L_min is at least, beside a function whose L is `upper`."""
        return min(self.value, upper - self.rounding)

    def gap(self, upper: float) -> float:
        """Return the Gap (BKM 84) of a function whose L is `upper`.

        Bounds that differ from 0 by rounding of |y|^2/2, which both are sums of, say that there is
        nothing to explain. They are 2 apart in units of each other, so that they are held against
        |y|^2/2.
        """
        lower = self.below(upper)
        if 0 < -lower <= _NOTHING * self.rounding and upper <= 0:
            return (upper - lower) / self._square
        return quadratic.gap(upper, lower)

    def is_rounding(self, upper: float) -> bool:
        """Whether all that is between L and its bound may be rounding, which no row can mend."""
        return self.rounding > 0 and upper - self.value <= 2.0 * self.rounding

    def resume(self, lower: float) -> None:
        """Take a bound that was found before."""
        self._raise(lower, "before")

    def step(self, work: float, size: int) -> None:
        """Take note of a step, and add a row to the subset."""
        self._work += work * (1.0 + size / _AS_LONG)
        if self.subset is not None:
            self.subset.add()
            self._prove(self.subset.lower, "subset")

    def is_due(self, upper: float, excess: float, size: int, tol: float) -> bool:
        """Whether to look for a better one.

        `excess` is the estimate of twice what the residual dual leaves (see `SomeRows`).
        """
        if self.dual == "subset" or size < (1.0 + _GROWTH) * self._size:
            return False
        if quadratic.gap(upper, min(self.value + self._slack, upper)) > tol:
            return False  # no bound could be enough: what is left is for the rows to do
        overdue = self._work >= _PRODUCTS * len(self.rows) ** 2
        return overdue or self.is_near(upper, excess, tol)

    @staticmethod
    def is_near(upper: float, excess: float, tol: float) -> bool:
        """Whether the residual dual may be near what is wanted, by an estimate of its excess."""
        return quadratic.gap(upper, upper - 0.5 * excess) <= _NEAR * tol

    def look(self, factor: Factor, upper: float, excess: float, tol: float) -> None:
        """Look for a better one, and be content with one that is good enough."""
        self._size, self._work = factor.size, 0.0
        problem, best = self._problem, self._best
        # The last one may be better than the residual, which then need not be multiplied.
        if self.dual == "residual" or best is None or upper - 0.5 * excess >= best.lower:
            found = residual_dual(problem, problem.Y - factor.residual)
            self._take(found, "residual")
        if self.dual == "residual" or quadratic.gap(upper, self.value) <= tol:
            return
        assert self._best is not None
        precondition = LowRank(factor.W, problem.noise)
        slack = self._slack_by(precondition)

        def enough(dual: Dual) -> bool:
            if quadratic.gap(upper, dual.lower - self.rounding) <= tol:
                return True
            return slack(dual) <= _SHARE * (upper - dual.lower)

        self._take(refined_dual(problem, self._best, precondition, _STEPS, enough), "refined")
        self._slack = min(self._slack, slack(self._best) + self.rounding)

    def finish(self, factor: Factor, upper: float, excess: float, tol: float) -> None:
        """Look once more where the rows have come to an end."""
        content = self.dual == "subset" or self._size == factor.size
        if not content and self._slack > _SHARE * (upper - self.value):
            self.look(factor, upper, excess, tol)

    def _slack_by(self, precondition: LowRank) -> Callable[[Dual], float]:
        """Return what bounds L_min less the bound of a dual.

        That is s2/2 r'(K + s2)^-1 r with r = y - (K + s2) a, and K is no less than V V'.
        """

        def slack(dual: Dual) -> float:
            rest = self.rows.Y - dual.KA - self.rows.noise * dual.A
            return max(0.5 * self.rows.noise * float(np.sum(rest * precondition(rest))), 0.0)

        return slack

    def _take(self, dual: Dual, source: str) -> None:
        if self._best is None or dual.lower > self._best.lower:
            self._best = dual
            self._prove(dual.lower, source)

    def _prove(self, lower: float, source: str) -> None:
        self._raise(lower - self.rounding, source)

    def _raise(self, lower: float, source: str) -> None:
        if lower > self.value:
            self._slack -= lower - self.value
            self._slack = max(self._slack, 0.0)
            self.value, self.source = lower, source
