"""The factors A and B of a posterior covariance: linear maps of the basis vector phi.

A factor is applied to many points at once. Points are rows of a C-ordered array Phi (n, m + r);
seen transposed that array is (m + r, n) in Fortran order, which is what the BLAS solves in place,
so that nothing is copied on the way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dtpttr, dtrttp

from mercer.linalg import inverse_lower, mirror_lower, solve_lower
from mercer.registry import storable

__all__ = [
    "Dense",
    "Factor",
    "InverseTriangular",
    "RowBlock",
    "frozen",
]

Floats = NDArray[np.float64]


class Factor(ABC):
    """A matrix that is multiplied by phi(x), whatever form it is kept in."""

    #: How many leading entries of phi it reads.
    n_columns: int
    #: How many numbers it makes of them.
    n_rows: int

    @abstractmethod
    def apply(self, Phi: Floats, *, overwrite: bool = False) -> Floats:
        """Return the images of the rows of Phi (n, at least n_columns) as columns (n_rows, n).

        With `overwrite`, Phi may be used as the result's memory.
        """

    @abstractmethod
    def pull(self, V: Floats, *, overwrite: bool = False) -> Floats:
        """Return the transposed factor times V (n_rows, n), of shape (n_columns, n)."""

    @abstractmethod
    def gram(self) -> Floats:
        """Return the transposed factor times the factor, (n_columns, n_columns)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory it takes."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs."""


@storable
class InverseTriangular(Factor):
    """phi -> L^-1 phi[:m] with L lower triangular.

    Parameters
    ----------
    L : ndarray of shape (m, m), Fortran order
        Kept, not copied. Only the lower triangle is ever read.
    """

    def __init__(self, L: ArrayLike) -> None:
        matrix = np.asarray(L, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"L must be a square matrix, got shape {matrix.shape}")
        if not (np.all(np.isfinite(np.diagonal(matrix))) and np.all(np.diagonal(matrix) != 0)):
            raise ValueError("the diagonal of L must be finite and not 0")
        self.L = frozen(np.asfortranarray(matrix))
        self.n_columns = self.n_rows = matrix.shape[0]

    def apply(self, Phi: Floats, *, overwrite: bool = False) -> Floats:
        """Return L^-1 Phi', in Phi's memory if `overwrite` and it has no other columns."""
        kernel_part = Phi.T[: self.n_columns]
        if not kernel_part.flags.f_contiguous:
            kernel_part, overwrite = np.array(kernel_part, order="F"), True
        return solve_lower(self.L, kernel_part, overwrite=overwrite)

    def pull(self, V: Floats, *, overwrite: bool = False) -> Floats:
        """Return L^-T V."""
        return solve_lower(self.L, V, transpose=True, overwrite=overwrite)

    def gram(self) -> Floats:
        """Return (L L')^-1."""
        return mirror_lower(inverse_lower(np.array(self.L, order="F")))

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.L.nbytes

    def to_state(self) -> dict[str, Any]:
        """Return the lower triangle, packed: the other one holds anything."""
        packed = dtrttp(self.L, uplo="L")[0] if self.n_rows else np.empty(0)
        return {"order": self.n_rows, "packed": packed}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> InverseTriangular:
        """Rebuild from `to_state`."""
        order, packed = int(state["order"]), np.asarray(state["packed"], dtype=float)
        if order < 0 or packed.shape != (order * (order + 1) // 2,):
            raise ValueError(f"a triangle of order {order} is not of shape {packed.shape}")
        return cls(dtpttr(order, packed, uplo="L")[0] if order else np.empty((0, 0)))


@storable
class Dense(Factor):
    """phi -> M phi.

    Parameters
    ----------
    M : array of shape (n_rows, m + r)
        Kept, not copied.
    """

    def __init__(self, M: ArrayLike) -> None:
        matrix = np.asarray(M, dtype=float)
        if matrix.ndim != 2:
            raise ValueError(f"M must be a matrix, got shape {matrix.shape}")
        if not np.all(np.isfinite(matrix)):
            raise ValueError("M must be finite, got NaN or infinity in it")
        self.M = frozen(matrix)
        self.n_rows, self.n_columns = matrix.shape

    def apply(self, Phi: Floats, *, overwrite: bool = False) -> Floats:
        """Return M Phi'; `overwrite` saves nothing here."""
        return np.asarray((Phi[:, : self.n_columns] @ self.M.T).T)

    def pull(self, V: Floats, *, overwrite: bool = False) -> Floats:
        """Return M' V; `overwrite` saves nothing here."""
        return np.asarray((V.T @ self.M).T)

    def gram(self) -> Floats:
        """Return M'M."""
        return np.asarray(self.M.T @ self.M)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.M.nbytes

    def to_state(self) -> dict[str, Any]:
        """Return the matrix."""
        return {"M": self.M}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Dense:
        """Rebuild from `to_state`."""
        return cls(**state)


@storable
class RowBlock(Factor):
    """phi -> the image under another factor, with zeros before and after it.

    Coupled outputs whose factors have no rows in common are not coupled by these.

    Parameters
    ----------
    factor : Factor
        What makes the rows that are not 0.
    start : int
        The first of them.
    n_rows : int
        How many there are with the zeros.
    """

    def __init__(self, factor: Factor, start: int, n_rows: int) -> None:
        self.factor, self.start, self.n_rows = factor, int(start), int(n_rows)
        self.n_columns = factor.n_columns
        if not 0 <= self.start <= self.n_rows - factor.n_rows:
            raise ValueError(
                f"{factor.n_rows} rows from row {start} on do not fit into {n_rows} rows"
            )

    @property
    def rows(self) -> slice:
        """The rows that are not 0."""
        return slice(self.start, self.start + self.factor.n_rows)

    def apply(self, Phi: Floats, *, overwrite: bool = False) -> Floats:
        """Return the images, with the zeros."""
        out = np.zeros((self.n_rows, len(Phi)), order="F")
        out[self.rows] = self.factor.apply(Phi, overwrite=overwrite)
        return out

    def pull(self, V: Floats, *, overwrite: bool = False) -> Floats:
        """Return the transposed factor times V."""
        return self.factor.pull(np.asfortranarray(V[self.rows]), overwrite=False)

    def gram(self) -> Floats:
        """Return the transposed factor times the factor."""
        return self.factor.gram()

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.factor.nbytes

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"factor": self.factor, "start": self.start, "n_rows": self.n_rows}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RowBlock:
        """Rebuild from `to_state`."""
        return cls(**state)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to, and leave the caller's array as it is."""
    view = array.view()
    view.setflags(write=False)
    return view
