"""Averages over p(y | f) N(f; mean, var), by equal steps: for an analytic p, see `trapezoid`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.normal import LOG_2PI
from mercer.likelihoods.quantiles import root
from mercer.likelihoods.trapezoid import equal_steps

if TYPE_CHECKING:
    from mercer.likelihoods.base import Likelihood

__all__ = ["by_steps", "concave"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Longest steps are in these units, so that `equal_steps` keeps to its own longest one, 0.4.
_UNIT = 0.2
# The error of steps over the distance that log p is analytic within is exp(-40).
_STEP = 2.0 * np.pi / 40.0
_REACH = 9.0


def concave(
    likelihood: Likelihood, y: Floats, mean: Floats, var: Floats, strip: float
) -> tuple[Floats, Floats, Floats]:
    """Return `by_steps` of a log-concave likelihood, analytic within `strip` of the real line.

    Nodes lie around the mode, from which p N falls off at least as fast as the Gaussian alone.
    """

    def fall(row: Rows, f: Floats) -> Floats:
        return np.asarray((f - mean[row]) / var[row] - likelihood.derivatives(y[row], f)[0])

    # The slope of a concave log p falls, so that the mode is between these.
    end = mean + var * likelihood.derivatives(y, mean)[0]
    mode = root(fall, np.minimum(mean, end), np.maximum(mean, end), 0.1 / np.sqrt(var))
    return by_steps(likelihood, y, mean, var, mode, _STEP * strip, _REACH)


def by_steps(
    likelihood: Likelihood,
    y: Floats,
    mean: Floats,
    var: Floats,
    centre: Floats,
    step: float,
    reach: float,
) -> tuple[Floats, Floats, Floats]:
    """Return log Z and its two derivatives in the mean, Z = E[p(y | f)], for rows (n,), var > 0.

    The derivatives are <d1> and <d2> + Var(d1) over p N / Z, which lose nothing where the Gaussian
    is narrow. Nodes are at most `step` apart, within `reach` standard deviations of the centre.
    """
    sd = np.sqrt(var)
    away = (centre - mean) / sd
    log_z, first, second = np.empty((3, y.size))
    every = np.ones(y.size, dtype=bool)
    for rows, z, _ in equal_steps(sd * (_UNIT / step), every, _UNIT, reach):
        f = centre[rows][:, None] + sd[rows][:, None] * z
        log_p = likelihood.log_density(y[rows][:, None], f) - 0.5 * (away[rows][:, None] + z) ** 2
        top = np.max(log_p, axis=1)
        w = np.exp(log_p - top[:, None])
        total = np.sum(w, axis=1)
        w /= total[:, None]
        slope, curvature, _ = likelihood.derivatives(y[rows][:, None], f)
        average = np.sum(w * slope, axis=1)
        log_z[rows] = top + np.log(total * (z[1] - z[0])) - 0.5 * LOG_2PI
        first[rows] = average
        second[rows] = np.sum(w * (curvature + (slope - average[:, None]) ** 2), axis=1)
    return log_z, first, second
