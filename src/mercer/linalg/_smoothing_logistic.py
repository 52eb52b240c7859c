"""Compiled averages of the logistic function over a Gaussian."""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit, types
from scipy.special import expit

from mercer.linalg._elementary import MAP, SUM
from mercer.linalg._elementary import exp as _exp
from mercer.linalg._smoothing_steps import Floats, off_normal, wide

# The poles are at odd multiples of i pi. On a line at a distance of 2.9 from the real one the
# integrand is larger by a factor of exp(5 + 4.2/var) at most: with this step the rule is good to
# 1e-16 for a variance of 1, relative to Z, however small that is.
_STEP = 0.4
# In the same units of a standard deviation below 1, where the Gaussian limits the step.
_Z = _STEP * np.arange(-23, 24)
_WEIGHT = _STEP / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * _Z**2)

_LAST = 180
_FIRST = -_STEP * _LAST
_F: Floats = _STEP * np.arange(-_LAST, _LAST + 1.0)
_LEFT = off_normal(_F, expit(_F), expit(-_F))
_SLOPE = expit(_F) * expit(-_F)


@njit(types.UniTuple(float64, 3)(float64, float64), **SUM)
def _narrow(m, v):  # type: ignore[no-untyped-def]
    """log Z, q and r for m >= -v/2 and 0 < v <= 1: q = <d1>, r = <d2> + Var(d1)."""
    sd = math.sqrt(v)
    e = _exp(-abs(m))
    at = (e if m >= 0.0 else 1.0) / (1.0 + e)
    total, first, second = 0.0, 0.0, 0.0
    for j in range(_Z.size):
        f = m + sd * _Z[j]
        e = _exp(-abs(f))
        ratio = 1.0 / (1.0 + e)
        right = ratio if f >= 0.0 else e * ratio
        wrong = e * ratio if f >= 0.0 else ratio
        p = _WEIGHT[j] * right
        away = wrong - at
        total += p
        first += p * away
        second += p * (away * away - wrong * right)
    mean = first / total
    return math.log(total), at + mean, second / total - mean * mean


@njit(types.UniTuple(float64, 3)(float64, float64), **MAP)
def _above(m, v):  # type: ignore[no-untyped-def]
    """`logistic` for m >= -v/2."""
    if v > 1.0:
        log_z, q, r = wide(m, v, _FIRST, _STEP, _LEFT, _SLOPE)
        return log_z, q, min(r, 0.0)
    if v > 0.0:
        log_z, q, r = _narrow(m, v)
        return log_z, q, min(r, 0.0)
    e = math.exp(-abs(m))
    wrong = (e if m >= 0.0 else 1.0) / (1.0 + e)
    return min(m, 0.0) - math.log1p(e), wrong, -e / (1.0 + e) ** 2


@njit(types.UniTuple(float64, 3)(float64, float64), **MAP)
def logistic(m, v):  # type: ignore[no-untyped-def]
    """log Z, q and r of Z = E[1/(1 + exp(-f))], f ~ N(m, v).

    s(f) = exp(f) s(-f), so that Z(m) = exp(m + v/2) Z(-m - v): of the two the one is taken whose
    Gaussian is not far below the step.
    """
    if m < -0.5 * v:
        log_z, q, r = _above(-m - v, v)
        return m + 0.5 * v + log_z, 1.0 - q, r
    return _above(m, v)
