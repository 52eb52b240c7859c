"""Compiled averages of the Poisson probability of a count over a Gaussian log rate."""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit, types

from mercer.linalg._elementary import MAP, SUM
from mercer.linalg._elementary import exp as _exp
from mercer.linalg._smoothing_gamma import bend, reaches, step_for
from mercer.linalg._smoothing_normal import LOG_ROOT_2PI
from mercer.linalg._smoothing_steps import Floats, off_normal, wide

_Three = types.UniTuple(float64, 3)
_DROP = 36.0
# Beyond this variance, and without a peak that is narrower, the rule of `wide` takes over.
_WIDEST = 16.0
# A variance that changes nothing: products with it would underflow.
_NARROWEST = 1e-200
# exp(-exp(-f)), that no events are seen at a log rate of -f: a step of length 1. Its slope has a
# gamma function for its Fourier transform, which is 1e-15 at 2 pi/step.
_STEP = 0.28
_FIRST = -54.0 * _STEP
_F: Floats = _STEP * np.arange(-54.0, 258.0)
_LEFT = off_normal(_F, np.exp(-np.exp(-_F)), -np.expm1(-np.exp(-_F)))
_SLOPE = np.exp(-_F - np.exp(-_F))


@njit(float64(float64), **MAP)
def _omega(x):  # type: ignore[no-untyped-def]
    """Wright's omega: the solution w of w + log w = x."""
    if x > 1e6:
        return x - math.log(x) * (1.0 - 1.0 / x)
    if x > 1.0:
        w = x - math.log(x)
    else:
        w = math.exp(min(x, 0.5 * (x - 1.0)))
        if w < 1e-17:
            return w
    for _ in range(3):  # of order 4 (Fritsch, Shafer and Crowley, CACM 16, 1973)
        r = x - w - math.log(w)
        p = 1.0 + w
        a = 2.0 * p * (p + 2.0 / 3.0 * r)
        w *= 1.0 + r / p * (a - r) / (a - 2.0 * r)
    return w


@njit(float64(float64, float64), **MAP)
def _log_density(y, f):  # type: ignore[no-untyped-def]
    """y f - exp(f) - log y!, of many events from where it is largest, at log y."""
    if y == 0.0:
        return -math.exp(f)
    if y < 100.0:
        peak = y * (math.log(y) - 1.0) - math.lgamma(y + 1.0)
    else:  # Stirling's series
        square = 1.0 / (y * y)
        series = (1.0 / 12.0 - (1.0 / 360.0 - square / 1260.0) * square) / y
        peak = -0.5 * math.log(y) - LOG_ROOT_2PI - series
    return peak - y * bend(f - math.log(y))


@njit(_Three(float64, float64, float64), **SUM)
def _peaked(y, m, v):  # type: ignore[no-untyped-def]
    """Sum around the mode, where the rate is k: p N falls off as exp(-k bend(d) - d^2/(2 v))."""
    log_v = math.log(v)
    omega = _omega(m + v * y + log_v)
    rate = omega / v
    many = omega > 1.0
    mode = math.log(omega) - log_v if many else m + (v * y - omega)
    off = (mode - m) / v if many else y - rate  # the slope of log p at the mode
    below, above = reaches(_DROP / rate)
    precision = rate + 1.0 / v
    above = min(above, math.sqrt(2.0 * _DROP / precision))
    below = min(below, math.sqrt(2.0 * _DROP * v))
    nodes = int((below + above) / step_for(precision)) + 2
    step = (below + above) / (nodes - 1)
    short = max(below, above) < 0.3
    half = -0.5 / v
    total, first, second, change, square = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(nodes):
        d = step * j - below
        e = _exp(d)
        w = _exp(half * d * d - rate * (bend(d) if short else e - 1.0 - d))
        c = rate * (e - 1.0)
        total += w
        first += w * d
        second += w * (d * d)
        change += w * c
        square += w * (c * c)
    log_z = _log_density(y, mode) - 0.5 * v * off * off + math.log(total * step)
    log_z -= 0.5 * log_v + LOG_ROOT_2PI
    if many:  # mean and variance of f are what does not cancel
        mean = first / total
        return log_z, off + mean / v, ((second / total - mean * mean) / v - 1.0) / v
    mean = change / total
    return log_z, off - mean, square / total - mean * mean - (rate + mean)


@njit(_Three(float64, float64, float64), **MAP)
def poisson(y, m, v):  # type: ignore[no-untyped-def]
    """log Z, q and r of Z = E[exp(y f - exp(f))]/y!, f ~ N(m, v).

    exp(y f) N(f; m, v) is a Gaussian again, y v further on. What is left is a step, which is
    averaged as one where the Gaussian is wide and reaches below it.
    """
    if v <= _NARROWEST:
        rate = math.exp(m)
        return _log_density(y, m), y - rate, -rate
    moved = m + y * v
    if v > _WIDEST and moved < 0.5 * v:
        log_z, q, r = wide(-moved, v, _FIRST, _STEP, _LEFT, _SLOPE)
        log_z += y * (m + 0.5 * y * v) - math.lgamma(y + 1.0)
        return log_z, y - q, min(r, 0.0)
    log_z, q, r = _peaked(y, m, v)
    return log_z, q, min(r, 0.0)
