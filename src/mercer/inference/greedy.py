"""Sparse greedy regression: rows are added to the basis until it is proved to be good enough.

Algorithm 1.1 of (BKM 4.5) as corrected. Of the functions that kernel sections at m rows span, the
one of the highest posterior density (BKM 86) is the mean of SoR and DTC with these rows as inducing
inputs. Rows are added one at a time, each the best of some drawn by chance, until Theorem 2 proves
that the log posterior is within `tol` of the highest there is (BKM 84).

What is bounded is the log posterior of the function, under a kernel and a noise that are given. It
is not the evidence, and says nothing about these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._greedy_bound import DUALS, LowerBound
from mercer.inference._greedy_dual import SubsetDual
from mercer.inference._greedy_factor import Factor
from mercer.inference._greedy_records import GreedySolution, GreedyState, powers, tolerance
from mercer.inference._greedy_rows import GreedyRows
from mercer.inference._greedy_step import AllRows, Choice, SomeRows, section_of, starting_scores
from mercer.inference.duals import one_noise
from mercer.inference.quadratic import Bounds
from mercer.kernels import Kernel
from mercer.selection.checks import require_kernel, whole_number
from mercer.selection.regression import noise_variances, target_columns

__all__ = ["DUALS", "Greedy", "GreedySolution", "GreedyState"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: Told of each row that was added: how many there are, and the Gap.
Progress = Callable[[int, float], None]


class Greedy:
    """A greedy fit, which can be broken off and gone on with.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    y : array of shape (n,) or (n, P)
        Targets, less the mean function. Outputs share the rows, and there is one Gap for all.
    noise : float or array of shape (n,)
        Noise variance, of all rows or of each.
    weights : array of shape (n,), optional
        Powers of the likelihood, all positive.
    n_candidates : int or None, default 59
        How many rows to draw for each step; None takes all, at n^2 values of the kernel a step. The
        first row is always the best of all.
    dual : {"best", "subset", "residual", "refined"}, default "best"
        Where lower bounds come from. "subset" is the paper's: a second subset of the rows, chosen
        in the same way, whose coefficients minimise L* (BKM 79). On targets of mean zero it gets
        nowhere near. "residual" is (y - f)/s2, on all rows. "refined" improves on that by
        conjugate-gradient steps, preconditioned by the basis. "best" takes the best of them.
    seed : int, default 0
        Where the randomness comes from.

    Notes
    -----
    O(n m^2) time for each candidate, most of it in one matrix product a step, and n values of the
    kernel for each; n m doubles of memory. The first step, and each product that a dual on all rows
    takes, is another n^2/2 values of the kernel: five to ten in all, most often.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference.greedy import Greedy
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0.0, 6.0, 500)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(500)
    >>> fit = Greedy(RBF(1.0), X, y, 0.01).grow(tol=0.01)
    >>> fit.status, fit.bounds.gap <= 0.01, len(fit.indices) < 20
    ('certified', True, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        y: ArrayLike,
        noise: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        n_candidates: int | None = 59,
        dual: str = "best",
        seed: int = 0,
    ) -> None:
        require_kernel(kernel)
        X = kernel.inputs(X)
        n = len(X)
        if n == 0:
            raise ValueError("at least one row is wanted, got none")
        if dual not in DUALS:
            raise ValueError(f"dual must be one of {', '.join(map(repr, DUALS))}, got {dual!r}")
        number = n if n_candidates is None else whole_number("n_candidates", n_candidates)
        s2, w = one_noise(noise_variances(noise, n), powers(weights, n))
        self.rows = GreedyRows(kernel, X, target_columns(y, n), s2, w)
        self._number, self._seed, self._all = number, seed, n_candidates is None
        self.factor = Factor(self.rows.Y, s2)
        subset = SubsetDual(self.rows, number, seed) if dual in ("best", "subset") else None
        self._bound = LowerBound(self.rows, dual, subset)
        self._candidates: SomeRows | AllRows | None = None
        self._gaps: list[float] = []

    @property
    def noise(self) -> float:
        """The variance s2 that L and its bounds are in terms of: that of a row of weight 1."""
        return self.rows.noise

    @property
    def upper(self) -> float:
        """L (BKM 78) at the solution, summed over outputs."""
        return -0.5 * float(np.sum(self.factor.explained))

    @property
    def lower(self) -> float:
        """What L_min is at least, with rounding allowed for."""
        return self._bound.below(self.upper)

    @property
    def gap(self) -> float:
        """The Gap (BKM 84), with what may be rounding of the bounds in it.

        Where all that a function could explain is rounding of the targets' squares, it is relative
        to these.
        """
        return self._bound.gap(self.upper)

    @property
    def proved(self) -> Floats:
        """The Gap that the bound there is now proves with 1, 2, ..., m rows, (m,)."""
        uppers = np.maximum(-0.5 * np.cumsum(self.factor.gains), self.upper)
        uppers[-1:] = self.upper
        return np.array([self._bound.gap(upper) for upper in uppers])

    @property
    def state(self) -> GreedyState:
        """What `resume` takes."""
        left = np.ones(len(self.rows), dtype=bool)
        if self._candidates is not None:
            left = self._candidates.left.copy()
        subset = [] if self._bound.subset is None else self._bound.subset.indices
        rows, others = (np.array(each, dtype=np.intp) for each in (self.factor.indices, subset))
        return GreedyState(rows, left, np.array(self._gaps), self._bound.value, others)

    def resume(self, state: GreedyState) -> None:
        """Go on from a fit of the same rows, kernel and noise, by the same options: O(n m^2)."""
        self._begin(state.indices)
        self._candidates_in_use().left &= state.left
        if self._bound.subset is not None:
            for row in map(int, state.subset[len(self._bound.subset.indices) :]):
                self._bound.subset.add(row)
        self._bound.resume(state.lower)
        self._gaps = [float(gap) for gap in state.gaps]

    def coefficients(self, y: ArrayLike, H: Floats) -> Floats:
        """Return the coefficients (r, P) of a mean H beta for targets y, given the basis: O(n m).

        They are DTC's (UV 20a).
        """
        rows = self.rows.problem.rows
        return self.factor.least_squares(rows(target_columns(y, len(self.rows))), rows(H))

    def retarget(self, y: ArrayLike) -> None:
        """Take other targets, with the same basis: O(n m). Bounds are those of the last dual.

        With all rows for candidates it takes a product with the kernel matrix too.
        """
        self.rows.retarget(target_columns(y, len(self.rows)))
        self.factor.retarget(self.rows.Y)
        self._bound.retarget()
        if self._candidates is not None:
            self._candidates.retarget(self.factor)
            self._bound.n_products += self._all
        self._gaps = [max(gap, self.gap) for gap in self._gaps]

    def grow(
        self,
        tol: float,
        most: int | None = None,
        progress: Progress | None = None,
        certify: bool = True,
    ) -> GreedySolution:
        """Add rows until the Gap is at most `tol`, or there are `most` of them.

        Called again it goes on. Ctrl-C ends it too, and what there is by then is returned with the
        Gap that is proved for it.

        Parameters
        ----------
        tol : float
            From 0 on, where only `most`, rounding or the end of the rows stops it.
        most : int, optional
            How many rows there may be; all of them without it.
        progress : function, optional
            Called with the number of rows and the Gap after each that was added.
        certify : bool, default True
            Whether the Gap is to be proved. Without it the fit ends where candidates, a sample of
            the rows, say that the residual dual may prove twice `tol`; the status is "estimated".
        """
        tol = tolerance(tol)
        limit = len(self.rows) if most is None else whole_number("most", most)
        try:
            # Tiles have the cores: threads of the BLAS, woken for the little that is between
            # them, would go on spinning beside these.
            with blas_for(0):
                status = self._grow(tol, limit, progress, certify)
        except KeyboardInterrupt:
            if not self.factor.indices:
                raise  # there is nothing to return yet
            status = "interrupted"
        return self.solution(status)

    def _grow(self, tol: float, limit: int, progress: Progress | None, certify: bool) -> str:
        bound, factor = self._bound, self.factor
        if not factor.indices:
            self._begin([])
        candidates = self._candidates_in_use()
        while True:
            if certify and bound.is_due(self.upper, candidates.excess, factor.size, tol):
                bound.look(factor, self.upper, candidates.excess, tol)
            del self._gaps[factor.size - 1 :]
            self._gaps.append(self.gap)
            if progress is not None:
                progress(factor.size, self.gap)
            if self.gap <= tol:
                return "certified"
            if not certify and bound.is_near(self.upper, candidates.excess, tol):
                return "estimated"
            choice = None
            if factor.size < limit and not bound.is_rounding(self.upper):
                choice = candidates.choose(factor)
            if choice is None:
                if certify:
                    bound.finish(factor, self.upper, candidates.excess, tol)
                self._gaps[-1] = self.gap
                if self.gap <= tol:
                    return "certified"
                return "stopped" if factor.size >= limit else "exhausted"
            self._add(choice)
            bound.step(candidates.work, factor.size)

    def _begin(self, indices: Sequence[int] | Indices) -> None:
        """Add the best of all rows, or these, and take what the pass over them says."""
        rows = self.rows
        if not np.any(rows.diagonal > 0):
            raise NotPositiveDefiniteError(
                f"{rows.kernel!r} is 0 at every row, so that no row tells anything about another"
            )
        first = not len(indices)
        if first or self._all:
            KY, lengths = rows.all_products()
            self._bound.begin(KY)
            self._bound.n_products += 1
        if self._all:
            self._candidates = AllRows(rows, KY, lengths)
        else:
            self._candidates = SomeRows(rows, self._number, self._seed)
        if first:
            scores = np.where(rows.diagonal > 0, starting_scores(rows, KY, lengths), -1.0)
            indices = [int(np.argmax(scores))]
        for row in map(int, indices):
            column = rows.column(row)
            section = section_of(rows, self.factor, row)
            self._add(Choice(row, column, section, column @ self.factor.W))
        if first:
            self._bound.step(0.0, 1)

    def _add(self, choice: Choice) -> None:
        self.factor.add(*choice)
        self._candidates_in_use().left[choice.row] = False

    def _candidates_in_use(self) -> SomeRows | AllRows:
        assert self._candidates is not None
        return self._candidates

    def solution(self, status: str) -> GreedySolution:
        """Return where the fit stands."""
        factor, rows = self.factor, self.rows
        coefficients, fitted = factor.coefficients, rows.Y - factor.residual
        if rows.root is not None:
            coefficients *= rows.root[factor.indices][:, None]
            fitted /= rows.root[:, None]
        indices, gaps = np.array(factor.indices, dtype=np.intp), np.array(self._gaps)
        proved, bound = Bounds(self.lower, self.upper, self.gap), self._bound
        found = indices, coefficients, fitted, proved, gaps
        return GreedySolution(*found, status, bound.source, bound.n_products)
