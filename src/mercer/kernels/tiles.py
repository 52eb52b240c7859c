"""Tiles of matrices, and what happens within one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compute.memory import Memory
from mercer.linalg import loops

__all__ = [
    "TILE",
    "contract",
    "numeric_rows",
    "origin",
    "pair",
    "plain_tile",
    "scratch",
    "symmetric_tile",
    "transposed",
    "upper",
]

Floats = NDArray[np.float64]

# 256 x 256 doubles are 512 kB: a tile and its workspace stay in a core's second-level cache.
TILE = 256
_MOST_KEPT = 8

_local = threading.local()


def scratch(rows: int, columns: int) -> Floats:
    """Return an uninitialised (rows, columns) array, in memory this thread has used before.

    Fresh memory of a tile's size comes from the system page by page, which costs a pool's thread
    more than the arithmetic. Each thread therefore keeps the memory of a few tiles, and lends it
    again as soon as no array refers to it any more.
    """
    size = rows * columns
    if size > TILE**2:
        return np.empty((rows, columns))
    kept: list[Memory] = _local.__dict__.setdefault("kept", [])
    memory = next((m for m in kept if m.is_free()), None)
    if memory is None:
        memory = Memory(TILE**2)
        if len(kept) < _MOST_KEPT:
            kept.append(memory)
    return memory.lend(size).reshape(rows, columns)


def contract(G: Floats, K: Floats) -> float:
    """Return sum(G * K), by NumPy's own loop: the BLAS's sum depends on how many threads it has."""
    return float(np.einsum("i,i->", G.reshape(-1), K.reshape(-1)))


def origin(A: Floats) -> Floats:
    """Return the point (d,) from which differences of the rows of A to others keep their digits.

    It has the value of least magnitude in each column. Seen from it no number grows to more than
    the sum of what it was and what a row of A has there, so that a difference of two rows is
    rounded hardly more than the rows themselves were, wherever other rows are. The first row would
    not do: if it is far from the others, their differences are lost.
    """
    out = np.empty(A.shape[1])
    loops().nearest_to_zero(np.ascontiguousarray(A), out)
    return out


def transposed(A: Floats) -> Floats:
    """Return a tile transposed, as an array of its own: faster than to read it column by column."""
    out = scratch(A.shape[1], A.shape[0])
    loops().transpose(A, out)
    return out


def upper(rows: list[slice]) -> list[tuple[slice, slice]]:
    """Return the tiles on and above the diagonal."""
    return [(a, b) for i, a in enumerate(rows) for b in rows[i:]]


def pair(X: Any, i: slice, j: slice) -> tuple[Any, Any]:
    """Return two blocks of rows: one and the same object on the diagonal."""
    A = X[i]
    return A, A if i == j else X[j]


def plain_tile(G: Floats) -> Any:
    """Return a function giving the cotangent of tile (i, j)."""

    def tile(i: slice, j: slice) -> Floats:
        part = G[i, j]
        copied = scratch(*part.shape)  # in one piece, as the loops want it
        copied[:] = part
        return copied

    return tile


def symmetric_tile(G: Floats) -> Any:
    """Return a function giving the cotangent of tile (i, j) of the upper triangle.

    Off the diagonal a tile stands for its mirror image too, hence the factor 2.
    """
    mirrored = G.T

    def tile(i: slice, j: slice) -> Floats:
        part = mirrored[i, j]
        copied = scratch(*part.shape)
        if i != j:
            return np.multiply(part, 2.0, out=copied)
        copied[:] = part
        loops().mirror(copied)
        return copied

    return tile


def numeric_rows(A: NDArray[np.generic], what: str) -> None:
    """Raise ValueError unless A is a matrix of numbers, in whose rows one can differentiate."""
    if A.ndim != 2 or A.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} has no derivatives in inputs that are not rows of numbers, got an array of "
            f"dtype {A.dtype} and shape {A.shape}; call pullback with inputs=False"
        )
