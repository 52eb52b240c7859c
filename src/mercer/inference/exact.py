"""Exact inference with Gaussian noise: the evidence, its adjoints, and the posterior.

Y = f(X) + H beta + noise, f a Gaussian process, so Y ~ N(H beta, Q) with Q = K + Sigma. The
coefficients beta are estimated by generalised least squares, or integrated out under a flat prior;
then every Q^-1 below becomes P = Q^-1 - V V', V V' = Q^-1 H (H'Q^-1 H)^-1 H'Q^-1, and dP = -P dQ P
has the form of d Q^-1, so that one formula serves both.

One n x n array is used. It holds K, then its factor, then the inverse, then dL/dK, each in the
lower triangle of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymm, dsyrk

from mercer.compute import blas_for
from mercer.kernels import Kernel
from mercer.linalg import Factorisation, cholesky, inverse_lower, solve_lower
from mercer.means import Mean, Zero
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior

__all__ = ["Adjoints", "ExactProblem", "Solution", "evidence", "leave_one_out", "loo", "solve"]

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2.0 * np.pi))


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

    def with_jitter(self, jitter: float) -> ExactProblem:
        """Return the same problem with the jitter decided."""
        return replace(self, jitter=jitter)


class Adjoints(NamedTuple):
    """Derivatives of the objective L in what the engine was given.

    K : (n, n) Fortran order, dL/dK, lower triangle
    noise : (n,) dL/d(noise variances)
    mean : (n, P) dL/d(mean values)
    """

    K: Floats
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
        Q += problem.noise
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
        root = Wt / S[:, None]
        beta = root.T @ (U.T @ white)
        white = white - U @ (U.T @ white)
        if problem.integrate:
            log_determinant += 2.0 * float(np.sum(np.log(S)))
            dimensions -= r
    value = -0.5 * float(np.sum(white**2))
    value -= 0.5 * outputs * (log_determinant + dimensions * _LOG_2PI)
    both = solve_lower(factor.L, np.hstack([white, U]), transpose=True)
    return Solution(factor, both[:, :outputs], beta, both[:, outputs:], root, value)


def evidence(problem: ExactProblem, out: Floats | None = None) -> tuple[Solution, Adjoints]:
    """Return the solution and the adjoints of its log evidence (BKM 64, as corrected).

    dL/dQ = (alpha alpha' - P)/2 for each output. O(n^3) time in all: what potrf and potri take,
    the evaluation of the kernel, and one symmetric update. The factor of the returned solution
    has been overwritten.
    """
    outputs = problem.Y.shape[1]
    with blas_for(len(problem.Y)):
        solution = _solve(problem, out)
        inverse = inverse_lower(solution.factor.L)
        G = dsyrk(0.5, solution.alpha, -0.5 * outputs, inverse, lower=1, overwrite_c=1)
        if problem.integrate and solution.V.shape[1]:
            G = dsyrk(0.5 * outputs, solution.V, 1.0, G, lower=1, overwrite_c=1)
    return solution, Adjoints(G, np.diagonal(G).copy(), solution.alpha)


class LeaveOneOut(NamedTuple):
    """Predictions of each row from all the others, hyperparameters held: mean and variance.

    `variance` is that of the row's own observation, noise included.
    """

    mean: Floats  # (n, P)
    variance: Floats  # (n,)


def _projected_inverse(problem: ExactProblem, solution: Solution, project: bool) -> Floats:
    """Overwrite the factor by the lower triangle of Q^-1, or of P if `project`."""
    inverse = inverse_lower(solution.factor.L)
    if project and solution.V.shape[1]:
        inverse = dsyrk(-1.0, solution.V, 1.0, inverse, lower=1, overwrite_c=1)
    return np.asarray(inverse)


def leave_one_out(problem: ExactProblem, out: Floats | None = None) -> LeaveOneOut:
    """Predict each row from the others in closed form: y_i - alpha_i/P_ii, variance 1/P_ii.

    Estimated coefficients of the mean are held with the other hyperparameters; integrated ones
    are integrated again without the row. O(n^3) time, n^2 memory.
    """
    solution = solve(problem, out)
    D = np.diagonal(_projected_inverse(problem, solution, problem.integrate)).copy()
    if np.any(D <= 0):
        raise ValueError("there are too few rows to leave one out and integrate the mean out")
    fitted = problem.Y - solution.alpha / D[:, None]
    return LeaveOneOut(fitted, 1.0 / D)


def loo(
    problem: ExactProblem, weights: Floats | None = None, out: Floats | None = None
) -> tuple[Solution, float, Adjoints]:
    """Return the solution, the leave-one-out log density and its adjoints.

    L = sum_i w_i sum_p ln N(y_ip; y_ip - alpha_ip/P_ii, 1/P_ii), the coefficients of the mean
    re-estimated without the row. With g = dL/d diag(P) and a = dL/d alpha,
    dL/dQ = -P diag(g) P - (P a alpha' + alpha a' P)/2. O(n^3) time, 2 n^2 memory.
    """
    solution = solve(problem, out)
    alpha = solution.alpha
    n, outputs = alpha.shape
    w = np.ones(n) if weights is None else weights
    lower = _projected_inverse(problem, solution, project=True)
    D = np.diagonal(lower).copy()
    if np.any(D <= 0):
        raise ValueError("there are too few rows to leave one out and estimate the mean")
    squares = np.sum(alpha**2, axis=1)
    value = 0.5 * float(np.sum(w * (outputs * (np.log(D) - _LOG_2PI) - squares / D)))
    g = 0.5 * w * (outputs / D + squares / D**2)
    a = -(w / D)[:, None] * alpha
    Pa = dsymm(1.0, lower, np.asfortranarray(a), lower=1)
    whole = np.tril(lower)
    whole += np.tril(lower, -1).T
    G = dsyrk(-1.0, whole * np.sqrt(g), 0.0, lower, lower=1, overwrite_c=1)
    # the rank-2P update, symmetric: -(P a alpha' + alpha a' P)/2
    G -= 0.5 * (Pa @ alpha.T)
    G -= 0.5 * (alpha @ Pa.T)
    return solution, value, Adjoints(G, np.diagonal(G).copy(), -Pa)


def posterior(problem: ExactProblem, mean: Mean, scale: Floats) -> tuple[Posterior, Solution]:
    """Return the posterior process (BKM 44 to 48) and the solution it was made of.

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
    L = solution.factor.L
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
    return Posterior(basis, alpha, InverseTriangular(L), B, 1, fixed, scale), solution
