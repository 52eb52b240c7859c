"""Regression with Gaussian noise by conjugate gradients, certified, and a stochastic evidence.

The model is that of `exact`: Y ~ N(H beta, Q), Q = K + Sigma. Q is never factorised. Solutions come
from preconditioned conjugate gradients, which stop where the Gap between the two sides of Theorem 2
(BKM 84) is small (Gibbs and MacKay). With P the preconditioner, a Nyström approximation of Q
(`_preconditioner`), and probes z ~ N(0, P) of length z'P^-1 z = n,

    ln det Q = ln det P + E[n ln-quadrature of P^-1/2 Q P^-1/2 from P^-1/2 z]          (`_lanczos`)
    tr Q^-1 dQ = tr P^-1 dP + E[(Q^-1 z)' dQ (P^-1 z) - (P^-1 z)' dP (P^-1 z)],

whose first terms are exact, and whose expectations vary by as little as P differs from Q. Where P
is Q to rounding there is nothing to estimate. Probes are the same for each theta, so that their
error hardly changes from one point of a search to the next.

All is computed in units of the noise: rows are divided by their noise's deviation, K + Sigma
becomes K + 1 (`_products`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

from mercer.compute import blas_for, row_blocks
from mercer.inference._conjugate import Progress, descend
from mercer.inference._iterative_errors import quadratics, rounding_of
from mercer.inference._iterative_run import (
    IterativeProblem,
    IterativeSolution,
    Settings,
    Work,
    run,
    starting,
)
from mercer.inference._low_rank_adjoint import pull_low_rank, pull_nystrom
from mercer.inference._variance_bounds import VarianceBounds
from mercer.inference.exact import process
from mercer.linalg import cholesky
from mercer.means import Mean
from mercer.posterior import Dense, Posterior

__all__ = [
    "IterativeAdjoints",
    "IterativeProblem",
    "IterativeSolution",
    "Settings",
    "evidence",
    "posterior",
    "solve",
    "variance_bounds",
]

Floats = NDArray[np.float64]

# Columns that are multiplied by K at a time: what this takes beside the result is small.
_COLUMNS = 256


class IterativeAdjoints(NamedTuple):
    """Derivatives of the log evidence.

    theta : (p,) in the kernel's free parameters
    log_noise : in the logarithm of a factor common to all noise variances
    mean : (n, P) in the values of the mean
    """

    theta: Floats
    log_noise: float
    mean: Floats


def solve(problem: IterativeProblem, out: Floats | None = None) -> IterativeSolution:
    """Return the solution, its certificate, and the estimated evidence.

    `out` is an (n, n) array in C order for K, if that is stored. O(n^2) time a step and column, and
    O(n m^2) for the preconditioner.
    """
    return run(problem, out)[0]


def evidence(
    problem: IterativeProblem, out: Floats | None = None
) -> tuple[IterativeSolution, IterativeAdjoints]:
    """Return the solution and the derivatives of the log evidence (BKM 64, as corrected).

    dL/dQ = (alpha alpha' - Q^-1)/2, summed over outputs, in which Q^-1 is estimated as the page
    says. Its factors are narrow, so that no n x n array is made of it.
    """
    solution, work = run(problem, out)
    outputs = problem.Y.shape[1]
    root, pre, A = work.root[:, None], work.preconditioner, work.A
    U, W = work.U, work.W
    terms = [(0.5 * A, A)]
    if problem.integrate and solution.V.shape[1]:
        terms.append((0.5 * outputs * solution.V / root, solution.V / root))
    half, diagonal, theta = 0.5 * outputs, 0.0, np.zeros(problem.kernel.theta.size)
    if solution.is_exact:
        F = pre.root_of_inverse()  # Q^-1 = 1 - F F'
        terms.append((half * F, F))
        diagonal = -half * work.root**2
    else:
        share = np.sqrt(U.shape[1])
        U, W = U / share, W / share
        terms += [(-0.5 * half * U, W), (-0.5 * half * W, U)]
        theta -= half * pull_nystrom(pre, W)
    left, right = (root * np.hstack(factors) for factors in zip(*terms, strict=True))
    theta += pull_low_rank(problem.kernel, problem.X, left, right, diagonal)
    # All noise variances by a common factor: the same as Q^-1 against the unit matrix.
    trace = pre.inverse_trace() + float(np.sum((U - W) * W))
    log_noise = 0.5 * float(np.sum(A**2)) - half * trace
    if problem.integrate:
        log_noise += half * float(np.sum((solution.V / root) ** 2))
    return solution, IterativeAdjoints(theta, log_noise, solution.alpha)


def posterior(
    problem: IterativeProblem,
    mean: Mean,
    scale: Floats,
    out: Floats | None = None,
    progress: Progress | None = None,
) -> tuple[Posterior, IterativeSolution]:
    """Return the posterior process, its variances conservative, and the solution.

    The mean is that of the iterations. A variance is k(x, x) - k_x'Q^-1 k_x, and for any matrix F

        Q^-1 >= F (F'Q F)^-1 F',

    so that the right side, which is -2 min L* over the span of F (BKM 83), gives variances that are
    never below the exact ones, nor below 0. F is of the preconditioner: P^-1 k_x lies in its span
    for sections at the pivots. Its product with K takes 2 n^2 m operations, once; a variance then
    takes O(n m). `variance_bounds` has them to any digits.

    Ctrl-C ends the iterations where they are: the status and the Gap of the solution tell. While
    products with F are made, it leaves those columns of F that have theirs: variances are larger.

    `progress` is told of steps, and of columns.
    """
    solution, work = run(problem, out, keep=True, progress=progress)
    F = work.preconditioner.root_of_inverse()
    G, done = _products_with(F, work, progress)
    if done < F.shape[1]:
        F, G = np.array(F[:, :done], order="F"), np.array(G[:done, :done], order="F")
        solution = solution._replace(status="interrupted")
    return process(problem, solution, _explained(problem, work, F, G), mean, scale), solution


def _products_with(F: Floats, work: Work, progress: Progress | None) -> tuple[Floats, int]:
    """Return F'Q F, and how many of its columns were made before Ctrl-C ended it."""
    m, done = F.shape[1], 0
    G = np.empty((m, m), order="F")
    try:
        for columns in row_blocks(m, _COLUMNS):
            block = np.ascontiguousarray(F[:, columns])
            with blas_for(m):
                G[:, columns] = F.T @ (work.products.times(block) + block)
            done = columns.stop
            if progress is not None:
                progress(f"variances: {done} of {m} columns")
    except KeyboardInterrupt:
        pass
    return G, done


def _explained(problem: IterativeProblem, work: Work, F: Floats, G: Floats) -> Dense | None:
    """Return the factor A of a covariance: A'A = F (F'Q F)^-1 F' in the user's units.

    G = F'Q F; both are overwritten.
    """
    m = F.shape[1]
    if not m:
        return None
    # Sums round G_ij by units of g_i g_j, and F'k_x by units of g: with as much on the diagonal A'A
    # is smaller than both can have made it. So it is by jitter, if any is needed.
    size = work.root * np.sqrt(problem.kernel.diag(problem.X))
    g = sum(size[rows] @ np.abs(F[rows]) for rows in row_blocks(len(F), _COLUMNS))
    G[np.diag_indices(m)] += rounding_of(len(F)) * np.sqrt(m) * g**2
    with blas_for(m):
        L = cholesky(np.asfortranarray(0.5 * (G + G.T))).L
        F *= work.root[:, None]
        return Dense(dtrsm(1.0, L, F, side=1, lower=1, trans_a=1, overwrite_b=1).T)


def variance_bounds(
    problem: IterativeProblem, X: Any, tol: float = 1e-6, out: Floats | None = None
) -> VarianceBounds:
    """Return what the latent variances at new rows lie between, by solves of their own.

    With a near Q^-1 k_x, whose residual is r = k_x - Q a, and P <= Q the preconditioner,

        a'(k_x + r) <= k_x'Q^-1 k_x <= a'(k_x + r) + r'P^-1 r,

    the left side by (BKM 83). Each row is solved for until the bounds are `tol` k(x, x) apart, or
    `settings.max_iter` steps are done. What rounding may take is added: some 1e-15 tr K / noise of
    k(x, x), at most. The mean's coefficients are taken as known.

    Parameters
    ----------
    problem : IterativeProblem
        Its targets have no part in it.
    X : inputs
        k rows.
    tol : float
        How far the bounds may be apart, in units of k(x, x).
    out : (n, n) array, optional
        As for `solve`.
    """
    root, pre, products = starting(problem, out)
    kernel, new = problem.kernel, problem.kernel.inputs(X)
    prior, size = kernel.diag(new), root * np.sqrt(kernel.diag(problem.X))
    lower, upper = np.empty(len(new)), np.empty(len(new))
    for rows in row_blocks(len(new), _COLUMNS):
        least = tol * prior[rows]
        sections = root[:, None] * kernel(problem.X, new[rows])

        def enough(B: Floats, A: Floats, R: Floats, rho: Floats, columns: Any) -> Any:
            return rho <= least[columns]  # noqa: B023 (called before the next rows are)

        max_iter = problem.settings.max_iter
        found = descend(products, pre.solve, sections, enough, max_iter)
        R = sections - products.times(found.A) - found.A
        explained = quadratics(pre, size, found.A, sections, R, np.sqrt(prior[rows]))
        lower[rows] = prior[rows] - explained.upper
        upper[rows] = prior[rows] - explained.lower
    used = np.full(len(new), len(problem.X), dtype=np.intp)
    return VarianceBounds(np.clip(lower, 0.0, prior), np.clip(upper, 0.0, prior), used)
