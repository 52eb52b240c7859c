"""Two quadratic forms that bound each other's minima, and the gap between the bounds (BKM 4.3).

Regression with Gaussian noise of variance s2: targets y less the mean, f a function with the
values F at the rows and the squared norm |f|_H^2 in the kernel's space (alpha'K alpha for
f = sum_i alpha_i k(., x_i)), a any vector. With

    L(f)  = -y'F + (s2 |f|_H^2 + |F|^2)/2                                                (BKM 78)
    L*(a) = -y'a + (s2 |a|^2 + a'Ka)/2                                                   (BKM 79)

the log posterior of f is -(L + |y|^2/2)/s2 but for a constant, and for all f and a

    L(f) >= L_min >= -|y|^2/2 - s2 L*(a).                                                (BKM 80)

What lies between the two ends is a sum of squares, which neither cancels nor is ever negative:

    L(f) + s2 L*(a) + |y|^2/2 = |y - F - s2 a|^2/2 + s2/2 |f - sum_i a_i k(., x_i)|_H^2.

Weights w of rows, powers of the likelihood, are in all of this once y and F are multiplied by
w^1/2, a is divided by it, and K has it on both sides (`duals.RowProblem`).

Arrays have a column for each of P outputs, which share K and s2, and every form has a value for
each output, (P,); bounds and gap are of their sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Bounds",
    "bounds",
    "distance",
    "dual",
    "dual_bound",
    "excess",
    "gap",
    "less_rounding",
    "lower_bound",
    "primal",
]

Floats = NDArray[np.float64]

# What is left of the targets and is no more than this part of them is rounding.
_NOTHING = 1e-13


class Bounds(NamedTuple):
    """What L_min lies between, and the distance of the two by (BKM 84)."""

    lower: float
    upper: float
    gap: float


def primal(Y: Floats, fitted: Floats, squared_norm: ArrayLike, noise: float) -> Floats:
    """Return L (BKM 78), (P,), for the values F (n, P) of f at the rows and |f|_H^2 (P,)."""
    half = 0.5 * (noise * np.asarray(squared_norm, dtype=float) + _dots(fitted, fitted))
    return np.asarray(half - _dots(Y, fitted))


def dual(Y: Floats, A: Floats, KA: Floats, noise: float) -> Floats:
    """Return L* (BKM 79), (P,), for coefficients A (n, P) and their products K A (n, P)."""
    return np.asarray(0.5 * (noise * _dots(A, A) + _dots(A, KA)) - _dots(Y, A))


def lower_bound(Y: Floats, dual: ArrayLike, noise: float) -> Floats:
    """Return what L_min is at least, given a value of L* (BKM 80)."""
    return np.asarray(-0.5 * _dots(Y, Y) - noise * np.asarray(dual, dtype=float))


def dual_bound(Y: Floats, primal: ArrayLike, noise: float) -> Floats:
    """Return what the minimum of L* is at least, given a value of L (BKM 81)."""
    return np.asarray((-0.5 * _dots(Y, Y) - np.asarray(primal, dtype=float)) / noise)


def distance(
    fitted: Floats,
    A: Floats,
    KA: Floats,
    *,
    coefficients: Floats | None = None,
    squared_norm: ArrayLike | None = None,
) -> Floats:
    """Return |f - sum_i a_i k(., x_i)|_H^2, (P,), never negative.

    Parameters
    ----------
    fitted, A, KA : (n, P) arrays
        F, the coefficients a, and K a.
    coefficients : (n, P) array, optional
        alpha, if f = sum_i alpha_i k(., x_i): the product of two differences, right to rounding
        of the second order where f is all but the optimum.
    squared_norm : (P,) array, optional
        |f|_H^2, for any other f: right to rounding of this norm.
    """
    if (coefficients is None) == (squared_norm is None):
        raise ValueError("either the coefficients of f or its squared norm are wanted")
    if coefficients is not None:
        square = _dots(coefficients - A, fitted - KA)
    else:
        square = np.asarray(squared_norm, dtype=float) - _dots(A, 2.0 * fitted - KA)
    return np.maximum(square, 0.0)


def excess(Y: Floats, fitted: Floats, A: Floats, distance: ArrayLike, noise: float) -> Floats:
    """Return L(f) + s2 L*(a) + |y|^2/2, (P,), as the sum of squares that it is.

    It bounds L(f) - L_min = |F - F_min|^2/2 + s2/2 |f - f_min|_H^2, and so both of these.
    """
    rest = Y - fitted - noise * A
    return np.asarray(0.5 * (_dots(rest, rest) + noise * np.asarray(distance, dtype=float)))


def bounds(primal: ArrayLike, excess: ArrayLike) -> Bounds:
    """Return the bounds on the sum of L_min over outputs, of values of L and their `excess`."""
    upper, width = float(np.sum(primal)), float(np.sum(excess))
    return Bounds(upper - width, upper, _relative(width, upper, upper - width))


def gap(upper: float, lower: float) -> float:
    """Return the relative distance of two bounds on L_min (BKM 84), from 0 to 2.

    2 (upper - lower)/(|upper| + |lower|), which is that of the paper where L(f) <= 0, as it is for
    every f that is better than 0. With L(f) > 0, which the paper's denominator does not allow for,
    it is 2. Bounds that rounding has exchanged have the gap 0, and so have two that are 0; of forms
    that are no longer doubles nothing is known, and the gap is 2.

    The difference loses the digits that both have in common; `bounds` does not.
    """
    return _relative(max(float(upper) - float(lower), 0.0), float(upper), float(lower))


def less_rounding(rest: Floats, Y: Floats) -> Floats:
    """Return what a mean leaves of targets Y (n, P), 0 for outputs where that is but rounding.

    There is nothing to explain then: the function 0 is the best, and the gap is 0.
    """
    size = np.max(np.abs(Y), axis=0, initial=0.0)
    nothing = np.max(np.abs(rest), axis=0, initial=0.0) <= _NOTHING * size
    return np.where(nothing, 0.0, rest)


def _relative(width: float, upper: float, lower: float) -> float:
    if width <= 0:
        return 0.0
    size = abs(upper) + abs(lower)
    return min(2.0 * (width / size), 2.0) if 0 < size < np.inf else 2.0


def _dots(A: Floats, B: Floats) -> Floats:
    """Return the inner product of each column of A with that of B, (P,)."""
    return np.asarray(np.einsum("ip,ip->p", A, B))
