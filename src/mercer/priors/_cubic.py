"""Where a cubic that begins above 0 and ends below it crosses downwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["downward_roots"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ROUNDS = 100
_TOL = 1e-14


def downward_roots(c0: Floats, c1: Floats, c2: Floats, c3: Floats) -> tuple[Floats, Floats]:
    """Return the positive x at which P(x) = c0 + c1 x + c2 x^2 - c3 x^3 falls through 0.

    c0 and c3 are positive, so that there are one or two: (lower, upper), each (n,), NaN for one
    that is not there. P falls, rises between its turning points, and falls again; each stretch is
    searched by Newton's method within a bracket.
    """
    disc = c2 * c2 + 3.0 * c3 * c1
    turns = disc > 0
    outer = c2 + np.copysign(np.sqrt(np.where(turns, disc, 0.0)), c2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = np.stack([outer / (3.0 * c3), np.where(outer == 0, 0.0, -c1 / outer)])
        first = np.where(turns, np.min(ends, axis=0), 0.0)
        second = np.where(turns, np.maximum(np.max(ends, axis=0), 0.0), 0.0)

    def P(x: Floats) -> Floats:
        return c0 + x * (c1 + x * (c2 - x * c3))

    with np.errstate(over="ignore", invalid="ignore"):
        has_lower = (first > 0) & (P(first) < 0)
        has_upper = P(second) > 0
        # Fujiwara's bounds: no root is larger than `most` or smaller than `least`.
        most = 2.0 * np.maximum(
            np.maximum(np.abs(c2) / c3, np.sqrt(np.abs(c1) / c3)), np.cbrt(c0 / c3)
        )
        least = 0.5 / np.maximum(
            np.maximum(np.abs(c1) / c0, np.sqrt(np.abs(c2) / c0)), np.cbrt(c3 / c0)
        )
    lower = _newton((c0, c1, c2, c3), least, first, has_lower)
    upper = _newton((c0, c1, c2, c3), np.maximum(second, least), most, has_upper)
    return lower, upper


def _newton(
    coefficients: tuple[Floats, Floats, Floats, Floats], low: Floats, high: Floats, some: Flags
) -> Floats:
    """Return the root between low, where P > 0, and high, where P < 0, for some; NaN for others."""
    out = np.full(len(low), np.nan)
    where = np.flatnonzero(some)
    if not len(where):
        return out
    c0, c1, c2, c3 = (c[where] for c in coefficients)
    low, high = low[where], np.maximum(high[where], low[where])
    x = np.sqrt(low) * np.sqrt(high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # What it is if the terms of higher, or lower, order do not count.
        for guess in (c2 / c3, -c0 / c1):
            x = np.where((guess > low) & (guess < high), guess, x)
        for _ in range(_ROUNDS):
            value = c0 + x * (c1 + x * (c2 - x * c3))
            up = value > 0
            low, high = np.where(up, x, low), np.where(up, high, x)
            step = x - value / (c1 + x * (2.0 * c2 - 3.0 * x * c3))
            done = (np.abs(step - x) <= _TOL * x) | (high - low <= _TOL * low)
            inside = ((step > low) & (step < high)) | (done & (step > 0))
            x = np.where(inside, step, np.sqrt(low) * np.sqrt(high))
            if np.all(done):
                break
    out[where] = x
    return out
