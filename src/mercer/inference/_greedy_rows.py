"""The rows of a greedy fit: columns of K as weights make them, and passes over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.inference.duals import RowProblem
from mercer.kernels import Kernel

__all__ = ["GreedyRows"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


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
        """Return K A for A (n, P): n^2/2 values of the kernel, and no more memory than A has."""
        return self.problem.times(A)

    def column(self, row: int) -> Floats:
        """Return a column of K, (n,)."""
        return np.asarray(self.block(np.array([row]), slice(None))[0])

    def block(self, rows: Indices, columns: Indices | slice) -> Floats:
        """Return these rows and columns of K."""
        if not len(rows):
            return np.empty((0, len(self.diagonal[columns])))
        return self._weighted(self.kernel(self.X[rows], self.X[columns]), rows, columns)

    def _weighted(self, K: Floats, rows: Any, columns: Any) -> Floats:
        if self.root is not None:
            K *= self.root[rows][:, None] * self.root[columns]
        return K

    def products(self, rows: Indices, W: Floats, R: Floats) -> tuple[Floats, Floats, Floats]:
        """Return W'K_c (k, c), R'K_c (P, c) and the squared lengths of some columns c of K.

        Values of the kernel are multiplied while they are in the cache, and not kept.
        """

        def sums(s: slice, K: Floats) -> tuple[Floats, Floats, Floats]:
            K = self._weighted(K, rows, s)
            return K @ W[s], K @ R[s], np.vecdot(K, K)

        found = self.kernel.map_blocks(sums, self.X[rows], self.X)
        parts, slopes, lengths = map(_total, zip(*found, strict=True))
        return parts.T, slopes.T, lengths

    def all_products(self) -> tuple[Floats, Floats]:
        """Return K Y and the squared length of each column of K: n^2/2 values of the kernel."""
        Y = self.problem.rows(self.Y)
        squared = np.ones(len(self)) if self.root is None else self.root**2
        both = self.kernel.gram_times(self.X, np.column_stack([Y, squared]), squared=True)
        return self.problem.rows(both[:, :-1]), squared * both[:, -1]


def _total(terms: Sequence[Floats]) -> Floats:
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total
