"""Numerical inversion of Laplace transforms, with estimates of the error."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["stehfest", "talbot"]

Floats = NDArray[np.float64]
Transform = Callable[[Any], Any]

_EPS = float(np.finfo(float).eps)
# The contour of Weideman (2006), whose error falls as 3.89^-N while rounding grows as 1.19^N.
_MANY, _FEWER = 26, 20
_SUMS = (6, 8, 10, 12, 14, 16, 18)


def talbot(F: Transform, x: Floats) -> tuple[Floats, Floats]:
    """Return f(x), (k,), for F(z) = integral of exp(-z x) f(x), and how far it may be off.

    F is analytic but for the negative real axis, and is evaluated at complex z off it.
    """
    value, rounding = _contour(F, x, _MANY)
    other, _ = _contour(F, x, _FEWER)
    return value, np.abs(value - other) + rounding


def _contour(F: Transform, x: Floats, count: int) -> tuple[Floats, Floats]:
    # By symmetry the upper half is enough.
    angle = np.pi * (2.0 * np.arange(count // 2) + 1.0) / count
    cot = 1.0 / np.tan(0.6407 * angle)
    z = count * (0.5017 * angle * cot - 0.6122 + 0.2645j * angle)
    dz = count * (0.5017 * cot - 0.5017 * 0.6407 * angle * (1.0 + cot**2) + 0.2645j)
    terms = np.exp(z) * dz * F(z / x[:, None]) * (2.0 / (1j * count)) / x[:, None]
    return np.sum(terms, axis=1).real, 8.0 * _EPS * np.sum(np.abs(terms), axis=1)


def stehfest(F: Transform, x: Floats) -> tuple[Floats, Floats]:
    """Return the same from F at real z alone, to some four digits in double precision.

    Sums of Gaver and Stehfest of several lengths: that which differs least from its neighbours.
    """
    values, rounding = map(np.array, zip(*(_gaver(F, x, count) for count in _SUMS), strict=True))
    off = np.abs(np.diff(values, axis=0))
    # Neighbours on both sides: two sums may agree by chance.
    error = 2.0 * np.maximum(off[:-1], off[1:]) + rounding[1:-1]
    best = np.argmin(error, axis=0)
    rows = np.arange(len(x))
    return values[best + 1, rows], error[best, rows]


def _gaver(F: Transform, x: Floats, count: int) -> tuple[Floats, Floats]:
    half = count // 2
    weights = np.array(
        [
            (-1) ** (k + half)
            * sum(
                j ** (half + 1) * comb(half, j) * comb(2 * j, j) * comb(j, k - j) / factorial(half)
                for j in range((k + 1) // 2, min(k, half) + 1)
            )
            for k in range(1, count + 1)
        ]
    )
    step = np.log(2.0) / x[:, None]
    terms = weights * F(step * np.arange(1, count + 1)) * step
    return np.sum(terms, axis=1), 2.0 * _EPS * np.sum(np.abs(terms), axis=1)
