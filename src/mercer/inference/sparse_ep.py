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
from mercer.inference._marginals import Marginals
from mercer.inference._problem import LatentLeftOut
from mercer.inference._propagation import Moments, Propagation
from mercer.inference._settling import SiteState, Solution, check, find_sites, powers
from mercer.inference._sparse_latent import (
    SparseLatentAdjoints,
    SparseLatentProblem,
    process,
    pulled,
    without_own_site,
)
from mercer.inference._sparse_sites import SparsePrior, SparseSites
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "Options",
    "SiteState",
    "Solution",
    "SparseLatentAdjoints",
    "SparseLatentProblem",
    "evidence",
    "leave_one_out",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]


class Options(TypedDict, total=False):
    """How the sites are found; those of `ep.Options` but for the schedule, which is "parallel".

    power : float, optional
        By default 1 for a row whose likelihood is log-concave, and 1/2 for any other.
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


def leave_one_out(
    problem: SparseLatentProblem, start: SiteState | None = None, **options: Unpack[Options]
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' sites held.

    Exact for Gaussian noise. The density is that of an observation of weight 1.
    """
    solution, work, _ = _solve(problem, start, **options)
    return solution, without_own_site(problem, work.q.sites, solution.alpha)


def _solve(
    problem: SparseLatentProblem,
    start: SiteState | None = None,
    *,
    power: float | None = None,
    damping: float = 1.0,
    tol: float = 1e-6,
    max_iterations: int = 200,
) -> tuple[Solution, SparsePropagation, Moments]:
    check(problem, power, damping, tol, max_iterations)
    work = SparsePropagation(problem, powers(problem, power))
    with work.prior.blas():
        solution, moments = find_sites(work, start, damping, tol, max_iterations)
    return solution, work, moments


class SparseMarginals(Marginals):
    """That for the prior of inducing variables.

    coefficients : (m,) V'alpha
    """

    sites: SparseSites
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

    def kept(self, part: Floats) -> Floats:
        """Return the marginal variances over those without these parts of the rows' own sites.

        They are 1 - eta tau Sigma_ii, with eta = w part the power and tau = S/w the precision of
        one of w rows; written so that a sharp site leaves digits.
        """
        sites, w = self.sites, self.sites.prior.weights
        pressed = sites.effective * sites.leverages
        return np.asarray((1.0 - part * w) + part * sites.kept * (w - pressed))


class SparsePropagation(Propagation):
    """The steps with Q + D for K."""

    q: SparseMarginals

    def __init__(self, problem: SparseLatentProblem, power: Floats) -> None:
        super().__init__(problem, power)
        self.prior = problem.prior()
        self.jitter = self.prior.basis.jitter

    def prior_variances(self) -> Floats:
        """Return the variances of the latent values before any site."""
        return np.asarray(self.prior.variances)

    def _factorise(self) -> bool:
        """Make the Gaussian; False if there is none, or a row has no cavity in it."""
        try:
            q = SparseMarginals(self.prior, self.weights * self.tau, self.weights * self.nu)
        except NotPositiveDefiniteError:
            return False
        self.q = q
        return bool(q.is_convex or np.all(q.cavities(self.part)[2] > 0))
