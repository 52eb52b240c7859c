"""The rows of a greedy fit: columns of K as weights make them, and passes over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from mercer.compute import blas_for, row_blocks
from mercer.errors import NotPositiveDefiniteError
from mercer.inference.duals import RowProblem
from mercer.kernels import Kernel

__all__ = ["GreedyRows"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of a block of K that is passed over: for each the kernel scales all rows anew.
_ROWS = 256


class GreedyRows:
    """Rows, their targets, and w^1/2 K w^1/2, of which no more is formed than is asked for.

    Parameters
    ----------
    kernel : Kernel
    X : inputs, n rows
    Y : (n, P) targets less the mean
    noise : s2; that of row i is s2/w_i
    weights : (n,) w, or None for ones
    """

    def __init__(
        self, kernel: Kernel, X: Any, Y: Floats, noise: float, weights: Floats | None
    ) -> None:
        self.kernel, self.X, self.noise = kernel, kernel.inputs(X), noise
        self.problem = RowProblem.of(kernel, self.X, Y, noise, weights)
        self.Y, self.root = self.problem.Y, self.problem.root
        self.diagonal = np.array(kernel.diag(self.X), dtype=float)
        if not np.all(np.isfinite(self.diagonal)) or np.any(self.diagonal < 0):
            raise NotPositiveDefiniteError(
                f"{kernel!r} has negative or infinite values k(x, x) at some rows, which no "
                "covariance has"
            )
        if weights is not None:
            self.diagonal *= weights

    def __len__(self) -> int:
        return len(self.Y)

    def retarget(self, Y: Floats) -> None:
        """Take other targets (n, P) less the mean, without weights, in place of those before."""
        self.Y = self.problem.rows(Y)
        self.problem = RowProblem(self.Y, self.noise, self.problem.times, self.root)

    def times(self, A: Floats) -> Floats:
        """Return K A for A (n, P): n^2 values of the kernel, and no more memory than A has."""
        return self.problem.times(A)

    def columns(self, rows: Indices) -> Floats:
        """Return these columns of K, (n, c), Fortran order."""
        return self._weighted(self.kernel(self.X[rows], self.X), rows, slice(None)).T

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return these rows and columns of K."""
        if not len(rows):
            return np.empty((0, len(columns)))
        return self._weighted(self.kernel(self.X[rows], self.X[columns]), rows, columns)

    def _weighted(self, K: Floats, rows: Any, columns: Any) -> Floats:
        if self.root is not None:
            K *= self.root[rows][:, None] * self.root[columns]
        return K

    def products(self, K: Floats, W: Floats, R: Floats) -> tuple[Floats, Floats, Floats]:
        """Return W'K (k, c), R'K (P, c) and the squared lengths of some columns K (n, c)."""
        if not W.shape[1]:
            parts = np.empty((0, K.shape[1]))
        else:
            with blas_for(int(np.cbrt(float(W.size) * K.shape[1]))):
                parts = np.asarray(dgemm(1.0, W, K, trans_a=1))
        return parts, R.T @ K, np.einsum("ij,ij->j", K, K)

    def all_products(self) -> tuple[Floats, Floats]:
        """Return K Y and the squared length of each column of K: n^2 values of the kernel."""
        Y = self.Y if self.root is None else self.root[:, None] * self.Y
        squared = None if self.root is None else self.root**2

        products, squares = [], []
        # One after the other: the kernel has its own tiles, and blocks that wait for those of
        # others would be in memory all at once.
        for s in row_blocks(len(self), _ROWS):
            K = self.kernel(self.X[s], self.X)
            products.append(K @ Y)
            if squared is None:
                squares.append(np.einsum("ij,ij->i", K, K))
            else:
                squares.append(np.square(K, out=K) @ squared)
        KY, lengths = np.concatenate(products), np.concatenate(squares)
        if squared is None or self.root is None:
            return KY, lengths
        return self.root[:, None] * KY, squared * lengths
