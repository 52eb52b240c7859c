"""Expectations over a Gaussian that are refused where the function overflows within its reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.quadrature import expectation

__all__ = ["expected"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# What may be missing of an expectation, as a part of its size.
_NEGLIGIBLE = np.log(1e-10)
_LARGEST = float(np.log(np.finfo(float).max))


def expected(
    what: str,
    function: Callable[[Rows, Floats], Floats],
    mean: Floats,
    var: Floats,
    knots: Floats | None = None,
    *,
    bounded: bool = False,
) -> Floats:
    """Return `expectation(function, mean, var, knots)` where floating-point numbers can hold it.

    A variance of 0 gives the function's own value at the mean, to the last digit.

    The quadrature leaves out places where the function is infinite or NaN, for which no integrand
    can be told. That is right as long as the Gaussian has died away there. It has not, where its
    density times the largest number, or times 1 if the function is `bounded` by it, is more than
    1e-10 of the result.

    Raises
    ------
    ValueError
        Where it has not, or the result overflows. `what` is what it calls the expectation.
    """
    sd = np.sqrt(var)
    nearest = np.full(mean.size, np.inf)  # in standard deviations

    def watched(row: Rows, f: Floats) -> Floats:
        values = np.array(function(row, f), dtype=float)
        lost = ~np.isfinite(values)
        if lost.any():
            rows = np.broadcast_to(row, values.shape)[lost]
            with np.errstate(all="ignore"):
                distance = np.abs(np.broadcast_to(f, values.shape)[lost] - mean[rows]) / sd[rows]
            np.fmin.at(nearest, rows, distance)
            values[lost] = np.inf  # which the quadrature leaves out
        return values

    out = expectation(watched, mean, var, knots)
    with np.errstate(all="ignore"):
        certain = np.flatnonzero(var == 0.0)
        if certain.size:
            out[certain] = function(certain[:, None], mean[certain, None])[:, 0]
        size = 0.0 if bounded else np.log(np.maximum(np.abs(out), np.finfo(float).tiny))
        missing = (0.0 if bounded else _LARGEST) - 0.5 * nearest**2
        refused = np.isinf(out) | (missing > size + _NEGLIGIBLE)
        if refused.any() and not bounded:
            # What is NaN at the mean is not too large: there is no such expectation.
            rows = np.flatnonzero(refused)
            none = rows[np.isnan(function(rows[:, None], mean[rows, None])[:, 0])]
            out[none], refused[none] = np.nan, False
    if refused.any():
        i = int(np.argmax(refused))
        raise ValueError(
            f"{what} cannot be computed for a latent mean of {mean[i]:.6g} and variance of "
            f"{var[i]:.6g}: it overflows, or is undefined, where that Gaussian still has weight"
        )
    return out
