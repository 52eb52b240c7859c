"""Laplace's method with a low-rank kernel matrix: Newton's method of (BKM 73 to 75).

K is replaced by its Nyström approximation on m basis points (BKM 73),

    K~ = U' K_mm U = V V',   U = K_mm^-1 K_mn,   V = K_nm L_m^-T,   K_mm = L_m L_m',

and Newton's step by that of (BKM 75): with C = W and c = -g it is, as corrected,

    alpha_new = (1 - C U'(K_mm^-1 + U C U')^-1 U)(C U'K_mm U alpha_old - c)
              = (1 - W V B^-1 V')(W V V'alpha_old + g),   B = 1 + V'W V.

The second form inverts neither K_mm nor anything else that may be singular: all eigenvalues of B
are at least 1 where W >= 0. The mode, the evidence and the posterior are those of `laplace` for
the process f(x) = m(x) + k_m(x)'L_m^-T a, a ~ N(0, 1): exactly those for K if the basis points are
the rows. O(n m^2) time a step, O(n m) memory, and K is never formed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dtrmm

from mercer.compute import blas_for
from mercer.inference._problem import LatentProblem
from mercer.inference._reduced import LowRankSearch, LowRankSites, down, up
from mercer.linalg import inverse_lower, mirror_lower, solve_lower
from mercer.means import Mean
from mercer.posterior import Basis, InverseTriangular, Posterior
from mercer.selection import Nystrom, nystrom

__all__ = ["LowRankAdjoints", "LowRankProblem", "Solution", "evidence", "posterior", "solve"]

Floats = NDArray[np.float64]

# What a Newton step may still gain where the search has converged, in units of 1 + |objective|.
_LEFT = 1e-8


@dataclass(frozen=True)
class LowRankProblem(LatentProblem):
    """A `LatentProblem`, and the basis points that the kernel matrix is approximated on.

    points : inputs, m rows, of X or any others; see :mod:`mercer.selection`
    jitter : what to add to the diagonal of K_mm; None lets its factorisation decide
    """

    points: Floats = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.points) == 0:
            raise ValueError("at least one basis point is wanted, got none")


class Solution(NamedTuple):
    """The mode, and the evidence there.

    log_evidence : Laplace's approximation, for the low-rank model
    latent : (n,) the mode f
    alpha : (n,) the slopes of the log likelihood there, f = m + K~ alpha
    coefficients : (m,) a = V'alpha, f = m + V a
    basis : the approximation of K
    sites : the factorisation of 1 + V'W V at the mode
    residual : the trace of K - K~ over that of K: 0 for the whole matrix, 1 for none of it
    state : what `start` of the next evaluation may be, at hyperparameters and points nearby
    status : "converged", or "stopped" short of a maximum
    n_iterations, n_factorisations : what it took
    jitter : what K_mm has on its diagonal
    """

    log_evidence: float
    latent: Floats
    alpha: Floats
    coefficients: Floats
    basis: Nystrom
    sites: LowRankSites
    residual: float
    state: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


class LowRankAdjoints(NamedTuple):
    """Derivatives of the log evidence L in what the engine was given.

    cross : (n, m) dL/dK_nm
    basis : (m, m) dL/dK_mm, symmetric
    likelihood : (p,) dL/dtheta of the likelihood's free parameters
    mean : (n,) dL/d(prior mean)
    """

    cross: Floats
    basis: Floats
    likelihood: Floats
    mean: Floats


def solve(problem: LowRankProblem, start: Floats | None = None) -> Solution:
    """Find the mode and the log evidence.

    log p(y | f) - a'a/2 - ln det(1 + V'W V)/2, a few factorisations of O(n m^2) after one to make
    V. Beside V about half its memory at most, and some MiB a thread.

    Parameters
    ----------
    problem : LowRankProblem
        Its likelihood has derivatives.
    start : (n,) array, optional
        `state` of a solution for hyperparameters or basis points nearby.
    """
    problem.require_mode("the low-rank Newton method", "'ep', 'vi' or 'map' with the whole matrix")
    basis = nystrom(problem.kernel, problem.X, problem.points, problem.jitter)
    with _blas(basis.V):
        search = LowRankSearch(problem, basis.V)
        at, sites, done = search.settle(search.begin(start))
        done = done and search.gain(at, sites) <= _LEFT * (1.0 + abs(at.value))
        latent = search.latent(at.alpha)
        alpha = problem.derivatives(latent)[0]
    total = float(np.sum(basis.residual)) + float(np.sum(search.squares))
    return Solution(
        at.value - 0.5 * sites.log_determinant,
        latent,
        alpha,
        at.alpha,
        basis,
        sites,
        float(np.sum(basis.residual)) / total if total > 0 else 0.0,
        alpha,
        "converged" if done else "stopped",
        search.n_iterations,
        search.n_factorisations,
        basis.jitter,
    )


def evidence(
    problem: LowRankProblem, start: Floats | None = None
) -> tuple[Solution, LowRankAdjoints]:
    """Return the solution and the adjoints of its log evidence, the motion of the mode included.

    The adjoint G of K~ is that of `laplace`, with s = diag(Sigma) d3/2 and u = (1 + W K~)^-1 s,

        G = (alpha alpha' - R + u alpha' + alpha u')/2,

    and of it only G V is wanted. Since R V = W V B^-1, and with b = V'u = B^-1 V's,

        2 G V    = (alpha + u) a' + alpha b' - W V B^-1,
        2 V'G V  = a a' + b a' + a b' - 1 + B^-1,
        dL/dK_nm = 2 G V L_m^-1,     dL/dK_mm = -L_m^-T V'G V L_m^-1,
        dL/dm    = alpha + u,        dL/dtheta = sum_i w_i [l_i' + (V b)_i g_i' - Sigma_ii W_i'/2].

    O(n m^2) time, two arrays of n x m.
    """
    solution = solve(problem, start)
    V, L_m, alpha, a = solution.basis.V, solution.basis.L, solution.alpha, solution.coefficients
    L, W = solution.sites.L, solution.sites.precision
    with _blas(V):
        T = solve_lower(L, V.T)  # L^-1 V', (m, n) Fortran order
        variances = np.einsum("ij,ij->j", T, T)
        s = 0.5 * variances * problem.derivatives(solution.latent)[2]
        b = solution.sites.coefficients(down(V, s))
        Vb = up(V, b)
        u = s - W * Vb
        T = solve_lower(L, T, transpose=True, overwrite=True)  # B^-1 V'
        T *= -W
        T = dgemm(
            1.0,
            np.array([a, b]).T,
            np.array([alpha + u, alpha]),
            1.0,
            T,
            overwrite_c=1,
        )
        T = solve_lower(L_m, T, transpose=True, overwrite=True)
        M = mirror_lower(inverse_lower(L.copy(order="F")))  # B^-1
        M += np.outer(a, 0.5 * a + b) + np.outer(0.5 * a + b, a)
        np.fill_diagonal(M, np.diagonal(M) - 1.0)
        M = solve_lower(L_m, M, transpose=True)
        M = solve_lower(L_m, np.asfortranarray(M.T), transpose=True)
    likelihood = problem.likelihood
    w = problem.weighted(np.ones(problem.n))
    parameters = np.empty(0)
    if likelihood.theta.size:
        parameters = likelihood.pull_derivatives(
            problem.y, solution.latent, w, w * Vb, 0.5 * w * variances
        )
    return solution, LowRankAdjoints(T.T, -0.25 * (M + M.T), parameters, alpha + u)


def posterior(
    problem: LowRankProblem, mean: Mean, start: Floats | None = None, *, lift: bool = False
) -> tuple[Posterior, Solution]:
    """Return the posterior process on the m basis points, and the solution it was made of.

    The low-rank model is linear in the sections at the points, and so is its posterior (w = 0):
    mean k_m(x)'L_m^-T a and covariance k_m(x)'(L_m B L_m')^-1 k_m(x'). Its prior variance is that
    of K~, which goes to 0 away from the points, where it should be largest.

    Parameters
    ----------
    problem : LowRankProblem
    mean : Mean
        The mean function m(x), whose values at the rows are `problem.mean`.
    start : (n,) array, optional
        As in `solve`.
    lift : bool, default False
        Add the variance k(x, x) - k_m(x)'K_mm^-1 k_m(x) that the points leave, which makes the
        process one with its full kernel (w = 1). The mean is the same. If the points are the rows,
        this is the posterior of `laplace`.
    """
    solution = solve(problem, start)
    L_m = solution.basis.L
    alpha = solve_lower(L_m, solution.coefficients, transpose=True)
    with blas_for(len(L_m)):
        both = dtrmm(1.0, L_m, np.asfortranarray(np.tril(solution.sites.L)), lower=1)
    A = InverseTriangular(L_m) if lift else None
    basis = Basis(problem.kernel, problem.points)
    B = InverseTriangular(both)
    return Posterior(basis, alpha[:, None], A, B, int(lift), mean), solution


def _blas(V: Floats) -> AbstractContextManager[None]:
    """Return `blas_for` a matrix whose product takes as long as V'V does."""
    return blas_for(int(np.cbrt(float(V.size) * V.shape[1])))
