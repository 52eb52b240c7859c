"""Derivatives in the inputs by central differences, where nothing better is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["numeric_rows", "pull_rows"]

Floats = NDArray[np.float64]

# The step that balances the rounding of a function's values and the curvature of its slope.
STEP = np.cbrt(np.finfo(float).eps)


def pull_rows(function: Callable[[Floats], Floats], A: Floats, G: Floats) -> Floats:
    """Return the derivative of sum(G * function(A)) in A, shape (a, d).

    `function` maps (a, d) to an array of G's shape (a, ...) whose rows depend on the same row of A
    only. It is called 2d times; the result is good to about 1e-10 of the function's size.
    """
    A = np.asarray(A, dtype=float)
    axes = tuple(range(1, G.ndim))
    out = np.empty(A.shape)
    for k in range(A.shape[1]):
        step = STEP * np.maximum(1.0, np.abs(A[:, k]))
        up, down = A.copy(), A.copy()
        up[:, k] += step
        down[:, k] -= step
        rise = np.sum(G * (function(up) - function(down)), axis=axes)
        out[:, k] = rise / (up[:, k] - down[:, k])
    return out


def numeric_rows(A: NDArray[np.generic], what: str) -> None:
    """Raise ValueError unless A is a matrix of numbers, in whose rows one can differentiate."""
    if A.ndim != 2 or A.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} has no derivatives in inputs that are not rows of numbers, got an array of "
            f"dtype {A.dtype} and shape {A.shape}; call pullback with inputs=False"
        )
