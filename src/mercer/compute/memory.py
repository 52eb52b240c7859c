"""Memory that is used again."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory"]

Floats = NDArray[np.float64]


class Memory:
    """Memory of so many doubles, and whether an array refers to it.

    An array made of a buffer stays the base of every view of it, however it came about, and lives
    as long as any of them does: a weak reference to it tells.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._buffer = np.empty(size).data
        self._lent: weakref.ref[Floats] | None = None

    def is_free(self) -> bool:
        """Return whether no array refers to it."""
        return self._lent is None or self._lent() is None

    def lend(self, size: int) -> Floats:
        """Return an uninitialised vector of that many of its doubles."""
        lent = np.frombuffer(self._buffer, count=size)
        self._lent = weakref.ref(lent)
        return lent
