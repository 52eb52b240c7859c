"""The most probable values of one latent function, and the Gaussian sites there.

Not an engine of its own: Laplace's method goes on from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._newton import Newton, Point
from mercer.inference._problem import LatentProblem
from mercer.inference._sites import Sites, factorise, falling, symmetric_product

__all__ = ["Mode", "find_mode"]

Floats = NDArray[np.float64]

_ESCAPES = 10
_SCORING = 4  # iterations by Fisher scoring, before the true curvature is tried where it is mixed


class Mode(NamedTuple):
    """The mode, and the Gaussian sites there."""

    alpha: Floats  # (n,)
    latent: Floats  # (n,): m + K alpha
    log_likelihood: float
    sites: Sites
    status: str  # "converged" or "stopped"
    n_iterations: int
    n_factorisations: int
    jitter: float  # what K has on its diagonal


class _Search(Newton):
    """Newton's method for a likelihood of one latent value, which may not be concave."""

    def __init__(self, problem: LatentProblem, K: Floats) -> None:
        super().__init__(problem, K)
        self.problem = problem
        self.jitter = problem.jitter or 0.0
        self._memory: Floats | None = None

    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        first, second, _ = self.problem.derivatives(f)
        return first, -second

    def bend(self, W: Floats, v: Floats) -> Floats:
        return np.asarray(W * v)

    def factorise(self, precision: Floats) -> Sites:
        self.n_factorisations += 1
        sites = factorise(self.K, precision, self.problem.jitter, self._memory)
        self.jitter += sites.jitter
        self._memory, self.solver = sites.memory, sites
        return sites

    def precondition(self, W: Floats, f: Floats) -> Sites:
        """Return a positive definite approximation of K^-1 + W: after a while, that itself.

        The Fisher information is safe, but holds rows back whose curvature is far smaller, as that
        of an outlier is; after some steps the curvature's absolute value stands for it.
        """
        if self.n_iterations <= _SCORING or np.all(W >= 0):
            return self.factorise(self.positive(W, f))
        try:
            return self.factorise(W)
        except NotPositiveDefiniteError:
            return self.factorise(np.abs(W))

    def positive(self, W: Floats, f: Floats) -> Floats:
        """Return the curvature, with the Fisher information where it is negative."""
        if np.all(W >= 0):
            return W
        likelihood = self.problem.likelihood
        if likelihood.missing("fisher"):
            return np.abs(W)
        return np.where(W >= 0, W, self.problem.weighted(likelihood.fisher(f)))

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
        if not is_concave or best.value == -np.inf:
            target = problem.likelihood.initial(problem.y)
            W = self.slopes(target)[1]
            sites = self.factorise(self.positive(W, target))
            fitted = self.point(sites.solve(target - problem.mean))
            if fitted.value > best.value:
                return fitted
        return best

    def settle(self, at: Point) -> tuple[Point, Sites, bool]:
        """Climb, and factorise at the top; away from points that are level but no maximum."""
        for _ in range(_ESCAPES):
            at, done = self.climb(at)
            at = self.point(at.alpha)  # without the rounding of many steps
            W = self.slopes(at.f)[1]
            sites = self.solver
            try:
                if not isinstance(sites, Sites) or not np.allclose(W, sites.precision, 1e-12, 0.0):
                    self.solver = None
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
        d = falling(self.K, W)
        if d is None:
            return None
        Kd = symmetric_product(self.K, d)
        unit = np.sqrt(np.mean(np.diagonal(self.K))) / np.max(np.abs(Kd))
        tried = [self.along(at, d, Kd, unit * 2.0**-k * s) for k in range(20) for s in (1.0, -1.0)]
        best = max(tried, key=lambda p: p.value)
        return best if best.value > at.value + at.rounding else None


def find_mode(problem: LatentProblem, K: Floats, start: Floats | None = None) -> Mode:
    """Maximise sum_i w_i log p(y_i | f_i) - alpha'K alpha/2 over alpha.

    Parameters
    ----------
    problem : LatentProblem
    K : (n, n) array, Fortran order
        `problem.gram()`. Jitter that has to be added is added in place.
    start : (n,) array, optional
        Where to begin: alpha at the mode for hyperparameters nearby.
    """
    search = _Search(problem, K)
    at, sites, done = search.settle(search.begin(start))
    return Mode(
        at.alpha,
        at.f,
        at.log_likelihood,
        sites,
        "converged" if done else "stopped",
        search.n_iterations,
        search.n_factorisations,
        search.jitter,
    )
