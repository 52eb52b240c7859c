"""Expectation propagation with inducing variables: that of `ep` for the sparse priors.

f ~ N(m, Q + D), Q = K_fu K_uu^-1 K_uf, where D is 0 ("sor", "dtc") or the diagonal of K - Q
("fitc"; UV Table 1). Sites, cavities, powers and the evidence are those of `ep`, whose steps these
are; all sites move at once, and a step takes one factorisation of order m and a pass over the rows
for their variances (`_sparse_sites`): O(n m^2) time, O(n m) memory. With the inducing inputs at the
rows it is `ep`, and with Gaussian noise `sparse`.

References
----------
Naish-Guzman and Holden, *The generalized FITC approximation*, 2007.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._propagation import _WIDEST, Moments, Propagation
from mercer.inference._sparse_latent import (
    SparseLatentAdjoints,
    SparseLatentProblem,
    process,
    pulled,
)
from mercer.inference._sparse_sites import SparsePrior, SparseSites
from mercer.inference._tilted import Tilted
from mercer.inference.ep import SiteState, Solution, _begin, _check, _settle
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "Options",
    "SiteState",
    "Solution",
    "SparseLatentAdjoints",
    "SparseLatentProblem",
    "evidence",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]


class Options(TypedDict, total=False):
    """How the sites are found; those of `ep.Options` but for the schedule, which is "parallel".

    power : float, optional
        By default 1 for a log-concave likelihood, and 1/2 for any other.
    damping : float, default 1.0
        The part of a change that is made; smaller by itself where the sites do not settle.
    tol : float, default 1e-6
        How well moments are to be matched, in units of the marginals.
    max_iterations : int, default 200
    """

    power: float | None
    damping: float
    tol: float
    max_iterations: int


def solve(
    problem: SparseLatentProblem, start: SiteState | None = None, **options: Unpack[Options]
) -> Solution:
    """Find the sites and the log evidence.

    Parameters
    ----------
    problem : SparseLatentProblem
        Any likelihood that has a density, or `smoothed` of its own.
    start : SiteState, optional
        `state` of a solution for hyperparameters or inducing inputs nearby.
    **options
        See `Options`.

    Returns
    -------
    Solution
        With alpha of the rows, latent = m + (Q + D) alpha; `jitter` is that of K_uu.
    """
    return _solve(problem, start, **options)[0]


def evidence(
    problem: SparseLatentProblem,
    start: SiteState | None = None,
    *,
    inputs: bool = False,
    **options: Unpack[Options],
) -> tuple[Solution, SparseLatentAdjoints]:
    """Return the solution and the derivatives of its log evidence.

    The evidence is stationary in sites and cavities, so that these are held. The derivatives are
    exact where the sites are right: to about `tol`. With `inputs` those in the inducing inputs are
    among them.
    """
    solution, work, moments = _solve(problem, start, **options)
    slope = work.tilted.pull(problem.mean + moments.u, moments.c, work.copies)
    return solution, pulled(problem, work.q.sites, solution.alpha, slope, inputs)


def posterior(
    problem: SparseLatentProblem,
    mean: Mean,
    start: SiteState | None = None,
    **options: Unpack[Options],
) -> tuple[Posterior, Solution]:
    """Return the posterior process over the inducing inputs and the solution it was made of.

    Parameters
    ----------
    problem : SparseLatentProblem
    mean : Mean
        The mean function, whose values at the rows are the problem's.
    start : SiteState, optional
        The sites to start from.
    **options
        See `Options`.
    """
    solution, work, _ = _solve(problem, start, **options)
    return process(problem, mean, work.q.sites, work.q.coefficients), solution


def _solve(
    problem: SparseLatentProblem,
    start: SiteState | None = None,
    *,
    power: float | None = None,
    damping: float = 1.0,
    tol: float = 1e-6,
    max_iterations: int = 200,
) -> tuple[Solution, SparsePropagation, Moments]:
    if power is None:
        power = 1.0 if problem.likelihood.is_log_concave else 0.5
    _check(problem, "parallel", power, damping, tol, max_iterations)
    work = SparsePropagation(problem, power)
    with work.prior.blas():
        ahead = start is None and max_iterations > 0
        _begin(work, start, damping if ahead else 0.0)
        moments, residual, iteration = _settle(
            work, False, damping, tol, int(ahead), max_iterations
        )
    q = work.q
    right = residual <= tol and bool(np.all(work.matched(moments)[2] | ~work.some))
    solution = Solution(
        log_evidence=work.log_evidence(moments),
        latent=problem.mean + q.mean,
        variance=q.var,
        alpha=q.alpha,
        precision=q.sites.precision,
        state=SiteState(work.tau, work.nu, problem.mean),
        status="converged" if right else "stopped",
        n_iterations=iteration,
        residual=residual,
        jitter=work.jitter,
    )
    return solution, work, moments


class SparseGaussian:
    """q for sites exp(b g - S g^2/2): its marginals, and what cavities are made of.

    coefficients : (m,) V'alpha
    """

    alpha: Floats
    mean: Floats
    coefficients: Floats

    def __init__(self, prior: SparsePrior, S: Floats, b: Floats) -> None:
        self.sites = SparseSites(prior, S)
        self.var = self.sites.variances
        self.prior = prior.variances
        self.is_convex = bool(np.all(S >= 0))
        self.move(b)

    def move(self, b: Floats) -> None:
        """Change b, and with it the mean only. O(n m)."""
        self.alpha, self.coefficients, self.mean = self.sites.increment(b)

    def cavities(self, part: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the rows with these parts of their own sites taken out.

        And the marginal variances as parts of them, as in `ep`. These are 1 - eta tau Sigma_ii,
        with eta = w part the power and tau = S/w the precision of one of w rows; written so that
        a sharp site leaves digits.
        """
        sites, w = self.sites, self.sites.prior.weights
        pressed = sites.effective * sites.leverages
        kept = (1.0 - part * w) + part * sites.kept * (w - pressed)
        good = (kept > 0) & (self.var <= _WIDEST * self.prior * kept)
        var = self.var / np.where(good, kept, 1.0)
        if self.is_convex:
            var = np.minimum(var, self.prior)  # above only by rounding
        mean = self.mean - np.where(good, part * self.alpha * var, 0.0)
        return mean, var, np.where(good, kept, 0.0)


class SparsePropagation(Propagation):
    """The steps of expectation propagation, with Q + D for K."""

    q: SparseGaussian  # type: ignore[assignment]
    problem: SparseLatentProblem

    def __init__(self, problem: SparseLatentProblem, power: float) -> None:
        # not that of the base, which makes K
        n = problem.n
        self.problem, self.prior = problem, problem.prior()
        self.weights = self.prior.weights
        self.some = self.weights > 0
        self.eta = np.where(self.some, np.minimum(power, self.weights), power)
        self.part = np.where(self.some, self.eta / np.where(self.some, self.weights, 1.0), 0.0)
        self.copies = np.asarray(self.weights / self.eta)
        self.tilted = Tilted(problem.likelihood, problem.y, self.eta)
        self.jitter = self.prior.basis.jitter
        self.tau, self.nu = np.zeros(n), np.zeros(n)

    def prior_moments(self) -> Moments:
        """Return the moments at flat sites, for which nothing is factorised."""
        c = self.prior.variances
        zero = np.zeros(len(c))
        return Moments(zero, c, zero + 1.0, *self.tilted.moments(self.problem.mean, c))

    def _factorise(self) -> bool:
        """Make the Gaussian; False if there is none, or a row has no cavity in it."""
        try:
            q = SparseGaussian(self.prior, self.weights * self.tau, self.weights * self.nu)
        except NotPositiveDefiniteError:
            return False
        self.q = q
        return bool(q.is_convex or np.all(q.cavities(self.part)[2] > 0))

    def sweep(self, step: float) -> tuple[Floats, Floats]:
        """Refuse: one site at a time would cost a pass over the rows for each."""
        raise NotImplementedError("the sites of a sparse prior move all at once")
