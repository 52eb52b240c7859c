"""Products of a kernel matrix with a few vectors, the matrix stored or computed anew each time.

Rows are in units of the noise: with Sigma the noise variances and K the kernel matrix, the products
are those of Sigma^-1/2 K Sigma^-1/2, to which the noise adds the unit matrix.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.compute import map_tiles, row_blocks
from mercer.kernels import Kernel

__all__ = ["Products", "RecomputedProducts", "StoredProducts"]

Floats = NDArray[np.float64]

# Rows of K that one thread multiplies at a time: the BLAS's own threads take one and a half to
# twice as long for products with some dozens of columns.
_ROWS = 512
# Order of the blocks of K that are computed anew: 8 MB, used twice while they are in the cache.
_BLOCK = 1024
# Rows of a block that one thread multiplies at a time.
_PART = 256


class Products(Protocol):
    """What iterative methods ask of K."""

    def times(self, A: Floats) -> Floats:
        """Return the product with A (n, k), a fresh array in C order."""


class StoredProducts:
    """Products with K in memory: n^2 doubles, and 2 n^2 operations a column.

    Parameters
    ----------
    kernel : Kernel
    X : inputs
        n rows.
    root : (n,) array
        Sigma^-1/2.
    out : (n, n) array in C order, optional
        Where to put K.
    """

    def __init__(self, kernel: Kernel, X: Any, root: Floats, out: Floats | None = None) -> None:
        self._K, self._root = kernel(X, out=out), root[:, None]

    def times(self, A: Floats) -> Floats:
        """Return the product with A (n, k), a fresh array in C order."""
        scaled = np.ascontiguousarray(self._root * A)
        out = np.empty(scaled.shape)

        def fill(rows: slice) -> None:
            np.matmul(self._K[rows], scaled, out=out[rows])

        map_tiles(fill, row_blocks(len(out), _ROWS))
        out *= self._root
        return out


class RecomputedProducts:
    """Products with K whose blocks are computed anew each time: O(n) memory.

    Each block on one side of the diagonal stands for its mirror image too. A product takes the
    n^2/2 values of the kernel beside the 2 n^2 operations a column, so that many columns at once
    cost little more than one.
    """

    def __init__(self, kernel: Kernel, X: Any, root: Floats) -> None:
        self._kernel, self._X, self._root = kernel, kernel.inputs(X), root[:, None]
        self._memory = np.empty(min(_BLOCK, len(root)) ** 2)

    def times(self, A: Floats) -> Floats:
        """Return the product with A (n, k), a fresh array in C order."""
        scaled = np.ascontiguousarray(self._root * A)
        out = np.zeros(scaled.shape)
        blocks = row_blocks(len(out), _BLOCK)
        for first, i in enumerate(blocks):
            for j in blocks[first:]:
                self._add(self._block(i, j), scaled, out, i, j)
        out *= self._root
        return out

    @staticmethod
    def _add(K: Floats, A: Floats, out: Floats, i: slice, j: slice) -> None:
        """Add what a block makes of A, above the diagonal and below it."""

        def above(rows: slice) -> None:
            out[i][rows] += K[rows] @ A[j]

        def below(rows: slice) -> None:
            out[j][rows] += K[:, rows].T @ A[i]

        map_tiles(above, row_blocks(K.shape[0], _PART))
        if j != i:
            map_tiles(below, row_blocks(K.shape[1], _PART))

    def _block(self, i: slice, j: slice) -> Floats:
        shape = (i.stop - i.start, j.stop - j.start)
        out = self._memory[: shape[0] * shape[1]].reshape(shape)
        return self._kernel(self._X[i], None if i == j else self._X[j], out=out)
