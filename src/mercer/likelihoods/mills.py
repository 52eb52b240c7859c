"""The normal tail over its density, without loss of digits however far out.

M(x) = (1 - Phi(x))/phi(x) is Mills' ratio. Its reciprocal is x + 1/(x + 2/(x + 3/(x + ...))), and
differences that cancel are read off that fraction where x is large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

__all__ = ["gap", "inverse", "log_tail_derivatives"]

Floats = NDArray[np.float64]

_ROOT_HALF = float(np.sqrt(0.5))
_ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
# From here on 100 levels of the fraction are good to rounding; up to here the plain differences
# lose 1e-12 at most.
_FAR = 4.0
_LEVELS = 100


def inverse(x: Floats) -> Floats:
    """Return 1/M(x) = phi(x)/(1 - Phi(x)): about x for large x, and 0 far below."""
    with np.errstate(over="ignore"):
        return np.asarray(_ROOT_2_OVER_PI / erfcx(x * _ROOT_HALF))


def _fraction(x: Floats, first: int) -> Floats:
    """Return first/(x + (first + 1)/(x + ...)) for x of at least `_FAR`."""
    tail = np.zeros_like(x)
    for k in range(first + _LEVELS, first - 1, -1):
        tail = k / (x + tail)
    return tail


def gap(x: Floats) -> Floats:
    """Return 1/M(x) - x, which is positive: about 1/x for large x."""
    out = np.asarray(inverse(x) - x)
    far = x >= _FAR
    if np.any(far):
        out = np.where(far, 0.0, out)
        out[far] = _fraction(x[far], 1)
    return out


def log_tail_derivatives(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the first three derivatives of log(1 - Phi(x)).

    With h = 1/M and g = h - x they are -h, -h g and -h (g^2 + h g - 1).
    """
    x = np.maximum(x, -1e100)  # where all of them are 0, and squares are finite
    h, g = inverse(x), gap(x)
    bracket = np.asarray(g**2 + h * g - 1.0)
    far = x >= _FAR
    if np.any(far):
        # g = 1/(x + b), b = 2/(x + c): the bracket is g^2 b (c - b), nothing of it cancelling.
        c = _fraction(x[far], 3)
        b = 2.0 / (x[far] + c)
        bracket = np.where(far, 0.0, bracket)
        bracket[far] = g[far] ** 2 * b * (c - b)
    return np.asarray(-h), np.asarray(-h * g), np.asarray(-h * bracket)
