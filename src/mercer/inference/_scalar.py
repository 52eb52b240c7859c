"""Newton's method for a likelihood of one latent value a row, which may not be concave.

Not an engine of its own: `_mode` has K for it, `_reduced` a factor of low rank.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._newton import Newton, Point, Solver
from mercer.inference._problem import LatentProblem

__all__ = ["ScalarNewton"]

Floats = NDArray[np.float64]

_ESCAPES = 10
_FAR = 100.0  # nats a row by which the prior mean is a start that rounding can hold up
_SCORING = 4  # iterations by Fisher scoring, before the true curvature is tried where it is mixed


class Factorised(Protocol):
    """A factorisation of K^-1 + S, S the diagonal matrix of the sites' precisions."""

    precision: Floats

    def solve(self, v: Floats) -> Floats:
        """Return (K + S^-1)^-1 v."""


S = TypeVar("S", bound=Factorised)


class ScalarNewton(Newton, Generic[S]):
    """What of Newton's method is the same whatever stands for K.

    K : what the products of `Newton` are made with
    """

    def __init__(self, problem: LatentProblem, K: Floats) -> None:
        super().__init__(problem, K)
        self.problem = problem
        self._sites: S | None = None

    # --- what K decides -----------------------------------------------------------------------

    @abstractmethod
    def fresh_sites(self, precision: Floats) -> S:
        """Factorise K^-1 + S; NotPositiveDefiniteError where that is not positive definite."""

    @abstractmethod
    def falling(self, W: Floats) -> tuple[Floats, Floats] | None:
        """Return d along which K^-1 + W is most negative, and K d of the size of f; or None."""

    # --- what the likelihood decides ----------------------------------------------------------

    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        """Return g and the diagonal of W."""
        first, second, _ = self.problem.derivatives(f)
        return first, -second

    def bend(self, W: Floats, v: Floats) -> Floats:
        """Return W v."""
        return np.asarray(W * v)

    def positive(self, W: Floats, f: Floats) -> Floats:
        """Return the curvature, with the Fisher information where it is negative."""
        if np.all(W >= 0):
            return W
        likelihood = self.problem.likelihood
        if likelihood.missing("fisher"):
            return np.abs(W)
        return np.where(W >= 0, W, self.problem.weighted(likelihood.fisher(f)))

    # --- the search ---------------------------------------------------------------------------

    def factorise(self, precision: Floats) -> S:
        """Return the sites; the last ones, if they have these precisions but for rounding."""
        if self._sites is None or not np.allclose(precision, self._sites.precision, 1e-12, 0.0):
            self.solver = self._sites = None  # before their memory is used again
            self.n_factorisations += 1
            self._sites = self.fresh_sites(precision)
        self.solver = self._sites
        return self._sites

    def precondition(self, W: Floats, f: Floats) -> Solver:
        """Return a positive definite approximation of K^-1 + W: after a while, that itself.

        The Fisher information is safe, but holds rows back whose curvature is far smaller, as that
        of an outlier is; after some steps the curvature's absolute value stands for it.
        """
        if self.n_iterations <= _SCORING or np.all(W >= 0):
            return self.rough_sites(self.positive(W, f))
        try:
            return self.factorise(W)
        except NotPositiveDefiniteError:
            return self.factorise(np.abs(W))

    def rough_sites(self, precision: Floats) -> Solver:
        """Return a preconditioner for precisions that are not negative."""
        return self.factorise(precision)

    def begin(self, start: Floats | None) -> Point:
        """Return the best of the starts there are: that given, the prior mean, and a fit to y."""
        problem = self.problem
        is_concave = problem.likelihood.is_log_concave
        best = self.point(np.zeros(problem.n))
        if start is not None and start.shape == (problem.n,) and np.all(np.isfinite(start)):
            given = self.point(start)
            # of several modes, that which the caller comes from
            if given.value > best.value or (not is_concave and np.isfinite(given.value)):
                return given
        target = problem.likelihood.initial(problem.y)
        far = problem.log_likelihood(target) - best.log_likelihood > _FAR * problem.n
        if not is_concave or far:
            sites = self.factorise(self.positive(self.slopes(target)[1], target))
            fitted = self.point(sites.solve(target - problem.mean))
            if fitted.value > best.value:
                return fitted
        return best

    def settle(self, at: Point) -> tuple[Point, S, bool]:
        """Climb, and factorise at the top; away from points that are level but no maximum.

        Returns the point, the sites there, and whether it is a maximum to rounding.
        """
        for _ in range(_ESCAPES):
            at, done = self.climb(at)
            at = self.point(at.alpha)  # without the rounding of many steps
            W = self.slopes(at.f)[1]
            try:
                sites = self.factorise(W)
            except NotPositiveDefiniteError:
                away = self.escape(at, W)
                if away is None:
                    break
                at = away
                continue
            at = self.polish(at, sites)
            change = np.abs(self.slopes(at.f)[1] - W)
            if np.all(change <= 1e-7 * np.max(np.abs(W))):
                return at, sites, done
        return at, self.factorise(self.positive(self.slopes(at.f)[1], at.f)), False

    def escape(self, at: Point, W: Floats) -> Point | None:
        """Return a higher point along the direction of most negative curvature, or None."""
        along = self.falling(W)
        if along is None:
            return None
        tried = [self.along(at, *along, 2.0**-k * s) for k in range(20) for s in (1.0, -1.0)]
        best = max(tried, key=lambda p: p.value)
        return best if best.value > at.value + at.rounding else None
