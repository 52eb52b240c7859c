"""Laplace's method: a Gaussian at the mode of the posterior, with its curvature (BKM 70 to 72).

f ~ N(m, K), and w_i log p(y_i | f_i) has the derivatives g, -W and d3 in f_i at the mode
f = m + K alpha, where alpha = g. Then

    log evidence = sum_i w_i log p(y_i | f_i) - alpha'K alpha/2 - ln det(1 + K W)/2
    posterior    : mean m(x) + k(x)'alpha, covariance k(x, x') - k(x)'R k(x'),  R = (K + W^-1)^-1.

With Gaussian noise both are exact. Three arrays of n x n at the most: K, the factor of
1 + W^1/2 K W^1/2, and, where W has k negative entries, what belongs to these, n x k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr2

from mercer.compute import blas_for
from mercer.inference._latent_loo import without_own_site
from mercer.inference._memory import square_memory
from mercer.inference._mode import find_mode
from mercer.inference._problem import LatentAdjoints, LatentLeftOut, LatentProblem
from mercer.inference._sites import Sites, symmetric_product
from mercer.means import Mean
from mercer.posterior import Basis, Posterior

__all__ = ["Solution", "evidence", "leave_one_out", "posterior", "solve"]

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """The mode, and the evidence there.

    log_evidence : Laplace's approximation
    latent : (n,) the mode f
    alpha : (n,) f = m + K alpha
    sites : the factorisation of K^-1 + W at the mode
    state : what `start` of the next evaluation may be, at hyperparameters nearby
    status : "converged", or "stopped" short of a maximum
    n_iterations, n_factorisations : what it took
    jitter : what K has on its diagonal
    """

    log_evidence: float
    latent: Floats
    alpha: Floats
    sites: Sites
    state: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


def solve(problem: LatentProblem, start: Floats | None = None) -> Solution:
    """Find the mode and the log evidence.

    A few factorisations of O(n^3/3), two from a cold start where all goes well, and some tens of
    products of O(n^2).

    Parameters
    ----------
    problem : LatentProblem
        Its likelihood has derivatives.
    start : (n,) array, optional
        `state` of a solution for hyperparameters nearby.
    """
    problem.require_mode("Laplace's method", "inference by 'ep', 'vi' or 'map'")
    with blas_for(problem.n):
        mode = find_mode(problem, problem.gram(square_memory(problem.n)), start)
    square = float(mode.alpha @ (mode.latent - problem.mean))
    value = mode.log_likelihood - 0.5 * square - 0.5 * mode.sites.log_determinant
    return Solution(
        value,
        mode.latent,
        mode.alpha,
        mode.sites,
        mode.alpha,
        mode.status,
        mode.n_iterations,
        mode.n_factorisations,
        mode.jitter,
    )


def evidence(
    problem: LatentProblem, start: Floats | None = None
) -> tuple[Solution, LatentAdjoints]:
    """Return the solution and the adjoints of its log evidence, the motion of the mode included.

    With Sigma = (K^-1 + W)^-1, a = diag(Sigma) d3/2 = dL/df and u = (1 + W K)^-1 a,

        dL/dK = (alpha alpha' - R + u alpha' + alpha u')/2,    dL/dm = alpha + u,
        dL/dtheta = sum_i w_i [l_i' + (K u)_i g_i' - Sigma_ii W_i'/2],

    the primes being the derivatives of log p, of g and of W in theta at fixed f. O(n^3). The factor
    of the returned solution has been overwritten.
    """
    solution = solve(problem, start)
    sites, alpha = solution.sites, solution.alpha
    with blas_for(problem.n):
        R = sites.inverse()
        variances = sites.marginal_variances()
        slope = 0.5 * variances * problem.derivatives(solution.latent)[2]
        u = slope - sites.solve(symmetric_product(sites.K, slope))
        Ku = symmetric_product(sites.K, u)
        # -2 dL/dK = R - alpha (alpha/2 + u)' - (alpha/2 + u) alpha'
        G = dsyr2(-1.0, alpha, 0.5 * alpha + u, lower=1, a=R, overwrite_a=1)
    likelihood = problem.likelihood
    w = problem.weighted(np.ones(problem.n))
    parameters = np.empty(0)
    if likelihood.theta.size:
        parameters = likelihood.pull_derivatives(
            problem.y, solution.latent, w, w * Ku, 0.5 * w * variances
        )
    return solution, LatentAdjoints(np.asarray(G), -0.5, parameters, alpha + u)


def posterior(
    problem: LatentProblem, mean: Mean, start: Floats | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process and the solution it was made of, whose factor it takes.

    Parameters
    ----------
    problem : LatentProblem
    mean : Mean
        The mean function m(x), whose values at the rows are `problem.mean`.
    start : (n,) array, optional
        As in `solve`.
    """
    solution = solve(problem, start)
    A, B = solution.sites.factors()
    basis = Basis(problem.kernel, problem.X)
    return Posterior(basis, solution.alpha[:, None], A, B, 1, mean), solution


def leave_one_out(
    problem: LatentProblem, start: Floats | None = None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' sites held.

    Exact for Gaussian noise. The density of y_i is that of a row of weight 1. The factor of the
    returned solution has been overwritten.
    """
    solution = solve(problem, start)
    # alpha is the slope at the mode, without the rounding that weights or small noise multiply
    return solution, without_own_site(problem, solution.sites, solution.latent, solution.alpha)
