"""Memory of n x n that the next evaluation uses again.

Fresh memory comes from the system page by page: at n = 1000 that of a kernel matrix and its factor
costs a tenth of what Laplace's method does with them.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numpy.typing import NDArray

__all__ = ["square_memory"]

Floats = NDArray[np.float64]

_LARGEST = 2**25  # bytes; for more, the arithmetic takes so much longer that nothing is gained
_MOST_KEPT = 2  # a thread

_local = threading.local()


class _Memory:
    """Memory of so many doubles, and whether an array refers to it.

    An array made of a buffer is the base of all its views, and lives as long as any of them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._buffer = np.empty(size).data
        self._lent: weakref.ref[Floats] | None = None

    def is_free(self) -> bool:
        return self._lent is None or self._lent() is None

    def lend(self) -> Floats:
        lent = np.frombuffer(self._buffer)
        self._lent = weakref.ref(lent)
        return lent


def square_memory(n: int) -> Floats:
    """Return an uninitialised (n, n) array, Fortran order, in memory this thread has used before.

    The thread keeps that of two matrices at the most, and lends it when no array refers to it.
    """
    size = n * n
    if 8 * size > _LARGEST:
        return np.empty((n, n), order="F")
    kept: list[_Memory] = _local.__dict__.setdefault("kept", [])
    memory = next((m for m in kept if m.size == size and m.is_free()), None)
    if memory is None:
        memory = _Memory(size)
        kept.append(memory)
        del kept[:-_MOST_KEPT]
    return memory.lend().reshape((n, n), order="F")
