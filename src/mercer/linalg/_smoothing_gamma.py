"""What sums over the logarithm of a gamma variable need, compiled: exp(-shape (e^u - 1 - u))."""

from __future__ import annotations

import math

from numba import float64, njit, types

from mercer.linalg._elementary import MAP


@njit(float64(float64), **MAP)
def bend(d):  # type: ignore[no-untyped-def]
    """exp(d) - 1 - d for d <= 700, also where it cancels."""
    if abs(d) > 0.3:
        return math.exp(d) - 1.0 - d
    p = 1.0 / 6227020800.0
    p = p * d + 1.0 / 479001600.0
    p = p * d + 1.0 / 39916800.0
    p = p * d + 1.0 / 3628800.0
    p = p * d + 1.0 / 362880.0
    p = p * d + 1.0 / 40320.0
    p = p * d + 1.0 / 5040.0
    p = p * d + 1.0 / 720.0
    p = p * d + 1.0 / 120.0
    p = p * d + 1.0 / 24.0
    p = p * d + 1.0 / 6.0
    p = p * d + 0.5
    return p * d * d


@njit(types.UniTuple(float64, 2)(float64), **MAP)
def reaches(k):  # type: ignore[no-untyped-def]
    """How far below and above 0 `bend` reaches k, or somewhat further."""
    # bend(-d) >= d^2/(2 + d), and bend(d) >= d^2/2 and exp(d)/e - 1
    return 0.5 * (k + math.sqrt(k * (k + 8.0))), min(math.sqrt(2.0 * k), 1.0 + math.log1p(k))


@njit(float64(float64), **MAP)
def step_for(shape):  # type: ignore[no-untyped-def]
    """A step for sums over exp(-shape bend(u)), good to 1e-16 or so.

    Its Fourier transform, Gamma(shape + i w) in size, has fallen so far at w = 2 pi/step: as
    exp(-w^2/(2 shape)) while w is below the shape, as exp(-pi w/2) beyond.
    """
    return 2.0 * math.pi / math.sqrt(700.0 + 75.0 * shape)
