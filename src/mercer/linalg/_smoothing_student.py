"""Compiled averages of Student's t noise over a Gaussian."""

from __future__ import annotations

import math

from numba import float64, njit, types

from mercer.linalg._elementary import MAP, SUM
from mercer.linalg._elementary import exp as _exp
from mercer.linalg._smoothing_gamma import reaches, step_for

# What is so far below the top, by its logarithm, is worth nothing.
_DROP = 37.0
# Nodes at which the integrand is looked at before it is summed.
_LOOKS = 48
_FURTHEST = 1e150


@njit(float64(float64, float64, float64, float64, float64), **MAP)
def _height(n, square, v, log_v, u):  # type: ignore[no-untyped-def]
    """The logarithm of the integrand, to 0.4."""
    e = _exp(u)
    b = e / (1.0 + v * e)
    return 0.5 * (min(u, -log_v) - square * b - n * (e - 1.0 - u))


@njit(types.UniTuple(float64, 3)(float64, float64, float64, float64), **MAP)
def _window(n, square, v, log_v):  # type: ignore[no-untyped-def]
    """Where the integrand lives: from, to, and the logarithm of its top, to 10 or so.

    All its peaks are where n/(n + t^2) <= c <= (n + 1)/n. From there it falls at least as
    exp(-n/2 (e^u - 1 - u)) does from 0. Its curvature at a peak is (n + 1)/2 at most.
    """
    below, above = reaches(2.0 * _DROP / n)
    low, high = -math.log1p(square / n) - below, math.log1p(1.0 / n) + above
    top = 0.0
    for _ in range(20):
        step = (high - low) / (_LOOKS - 1)
        hidden = 0.5 * (n + 1.0) * min(0.5 * step * step, step)
        best, top = 0, -math.inf
        for j in range(_LOOKS):
            height = _height(n, square, v, log_v, low + step * j)
            if height > top:
                best, top = j, height
        least = top - _DROP - hidden
        first, last = 0, _LOOKS - 1
        while first + 1 < best and (_height(n, square, v, log_v, low + step * (first + 1)) < least):
            first += 1
        while last - 1 > best and _height(n, square, v, log_v, low + step * (last - 1)) < least:
            last -= 1
        low, high = low + step * first, low + step * last
        if hidden < 8.0:
            break
    return low, high, top


@njit(types.UniTuple(float64, 3)(float64, float64, float64), **SUM)
def student(n, t, v):  # type: ignore[no-untyped-def]
    """log Z, q and r for the residual t in units of the scale, less a constant in n.

    Given its precision c, the noise is Gaussian, and Z the average of N(t; 0, v + 1/c) over
    c ~ Gamma(n/2, n/2): that of u = log c is exp(-n/2 (e^u - 1 - u)), and the average as smooth as
    that for any v, narrow or wide. With a and b slope and curvature of the logarithm of N,
    q = <a> and r = <b> + Var(a).
    """
    t = max(min(t, _FURTHEST), -_FURTHEST)
    square = t * t
    log_v = math.log(v) if v > 0.0 else -_FURTHEST
    low, high, top = _window(n, square, v, log_v)
    nodes = int((high - low) / step_for(0.5 * (n + 1.0))) + 2
    step = (high - low) / (nodes - 1)
    e = math.exp(0.5 * (low + high))
    at = e / (1.0 + v * e)  # slopes are taken from there
    total, first, second, curvature = 0.0, 0.0, 0.0, 0.0
    for j in range(nodes):
        u = low + step * j
        e = _exp(u)
        b = e / (1.0 + v * e)
        w = math.sqrt(b) * _exp(-0.5 * (square * b + n * (e - 1.0 - u)) - top)
        total += w
        first += w * (b - at)
        second += w * (b - at) ** 2
        curvature += w * b
    mean = first / total
    spread = max(second / total - mean * mean, 0.0)
    log_z = top + math.log(total * step)
    return log_z, t * (at + mean), square * spread - curvature / total
