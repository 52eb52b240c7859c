"""Exact inference with Gaussian noise: the evidence, its adjoints, and the posterior.

Y = f(X) + H beta + noise, f a Gaussian process, so Y ~ N(H beta, Q) with Q = K + Sigma. The
coefficients beta are estimated by generalised least squares, or integrated out under a flat prior;
then every Q^-1 below becomes P = Q^-1 - V V', V V' = Q^-1 H (H'Q^-1 H)^-1 H'Q^-1, and dP = -P dQ P
has the form of d Q^-1, so that one formula serves both.

One n x n array is used. It holds K, then its factor, then the inverse, then dL/dK, each in the
lower triangle of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr, dsyrk

from mercer.compute import blas_for
from mercer.kernels import Kernel
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import Factorisation, cholesky, inverse_lower, solve_lower
from mercer.means import Mean, Zero
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior

if TYPE_CHECKING:
    from mercer.inference._iterative_run import IterativeProblem, IterativeSolution
    from mercer.posterior.bilinear import Factors

__all__ = [
    "Adjoints",
    "ExactProblem",
    "Solution",
    "conditioned",
    "evidence",
    "posterior",
    "process",
    "solve",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExactProblem:
    """Regression with Gaussian noise, in arrays.

    kernel : Kernel
    X : inputs, n rows
    Y : (n, P) targets less the fixed part of the mean; the outputs are independent and share Q
    noise : (n,) noise variances, or (n, n) noise covariance
    H : (n, r) regressors of the mean, or None
    integrate : whether beta is integrated out, rather than estimated
    jitter : what to add to the diagonal of Q; None lets the factorisation decide
    """

    kernel: Kernel
    X: Floats
    Y: Floats
    noise: Floats
    H: Floats | None = None
    integrate: bool = False
    jitter: float | None = None


class Adjoints(NamedTuple):
    """Derivatives of the objective L in what the engine was given.

    K : (n, n) Fortran order, lower triangle; dL/dK is `factor` times it
    factor : what would otherwise cost a pass over the matrix
    noise : (n,) dL/d(noise variances)
    mean : (n, P) dL/d(mean values)
    """

    K: Floats
    factor: float
    noise: Floats
    mean: Floats


class Solution(NamedTuple):
    """What factorising Q gives: all that predictions need."""

    factor: Factorisation
    alpha: Floats  # (n, P): P Y, which is Q^-1 (Y - H beta)
    beta: Floats  # (r, P)
    V: Floats  # (n, k): P = Q^-1 - V V'
    root: Floats  # (k, r): (H'Q^-1 H)^-1 = root' root
    log_evidence: float


def _covariance(problem: ExactProblem, out: Floats | None) -> Floats:
    """Return the lower triangle of Q = K + Sigma."""
    Q = problem.kernel.gram_lower(problem.X, out)
    if problem.noise.ndim == 2:
        for j in range(len(Q)):  # the upper triangle holds anything
            Q[j:, j] += problem.noise[j:, j]
    else:
        Q.reshape(-1, order="F")[:: Q.shape[0] + 1] += problem.noise
    return Q


def solve(problem: ExactProblem, out: Floats | None = None) -> Solution:
    """Factorise Q and compute the log evidence (BKM 62), in `out` if it is given.

    O(n^3/3) time; n^2 memory, which the returned factor keeps.
    """
    with blas_for(len(problem.Y)):
        return _solve(problem, out)


def _solve(problem: ExactProblem, out: Floats | None) -> Solution:
    n, outputs = problem.Y.shape
    Q = _covariance(problem, out)
    factor = cholesky(Q, problem.jitter, rebuild=lambda: _covariance(problem, Q))
    white = solve_lower(factor.L, np.asfortranarray(problem.Y))  # L^-1 Y
    H = problem.H
    r = 0 if H is None else H.shape[1]
    beta, U, root = np.zeros((r, outputs)), np.zeros((n, 0)), np.zeros((0, r))
    log_determinant = factor.log_determinant()
    dimensions = n
    if H is not None and r:
        H, T = conditioned(H)
        # L^-1 H = U S W'. Regressors that depend on others get the smallest coefficients.
        U, S, Wt = np.linalg.svd(solve_lower(factor.L, np.asfortranarray(H)), full_matrices=False)
        rank = int(np.sum(S > S[0] * max(n, r) * np.finfo(float).eps))
        if problem.integrate and rank < r:
            raise ValueError(
                f"the mean has {r} regressors of which only {rank} are linearly independent on "
                f"these {n} rows, so they cannot be integrated out; drop constant or repeated "
                "columns, give more rows, or use estimate='ml'"
            )
        U, S, Wt = U[:, :rank], S[:rank], Wt[:rank]
        root = (Wt / S[:, None]) @ T.T
        beta = root.T @ (U.T @ white)
        white = white - U @ (U.T @ white)
        if problem.integrate:
            log_determinant += 2.0 * float(np.sum(np.log(S)) - np.linalg.slogdet(T)[1])
            dimensions -= r
    value = -0.5 * float(np.sum(white**2))
    value -= 0.5 * outputs * (log_determinant + dimensions * LOG_2PI)
    both = solve_lower(factor.L, np.hstack([white, U]), transpose=True)
    return Solution(factor, both[:, :outputs], beta, both[:, outputs:], root, value)


def conditioned(H: Floats) -> tuple[Floats, Floats]:
    """Return regressors H T of unit length, and T (r, r).

    If one of them is constant, the others are centred by it: whitening regressors that stand far
    from 0, or that differ in size, would round away what they say.
    """
    r = H.shape[1]
    T = np.eye(r)
    constant = np.flatnonzero((np.ptp(H, axis=0) == 0) & (H[0] != 0))
    if constant.size:
        c = constant[0]
        others = np.arange(r) != c
        T[c, others] = -np.mean(H[:, others], axis=0) / H[0, c]
        H = H.copy()
        H[:, others] -= np.mean(H[:, others], axis=0)
    length = np.linalg.norm(H, axis=0)
    length[length == 0] = 1.0
    return H / length, T / length


def evidence(problem: ExactProblem, out: Floats | None = None) -> tuple[Solution, Adjoints]:
    """Return the solution and the adjoints of its log evidence (BKM 64, as corrected).

    dL/dQ = (alpha alpha' - P)/2, summed over outputs. O(n^3) time in all: what potrf and potri
    take, the evaluation of the kernel, and one symmetric update. The factor of the returned
    solution has been overwritten.
    """
    outputs = problem.Y.shape[1]
    with blas_for(len(problem.Y)):
        solution = _solve(problem, out)
        G = inverse_lower(solution.factor.L)
        if problem.integrate and solution.V.shape[1]:
            G = dsyrk(-1.0, solution.V, 1.0, G, lower=1, overwrite_c=1)
        # -2 dL/dQ = P - alpha alpha'
        if outputs == 1:
            G = dsyr(-1.0, solution.alpha[:, 0], lower=1, a=G, overwrite_a=1)
        else:
            G = dsyrk(-1.0, solution.alpha, float(outputs), G, lower=1, overwrite_c=1)
    return solution, Adjoints(G, -0.5, -0.5 * np.diagonal(G), solution.alpha)


def posterior(problem: ExactProblem, mean: Mean, scale: Floats) -> tuple[Posterior, Solution]:
    """Return the posterior process (BKM 44, 45, 47, 48) and the solution it was made of.

    Parameters
    ----------
    problem : ExactProblem
        In units in which the outputs are divided by `scale`.
    mean : Mean
        The mean function, in the user's units; its coefficients, where they are estimated, are
        set from the solution.
    scale : (P,) array
        The units of the outputs.
    """
    solution = solve(problem)
    A = InverseTriangular(solution.factor.L)
    return process(problem, solution, A, mean, scale), solution


def process(
    problem: ExactProblem | IterativeProblem,
    solution: Solution | IterativeSolution,
    A: Factors,
    mean: Mean,
    scale: Floats,
) -> Posterior:
    """Return the process over the rows whose covariance is k(x, x') - phi(x)'A'A phi(x').

    Where coefficients of the mean are integrated out they are coefficients of features beside the
    sections; where they are estimated the mean function has them.
    """
    alpha, B, features = solution.alpha, None, None
    if problem.H is not None and problem.H.shape[1]:
        if problem.integrate:
            # var += |root (h - H'Q^-1 k)|^2, the price of not knowing beta
            features = mean
            alpha = np.vstack([alpha, solution.beta])
            B = Dense(np.hstack([-solution.V.T, solution.root]))
        else:
            mean = mean.with_coefficients(solution.beta * scale)
    basis = Basis(problem.kernel, problem.X, features)
    fixed = mean if features is None else Zero()
    return Posterior(basis, alpha, A, B, 1, fixed, scale)
