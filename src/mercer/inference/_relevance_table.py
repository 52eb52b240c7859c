"""Functions at rows that have weights: the part of a relevance problem that knows no targets.

With r_i = sqrt(c_i), c_i whatever precision a row has, all is a matter of A = diag(r) Phi. Rows of
weight 0 are left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dgemv, dsymv

from mercer.inference._columns import Columns

__all__ = ["Table"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Bytes of Phi up to which it is formed whole; beyond, columns are computed as they are wanted.
STORED = 2**29
# Mean squares of functions, at the most, whose precisions still have squares; and the least of
# their sums that is not taken for 0.
_LARGEST, _LEAST = 1e120, 1e-280
# Columns that are computed at a time where Phi is not formed, and how many of those not in the
# model are kept for when they are wanted.
_PIECE, _KEPT = 64, 64


class Table:
    """Phi, with a weight for each row.

    Parameters
    ----------
    columns : Columns
    weights : (n,) powers of the likelihood; None stands for ones

    Attributes
    ----------
    kept : (n',) rows that have a weight; None if all have
    weights : (n',) the weights of these; None if all are 1
    weight : W, the sum of the weights
    squares, root : (n',) c and r; None if all are 1
    D : (M,) diag(A'A)
    """

    def __init__(self, columns: Columns, weights: Floats | None) -> None:
        self.kept: Indices | None = None
        if weights is not None and not np.all(weights > 0):
            self.kept = np.flatnonzero(weights > 0)
            weights, columns = weights[self.kept], columns.rows(self.kept)
        self.weights: Floats | None = None if weights is None else np.asarray(weights, dtype=float)
        self.columns = columns
        self.n, self.size = columns.n, columns.size
        self.weight = float(self.n if weights is None else np.sum(weights))
        whole = 8 * self.n * self.size <= STORED
        self._whole: Floats | None = columns.take(np.arange(self.size)) if whole else None
        self._columns: OrderedDict[int, Floats] = OrderedDict()
        self._products: OrderedDict[int, Floats]
        self.D: Floats

    def _squared(self, D: Floats) -> Floats:
        """Return diag(A'A), checked; ValueError for functions that are too large."""
        total = self.n if self.squares is None else float(np.sum(self.squares))
        if not np.max(D) <= _LARGEST * total:
            raise ValueError(
                f"function {int(np.argmax(D))} of {self.size}, of a kernel or given, has values "
                f"above {np.sqrt(_LARGEST):.0e}, whose powers are beyond what doubles can hold; "
                "give it in other units"
            )
        return np.where(D < _LEAST, 0.0, D)

    def weigh(self, squares: Floats | None) -> None:
        """Give the rows other precisions c (n',)."""
        self.squares = squares
        self.root = None if squares is None else np.sqrt(squares)
        self._products = OrderedDict()
        if self._whole is not None:
            Phi = self._whole
            if squares is None:
                self.D = self._squared(np.einsum("ij,ij->j", Phi, Phi))
            else:
                self.D = self._squared(np.einsum("i,ij,ij->j", squares, Phi, Phi))
            return
        D = np.empty(self.size)
        for first in range(0, self.size, _PIECE):
            piece = np.arange(first, min(first + _PIECE, self.size))
            A = self._weighted(self.columns.take(piece))
            D[piece] = np.einsum("ij,ij->j", A, A)
        self.D = self._squared(D)

    @property
    def is_stored(self) -> bool:
        """Whether Phi has been formed."""
        return self._whole is not None

    def plain(self, indices: Indices) -> Floats:
        """Return columns of Phi, (n', k), Fortran order."""
        if self._whole is not None:
            return np.asfortranarray(self._whole[:, indices])
        missing = [int(j) for j in indices if int(j) not in self._columns]
        if missing:
            fresh = self.columns.take(np.array(missing, dtype=np.intp))
            for place, j in enumerate(missing):
                self._columns[j] = fresh[:, place].copy()
        out = np.empty((self.n, len(indices)), order="F")
        for place, j in enumerate(indices):
            out[:, place] = self._columns[int(j)]
            self._columns.move_to_end(int(j))
        while len(self._columns) > len(indices) + _KEPT:
            self._columns.popitem(last=False)
        return out

    def take(self, indices: Indices) -> Floats:
        """Return columns of A, (n', k), Fortran order."""
        return self._weighted(self.plain(indices))

    def gram(self, j: int, likely: Callable[[], Indices] | None = None) -> Floats:
        """Return A'A_j, (M,).

        Where Phi is not formed it takes a pass over all columns, and those functions have theirs
        computed in it too that are `likely` to be wanted next.
        """
        if self._whole is not None:
            column = self._whole[:, j]
            if self.squares is not None:
                column = self.squares * column
            return self.times(column)
        if j not in self._products:
            some = [j]
            if likely is not None:
                some += [int(i) for i in likely() if int(i) != j and int(i) not in self._products]
            found = self.grams(np.array(some, dtype=np.intp))
            for place, i in enumerate(some):
                self._products[i] = found[place]
        out = self._products[j]
        self._products.move_to_end(j)
        while len(self._products) > _KEPT:
            self._products.popitem(last=False)
        return out

    def grams(self, indices: Indices) -> Floats:
        """Return the rows of A'A of some functions, (k, M), by one pass over all columns."""
        V = self.plain(indices)
        if self.squares is not None:
            V *= self.squares[:, None]
        if self._whole is not None:
            return np.asarray(dgemm(1.0, self._whole, V, trans_a=1).T)
        return np.ascontiguousarray(self.columns.products(np.ascontiguousarray(V)).T)

    def weigh_and_multiply(
        self, squares: Floats, indices: Indices, x: Floats
    ) -> tuple[Floats, Floats]:
        """Give the rows other precisions, and return `grams` and `times` under these.

        Where Phi is not formed all come of one pass over the columns, which costs more than they.
        """
        if self._whole is not None:
            self.weigh(squares)
            return self.grams(indices), self.times(x)
        self.squares, self.root, self._products = squares, np.sqrt(squares), OrderedDict()
        V = squares[:, None] * self.plain(indices)
        D, P = np.empty(self.size), np.empty(self.size)
        G = np.empty((len(indices), self.size))
        for first in range(0, self.size, _PIECE):
            piece = np.arange(first, min(first + _PIECE, self.size))
            A = self.columns.take(piece)
            G[:, piece], P[piece] = V.T @ A, x @ A
            D[piece] = squares @ np.square(A, out=A)
        self.D = self._squared(D)
        return G, P

    def times(self, x: Floats) -> Floats:
        """Return Phi'x, (M,), for x (n',)."""
        Phi = self._whole
        if Phi is None:
            return self.columns.products(x[:, None])[:, 0]
        if self.columns.is_symmetric:
            return np.asarray(dsymv(1.0, Phi, x, lower=1))
        return np.asarray(dgemv(1.0, Phi, x, trans=1))

    def all(self) -> tuple[Floats, Floats]:
        """Return A, (n', M), and A'A."""
        A = self.take(np.arange(self.size))
        return A, A.T @ A

    def _weighted(self, Phi: Floats) -> Floats:
        return Phi if self.root is None else np.asfortranarray(self.root[:, None] * Phi)
