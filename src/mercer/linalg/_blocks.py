"""A Cholesky factor, an inverse and a symmetric update in place, in blocks every BLAS can take.

As LAPACK's, but for what updates a block: products of two matrices rather than of one with itself.
Beside the matrix there is room for two blocks of `_ROWS` rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri

from mercer.errors import NotPositiveDefiniteError

__all__ = ["factorise_by_blocks", "invert_by_blocks", "update_by_blocks"]

Floats = NDArray[np.float64]

# Columns of a block, and rows of it that are worked on at a time.
_WIDTH, _ROWS = 2048, 4096


def factorise_by_blocks(Q: Floats) -> bool:
    """Overwrite the lower triangle of Q (n, n), Fortran order, by its factor; False if it has none.

    The strict upper triangle is left alone.
    """
    n = len(Q)
    for block in _cut(0, n, _WIDTH):
        before = Q[block, : block.start]
        D = np.array(Q[block, block], order="F")
        D -= before @ before.T
        _, info = dpotrf(D, lower=1, clean=0, overwrite_a=1)
        if info or not np.isfinite(D[-1, -1]):
            return False
        _write_lower(Q, block, D)
        for rows in _cut(block.stop, n, _ROWS):
            M = np.array(Q[rows, block], order="F")
            M -= Q[rows, : block.start] @ before.T
            Q[rows, block] = dtrsm(1.0, D, M, side=1, lower=1, trans_a=1, overwrite_b=1)
    return True


def invert_by_blocks(L: Floats) -> Floats:
    """Overwrite a lower factor (n, n), Fortran order, by the lower triangle of (L L')^-1.

    First by L^-1, from the last block on, then that by L^-T L^-1, from the first on.
    """
    n = len(L)
    for block in reversed(_cut(0, n, _WIDTH)):
        D, info = dtrtri(np.tril(L[block, block]), lower=1)
        if info:
            raise NotPositiveDefiniteError("the factor has a zero on its diagonal")
        # Of what is below: -M^-1 C D^-1, M^-1 being there already. From the last rows on, so that
        # C is still there for those above.
        for rows in reversed(_cut(block.stop, n, _WIDTH)):
            M = np.tril(L[rows, rows]) @ L[rows, block]
            M += L[rows, block.stop : rows.start] @ L[block.stop : rows.start, block]
            L[rows, block] = -M @ np.tril(D)
        _write_lower(L, block, D)
    for block in _cut(0, n, _WIDTH):
        D = np.tril(L[block, block])
        for columns in _cut(0, block.start, _ROWS):
            M = D.T @ L[block, columns]
            M += L[block.stop :, block].T @ L[block.stop :, columns]
            L[block, columns] = M
        D, _ = dlauum(np.asfortranarray(D), lower=1)
        below = L[block.stop :, block]
        _write_lower(L, block, D + below.T @ below)
    return L


def update_by_blocks(C: Floats, scale: float, A: Floats, keep: float) -> None:
    """Overwrite the lower triangle of C (n, n) by scale A A' + keep C, for A (n, k)."""
    n = len(C)
    for block in _cut(0, n, _WIDTH):
        D = A[block] @ A[block].T
        _write_lower(C, block, scale * D + keep * C[block, block])
        for rows in _cut(block.stop, n, _ROWS):
            M = (A[block] @ A[rows].T).T  # in the order of C
            M *= scale
            part = C[rows, block]
            if keep != 1.0:
                part *= keep
            part += M


def _cut(first: int, last: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, last)) for start in range(first, last, size)]


def _write_lower(Q: Floats, block: slice, D: Floats) -> None:
    np.copyto(Q[block, block], D, where=np.tri(len(D), dtype=bool))
