"""A matrix P = V V' + 1 near that of a regression, whose inverse and determinant are at hand.

V V' = C K_mm^-1 C' is the Nyström approximation of the kernel matrix on m of its rows, the pivots,
with C its columns there; all in units of the noise (see `_products`). P is below Q = K + 1, and
what separates them, S = K - V V', is positive semi-definite: 0 <= ln det Q - ln det P <= tr S.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.blas import dgemm, dsyrk, dtrsm

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.errors import NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.linalg import cholesky, inverse_lower, mirror_lower

__all__ = ["EXACT", "Preconditioner", "choose_pivots"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: A trace of S at which P counts as Q itself: ln det P is that of Q to as many nats.
EXACT = 1e-8
# Pivots that are chosen at a time, and rows among which they are.
_BLOCK, _AMONG = 128, 2
# Rows that one thread multiplies at a time.
_ROWS = 1024
# Variance left of a row, in units of its own, that may be rounding.
_ROUNDING = 1e-12
# Beyond this a residual below 0 is no rounding.
_NEGATIVE = 1e-8


def choose_pivots(
    kernel: Kernel, X: Any, root: Floats, most: int, rng: np.random.Generator
) -> Indices:
    """Return rows whose sections explain the kernel matrix: a pivoted Cholesky factorisation.

    Blocks of pivots are chosen among twice as many rows, drawn with probabilities in proportion to
    what is left of their variances in units of the noise; of these the one with most is taken in
    turn. That is as good as to look at all rows each time, and spends its O(n m^2) operations in
    products of matrices. It ends at `most`, or where no more than rounding is left.
    """
    X = kernel.inputs(X)
    diagonal = np.array(kernel.diag(X), dtype=float)
    n, weights = len(diagonal), root**2
    if not np.all(np.isfinite(diagonal)) or np.any(diagonal < 0):
        raise NotPositiveDefiniteError(
            f"{kernel!r} has negative or infinite values k(x, x) at some rows, which no covariance "
            "has"
        )
    left, chosen = diagonal.copy(), np.empty(0, dtype=np.intp)
    V = np.empty((n, min(most, n)), order="F")
    while len(chosen) < V.shape[1]:
        share = np.where(left > _ROUNDING * diagonal, weights * left, 0.0)
        possible = np.flatnonzero(share)
        if not possible.size or np.sum(share) <= EXACT:
            break
        m, size = len(chosen), min(_BLOCK, V.shape[1] - len(chosen))
        if possible.size > _AMONG * size:
            p = share[possible] / np.sum(share)
            possible = rng.choice(possible, _AMONG * size, replace=False, p=p)
        with blas_for(0):  # a small matrix, worked on step by step
            S = kernel(X[possible]) - V[possible, :m] @ V[possible, :m].T
            order, L = _pivoted(S, weights[possible], _ROUNDING * diagonal[possible], size)
        rows = possible[order]
        if not rows.size:
            break
        columns = np.asfortranarray(kernel(X, X[rows]))
        with blas_for(_order(n, max(m, size), size)):
            if m:
                columns = dgemm(-1.0, V[:, :m], V[rows, :m], 1.0, columns, trans_b=1, overwrite_c=1)
            columns = dtrsm(1.0, L, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        V[:, m : m + rows.size] = columns
        left -= np.einsum("ij,ij->i", columns, columns)
        if np.any(left < -_NEGATIVE * np.max(diagonal)):
            raise NotPositiveDefiniteError(
                f"{kernel!r} is no covariance: given {m + rows.size} rows, another is left with a "
                f"variance of {np.min(left):.3g}"
            )
        np.maximum(left, 0.0, out=left)
        left[rows] = 0.0
        chosen = np.concatenate([chosen, rows])
    return chosen


def _order(*lengths: int) -> int:
    """Return the order of square matrices whose product takes as long."""
    return int(np.cbrt(np.prod(np.array(lengths, dtype=float))))


def _pivoted(S: Floats, weights: Floats, least: Floats, size: int) -> tuple[Indices, Floats]:
    """Return the order of the pivots of a small matrix, and their lower factor."""
    left = np.diagonal(S).copy()
    factor, order = np.zeros((len(S), size)), []
    for k in range(size):
        share = np.where(left > least, weights * left, 0.0)
        i = int(np.argmax(share))
        if share[i] <= 0:
            break
        column = (S[:, i] - factor[:, :k] @ factor[i, :k]) / np.sqrt(left[i])
        factor[:, k] = column
        left -= column**2
        left[i] = 0.0
        order.append(i)
    found = np.array(order, dtype=np.intp)
    return found, np.asfortranarray(np.tril(factor[found, : len(found)]))


class Preconditioner:
    """P = V V' + 1 on given pivots.

    O(n m^2) time and n m doubles of memory; its inverse takes 4 n m operations a column.

    Parameters
    ----------
    kernel : Kernel
    X : inputs
        n rows.
    root : (n,) array
        Sigma^-1/2.
    pivots : (m,) array
        The pivots, as `choose_pivots` has them for this kernel or for one of other parameters.

    Attributes
    ----------
    V : (n, m) array, Fortran order
    trace, left : float
        tr K, and tr S.
    """

    def __init__(self, kernel: Kernel, X: Any, root: Floats, pivots: Indices) -> None:
        X = kernel.inputs(X)
        self.kernel, self.X, self.root, self.pivots = kernel, X, root, pivots
        n, m = len(root), len(pivots)
        with blas_for(_order(n, m, m)):
            V = np.empty((n, m), order="F")
            kernel(X, X[pivots], out=V)
            # Pivots of a kernel with other parameters may be redundant under this one: jitter
            # makes another P of them, which serves as well.
            self.L = np.asfortranarray(np.tril(cholesky(np.asfortranarray(kernel(X[pivots]))).L))
            if m:
                V = dtrsm(1.0, self.L, V, side=1, lower=1, trans_a=1, overwrite_b=1)
            V *= root[:, None]
            self.V = V
            M = dsyrk(1.0, V, trans=1, lower=1) if m else np.empty((0, 0), order="F")
            M[np.diag_indices(m)] += 1.0
            self.M = np.asfortranarray(cholesky(M, 0.0).L)  # the lower factor of 1 + V'V
        self.trace = float(np.sum(root**2 * kernel.diag(X)))
        self.left = max(0.0, self.trace - float(np.einsum("ij,ij->", V, V)))

    def solve(self, B: Floats) -> Floats:
        """Return P^-1 B."""
        return self._solved(B)[0]

    def squares(self, B: Floats) -> Floats:
        """Return b'P^-1 b of each column, (k,), never below it but for rounding of the sums.

        It is the least |b - V c|^2 + |c|^2 over c. That is taken at c = (1 + V'V)^-1 V'b: what
        rounding makes of c can only add, where b'(b - V c) may come out below 0.
        """
        outer, inner = self._solved(B)
        return np.asarray(sum(np.einsum("ij,ij->j", part, part) for part in (outer, inner)))

    def _solved(self, B: Floats) -> tuple[Floats, Floats]:
        """Return P^-1 B = B - V C, and C = (1 + V'V)^-1 V'B."""
        n, m = self.V.shape
        if not m:
            return B.copy(), np.zeros((0, B.shape[1]))
        blocks = row_blocks(n, _ROWS)
        inner = sum(map_tiles(lambda rows: self.V[rows].T @ B[rows], blocks))
        with blas_for(m):
            inner = cho_solve((self.M, True), inner, check_finite=False)
        out = np.empty(B.shape)

        def fill(rows: slice) -> None:
            np.subtract(B[rows], self.V[rows] @ inner, out=out[rows])

        map_tiles(fill, blocks)
        return out, inner

    def colour(self, inner: Floats, outer: Floats) -> Floats:
        """Return V inner + outer, N(0, P) if both are standard normal, (m, k) and (n, k)."""
        with blas_for(_order(*self.V.shape, inner.shape[1])):
            return np.asarray(self.V @ inner + outer)

    def log_determinant(self) -> float:
        """Return ln det P."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.M))))

    def inverse_trace(self) -> float:
        """Return tr P^-1."""
        n, m = self.V.shape
        return n - m + float(np.trace(self.inverse_inner()))

    def inverse_inner(self) -> Floats:
        """Return (1 + V'V)^-1, (m, m)."""
        with blas_for(len(self.M)):
            return mirror_lower(inverse_lower(np.array(self.M, order="F")))

    def root_of_inverse(self) -> Floats:
        """Return F (n, m) with P^-1 = 1 - F F'."""
        if not self.V.shape[1]:
            return np.empty(self.V.shape)
        with blas_for(_order(*self.V.shape, len(self.M))):
            return np.asarray(dtrsm(1.0, self.M, self.V, side=1, lower=1, trans_a=1))
