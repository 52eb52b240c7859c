"""Memory of n x n that the next evaluation uses again.

Fresh memory comes from the system page by page: at n = 1000 that of a kernel matrix and its factor
costs a tenth of what Laplace's method does with them.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from mercer.compute.memory import Memory

__all__ = ["square_memory"]

Floats = NDArray[np.float64]

_LARGEST = 2**25  # bytes; for more, the arithmetic takes so much longer that nothing is gained
_MOST_KEPT = 2  # a thread

_local = threading.local()


def square_memory(n: int) -> Floats:
    """Return an uninitialised (n, n) array, Fortran order, in memory this thread has used before.

    The thread keeps that of two matrices at the most, and lends it when no array refers to it.
    """
    size = n * n
    if 8 * size > _LARGEST:
        return np.empty((n, n), order="F")
    kept: list[Memory] = _local.__dict__.setdefault("kept", [])
    memory = next((m for m in kept if m.size == size and m.is_free()), None)
    if memory is None:
        memory = Memory(size)
        kept.append(memory)
        del kept[:-_MOST_KEPT]
    return memory.lend(size).reshape((n, n), order="F")
