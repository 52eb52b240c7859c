"""The columns of an expansion f = Phi theta, of which no more is formed than is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.kernels import Kernel

__all__ = ["ArrayColumns", "Columns", "JoinedColumns", "KernelColumns", "taken_in_pieces"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Columns of a given matrix that one thread multiplies, or that are formed, at a time.
_PIECE = 256


class Columns(Protocol):
    """Functions phi_j at n rows, as the columns of Phi (n, size)."""

    @property
    def n(self) -> int:
        """How many rows there are."""

    @property
    def size(self) -> int:
        """How many columns there are."""

    @property
    def is_symmetric(self) -> bool:
        """Whether Phi is known to be a symmetric matrix."""

    def take(self, indices: Indices) -> Floats:
        """Return some of the columns (n, k), a fresh array in Fortran order."""

    def products(self, V: Floats) -> Floats:
        """Return Phi'V (size, q) for V (n, q) by one pass over all columns, in bounded memory."""

    def rows(self, kept: Indices) -> Columns:
        """Return the same functions at some of the rows."""

    def some(self, indices: Indices) -> Columns:
        """Return some of the functions at the same rows."""


class KernelColumns:
    """Sections k(., z_j) of a kernel at centres z_j: Phi_ij = k(x_i, z_j).

    A pass takes n M values of the kernel, half as many where the rows are the centres and the
    kernel is symmetric, and memory for tiles alone.

    Parameters
    ----------
    kernel : Kernel
        Any; it need not be a Mercer kernel, nor symmetric.
    X : inputs
        n rows.
    centres : inputs, optional
        M rows; X without it.
    """

    def __init__(self, kernel: Kernel, X: Any, centres: Any = None) -> None:
        self.kernel, self.X = kernel, kernel.inputs(X)
        self._same = centres is None or centres is X
        self.centres = self.X if self._same else kernel.inputs(centres, "centres")

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.X)

    @property
    def size(self) -> int:
        """How many columns there are."""
        return len(self.centres)

    @property
    def is_symmetric(self) -> bool:
        """Whether Phi is known to be a symmetric matrix."""
        return self._same and self.kernel.is_symmetric

    def take(self, indices: Indices) -> Floats:
        """Return some of the columns (n, k), a fresh array in Fortran order."""
        if not len(indices):
            return np.empty((self.n, 0), order="F")
        if not self.kernel.is_symmetric:
            return np.asfortranarray(self.kernel(self.X, self.centres[indices]))
        return self.kernel(self.centres[indices], self.X).T

    def products(self, V: Floats) -> Floats:
        """Return Phi'V (size, q) for V (n, q)."""
        V = np.ascontiguousarray(V)
        if not self.kernel.is_symmetric:
            pieces = row_blocks(self.size, _PIECE)
            parts = [self.kernel(self.X, self.centres[piece]).T @ V for piece in pieces]
            return np.concatenate(parts) if parts else np.empty((0, V.shape[1]))
        if self._same:
            return self.kernel.gram_times(self.X, V)
        return self.kernel.times(self.centres, self.X, V)

    def rows(self, kept: Indices) -> KernelColumns:
        """Return the same functions at some of the rows."""
        return KernelColumns(self.kernel, self.X[kept], self.centres)

    def some(self, indices: Indices) -> KernelColumns:
        """Return some of the functions at the same rows."""
        return KernelColumns(self.kernel, self.X, self.centres[indices])


class ArrayColumns:
    """Columns of a matrix that is given: functions of the user's, or a kernel computed elsewhere.

    Parameters
    ----------
    Phi : (n, M) array
        It is not copied if it has doubles, and not changed.
    """

    def __init__(self, Phi: ArrayLike) -> None:
        self.Phi: Floats = np.asarray(Phi, dtype=float)
        if self.Phi.ndim != 2:
            raise ValueError(
                f"the columns of an expansion must be a matrix, got shape {self.Phi.shape}"
            )
        if not np.all(np.isfinite(self.Phi)):
            raise ValueError("the columns of an expansion hold NaN or infinity")

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.Phi.shape[0])

    @property
    def size(self) -> int:
        """How many columns there are."""
        return int(self.Phi.shape[1])

    @property
    def is_symmetric(self) -> bool:
        """Whether Phi is known to be a symmetric matrix."""
        return False

    def take(self, indices: Indices) -> Floats:
        """Return some of the columns (n, k), a fresh array in Fortran order."""
        out = np.empty((self.n, len(indices)), order="F")
        out[:] = self.Phi[:, indices]
        return out

    def products(self, V: Floats) -> Floats:
        """Return Phi'V (size, q) for V (n, q)."""
        out = np.empty((self.size, V.shape[1]))

        def fill(piece: slice) -> None:
            out[piece] = self.Phi[:, piece].T @ V

        with blas_for(0):
            map_tiles(fill, row_blocks(self.size, _PIECE))
        return out

    def rows(self, kept: Indices) -> ArrayColumns:
        """Return the same functions at some of the rows."""
        return ArrayColumns(self.Phi[kept])

    def some(self, indices: Indices) -> ArrayColumns:
        """Return some of the functions at the same rows."""
        return ArrayColumns(self.Phi[:, indices])


class JoinedColumns:
    """The columns of several, one after the other.

    Parameters
    ----------
    parts : sequence of Columns
        At least one, all of the same rows.
    """

    def __init__(self, parts: Sequence[Columns]) -> None:
        if not parts:
            raise ValueError("there must be columns to join")
        if len({part.n for part in parts}) > 1:
            raise ValueError(f"columns to join have {[part.n for part in parts]} rows")
        self.parts = tuple(parts)
        self._ends = np.cumsum([part.size for part in parts])

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.parts[0].n

    @property
    def size(self) -> int:
        """How many columns there are."""
        return int(self._ends[-1])

    @property
    def is_symmetric(self) -> bool:
        """Whether Phi is known to be a symmetric matrix."""
        return len(self.parts) == 1 and self.parts[0].is_symmetric

    def take(self, indices: Indices) -> Floats:
        """Return some of the columns (n, k), a fresh array in Fortran order."""
        indices = np.asarray(indices, dtype=np.intp)
        owner = np.searchsorted(self._ends, indices, side="right")
        out = np.empty((self.n, len(indices)), order="F")
        for number, part in enumerate(self.parts):
            mine = np.flatnonzero(owner == number)
            if len(mine):
                out[:, mine] = part.take(indices[mine] - (self._ends[number] - part.size))
        return out

    def products(self, V: Floats) -> Floats:
        """Return Phi'V (size, q) for V (n, q)."""
        return np.concatenate([part.products(V) for part in self.parts])

    def rows(self, kept: Indices) -> JoinedColumns:
        """Return the same functions at some of the rows."""
        return JoinedColumns([part.rows(kept) for part in self.parts])

    def some(self, indices: Indices) -> JoinedColumns:
        """Return some of the functions, which ascend, at the same rows."""
        firsts = self._ends - [part.size for part in self.parts]
        bounds = np.searchsorted(indices, np.append(firsts, self.size))
        return JoinedColumns(
            [
                part.some(indices[low:high] - first)
                for part, first, (low, high) in zip(
                    self.parts, firsts, pairwise(bounds), strict=True
                )
            ]
        )


def taken_in_pieces(
    columns: Columns, indices: Indices | None = None
) -> Iterator[tuple[Indices, Floats]]:
    """Yield pieces of some numbers of columns, all by default, and these, (n, 256) at the most."""
    some = np.arange(columns.size) if indices is None else indices
    for start in range(0, len(some), _PIECE):
        piece = some[start : start + _PIECE]
        yield piece, columns.take(piece)
