"""Derivatives of kernel matrices given by products of narrow matrices, pulled back in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.compute import blas_for, row_blocks
from mercer.inference._preconditioner import Preconditioner
from mercer.kernels import Kernel

__all__ = ["pull_low_rank", "pull_nystrom"]

Floats = NDArray[np.float64]

# Order of the blocks of dL/dK that are in memory at a time.
_BLOCK = 1024


def pull_low_rank(
    kernel: Kernel, X: Any, left: Floats, right: Floats, diagonal: float | Floats = 0.0
) -> Floats:
    """Return dL/dtheta for dL/dK = left right' + diag(diagonal), which must be symmetric.

    left and right are (n, k), diagonal (n,) or one number. The matrix is made in blocks on one side
    of its diagonal: n^2 k operations, and the derivatives of n^2/2 values of the kernel.
    """
    X = kernel.inputs(X)
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right.T)
    theta = np.zeros(kernel.theta.size)
    blocks = row_blocks(len(left), _BLOCK)
    for number, i in enumerate(blocks):
        for j in blocks[number:]:
            with blas_for(int(np.cbrt(float(left[i].size) * right[:, j].shape[1]))):
                G = left[i] @ right[:, j]
            if i == j:
                theta += kernel.pullback(X[i], None, G, inputs=False).theta
            else:  # which stands for its mirror image too
                G *= 2.0
                theta += kernel.pullback(X[i], X[j], G, inputs=False).theta
    if np.any(diagonal):
        g = np.broadcast_to(diagonal, len(left))
        theta += kernel.pullback_diag(X, g, inputs=False).theta
    return theta


def pull_nystrom(preconditioner: Preconditioner, W: Floats) -> Floats:
    """Return dL/dtheta for dL/dP = P^-1 - W W', W (n, k), P = V V' + 1 on its pivots.

    V V' = C K_mm^-1 C', so that with G = dL/dP the derivatives are 2 G C K_mm^-1 in C and
    -K_mm^-1 C'G C K_mm^-1 in K_mm. P^-1 V = V (1 + V'V)^-1 and V'P^-1 V = 1 - (1 + V'V)^-1.
    O(n m^2) time.
    """
    of = preconditioner
    V, pivots = of.V, of.pivots
    inverse = of.inverse_inner()
    with blas_for(len(inverse)):
        T = V.T @ W  # (m, k)
        inner = -inverse - T @ T.T  # V'G V
        inner[np.diag_indices(len(inner))] += 1.0
        inner = _divided(of.L, _divided(of.L, inner).T)
        outer, rest = _divided(of.L, inverse), _divided(of.L, T.T)  # on their way to C K_mm^-1
    theta = -of.kernel.pullback(of.X[pivots], None, inner, inputs=False).theta
    for rows in row_blocks(len(V), _BLOCK):
        with blas_for(len(inverse)):
            G = V[rows] @ outer
            G -= W[rows] @ rest
            G *= 2.0 * of.root[rows, None]
        theta += of.kernel.pullback(of.X[rows], of.X[pivots], G, inputs=False).theta
    return theta


def _divided(L: Floats, A: Floats) -> Floats:
    """Return A L^-1."""
    return np.asarray(solve_triangular(L, A.T, lower=True, trans=1, check_finite=False).T)
