"""Rows and columns of a relevance problem in the form its algorithms work on.

With r_i = sqrt(w_i) (or sqrt(w_i/v_i), where each row has a variance of its own) all is a matter of
A = diag(r) Phi and z = diag(r) (y - m), whose noise is v in every row. Rows of weight 0 are left
out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemv, dsymv

from mercer.inference._relevance_problem import RelevanceProblem

__all__ = ["Rows"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Bytes of Phi up to which it is formed whole; beyond, columns are computed as they are wanted.
STORED = 2**29
# Columns that are computed at a time where Phi is not formed, and how many of those not in the
# model are kept for when they are wanted.
_PIECE, _KEPT = 64, 64


class Rows:
    """What the evidence of a problem depends on.

    Parameters
    ----------
    problem : RelevanceProblem

    Attributes
    ----------
    kept : (n',) rows that have a weight; None if all have
    y, z : (n',) y - m, and the targets diag(r) (y - m), of which zz is the sum of squares
    D, P : (M,) diag(A'A) and A'z
    weight : W, the sum of the weights
    offset : what variances of the rows add to the log evidence
    """

    def __init__(self, problem: RelevanceProblem) -> None:
        y = np.asarray(problem.y, dtype=float) - problem.mean
        w, columns = problem.weights, problem.columns
        self.kept: Indices | None = None
        if w is not None and not np.all(w > 0):
            self.kept = np.flatnonzero(w > 0)
            y, w, columns = y[self.kept], w[self.kept], columns.rows(self.kept)
        self.y: Floats = y
        self.weights: Floats | None = None if w is None else np.asarray(w, dtype=float)
        self.weight = float(len(y) if w is None else np.sum(w))
        self.columns = columns
        self.n, self.size = columns.n, columns.size
        self._symmetric = bool(getattr(columns, "is_symmetric", False))
        whole = 8 * self.n * self.size <= STORED
        self._whole: Floats | None = columns.take(np.arange(self.size)) if whole else None
        self._weigh(self.weights, 0.0)

    def reweighted(self, variances: Floats) -> Rows:
        """Return the same rows with noise variances of their own (n',); their common noise is 1."""
        other, w = copy(self), self.weights
        logs = np.log(variances)
        offset = -0.5 * float(np.sum(logs) if w is None else w @ logs)
        other._weigh((1.0 if w is None else w) / variances, offset)
        return other

    def _weigh(self, squares: Floats | None, offset: float) -> None:
        self.offset, self.squares = offset, squares
        self.root = None if squares is None else np.sqrt(squares)
        self.z: Floats = self.y if self.root is None else self.root * self.y
        self.zz = float(self.z @ self.z)
        self._columns: OrderedDict[int, Floats] = OrderedDict()
        self._products: OrderedDict[int, Floats] = OrderedDict()
        pull = self.z if self.root is None else self.root * self.z
        if self._whole is not None:
            Phi = self._whole
            self.P = self._times(Phi, pull)
            if squares is None:
                self.D = np.einsum("ij,ij->j", Phi, Phi)
            else:
                self.D = np.einsum("i,ij,ij->j", squares, Phi, Phi)
            return
        self.P = self.columns.products(pull[:, None])[:, 0]
        self.D = np.empty(self.size)
        for first in range(0, self.size, _PIECE):
            piece = np.arange(first, min(first + _PIECE, self.size))
            A = self._weighted(self.columns.take(piece))
            self.D[piece] = np.einsum("ij,ij->j", A, A)

    @property
    def is_stored(self) -> bool:
        """Whether Phi has been formed."""
        return self._whole is not None

    def spread(self) -> float:
        """Return the variance of y - m, weighted; the mean square where it is 0, or else 1."""
        total = self.weight
        y, w = self.y, self.weights
        mean = float(np.sum(y) if w is None else w @ y) / total
        square = float(y @ y if w is None else w @ y**2) / total
        variance = float(np.sum((y - mean) ** 2) if w is None else w @ (y - mean) ** 2) / total
        if variance > 1e-20 * square:
            return variance
        return square if square > 0 else 1.0

    def take(self, indices: Indices) -> Floats:
        """Return columns of A, (n', k), Fortran order."""
        if self._whole is not None:
            return self._weighted(np.asfortranarray(self._whole[:, indices]))
        missing = [int(j) for j in indices if int(j) not in self._columns]
        if missing:
            fresh = self._weighted(self.columns.take(np.array(missing, dtype=np.intp)))
            for place, j in enumerate(missing):
                self._columns[j] = fresh[:, place].copy()
        out = np.empty((self.n, len(indices)), order="F")
        for place, j in enumerate(indices):
            out[:, place] = self._columns[int(j)]
            self._columns.move_to_end(int(j))
        while len(self._columns) > len(indices) + _KEPT:
            self._columns.popitem(last=False)
        return out

    def gram(self, j: int, likely: Callable[[], Indices] | None = None) -> Floats:
        """Return A'A_j, (M,).

        Where Phi is not formed it takes a pass over all columns, and those functions have theirs
        computed in it too that are `likely` to be wanted next.
        """
        if self._whole is not None:
            column = self._whole[:, j]
            if self.squares is not None:
                column = self.squares * column
            return self._times(self._whole, column)
        if j not in self._products:
            some = [j]
            if likely is not None:
                some += [int(i) for i in likely() if int(i) != j and int(i) not in self._products]
            A = self.take(np.array(some, dtype=np.intp))
            V = A if self.root is None else self.root[:, None] * A
            found = self.columns.products(np.ascontiguousarray(V))
            for place, i in enumerate(some):
                self._products[i] = found[:, place].copy()
        out = self._products[j]
        self._products.move_to_end(j)
        while len(self._products) > _KEPT:
            self._products.popitem(last=False)
        return out

    def all(self) -> tuple[Floats, Floats]:
        """Return A, (n', M), and A'A."""
        A = self.take(np.arange(self.size))
        return A, A.T @ A

    def _weighted(self, Phi: Floats) -> Floats:
        return Phi if self.root is None else np.asfortranarray(self.root[:, None] * Phi)

    def _times(self, Phi: Floats, x: Floats) -> Floats:
        """Return Phi'x."""
        if self._symmetric and Phi.shape[0] == Phi.shape[1]:
            return np.asarray(dsymv(1.0, Phi, x, lower=1))
        return np.asarray(dgemv(1.0, Phi, x, trans=1))
