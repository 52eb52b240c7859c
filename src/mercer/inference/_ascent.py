"""The Gaussian q(f) that makes a lower bound on the evidence as large as it gets.

For any density q, ln p(Y) >= E_q[ln p(Y | f)] - KL(q, prior) (BKM 21, Theorem 1). Of all Gaussians
the best one has 2n parameters (Opper and Archambeau 2009),

    q(f) = N(m + K alpha, Sigma),   Sigma = (K^-1 + S)^-1,   S = diag(precision),

and with E_i(mean, var) the expected log likelihood of row i, mu and v the means and variances of q,

    bound = sum_i E_i(mu_i, v_i) - 1/2 alpha'K alpha - 1/2 ln det(1 + K S) + 1/2 sum_i S_i v_i,

which is stationary where alpha = dE/dmean and S = -2 dE/dvar. The search tries Newton's step on
these 2n equations (`_ascent_newton`), and where that does not raise the bound, the natural
gradient: a step towards the right sides, on a straight line in the natural parameters of q. That
one raises the bound if it is short enough, and K^-1 + S stays positive definite on its way.

Not an engine: `variational` takes the likelihood's own expectation for E, and `bounds` one in
closed form.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._ascent_newton import Curvatures, newton_direction
from mercer.inference._latent_loo import without_own_site
from mercer.inference._problem import LatentAdjoints, LatentLeftOut, LatentProblem
from mercer.inference._sites import Sites, factorise, symmetric_product
from mercer.means import Mean
from mercer.posterior import Basis, Posterior

__all__ = [
    "Expected",
    "Point",
    "Solution",
    "State",
    "adjoints",
    "leave_one_out",
    "maximise",
    "posterior",
    "weighted",
]

Floats = NDArray[np.float64]
# The stationary point is reached when both equations hold to this, in units of q's deviations.
_TOLERANCE = 1e-8
# Where rounding, or the quadrature's, allows no further ascent, this is still good enough.
_LOOSE = 1e-5
# So many deviations of q off, a start is worth no more than none.
_FAR = 3.0
_ITERATIONS = 200
# Two values of the bound are equal that differ by less than this part of its terms.
_ROUNDING = 1e-12


class Expected(Protocol):
    """E of the rows, times their weights."""

    def values(self, mean: Floats, var: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E, dE/dmean and dE/dvar, each (n,)."""

    def curvatures(self, mean: Floats, var: Floats, first: Floats, second: Floats) -> Curvatures:
        """Return the second derivatives of E, to two digits or so; the first ones are given."""


class State(NamedTuple):
    """What the next search, at other parameters, can start from."""

    alpha: Floats  # (n,)
    precision: Floats  # (n,)


class Solution(NamedTuple):
    """The best Gaussian and the bound.

    log_evidence : the lower bound on it
    latent, variance : (n,) means and variances of f at the rows
    alpha : (n,) latent = prior mean + K alpha
    state : to start the next evaluation from
    status : "converged" or "stopped"
    n_iterations : steps that were taken
    bounds : the bound at the start and after each step; it never falls, but by rounding
    jitter : what had to be added to the diagonal of K
    """

    log_evidence: float
    latent: Floats
    variance: Floats
    alpha: Floats
    state: State
    status: str
    n_iterations: int
    bounds: tuple[float, ...]
    jitter: float


class Point(NamedTuple):
    """A Gaussian q with its bound, and what the next step needs."""

    alpha: Floats
    precision: Floats
    latent: Floats
    variance: Floats
    first: Floats  # dE/dmean
    target: Floats  # -2 dE/dvar
    bound: float
    rounding: float  # by how much rounding may change the bound
    sites: Sites

    def residual(self) -> float:
        """Return how far the equations of the stationary point are from holding."""
        mean = np.sqrt(self.variance) * np.abs(self.first - self.alpha)
        var = self.variance * np.abs(self.target - self.precision)
        return float(max(mean.max(), var.max()))

    def is_above(self, other: Point) -> bool:
        """Whether it is better: by its bound or, where rounding hides that, by its equations."""
        if abs(self.bound - other.bound) > other.rounding:
            return self.bound > other.bound
        return self.residual() < 0.9 * other.residual()


def weighted(problem: LatentProblem, *rows: Floats) -> tuple[Floats, ...]:
    """Return arrays (n,) times the weights; a row of weight 0 may be infinite or NaN."""
    w = problem.weights
    return rows if w is None else tuple(np.where(w > 0, w * a, 0.0) for a in rows)


def maximise(
    problem: LatentProblem, expected: Expected, start: State | None = None
) -> tuple[Solution, Point]:
    """Return the best Gaussian.

    O(n^3) a step, about 4/3 n^3 multiplications; five matrices of n^2.
    """
    # Steps that go too far overflow; what is not finite is not accepted.
    with blas_for(problem.n), np.errstate(all="ignore"):
        search = _Search(problem, expected)
        point = search.begin(start)
        bounds, status = [point.bound], "stopped"
        for _ in range(_ITERATIONS):
            residual = point.residual()
            if residual <= _TOLERANCE:
                status = "converged"
                break
            new = search.newton(point) or search.natural(point)
            if new is None:  # nothing but rounding is left
                status = "converged" if residual <= _LOOSE else "stopped"
                break
            point = new
            bounds.append(point.bound)
    solution = Solution(
        point.bound,
        point.latent,
        point.variance,
        point.alpha,
        State(point.alpha, point.precision),
        status,
        len(bounds) - 1,
        tuple(bounds),
        search.jitter,
    )
    return solution, point


def adjoints(point: Point, likelihood: Floats) -> LatentAdjoints:
    """Return the adjoints of the bound; `likelihood` is dL/dtheta at fixed q.

    The bound is stationary in q, so that only what depends on K and m at fixed alpha and S is
    left: dL/dK = (alpha alpha' - (K + S^-1)^-1)/2 and dL/dm = alpha. The point's sites are
    overwritten.
    """
    with blas_for(len(point.alpha)):
        G = dsyr(-1.0, point.alpha, lower=1, a=point.sites.inverse(), overwrite_a=1)
    return LatentAdjoints(np.asarray(G), -0.5, likelihood, point.alpha)


def posterior(
    problem: LatentProblem, expected: Expected, mean: Mean, start: State | None
) -> tuple[Posterior, Solution]:
    """Return the posterior process that the best Gaussian at the rows implies, and the solution."""
    solution, point = maximise(problem, expected, start)
    sites = factorise(point.sites.K, point.precision, 0.0)  # K has its jitter already
    A, B = sites.factors()
    basis = Basis(problem.kernel, problem.X)
    return Posterior(basis, point.alpha[:, None], A, B, 1, mean), solution


def leave_one_out(
    problem: LatentProblem, expected: Expected, start: State | None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others, whose part in the best Gaussian is held."""
    solution, point = maximise(problem, expected, start)
    return solution, without_own_site(problem, point.sites, point.latent, point.alpha)


def _increment(sites: Sites, r: Floats) -> Floats:
    """Return (1 + S K)^-1 r, (n,).

    By R = (K + S^-1)^-1 that is R S^-1 r, or r - R K r; the first is right where S k is large,
    and the second where it is small. Both are linear in r, which is shared out between them.
    """
    S = sites.precision
    large = S * np.diagonal(sites.K) >= 1.0
    rest = np.where(large, 0.0, r)
    sent = np.where(large, r / np.where(large, S, 1.0), 0.0)
    return np.asarray(rest + sites.solve(sent - symmetric_product(sites.K, rest)))


class _Search:
    """Where to begin, and the two kinds of step."""

    def __init__(self, problem: LatentProblem, expected: Expected) -> None:
        self.problem, self.expected = problem, expected
        self.K = problem.gram()
        self._diagonal = np.diagonal(self.K).copy()
        # A row at which the prior is certain has variance 0, for which E need not be smooth.
        self.floor = max(1e-30 * float(np.max(self._diagonal)), 1e-300)

    @property
    def jitter(self) -> float:
        """What is on the diagonal of K; the factorisations may have added to it."""
        added = float(np.max(np.diagonal(self.K) - self._diagonal))
        return added + (self.problem.jitter or 0.0)

    def sites(self, precision: Floats) -> Sites | None:
        """Return the factorisation, or None where K^-1 + S is not positive definite."""
        if not np.all(np.isfinite(precision)):
            return None
        try:
            return factorise(self.K, precision, self.problem.jitter)
        except NotPositiveDefiniteError:
            return None

    def point(self, alpha: Floats, sites: Sites | None) -> Point | None:
        """Return the Gaussian of these parameters, or None where its bound is not finite."""
        shift = symmetric_product(self.K, alpha)
        if sites is None or not np.all(np.isfinite(shift)):
            return None
        latent, S = self.problem.mean + shift, sites.precision
        v = np.maximum(sites.marginal_variances(), self.floor)
        try:
            value, first, second = self.expected.values(latent, v)
        except (ValueError, OverflowError):  # an integral that numbers cannot hold
            return None
        quadratic, trace = float(alpha @ shift), S * v
        bound = float(np.sum(value) - 0.5 * (quadratic + sites.log_determinant - np.sum(trace)))
        size = float(np.sum(np.abs(value)) + np.sum(np.abs(trace)) + abs(sites.log_determinant))
        if not (np.isfinite(bound) and np.all(np.isfinite(first + second))):
            return None
        rounding = _ROUNDING * (size + abs(quadratic))
        return Point(alpha, S, latent, v, first, -2.0 * second, bound, rounding, sites)

    # --- where to begin -----------------------------------------------------------------------

    def begin(self, start: State | None) -> Point:
        """Return the given start, or where that is far from good the better of both."""
        warm = self.warm(start)
        if warm is None or warm.residual() > _FAR:
            cold = self.cold()
            return cold if warm is None or cold.bound > warm.bound else warm
        return warm

    def warm(self, start: State | None) -> Point | None:
        """Return the given start, if it is one for this problem."""
        if start is None:
            return None
        shapes = np.shape(start.alpha), np.shape(start.precision)
        if shapes != ((self.problem.n,),) * 2:
            raise ValueError(
                f"start must be the state of a solution with {self.problem.n} rows, got arrays of "
                f"shapes {shapes[0]} and {shapes[1]}"
            )
        # Negative precisions that were right for another kernel may outweigh this one.
        S = start.precision
        sites = self.sites(S) or self.sites(np.maximum(S, 0.0))
        return self.point(start.alpha, sites)

    def cold(self) -> Point:
        """Return the q of sites that are fitted row by row, around a plausible latent value."""
        problem, values = self.problem, self.expected.values
        f = np.asarray(problem.likelihood.initial(problem.y), dtype=float)
        k = np.maximum(self._diagonal, self.floor)
        v = k
        # A row alone would have the variance 1/(1/k + S(v)). S may rise or fall with v.
        for _ in range(2):
            try:
                S = np.maximum(-2.0 * values(f, v)[2], 0.0)
                v = np.where(np.isfinite(S), np.sqrt(v / (1.0 / k + S)), 1e-3 * v)
            except (ValueError, OverflowError):
                v = 1e-3 * v
            v = np.maximum(v, self.floor)
        _, first, second = values(f, v)
        first = np.where(np.isfinite(first), first, 0.0)
        S = np.where(np.isfinite(second), np.maximum(-2.0 * second, 0.0), 1.0 / k)
        for _ in range(8):
            sites = factorise(self.K, S, problem.jitter)
            point = self.point(_increment(sites, first + S * (f - problem.mean)), sites)
            if point is not None:
                return point
            S = 1e3 * np.maximum(S, 1.0 / k)  # nearer to f, where the likelihood is finite
        raise ValueError(
            f"no Gaussian was found under which the expected logarithm of {problem.likelihood!r} "
            "is finite: the prior's mean or variance, or the observations, are out of its range"
        )

    # --- steps --------------------------------------------------------------------------------

    def newton(self, p: Point) -> Point | None:
        """Return a point with a higher bound on the way that Newton's step goes, or None."""
        try:
            E = self.expected.curvatures(p.latent, p.variance, p.first, -0.5 * p.target)
        except (ValueError, OverflowError):
            return None
        # tight near the end, so that convergence is fast
        direction = newton_direction(p, E, min(1e-2, max(p.residual(), 1e-6)))
        if direction is None:
            return None
        for step in (1.0, 0.25, 0.0625):
            alpha, precision = direction.moved(p, step)
            new = self.point(alpha, self.sites(precision))
            if new is not None and new.is_above(p):
                return new
        return None

    def natural(self, p: Point) -> Point | None:
        """Return a point with a higher bound along the natural gradient, or None.

        So near to the maximum that rounding decides, short steps are not worth their time.
        """
        step, least = 1.0, 1e-9 if p.residual() > _LOOSE else 0.1
        while step > least:
            sites = self.sites(p.precision + step * (p.target - p.precision))
            if sites is not None:
                new = self.point(p.alpha + step * _increment(sites, p.first - p.alpha), sites)
                if new is not None and new.is_above(p):
                    return new
            step *= 0.5
        return None
