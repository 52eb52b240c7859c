"""Gaussian averages of the noise that is flat for abs(t) <= epsilon and exponential beyond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from mercer.likelihoods.mills import gap, inverse
from mercer.likelihoods.normal import LOG_2PI

__all__ = ["Excess", "Smoothed", "expected_excess", "smoothed"]

Floats = NDArray[np.float64]

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)


class Smoothed(NamedTuple):
    """log E[exp(-max(0, abs(t) - epsilon)/s)] for t ~ N(u, var), and what follows from it."""

    log_value: Floats
    first: Floats  # derivative in u, times s
    second: Floats  # second derivative in u, times s^2
    outside: Floats  # P(abs(t) > epsilon) under the tilted density
    excess: Floats  # E[max(0, abs(t) - epsilon)] under it, over s


def smoothed(u: Floats, var: Floats, epsilon: float, s: float) -> Smoothed:
    """Average over t ~ N(u, var), var > 0.

    The line is cut at -epsilon and epsilon. With a = sd/s and x = (abs(u) - epsilon)/sd, the part
    beyond epsilon is exp(a^2/2 - a x) Phi(x - a) = phi(x) M(a - x), M being Mills' ratio; each
    part is kept by its logarithm, and the parts w of the whole give all the derivatives.
    """
    sd = np.sqrt(var)
    a = sd / s
    centre, e = np.abs(u) / sd, epsilon / sd  # the average is even in u
    near, far = centre - e, -centre - e
    # exp(-centre^2/2) is left out where it is a factor of all parts: its rounding would not cancel.
    shared = near < a
    flat = _interval(centre, e, shared)
    log_near = _log_tail(near, a, e * (centre - 0.5 * e), shared)
    log_far = _log_tail(far, a, -e * (centre + 0.5 * e), shared)
    top = np.maximum(np.maximum(log_near, log_far), flat.log_value)
    parts = [np.exp(part - top) for part in (log_near, log_far, flat.log_value)]
    total = parts[0] + parts[1] + parts[2]
    w_near, w_far, w_flat = (part / total for part in parts)
    outside, tilt = w_near + w_far, w_near - w_far
    h_near, h_far = gap(a - near), gap(a - far)
    # The variance of the slope and what the kinks add. Where the Gaussian is wide these two
    # cancel; the second form has taken off what they share. `mean` is that of t/sd.
    plain = w_flat * outside + 4.0 * w_near * w_far
    plain -= (w_near * inverse(a - near) + w_far * inverse(a - far)) / a
    mean = w_near * (e + h_near) - w_far * (e + h_far) + w_flat * flat.mean
    mean = np.where(flat.short, mean, centre - a * tilt)
    wide = (tilt * mean - (outside * e + w_near * h_near + w_far * h_far)) / a
    with np.errstate(over="ignore"):
        log_shared = np.where(shared, -0.5 * centre**2, 0.0)
    return Smoothed(
        np.asarray(log_shared + top + np.log(total)),
        np.asarray(-np.sign(u) * tilt),
        np.where((a > 1.0) & (near < a - 1.0), wide, plain),
        np.asarray(outside),
        np.asarray(a * (w_near * h_near + w_far * h_far)),
    )


class Excess(NamedTuple):
    """E[x] for x = max(0, abs(t) - epsilon) and t ~ N(u, var), and what goes with it."""

    value: Floats
    first: Floats  # derivative in u
    in_var: Floats  # derivative in var
    outside: Floats  # P(abs(t) > epsilon)
    signed: Floats  # E[x sign(t)]
    square: Floats  # E[x^2]


def expected_excess(u: Floats, var: Floats, epsilon: float) -> Excess:
    """Average over t ~ N(u, var). Without variance it is the function with its own derivatives."""
    some = var > 0
    sd = np.sqrt(np.where(some, var, 1.0))
    value, first, in_var, outside, signed, square = np.zeros((6, *u.shape))
    for sign in (1.0, -1.0):
        over = sign * u - epsilon
        x = over / sd
        beyond = np.where(some, ndtr(x), np.where(over > 0, 1.0, 0.0))
        # sd (phi + x Phi), which cancels far below
        part = np.where(some, sd * beyond * gap(-x), np.maximum(over, 0.0))
        value += part
        signed += sign * part
        square += var * beyond + over * part
        first += sign * beyond
        outside += beyond
        with np.errstate(over="ignore"):
            in_var += 0.5 * np.exp(-0.5 * x**2 - 0.5 * LOG_2PI) / sd
    return Excess(value, first, np.where(some, in_var, 0.0), outside, signed, square)


def _log_tail(x: Floats, a: Floats, shift: Floats, shared: NDArray[np.bool_]) -> Floats:
    """Return log[exp(a^2/2 - a x) Phi(x - a)], plus centre^2/2 where that is `shared`.

    `shift` is (centre^2 - x^2)/2.
    """
    below = np.minimum(x - a, 0.0)  # there phi(x) M(a - x), so that squares of a do not cancel
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.where(shared, shift, -0.5 * x**2)
        inner = exponent - 0.5 * LOG_2PI - np.log(inverse(-below))
        outer = a * (0.5 * a - x) + log_ndtr(np.maximum(x - a, 0.0))
    return np.where(x < a, inner, outer)


class _Interval(NamedTuple):
    """P(abs(t) <= e) for t ~ N(centre, 1)."""

    log_value: Floats  # plus centre^2/2 where that is shared
    short: NDArray[np.bool_]
    mean: Floats  # of t in there, where the interval is short


def _interval(centre: Floats, e: Floats, shared: NDArray[np.bool_]) -> _Interval:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        square = 0.5 * centre**2
        upper, lower = log_ndtr(e - centre), log_ndtr(-e - centre)
        out = np.where(upper == -np.inf, -np.inf, upper + np.log1p(-np.exp(lower - upper)))
        out = out + np.where(shared, square, 0.0)
        # A short interval: phi(centre) times the integral of exp(centre t - t^2/2).
        short = e * (1.0 + centre) < 1.0
        t = np.where(short, e, 0.0)[..., None] * _GAUSS
        p = np.exp(np.where(short, centre, 0.0)[..., None] * t - 0.5 * t**2) * _GAUSS_WEIGHTS
        whole = np.sum(p, axis=-1)
        narrow = np.log(e * whole) - np.where(shared, 0.0, square) - 0.5 * LOG_2PI
    return _Interval(np.where(short, narrow, out), short, np.sum(p * t, axis=-1) / whole)
