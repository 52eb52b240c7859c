"""Compiled averages of noise with kinks: flat or Gaussian in the middle, exponential beyond.

The formulas are those of `mercer.likelihoods.dead_zone` and `mercer.likelihoods.clipped`: the line
is cut at the kinks, each part is kept by its logarithm, and the parts of the whole give the
derivatives.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit, types

from mercer.linalg._elementary import MAP
from mercer.linalg._smoothing_normal import LOG_ROOT_2PI, log_upper, tail

_Three = types.UniTuple(float64, 3)
_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)
# Beyond this squares overflow, and nothing changes any more.
_FURTHEST = 1e150
_NARROWEST = 1e-100


@njit(_Three(float64, float64), **MAP)
def _short(centre, e):  # type: ignore[no-untyped-def]
    """exp(centre^2/2) P(|t| <= e), mean and variance of t in there, for t ~ N(centre, 1).

    For e (1 + centre) < 1: by Gauss's rule, since differences of Phi would cancel.
    """
    total, first, second = 0.0, 0.0, 0.0
    for j in range(_GAUSS.size):
        t = e * _GAUSS[j]
        p = _GAUSS_WEIGHTS[j] * math.exp(t * (centre - 0.5 * t))
        total += p
        first += p * t
        second += p * (t * t)
    mean = first / total
    return e * total * math.exp(-LOG_ROOT_2PI), mean, second / total - mean * mean


@njit(_Three(float64, float64, float64, float64), **MAP)
def insensitive(epsilon, s, u, v):  # type: ignore[no-untyped-def]
    """log E[exp(-max(0, |t| - epsilon)/s)] for t ~ N(u, v), and its derivatives in -u."""
    sd = math.sqrt(v)
    if sd <= _NARROWEST * max(s, abs(u)):
        over = max(abs(u) - epsilon, 0.0)
        return -over / s, (math.copysign(1.0 / s, u) if over > 0.0 else 0.0), 0.0
    a, centre, e = sd / s, abs(u) / sd, epsilon / sd
    near, far = centre - e, centre + e  # the part beyond -epsilon ends at -far
    log_q, h_near, g_near = tail(a - near)
    _, h_far, g_far = tail(a + far)
    # exp(-centre^2/2) is left out where it is a factor of all parts: its rounding would not cancel.
    shared = near < a
    left_out = 0.5 * centre * centre
    back = 0.0 if shared else left_out
    up, down = e * (centre - 0.5 * e), -e * (centre + 0.5 * e)  # the rest of near^2/2 and far^2/2
    log_near = up - LOG_ROOT_2PI - math.log(h_near) if shared else a * (0.5 * a - near) + log_q
    log_far = down - LOG_ROOT_2PI - math.log(h_far) - back
    is_short = e * (1.0 + centre) < 1.0
    log_flat, inside = -math.inf, 0.0
    if is_short and e > 0.0:
        whole, inside, _ = _short(centre, e)
        log_flat = math.log(whole) - back
    elif e > 0.0:
        lower = down - LOG_ROOT_2PI - math.log(tail(far)[1])
        if near > 0.0:
            upper = up - LOG_ROOT_2PI - math.log(tail(near)[1])
        else:
            upper = log_upper(near) + left_out
        log_flat = upper + math.log1p(-math.exp(lower - upper)) - back
    top = max(log_near, log_far, log_flat)
    w_near, w_far = math.exp(log_near - top), math.exp(log_far - top)
    w_flat = math.exp(log_flat - top)
    total = w_near + w_far + w_flat
    w_near, w_far, w_flat = w_near / total, w_far / total, w_flat / total
    outside, tilt = w_near + w_far, w_near - w_far
    if a > 1.0 and shared and near < a - 1.0:
        # The variance of the slope and what the kinks add, less what these two share.
        over = w_near * g_near + w_far * g_far
        mean = centre - a * tilt  # of t/sd
        if is_short:
            mean = w_near * (e + g_near) - w_far * (e + g_far) + w_flat * inside
            tilt = (centre - mean) / a  # the same, and what cancels in it is small
        second = (tilt * mean - (outside * e + over)) / a
    else:
        second = w_flat * outside + 4.0 * w_near * w_far - (w_near * h_near + w_far * h_far) / a
    log_z = top + math.log(total) - (left_out if shared else 0.0)
    r = max(min(second / (s * s), 0.0), -1.0 / v)
    return log_z, math.copysign(tilt / s, u), r


@njit(_Three(float64, float64), **MAP)
def _middle(b, c):  # type: ignore[no-untyped-def]
    """log P(-c <= x <= b) for a standard normal x, and mean and variance of x in there."""
    upper, lower = log_upper(-b), log_upper(c)
    log_p = upper + math.log1p(-math.exp(lower - upper)) if upper > -math.inf else -math.inf
    if log_p == -math.inf:
        return log_p, b, 0.0
    at_b = math.exp(-0.5 * b * b - LOG_ROOT_2PI - log_p)
    at_c = math.exp(-0.5 * c * c - LOG_ROOT_2PI - log_p)
    off = at_c - at_b
    return log_p, off, 1.0 - c * at_c - b * at_b - off * off


@njit(_Three(float64, float64, float64), **MAP)
def clipped(k, u, v):  # type: ignore[no-untyped-def]
    """log E[h(z)] for z ~ N(u, v), and its derivatives in -u.

    log h(z) is -z^2/2 for abs(z) <= k and k^2/2 - k abs(z) beyond.
    """
    centre = abs(u)
    if v == 0.0:
        inside = min(centre, k)
        curvature = -1.0 if centre <= k else 0.0
        return -0.5 * inside * inside - k * (centre - inside), math.copysign(inside, u), curvature
    sd, t = math.sqrt(v), math.sqrt(1.0 + v)
    b = max(min((k * t - centre / t) / sd, _FURTHEST), -_FURTHEST)
    c = min((k * t + centre / t) / sd, _FURTHEST)
    log_q, h_near, g_near = tail(b * t)
    _, h_far, g_far = tail(c * t)
    # exp(-u^2/(2 t^2)) is left out, being a factor of all parts: its rounding would not cancel.
    if b < 0.0:
        log_near = 0.5 * (b * sd) ** 2 + log_q
    else:
        log_near = -0.5 * b * b - LOG_ROOT_2PI - math.log(h_near)
    log_far = -0.5 * c * c - LOG_ROOT_2PI - math.log(h_far)
    # The middle is N(centre/t^2, (sd/t)^2) between -k and k.
    narrow = sd / t
    e, at = k / narrow, centre / (t * sd)
    if e * (1.0 + at) < 1.0:
        whole, inside, width = _short(at, e)
        log_middle = math.log(whole) - 0.5 * at * at
        inside *= narrow
    else:
        log_middle, inside, width = _middle(b, c)
        inside = centre / (t * t) + narrow * inside
    # Far in a tail of the Gaussian the middle is worth nothing, and its moments are rounding.
    inside = max(min(inside, k), -k)
    width = max(min(narrow * narrow * width, k * k), 0.0)
    log_middle -= math.log(t)
    top = max(log_near, log_far, log_middle)
    w_near, w_far = math.exp(log_near - top), math.exp(log_far - top)
    w_middle = math.exp(log_middle - top)
    total = w_near + w_far + w_middle
    w_near, w_far, w_middle = w_near / total, w_far / total, w_middle / total
    if b < 0.0:  # beyond k the left-out factor is what cancels
        log_z = k * (0.5 * k * t * t - centre) + log_q - math.log(w_near)
    else:
        log_z = top + math.log(total) - 0.5 * (centre / t) ** 2
    slope = k * (w_near - w_far) + w_middle * inside
    if v > 1.0:
        # By the spread of z: what the slopes add up to would cancel.
        z_near, z_far = k + sd * g_near, -k - sd * g_far
        mean = w_near * z_near + w_far * z_far + w_middle * inside
        spread = w_near * (1.0 - h_near * g_near) + w_far * (1.0 - h_far * g_far)
        spread = v * spread + w_middle * (width + (inside - mean) ** 2)
        spread += w_near * (z_near - mean) ** 2 + w_far * (z_far - mean) ** 2
        curvature = (spread / v - 1.0) / v
        if b > 0.0:
            slope = (centre - mean) / v
    else:
        curvature = w_near * (k - slope) ** 2 + w_far * (k + slope) ** 2
        curvature += w_middle * (width + (inside - slope) ** 2 - 1.0)
    return log_z, math.copysign(slope, u), max(min(curvature, 0.0), -1.0 / v)
