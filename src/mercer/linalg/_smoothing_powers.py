"""Compiled averages of a power of a label's likelihood over a Gaussian.

Z = E[p(f)^a], f ~ N(m, v), for p the logistic function or Phi(f/s), and 0 < a <= 1. Only a = 1 has
a closed form. The logarithm of the integrand is concave, and falls from its highest point
at least as fast as that of the Gaussian: equal steps over so many standard deviations about it,
which converge exponentially (see `mercer.likelihoods.trapezoid`), as p has no zero and no pole
within 2.8 units of the real line. With d_1 and d_2 the derivatives of a log p, q = <d_1> and
r = <d_2> + Var(d_1) under the integrand.
"""

from __future__ import annotations

import math

from numba import float64, njit, types

from mercer.linalg._elementary import MAP
from mercer.linalg._smoothing_normal import LOG_ROOT_2PI, tail

__all__ = ["power_of_label"]

# Standard deviations to both sides, beyond which nothing is left, and steps: in units of p's scale,
# and in standard deviations.
_REACH, _STEP, _NARROW = 9.0, 0.35, 0.4
_NEWTON, _NEAR = 60, 1e-6  # steps to the highest point, and how near they are to come to it


@njit(types.UniTuple(float64, 3)(float64, float64), **MAP)
def _log_p(scale, f):  # type: ignore[no-untyped-def]
    """log p and its derivatives in f; the logistic function's for scale 0, else a probit's."""
    if scale > 0.0:
        log_p, h, g = tail(-f / scale)
        return log_p, h / scale, -(h * g) / (scale * scale)
    e = math.exp(-abs(f))
    wrong = (e if f >= 0.0 else 1.0) / (1.0 + e)
    return min(f, 0.0) - math.log1p(e), wrong, -e / ((1.0 + e) * (1.0 + e))


@njit(float64(float64, float64, float64, float64), **MAP)
def _highest(scale, m, v, a):  # type: ignore[no-untyped-def]
    """The u = f - m, 0 or above, at which a log p(f) - u^2/(2v) is highest."""
    low, high, u = 0.0, math.inf, 0.0
    sd = math.sqrt(v)
    for _ in range(_NEWTON):
        _, first, second = _log_p(scale, m + u)
        slope = a * first - u / v
        if slope > 0.0:
            low = u
        else:
            high = u
        step = slope / (1.0 / v - a * second)
        if abs(step) <= _NEAR * sd:
            break
        u += step
        if not low < u < high:
            u = 0.5 * (low + high) if high < math.inf else low + sd
    return u


@njit(types.UniTuple(float64, 3)(float64, float64, float64, float64), **MAP)
def power_of_label(scale, m, v, a):  # type: ignore[no-untyped-def]
    """log Z, q and r of Z = E[p(f)^a]; scale 0 stands for the logistic function."""
    if v == 0.0:
        log_p, first, second = _log_p(scale, m)
        return a * log_p, a * first, a * second
    sd = math.sqrt(v)
    middle = _highest(scale, m, v, a)
    top = a * _log_p(scale, m + middle)[0] - 0.5 * (middle / sd) ** 2
    step = min(_STEP * (scale if scale > 0.0 else 1.0), _NARROW * sd)
    count = math.ceil(_REACH * sd / step)
    total, mean, spread, curved = 0.0, 0.0, 0.0, 0.0
    for j in range(-count, count + 1):
        u = middle + step * j  # not f, of which m may leave no digits
        log_p, first, second = _log_p(scale, m + u)
        w = math.exp(a * log_p - 0.5 * (u / sd) ** 2 - top)
        if w == 0.0:
            continue
        # Welford's updates: d_1 may be large beside its variance
        total += w
        away = a * first - mean
        mean += away * (w / total)
        spread += w * away * (a * first - mean)
        curved += w * a * second
    log_z = top + math.log(total * (step / sd)) - LOG_ROOT_2PI
    return min(log_z, 0.0), mean, min((spread + curved) / total, 0.0)
