"""Executors: map blocks of rows to additive records, and add these up in a fixed order.

An algorithm that needs one number, vector or small matrix of all the rows writes a function from
a block of rows to a record (anything with ``+``) and calls ``executor.sum(function, X, ...)``.
Where the rows are, and who computes, is the executor's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mercer.compute.threads import map_tiles, thread_count

__all__ = [
    "Executor",
    "SerialExecutor",
    "ThreadExecutor",
    "executor_for",
    "register_executor",
    "row_blocks",
]

Record = Any
Blocks = int | Sequence[slice]

# Blocks a thread that are worked on before their records are added up: what waits is in memory.
_AHEAD = 2


class Executor(Protocol):
    """What an algorithm may ask of whoever holds the rows."""

    def sum(self, function: Callable[..., Record], *rows: Any, block: Blocks = 4096) -> Record:
        """Return the sum of ``function(*blocks)`` over blocks of rows, added in row order.

        `block` is how many rows a block has, or where the blocks are.
        """
        ...


def row_blocks(n: int, size: int) -> list[slice]:
    """Cut n rows into slices of `size`, the last one shorter."""
    if size < 1:
        raise ValueError(f"a block needs at least one row, got size={size!r}")
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _slices(n: int, block: Blocks) -> Sequence[slice]:
    slices = row_blocks(n, block) if isinstance(block, int) else block
    if not slices:
        raise ValueError("there are no rows to sum over")
    return slices


class SerialExecutor:
    """One block after the other, in the caller's thread."""

    def sum(self, function: Callable[..., Record], *rows: Any, block: Blocks = 4096) -> Record:
        """Return the sum of ``function(*blocks)`` over blocks of rows, added in row order."""
        total = None
        for s in _slices(len(rows[0]), block):
            record = function(*(r[s] for r in rows))
            total = record if total is None else total + record
        return total


class ThreadExecutor:
    """Blocks on Mercer's thread pool; the same records, added in the same order."""

    def sum(self, function: Callable[..., Record], *rows: Any, block: Blocks = 4096) -> Record:
        """Return the sum of ``function(*blocks)`` over blocks of rows, added in row order."""
        slices = _slices(len(rows[0]), block)
        total, step = None, _AHEAD * thread_count()
        for i in range(0, len(slices), step):
            records = map_tiles(lambda s: function(*(r[s] for r in rows)), slices[i : i + step])
            for record in records:
                total = record if total is None else total + record
        return total


_REGISTERED: list[tuple[Callable[[Any], bool], Callable[[Any], Executor]]] = []


def register_executor(accepts: Callable[[Any], bool], factory: Callable[[Any], Executor]) -> None:
    """Let `factory(X)` make the executor for inputs of which `accepts(X)` is true.

    The newest registration is asked first.
    """
    _REGISTERED.insert(0, (accepts, factory))


def executor_for(X: Any) -> Executor:
    """Return the executor that knows where the rows of X are; threads for arrays in memory."""
    for accepts, factory in _REGISTERED:
        if accepts(X):
            return factory(X)
    return ThreadExecutor()
