"""The logistic bounds with inducing variables: those of `bounds` for the sparse priors.

f ~ N(m, Q + D), Q = K_fu K_uu^-1 K_uf, where D is 0 ("sor", "dtc") or the diagonal of K - Q
("fitc"; UV Table 1). Bounded by (BKM 76), a row is a Gaussian site of precision 2 lambda(nu), and
the best nu of a row is the root of the second moment of its latent value under the Gaussian that
the sites make. To go from one to the other and back raises the bound each time, and converges, but
slowly where the prior is wide: steps are extrapolated from the last ones (Anderson 1965) as long as
that raises it too. The dense engine's Newton steps need the squares of all n^2 covariances.

O(n m^2) time a step, O(n m) memory. With the inducing inputs at the rows the bounds are those of
`bounds`. They are bounds on the evidence under the sparse prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from mercer.inference._ascent import Solution, State
from mercer.inference._logistic_bound import ExpectedBound, labels
from mercer.inference._problem import LatentLeftOut
from mercer.inference._sparse_latent import (
    SparseLatentAdjoints,
    SparseLatentProblem,
    process,
    pulled,
    without_own_site,
)
from mercer.inference._sparse_sites import SparsePrior, SparseSites
from mercer.inference.bounds import UpperBound
from mercer.inference.sparse_laplace import SparseSearch
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "Solution",
    "SparseLatentAdjoints",
    "SparseLatentProblem",
    "State",
    "UpperBound",
    "evidence",
    "leave_one_out",
    "posterior",
    "solve",
    "upper_bound",
]

Floats = NDArray[np.float64]

# The stationary point is reached when its equations hold to this, in units of q's deviations; where
# rounding allows no more, the second is still good enough.
_TOLERANCE, _LOOSE = 1e-8, 1e-5
_ITERATIONS = 500
# Steps that the next one is extrapolated from.
_DEPTH = 8
# Steps without a smaller residual, after which nothing but rounding is left.
_PATIENCE = 20
_ROUNDING = 1e-12


def solve(problem: SparseLatentProblem, start: State | None = None) -> Solution:
    """Return the tightest lower bound on the log evidence, and its Gaussian.

    Parameters
    ----------
    problem : SparseLatentProblem
        Its likelihood is `Logistic`, and y is -1 or 1.
    start : State, optional
        `state` of a solution at other parameters.
    """
    return _maximise(problem, start)[0]


def evidence(
    problem: SparseLatentProblem, start: State | None = None, *, inputs: bool = False
) -> tuple[Solution, SparseLatentAdjoints]:
    """Return the solution and the derivatives of the lower bound, stationary in its Gaussian.

    With `inputs` those in the inducing inputs are among them; the likelihood has no parameters.
    """
    solution, point = _maximise(problem, start)
    return solution, pulled(problem, point.sites, point.alpha, np.zeros(0), inputs)


def posterior(
    problem: SparseLatentProblem, mean: Mean, start: State | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process of the lower bound's Gaussian, and the solution.

    Parameters
    ----------
    problem : SparseLatentProblem
    mean : Mean
        The mean function, of which `problem.mean` has the values at the rows.
    start : State, optional
        `state` of a solution at other parameters.
    """
    solution, point = _maximise(problem, start)
    return process(problem, mean, point.sites, point.coefficients), solution


def leave_one_out(
    problem: SparseLatentProblem, start: State | None = None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' part in the Gaussian held.

    Exact for Gaussian noise. The density is that of an observation of weight 1.
    """
    solution, point = _maximise(problem, start)
    return solution, without_own_site(problem, point.sites, point.alpha)


def upper_bound(problem: SparseLatentProblem) -> UpperBound:
    """Return the tightest upper bound on the log evidence that (BKM 77) gives.

    As `bounds.upper_bound`, by the mode of the posterior under the sparse prior.
    """
    y = labels(problem)
    prior = problem.prior()
    with prior.blas():
        search = SparseSearch(problem, prior)
        at, _, done = search.settle(search.begin(None))
        mu = expit(-y * at.f)
        a = problem.weighted(y * mu)
        cost = problem.weighted(entr(mu) + entr(expit(y * at.f)))
        square = prior.product(a)[2]
    value = float(a @ problem.mean + 0.5 * square - np.sum(cost))
    gap = max(value - at.value, 0.0)
    status = "converged" if done else "stopped"
    return UpperBound(value, mu, gap, status, search.n_iterations)


class _Point(NamedTuple):
    """The Gaussian of some sites, with its bound at the nu that are best for it."""

    alpha: Floats
    coefficients: Floats
    latent: Floats
    variance: Floats
    target: Floats  # (n,) the precisions that these nu give
    residual: float
    bound: float
    rounding: float  # by how much rounding may change the bound
    sites: SparseSites


class _Extrapolation:
    """Anderson's extrapolation of the steps x -> x + f(x) to where f = 0."""

    def __init__(self) -> None:
        self.x: list[Floats] = []
        self.f: list[Floats] = []

    def next(self, x: Floats, f: Floats) -> Floats:
        """Return where to go from x."""
        self.x, self.f = [*self.x, x][-_DEPTH - 1 :], [*self.f, f][-_DEPTH - 1 :]
        if len(self.x) == 1:
            return x + f
        dX, dF = (np.diff(v, axis=0).T for v in (self.x, self.f))  # (n, k)
        weights = np.linalg.lstsq(dF, f, rcond=1e-10)[0]
        return np.asarray(x + f - (dX + dF) @ weights)

    def forget(self) -> None:
        """Begin anew."""
        self.x, self.f = [], []


def _maximise(problem: SparseLatentProblem, start: State | None) -> tuple[Solution, _Point]:
    """Return the best Gaussian."""
    expected, prior = ExpectedBound(problem), problem.prior()
    with prior.blas(), np.errstate(all="ignore"):
        # x is the logarithm of the precision of a row of weight 1, which is at most 1/4
        x = _begin(prior, start)
        point = _point(problem, expected, prior, x)
        bounds, status, waited, least = [point.bound], "stopped", 0, np.inf
        extrapolation = _Extrapolation()
        while True:
            waited = 0 if point.residual < 0.9 * least else waited + 1
            least = min(least, point.residual)
            if point.residual <= _TOLERANCE or (waited > _PATIENCE and point.residual <= _LOOSE):
                status = "converged"
                break
            if len(bounds) > _ITERATIONS:
                break
            f = _logarithm(prior, point.target) - x
            ahead = np.minimum(extrapolation.next(x, f), np.log(0.25))
            new = _point(problem, expected, prior, ahead)
            if not new.bound >= point.bound - point.rounding:
                extrapolation.forget()
                ahead = x + f  # which raises the bound for certain
                new = _point(problem, expected, prior, ahead)
            x, point = ahead, new
            bounds.append(point.bound)
    solution = Solution(
        point.bound,
        point.latent,
        point.variance,
        point.alpha,
        State(point.alpha, point.sites.precision),
        status,
        len(bounds) - 1,
        tuple(bounds),
        prior.basis.jitter,
    )
    return solution, point


def _begin(prior: SparsePrior, start: State | None) -> Floats:
    """Return the logarithms of the first precisions."""
    n = len(prior.V)
    if start is None:
        return np.full(n, np.log(0.25))
    if np.shape(start.precision) != (n,):
        raise ValueError(
            f"start must be the state of a solution with {n} rows, got precisions of shape "
            f"{np.shape(start.precision)}"
        )
    x = _logarithm(prior, np.asarray(start.precision, dtype=float))
    return np.where(np.isfinite(x), np.minimum(x, np.log(0.25)), np.log(0.25))


def _logarithm(prior: SparsePrior, precision: Floats) -> Floats:
    """Return ln of the precisions of rows of weight 1; a row of weight 0 has any."""
    some = prior.weights > 0
    each = np.where(some, precision, 0.25) / np.where(some, prior.weights, 1.0)
    return np.asarray(np.log(each))


def _point(
    problem: SparseLatentProblem, expected: ExpectedBound, prior: SparsePrior, x: Floats
) -> _Point:
    """Return the Gaussian of these precisions; its mean is the best for them."""
    S = prior.weights * np.exp(x)
    sites = SparseSites(prior, S)
    b = problem.weighted(0.5 * expected.y) - S * problem.mean
    alpha, a, rise = sites.increment(b)
    latent, v = problem.mean + rise, sites.variances
    value, first, second = expected.values(latent, v)
    target = -2.0 * second
    square = float(a @ a) + float(np.sum(prior.share * alpha**2))
    trace = float(np.sum(S * v))
    bound = float(np.sum(value)) - 0.5 * (square + sites.log_determinant - trace)
    size = float(np.sum(np.abs(value))) + abs(square) + abs(sites.log_determinant) + trace
    residual = max(
        float(np.max(np.sqrt(v) * np.abs(first - alpha))), float(np.max(v * np.abs(target - S)))
    )
    return _Point(alpha, a, latent, v, target, residual, bound, _ROUNDING * size, sites)
