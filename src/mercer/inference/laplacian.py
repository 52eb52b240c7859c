"""Laplacian processes: the most probable expansion in given functions (BKM 5).

Observations y_i ~ p(y | f_i) of f = m + Phi theta + H beta, where m is a fixed mean, the columns of
Phi are kernel sections or any functions, theta has a factorising prior, and functions H, if any,
have coefficients without one. Minus the logarithm of the posterior, times a unit that makes the
loss free of the noise's scale (`_losses`), is (BKM 102, 109)

    F(theta, beta) = sum_i w_i loss_i(f_i) + unit sum_j gamma(theta_j/s),    lam = unit/s,

    `Laplacian`           gamma(t) = |t|               (BKM 100)  lam |theta_j|
    `WeightDecay`         gamma(t) = t^2               (BKM 99)   (lam^2/unit) theta_j^2
    `FeatureSelection`    gamma(t) = 1 - exp(-|t|)     (BKM 98, corrected)  not convex

The Laplacian prior makes most coefficients 0, and only columns that may have others are ever
formed (`_l1_generation`): by a homotopy for squares (`_l1_squares`), Newton's method for other
losses with a continuous slope (`_l1_newton`), linear programmes for the rest (`_l1_programme`).
`_reweighted` and `_ridge` have the other priors.

The pulls u = -w loss'(f) of the rows give a lower bound of all F, the value of the dual problem

    D(u) = -sum_i w_i loss_i*(-u_i/w_i) - u'm,     |Phi_j'u| <= lam_j,  H'u = 0,

and F - D is the certificate of a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._expansion_verdict import judged
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_path import solve_path
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference._largest_penalty import largest_penalty
from mercer.inference._restricted import restricted
from mercer.inference._reweighted import solve_reweighted
from mercer.inference._ridge import Ridge, decay
from mercer.priors import CoefficientPrior, FeatureSelection, Laplacian, WeightDecay

__all__ = [
    "PRIORS",
    "Expansion",
    "ExpansionProblem",
    "Solver",
    "blas_of",
    "largest_penalty",
    "path",
    "solve",
]

Floats = NDArray[np.float64]
Report = Callable[[Expansion], None]
#: A kind of prior on coefficients; its scale follows from the penalty.
Prior = type[CoefficientPrior]

PRIORS: tuple[Prior, ...] = (Laplacian, WeightDecay, FeatureSelection)

# Weight decay so small, or as large as its inverse, is out of range.
_FAR = 1e-100
# Rows to one of the order of a matrix that is as much work as the few columns in use.
_MANY = 32


def solve(
    problem: ExpansionProblem,
    prior: Prior = Laplacian,
    lam: float = 1.0,
    tol: float = 1e-6,
    start: Expansion | None = None,
    max_active: int | None = None,
    report: Report | None = None,
) -> Expansion:
    """Return the most probable expansion.

    Parameters
    ----------
    problem : ExpansionProblem
    prior : type of CoefficientPrior
        `Laplacian`, `WeightDecay` or `FeatureSelection` of :mod:`mercer.priors`.
    lam : float
        Positive: unit/s, with s the scale of the prior.
    tol : float
        F - D, relative to F, that is enough. Under `FeatureSelection` the dual is that of the last
        of several convex problems, and certifies a stationary point. Under `WeightDecay` a loss
        with a continuous slope is minimised to rounding, and this decides on the status alone.
    start : Expansion, optional
        The solution of a problem nearby. It saves work alone, but under `FeatureSelection`, where
        it decides in part which stationary point is found; `WeightDecay` has no use for it.
    max_active : int, optional
        How many columns may be formed, at the most; under `WeightDecay` all of them are.
    report : function, optional
        Called with the solution so far after each pass over the columns, or each convex problem.
        A KeyboardInterrupt, of its own or from outside, ends the search with the solution so far.
    """
    return Solver(problem, prior, tol, start, max_active, report).solve(lam)


def path(
    problem: ExpansionProblem,
    lams: Sequence[float] | Floats,
    tol: float = 1e-6,
    prior: Prior = Laplacian,
    start: Expansion | None = None,
    max_active: int | None = None,
    report: Report | None = None,
) -> list[Expansion]:
    """Return the most probable expansions for penalties that descend; see `Solver.path`."""
    return Solver(problem, prior, tol, start, max_active, report).path(lams)


class Solver:
    """A problem that is solved for one penalty after the other; what was formed is kept.

    Parameters
    ----------
    problem, prior, tol, start, max_active, report :
        As in `solve`.
    """

    def __init__(
        self,
        problem: ExpansionProblem,
        prior: Prior = Laplacian,
        tol: float = 1e-6,
        start: Expansion | None = None,
        max_active: int | None = None,
        report: Report | None = None,
    ) -> None:
        _check(problem, prior, tol, max_active)
        _check_start(problem, start)
        self.problem, self.prior, self.tol = problem, prior, tol
        self.start, self.report = start, report
        self.work = Reduced(problem)
        if prior is WeightDecay:
            self.ridge = Ridge(self.work.problem)
        else:
            self.generation = Generation(
                self.work.problem.columns,
                restricted(self.work.problem),
                tol=tol,
                start=None if start is None else start.indices,
                max_active=max_active,
                report=self._tell if report is not None and prior is Laplacian else None,
            )

    def solve(self, lam: float) -> Expansion:
        """Return the most probable expansion for a penalty."""
        self._check(lam)
        with blas_of(self.problem, self.prior), _programmes_in_words(lam):
            if self.prior is WeightDecay:
                return self._decayed(lam)
            if self.prior is FeatureSelection:
                return self._selected(lam, None if self.start is None else self._begun())
            return judged(self.work, self.generation.solve(lam), self.tol)

    def path(self, lams: Sequence[float] | Floats) -> list[Expansion]:
        """Return the most probable expansions for penalties that descend.

        Each solution begins where the last one ended; those of squares come of one homotopy
        (`_l1_path`). Under `FeatureSelection` each begins with the Laplacian prior's, and under
        `WeightDecay`, where the loss is linear in pieces, anew. After an interruption those of
        lower penalties may be missing.
        """
        values = [float(lam) for lam in np.asarray(lams, dtype=float).reshape(-1)]
        if not values:
            raise ValueError("at least one penalty is wanted, got none")
        for lam in values:
            self._check(lam)
        if any(a < b for a, b in pairwise(values)):
            raise ValueError(f"penalties of a path must descend, got {values!r}")
        founds: list[Expansion] = []
        with blas_of(self.problem, self.prior), _programmes_in_words(values[-1]):
            if self.prior is Laplacian:
                found = solve_path(self.generation, values)
                return [judged(self.work, one, self.tol) for one in found]
            for lam in values:
                decays = self.prior is WeightDecay
                founds.append(self._decayed(lam) if decays else self._selected_after(founds, lam))
                if founds[-1].status == "interrupted":
                    break
        return founds

    def _tell(self, found: Expansion) -> None:
        if self.report is not None:
            self.report(self.work.restored(found))

    def _begun(self) -> Expansion:
        assert self.start is not None
        return self.work.reduced(self.start)

    def _selected(self, lam: float, start: Expansion | None) -> Expansion:
        tell = self._tell if self.report is not None else None
        found = solve_reweighted(self.work.problem, self.generation, lam, start, tell)
        return judged(self.work, found, self.tol)

    def _selected_after(self, founds: list[Expansion], lam: float) -> Expansion:
        """Select from the Laplacian prior's solution, or from the last one if there is none."""
        try:
            return self._selected(lam, None)
        except UnsolvedError:  # a linear programme; the others of the path are not lost by it
            if not founds:
                raise
            return self._selected(lam, self.work.reduced(founds[-1]))

    def _decayed(self, lam: float) -> Expansion:
        found = judged(self.work, self.ridge.solve(lam, self.tol), self.tol)
        try:
            if self.report is not None:
                self.report(found)
        except KeyboardInterrupt:
            return found._replace(status="interrupted")
        return found

    def _check(self, lam: float) -> None:
        """Raise ValueError for a penalty that is none."""
        if not (np.isfinite(lam) and lam > 0):
            raise ValueError(f"lam must be positive and finite, got {lam!r}")
        if self.prior is WeightDecay and not _FAR < decay(self.problem, lam) < 1.0 / _FAR:
            raise ValueError(
                f"lam = {lam!r} makes weight decay of {decay(self.problem, lam):.3g} theta^2, "
                "beyond what doubles can hold"
            )


def blas_of(problem: ExpansionProblem, prior: Prior) -> AbstractContextManager[None]:
    """Return `blas_for` the matrices of a solution: of few columns, but under weight decay."""
    return blas_for(problem.n if prior is WeightDecay else problem.n // _MANY)


@contextmanager
def _programmes_in_words(lam: float) -> Iterator[None]:
    """Say what may help where a linear programme cannot be solved, for penalties down to lam."""
    try:
        yield
    except UnsolvedError as failed:
        raise ValueError(
            f"{failed}, with penalties down to {lam:.3g}. Standardise columns far from 0. A "
            "smaller prior_scale, another kernel, or noise of another size or kind may make it one "
            "that can be"
        ) from failed


def _check_start(problem: ExpansionProblem, start: Expansion | None) -> None:
    """Raise ValueError for a start that cannot be one of the problem's."""
    if start is None:
        return
    if len(start.indices) and (
        np.min(start.indices) < 0 or np.max(start.indices) >= problem.columns.size
    ):
        raise ValueError(
            f"start has functions up to number {np.max(start.indices)}, "
            f"but the problem has {problem.columns.size}"
        )
    if len(start.beta) != problem.n_free or len(start.pull) != problem.n:
        raise ValueError(
            f"start must be of {problem.n} rows and {problem.n_free} functions without a penalty, "
            f"got {len(start.pull)} and {len(start.beta)}"
        )


def _check(problem: ExpansionProblem, prior: Prior, tol: float, max_active: Any) -> None:
    """Raise ValueError for options that are none."""
    if prior not in PRIORS:
        names = ", ".join(kind.__name__ for kind in PRIORS)
        raise ValueError(f"prior must be one of {names} of mercer.priors, got {prior!r}")
    if not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be positive, got {tol!r}")
    if max_active is None:
        return
    whole = isinstance(max_active, int | np.integer) and not isinstance(max_active, bool)
    if not whole or max_active < 1:
        raise ValueError(f"max_active must be a whole number, at least 1, got {max_active!r}")
    if prior is WeightDecay and max_active < problem.columns.size:
        raise ValueError(
            f"weight decay forms all {problem.columns.size} columns, got max_active={max_active!r}"
        )
