"""Triangular solves through BLAS, in place where the caller allows it, and whole from half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dtrsm, dtrsv

__all__ = ["mirror_lower", "product", "solve_lower"]

Floats = NDArray[np.float64]

# Of a transpose in blocks, both the rows that are read and those that are written stay in cache.
_BLOCK = 256


def solve_lower(
    L: Floats, B: Floats, *, transpose: bool = False, overwrite: bool = False
) -> Floats:
    """Return L^-1 B, or L^-T B with `transpose`; B has shape (n,) or (n, k).

    With `overwrite` and B a Fortran-ordered matrix of doubles no memory is used.
    """
    if L.size == 0 or B.size == 0:
        return B if overwrite else B.copy()
    if B.ndim == 1 or B.shape[1] == 1:
        # twice as fast as dtrsm for one column
        column = B if B.ndim == 1 else B[:, 0]
        x = dtrsv(L, column, lower=1, trans=int(transpose), overwrite_x=int(overwrite))
        return np.asarray(x).reshape(B.shape)
    X = dtrsm(1.0, L, B, lower=1, trans_a=int(transpose), overwrite_b=int(overwrite))
    return np.asarray(X)


def product(A: Floats, B: Floats) -> Floats:
    """Return A B, A in C order, by the BLAS that the factorisations use too.

    NumPy brings a BLAS of its own, whose threads go on spinning for a while after a product: a
    triangular solve by SciPy's that follows then has half a core less.
    """
    if A.size == 0 or B.size == 0:
        return A @ B
    return np.asarray(dgemm(1.0, A.T, B, trans_a=1))


def mirror_lower(M: Floats) -> Floats:
    """Overwrite the strict upper triangle of a square matrix by the lower one; return the matrix.

    ``mirror_lower(M.T)`` overwrites the lower triangle of M by the upper one.
    """
    n = M.shape[0]
    above = ~np.tri(min(n, _BLOCK), dtype=bool)
    for i in range(0, n, _BLOCK):
        rows = slice(i, min(i + _BLOCK, n))
        for j in range(0, i, _BLOCK):
            M[j : j + _BLOCK, rows] = M[rows, j : j + _BLOCK].T
        square = M[rows, rows]
        k = len(square)
        np.copyto(square, square.T.copy(), where=above[:k, :k])
    return M
