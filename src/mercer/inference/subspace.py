"""Regression with coefficients confined to a subspace, alpha = P beta (BKM 4.4).

P (n, m) is given. Its columns may be unit vectors, which choose rows and make the mean of DTC on
these; principal components of K; or any others, orthonormal or not. The forms are those of
`quadratic`, in the scaled rows of a `RowProblem`.

With P'KP = U E U' the coordinates c = E^1/2 U' beta have |f|_H^2 = |c|^2 and f = V c at the rows,
V = KP U E^-1/2. L then has the least squares of [V; s 1] c to [y; 0], solved by a QR
decomposition: the squared matrix of (BKM 86) is never formed, and directions that are nothing but
rounding in P'KP have no coordinate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, qr, svdvals
from scipy.linalg.blas import dtrsm

from mercer.compute import blas_for
from mercer.inference import quadratic
from mercer.inference.duals import Dual, RowProblem
from mercer.kernels import Kernel
from mercer.selection.checks import whole_number

__all__ = [
    "SubspaceSolution",
    "dual_solution",
    "natarajan_multiplier",
    "principal_components",
    "solution",
]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# Rows for which the singular values of an n x n matrix are a matter of seconds.
_MOST = 2000


class SubspaceSolution(NamedTuple):
    """The minimiser of L over alpha = P beta.

    beta : (m, P) coordinates (BKM 86)
    coefficients : (n, P) P beta
    fitted : (n, P) K P beta
    squared_norm : (P,) beta'P'KP beta
    value : L, summed over outputs
    """

    beta: Floats
    coefficients: Floats
    fitted: Floats
    squared_norm: Floats
    value: float


def solution(problem: RowProblem, P: ArrayLike, KP: ArrayLike | None = None) -> SubspaceSolution:
    """Minimise L (BKM 78) over alpha = P beta (BKM 85, 86).

    Parameters
    ----------
    problem : RowProblem
    P : (n, m) array
        What spans the subspace. Columns may depend on each other: beta is then one of several that
        make the same function.
    KP : (n, m) array, optional
        K P, if it is there: of unit vectors it is columns of K, of principal components a multiple
        of each. Otherwise it takes a product with K, O(n^2 m).

    Notes
    -----
    O(n m^2) time beside the product, and O(n m) memory.
    """
    P, KP = _pair(problem, P, KP)
    s, Y = np.sqrt(problem.noise), problem.Y
    n, m = P.shape
    with blas_for(m):
        values, U = eigh(_symmetric(P.T @ KP))
        kept = values > m * _EPS * max(float(values[-1]), 0.0)
        root = np.sqrt(values[kept])
        U = U[:, kept] / root  # beta = U c
        stacked = np.vstack([KP @ U, s * np.eye(len(root))])
        Q, R = qr(stacked, mode="economic", overwrite_a=True)
        c = dtrsm(1.0, R, Q[:n].T @ Y) if root.size else np.zeros((0, Y.shape[1]))
        beta = U @ c
        fitted, coefficients = KP @ beta, P @ beta
    norm = np.sum(c**2, axis=0)
    value = float(np.sum(quadratic.primal(Y, fitted, norm, problem.noise)))
    return SubspaceSolution(beta, coefficients, fitted, norm, value)


def dual_solution(problem: RowProblem, P: ArrayLike, KP: ArrayLike | None = None) -> Dual:
    """Minimise L* (BKM 79) over a = P gamma: P'(K + s2)P gamma = P'y, O(m^3) beside the products.

    Arguments as those of `solution`.
    """
    P, KP = _pair(problem, P, KP)
    m = P.shape[1]
    with blas_for(m):
        values, U = eigh(_symmetric(P.T @ KP + problem.noise * (P.T @ P)))
        kept = values > m * _EPS * max(float(values[-1]), 0.0)
        U = U[:, kept]
        gamma = U @ ((U.T @ (P.T @ problem.Y)) / values[kept, None])
        return Dual.of(problem, P @ gamma, KP @ gamma)


def principal_components(
    kernel: Kernel, X: Any, m: int, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the m leading eigenvectors of K as P (n, m), and K P.

    With weights (n,) they are those of w^1/2 K w^1/2, as the scaled rows of a `RowProblem` have it.

    Notes
    -----
    They leave least of K, but have not seen y, and predictions with them need all rows. O(n^3)
    time, n^2 memory.
    """
    X = kernel.inputs(X)
    n = len(X)
    if whole_number("m", m) > n:
        raise ValueError(f"m must be at most the number of rows, {n}, got {m}")
    K = kernel(X)
    if weights is not None:
        root = np.sqrt(weights)
        K *= root
        K *= root[:, None]
    with blas_for(n):
        values, vectors = eigh(K, overwrite_a=True, subset_by_index=[n - m, n - 1])
    P = np.asfortranarray(vectors[:, ::-1])
    return P, P * np.maximum(values[::-1], 0.0)


def natarajan_multiplier(kernel: Kernel, X: Any, noise: float) -> float:
    """Return 18/lambda^2 of (BKM 94), which bounds what a greedy choice can lose to the best one.

    If the best choice of n* rows has L <= L_min + e^2, the greedy one has it with at most
    18/lambda^2 n* ln(|b|/(2e)) rows, where A = (s2 K + K^2)^1/2, b = A^-1 K y, and lambda is the
    least singular value of A with columns divided by their norms. It is infinite where A is
    singular, as far as doubles tell.

    Notes
    -----
    The bound is loose: on data of any size it is larger than the number of rows itself, and says
    that greed is bounded, not how far it goes. O(n^3) time; at most 2000 rows.
    """
    X = kernel.inputs(X)
    n = len(X)
    if n > _MOST:
        raise ValueError(
            f"the multiplier takes the singular values of an n x n matrix, for at most {_MOST} "
            f"rows; got {n}: give a sample of them"
        )
    if not (np.ndim(noise) == 0 and np.isfinite(noise) and noise > 0):
        raise ValueError(f"noise must be a positive variance, got {noise!r}")
    with blas_for(n):
        values, U = eigh(kernel(X), overwrite_a=True)
        values = np.maximum(values, 0.0)
        A = (U * np.sqrt(values * (noise + values))) @ U.T  # (BKM 90)
        norms = np.linalg.norm(A, axis=0)
        if n == 0 or not np.all(norms > 0):
            return np.inf
        singular = svdvals(A / norms, overwrite_a=True)
    least, most = float(singular[-1]), float(singular[0])
    return 18.0 / least**2 if least > n * _EPS * most else np.inf


def _pair(problem: RowProblem, P: ArrayLike, KP: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return P and K P, checked."""
    P = np.asarray(P, dtype=float)
    n = len(problem.Y)
    if P.ndim != 2 or len(P) != n or P.shape[1] == 0 or not np.all(np.isfinite(P)):
        raise ValueError(
            f"P must be finite, with {n} rows and at least one column, got shape {P.shape}"
        )
    product = problem.times(P) if KP is None else np.asarray(KP, dtype=float)
    if product.shape != P.shape:
        raise ValueError(f"K P must have the shape {P.shape} of P, got {product.shape}")
    return P, product


def _symmetric(S: Floats) -> Floats:
    return np.asarray(0.5 * (S + S.T))
