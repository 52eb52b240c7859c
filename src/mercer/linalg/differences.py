"""Derivatives by central differences, where nothing better is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["STEP", "pull_rows", "row_slopes"]

Floats = NDArray[np.float64]

# The step that balances the rounding of a function's values and the curvature of its slope.
STEP = float(np.cbrt(np.finfo(float).eps))


def row_slopes(function: Callable[[Floats], Floats], A: Floats) -> Iterator[Floats]:
    """Give the derivative of function(A) in one column of A after the other.

    `function` maps (a, d) to an array of shape (a, ...) whose rows depend on the same row of A
    only. It is called twice a column, at a step of 6e-6 max(1, abs(x)) either way; the results are
    good to about 1e-10 of the function's size.
    """
    A = np.asarray(A, dtype=float)
    for k in range(A.shape[1]):
        step = STEP * np.maximum(1.0, np.abs(A[:, k]))
        up, down = A.copy(), A.copy()
        up[:, k] += step
        down[:, k] -= step
        rise = function(up) - function(down)
        width = up[:, k] - down[:, k]  # what the steps became in floating point
        yield rise / width.reshape(-1, *[1] * (rise.ndim - 1))


def pull_rows(function: Callable[[Floats], Floats], A: Floats, G: Floats) -> Floats:
    """Return the derivative of sum(G * function(A)) in A, shape (a, d), by `row_slopes`."""
    axes = tuple(range(1, G.ndim))
    out = np.empty(np.shape(A))
    for k, slope in enumerate(row_slopes(function, A)):
        out[:, k] = np.sum(G * slope, axis=axes)
    return out
