"""Expectations over a Gaussian that are refused where the function overflows within its reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.quadrature import expectation

if TYPE_CHECKING:
    from mercer.likelihoods.base import Likelihood

__all__ = ["expected", "moments"]

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


def moments(likelihood: Likelihood, what: str, y: Floats, mean: Floats, var: Floats) -> Floats:
    """Return E[log p(y | f)] and its derivatives in mean and variance, shape (3, n).

    With derivatives, and a curvature that is not hidden in kinks, the latter are E[d1] and
    E[d2]/2; without, E[z log p]/sd and E[(z^2 - 1) log p]/(2 var), z = (f - mean)/sd, which lose
    digits as the variance goes to 0.
    """
    knots = likelihood.knots(y)
    out = np.full((3, mean.size), np.nan)

    def average(rows: Rows, function: Callable[[Rows, Floats], Floats]) -> Floats:
        of = None if knots is None else knots[rows]
        return expected(what, lambda i, f: function(rows[i], f), mean[rows], var[rows], of)

    every = np.arange(mean.size)
    out[0] = average(every, lambda i, f: likelihood.log_density(y[i], f))
    smooth = not likelihood.missing("derivatives")
    direct = every if smooth and likelihood.has_curvature else np.flatnonzero(var == 0.0)
    if smooth:
        out[1, direct] = average(direct, lambda i, f: likelihood.derivatives(y[i], f)[0])
        out[2, direct] = 0.5 * average(direct, lambda i, f: likelihood.derivatives(y[i], f)[1])
    rows = np.flatnonzero(var > 0)
    if rows.size and not (smooth and likelihood.has_curvature):
        sd = np.sqrt(var)
        at_mean = likelihood.log_density(y, mean)

        def change(i: Rows, f: Floats) -> tuple[Floats, Floats]:
            # E[z] = E[z^2 - 1] = 0: the value at the mean may be taken off, and its rounding.
            return (f - mean[i]) / sd[i], likelihood.log_density(y[i], f) - at_mean[i]

        def first(i: Rows, f: Floats) -> Floats:
            z, rise = change(i, f)
            return np.asarray(z * rise)

        def second(i: Rows, f: Floats) -> Floats:
            z, rise = change(i, f)
            return np.asarray((z**2 - 1.0) * rise)

        out[1, rows] = average(rows, first) / sd[rows]
        out[2, rows] = average(rows, second) / (2.0 * var[rows])
    return out
