"""The rows of a Laplacian process: equal ones merged, in an order of their own.

Nothing that is fitted to them depends on the order in which rows were given, or on whether one that
counts twice is written twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel

__all__ = ["Merged", "merged"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Merged(NamedTuple):
    """The different rows.

    X : inputs, u rows
    Y : (u, P) targets
    weights : (u,) what the rows of a kind weigh together
    first : (u,) the number of one row of each kind, among those that were given
    kinds : (u,) which of the different inputs each has, numbered in order
    variances : (u,) of known noise; None without
    """

    X: Any
    Y: Floats
    weights: Floats
    first: Indices
    kinds: Indices
    variances: Floats | None = None

    @property
    def centres(self) -> Indices:
        """The number of a row for each of the different inputs."""
        return np.unique(self.kinds, return_index=True)[1]

    def some(self, count: int, rng: np.random.Generator) -> Merged:
        """Return at most so many rows, with all that have the same inputs, in order."""
        if len(self.Y) <= count:
            return self
        order = rng.permutation(int(self.kinds[-1]) + 1)
        sizes = np.bincount(self.kinds)[order]
        taken = order[np.cumsum(sizes) <= count]
        taken = order[:1] if not len(taken) else taken
        return self.take(np.flatnonzero(np.isin(self.kinds, taken)))

    def take(self, rows: Indices) -> Merged:
        """Return some of the rows."""
        kinds = np.unique(self.kinds[rows], return_inverse=True)[1]
        known = None if self.variances is None else self.variances[rows]
        own = self.X[rows], self.Y[rows], self.weights[rows], self.first[rows]
        return Merged(*own, np.asarray(kinds, dtype=np.intp), known)


def merged(
    X: Any,
    Y: Floats,
    weights: Floats | None,
    numbers: Indices,
    kernel: Kernel | None,
    variances: Floats | None = None,
) -> Merged:
    """Return the different rows among some.

    Parameters
    ----------
    X, Y, weights : the rows
    numbers : (n,) by which the caller knows them
    kernel : of objects that are no numbers nothing is known, not even which are equal
    variances : (n,) of known noise
    """
    n = len(Y)
    own = np.ones(n) if weights is None else weights
    if kernel is not None and not kernel.is_numeric:
        return Merged(X, Y, own, numbers, np.arange(n), variances)
    inputs = [*np.asarray(X).T]
    columns = [*inputs, *Y.T, *([] if variances is None else [variances])]
    # of equal rows the one that was given first
    order = np.lexsort([numbers, *columns[::-1]])
    new, other = np.zeros((2, n), dtype=bool)
    new[0] = other[0] = True
    for i, column in enumerate(columns):
        values = column[order]
        changed = values[1:] != values[:-1]
        new[1:] |= changed
        if i < len(inputs):
            other[1:] |= changed
    rows = np.cumsum(new) - 1
    total = np.bincount(rows, own[order]).astype(float)
    kept = order[new]
    kinds = (np.cumsum(other) - 1)[new]
    known = None if variances is None else variances[kept]
    return Merged(np.asarray(X)[kept], Y[kept], total, numbers[kept], kinds, known)
