"""Columns that are added block by block, without copies of those that are there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["ColumnBlocks"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class ColumnBlocks:
    """Columns (n, k), numbered in the order in which they were added; at least one block."""

    def __init__(self, *blocks: Floats) -> None:
        self.blocks = blocks

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.blocks[0])

    @property
    def size(self) -> int:
        """How many columns there are."""
        return sum(block.shape[1] for block in self.blocks)

    def parts(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the numbers of each block's columns, and these."""
        first = 0
        for block in self.blocks:
            yield slice(first, first + block.shape[1]), block
            first += block.shape[1]

    def add(self, A: Floats) -> None:
        """Add columns A (n, k), which are kept; at once, so that Ctrl-C finds all or none."""
        self.blocks = (*self.blocks, A)

    def take(self, chosen: Indices) -> Floats:
        """Return columns (n, k) by their numbers, which ascend, as a fresh array."""
        out = np.empty((self.n, len(chosen)), order="F")
        for numbers, block in self.parts():
            mine = (chosen >= numbers.start) & (chosen < numbers.stop)
            if mine.any():
                out[:, mine] = block[:, chosen[mine] - numbers.start]
        return out

    def keep(self, kept: Indices) -> None:
        """Forget all columns but those of these numbers, which ascend.

        Blocks of which all stay are not copied, and of the others one at a time.
        """
        n, blocks = self.n, list(self.blocks)
        self.blocks, last = (), 0
        for number, block in enumerate(blocks):
            first, last = last, last + block.shape[1]
            mine = kept[(kept >= first) & (kept < last)] - first
            if len(mine) < block.shape[1]:
                blocks[number] = np.asfortranarray(block[:, mine])
        self.blocks = tuple(b for b in blocks if b.shape[1]) or (np.empty((n, 0)),)

    def times(self, coef: Floats) -> Floats:
        """Return what coefficients (k,) or (k, g) make of the columns; of those that are not 0."""
        out = np.zeros((self.n, *coef.shape[1:]))
        for numbers, block in self.parts():
            part = coef[numbers]
            some = np.flatnonzero(part if part.ndim == 1 else np.any(part, axis=1))
            if len(some):
                out += block @ part if 2 * len(some) > len(part) else block[:, some] @ part[some]
        return out

    def slopes(self, u: Floats) -> Floats:
        """Return the products (k,) of the columns with u (n,)."""
        return np.concatenate([block.T @ u for block in self.blocks])
