"""Compiled averages of a smooth step over a Gaussian that is wider than the step.

p(f) rises from 0 to 1 over a length of about 1. Equal steps over an analytic function converge
exponentially (see `mercer.likelihoods.trapezoid`), but over a wide Gaussian they are many. Taken
off p is therefore Phi(k f), whose average is closed: what is left lives where p rises, and so do
the nodes. They are the same for every observation, and the values stand in tables: a node costs
one exponential.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit, types
from numpy.typing import NDArray
from scipy.special import ndtr

from mercer.linalg._elementary import SUM, GivenVector
from mercer.linalg._elementary import exp as _exp
from mercer.linalg._smoothing_normal import LOG_ROOT_2PI, tail

Floats = NDArray[np.float64]

_ROOT_2PI = math.sqrt(2.0 * math.pi)
# k^2: near the best for the logistic function, and good enough for others.
_SQUARE = math.pi / 8.0
# Beyond so many standard deviations a Gaussian has 1e-18 of its mass.
_REACH = 9.0


def off_normal(f: Floats, below: Floats, above: Floats) -> Floats:
    """Return p(f) - Phi(k f) from p and 1 - p, whichever is small."""
    beyond = ndtr(-math.sqrt(_SQUARE) * np.abs(f))
    return np.asarray(np.where(f < 0.0, below - beyond, beyond - above))


@njit(
    types.UniTuple(float64, 3)(float64, float64, float64, float64, GivenVector, GivenVector), **SUM
)
def wide(m, v, first, step, left, slope):  # type: ignore[no-untyped-def]
    """log Z, q and r of Z = E[p(f)], f ~ N(m, v), for sqrt(v) >= 2 step and m >= -v/2.

    `left` has p(f) - Phi(k f) and `slope` p'(f) at first, first + step, .., so far that both are
    below 1e-16 exp(-|f|/2).
    """
    sd = math.sqrt(v)
    t = math.sqrt(v + 1.0 / _SQUARE)
    low = int(max((min(m, 0.0) - _REACH * sd - first) / step, 0.0))
    high = int(min((max(m, 0.0) + _REACH * sd - first) / step + 1.0, float(left.size)))
    # Gaussian weights are relative to that at `top`: where they are largest for m > 0, and at 0
    # below, where they stay below exp(|f|/2) and Phi's average has the same factor.
    top = min(m, first + step * (left.size - 1)) if m > 0.0 else 0.0
    scale = -0.5 / v
    zero, one, two, z_one, z_two = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(low, high):
        f = first + step * j
        w = _exp(scale * ((f - top) * (f + top - 2.0 * m)))
        d = w * left[j]
        s = w * slope[j]
        zero += d
        one += d * f
        two += d * (f * f)
        z_one += s
        z_two += s * f
    if m > 0.0:
        unit = step * math.exp(scale * (top - m) ** 2) / (sd * _ROOT_2PI)
        log_z = math.log1p(unit * zero - math.exp(tail(m / t)[0]))
        q = unit * z_one * math.exp(-log_z)
        # Z'' = E[p' (f - m)]/v, and p' is where f < m.
        return log_z, q, unit * (z_two - m * z_one) / v * math.exp(-log_z) - q * q
    # The normal part in the units of the sum: exp(-x^2/2)/(sqrt(2 pi) h) with x = -m/t.
    h, g = tail(-m / t)[1:]
    part = math.exp(m / v * (m / t) / t * (0.5 / _SQUARE)) * sd / (h * step)
    total = part + zero
    log_z = scale * m * m + math.log(total * (step / sd)) - LOG_ROOT_2PI
    q = z_one / total
    if m > -sd:
        return log_z, q, (z_two - m * z_one) / total / v - q * q
    # Those two would cancel far in the tail. r = (Var(f)/v - 1)/v under p N/Z does not: mean and
    # variance of the normal part are m + v h/t and v (1 - h g v/t^2).
    rest = 1.0 / (_SQUARE * t * t)
    mean = m * rest + v * g / t
    var = v * (rest + (v / t) * ((1.0 - h * g) / t))
    share = part / total
    middle = share * mean + one / total
    spread = share * (var + mean * mean) + two / total - middle * middle
    return log_z, q, (spread / v - 1.0) / v
