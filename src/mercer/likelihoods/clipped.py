"""Gaussian averages of Huber's density, which is Gaussian in the middle and exponential beyond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mercer.likelihoods.mills import gap, inverse
from mercer.likelihoods.normal import LOG_2PI

__all__ = ["Clipped", "smoothed"]

Floats = NDArray[np.float64]

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)


class Clipped(NamedTuple):
    """log E[h(z)] for z ~ N(u, v), and averages under the tilted density h(z) N(z; u, v).

    log h(z) is -z^2/2 for abs(z) <= k and k^2/2 - k abs(z) beyond: its derivative is minus
    clip(z), which is z within -k and k, and the nearer of the two beyond.
    """

    log_value: Floats
    slope: Floats  # E[clip(z)]: minus the derivative in u
    curvature: Floats  # the second derivative in u
    product: Floats  # E[z clip(z)]
    excess: Floats  # E[max(0, abs(z) - k)]


def smoothed(u: Floats, v: Floats, k: float) -> Clipped:
    """Average over z ~ N(u, v), v > 0.

    The line is cut at -k and k. With b = (k (1 + v) - abs(u))/sqrt(v (1 + v)), and c the same with
    + abs(u), the integrals over the tail beyond k, that below -k and the middle are phi(b) M(b t),
    phi(c) M(c t) and (Phi(b) - Phi(-c))/t, all times exp(-u^2/(2 t^2)): t^2 is 1 + v, and M Mills'
    ratio. The parts w of the whole give all the averages.
    """
    centre, sd, t = np.abs(u), np.sqrt(v), np.sqrt(1.0 + v)  # the average is even in u
    # (beyond 1e150 squares overflow, and nothing changes any more)
    b, c = (np.clip((k * t**2 + x) / (sd * t), -1e150, 1e150) for x in (-centre, centre))
    log_middle, inside, width = _middle(b, c, centre / t**2, sd / t, k)
    # exp(-u^2/(2 t^2)) is left out, being a factor of all parts: its rounding would not cancel.
    logs = np.stack([_log_tail(b, sd, t), _log_tail(c, sd, t), log_middle - np.log(t)])
    top = np.max(logs, axis=0)
    with np.errstate(invalid="ignore"):
        w = np.where(logs == top, 1.0, np.exp(logs - top))
    total = np.sum(w, axis=0)
    w /= total
    with np.errstate(over="ignore", divide="ignore"):
        # Beyond k the left-out factor is what cancels.
        outer = k * (0.5 * k * t**2 - centre) + log_ndtr(-b * t) - np.log(w[0])
        log_value = np.where(b < 0, outer, top + np.log(total) - 0.5 * (centre / t) ** 2)
    zero, ends = np.zeros(u.shape), np.full(u.shape, k)
    over = [sd * gap(b * t), sd * gap(c * t)]
    # Mean and variance of clip(z), and of z itself, in each part.
    clipped, spread = np.stack([ends, -ends, inside]), np.stack([zero, zero, width])
    mean = np.stack([k + over[0], -k - over[1], inside])
    var = np.stack([v * _tail_variance(b * t), v * _tail_variance(c * t), width])
    slope = np.sum(w * clipped, axis=0)
    # Two forms of the curvature: by the slopes, and by the spread where the Gaussian is wide and
    # what the slopes add up to would cancel.
    by_slopes = np.sum(w * (spread + (clipped - slope) ** 2), axis=0) - w[2]
    tilted = np.sum(w * (var + (mean - np.sum(w * mean, axis=0)) ** 2), axis=0)
    return Clipped(
        log_value,
        np.asarray(np.sign(u) * slope),
        np.where(v > 1.0, (tilted / v - 1.0) / v, by_slopes),
        np.asarray(np.sum(w * (clipped * mean + spread), axis=0)),
        np.asarray(w[0] * over[0] + w[1] * over[1]),
    )


def _log_tail(b: Floats, sd: Floats, t: Floats) -> Floats:
    """Return log[phi(b) M(b t)]; below 0 through Phi, M being huge there."""
    with np.errstate(over="ignore"):
        above = -0.5 * b**2 - 0.5 * LOG_2PI - np.log(inverse(np.maximum(b, 0.0) * t))
        below = 0.5 * (b * sd) ** 2 + log_ndtr(-np.minimum(b, 0.0) * t)
    return np.where(b < 0, below, above)


def _tail_variance(x: Floats) -> Floats:
    """Return the variance of a standard normal variable given that it is above x."""
    return np.asarray(1.0 - inverse(x) * gap(x))


def _middle(
    b: Floats, c: Floats, mean: Floats, sd: Floats, k: float
) -> tuple[Floats, Floats, Floats]:
    """Return log P(abs(z) <= k) for z ~ N(mean, sd^2), and mean and variance of z given that.

    The ends are -c and b in standard units.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(-c)
        log_p = np.where(upper == -np.inf, -np.inf, upper + np.log1p(-np.exp(lower - upper)))
        at_b, at_c = (np.exp(-0.5 * x**2 - 0.5 * LOG_2PI - log_p) for x in (b, c))
        off = at_c - at_b
        var = sd**2 * (1.0 - c * at_c - b * at_b - off**2)
        # A short interval, over which the density hardly changes: by Gauss's rule.
        e, centre = k / sd, mean / sd
        short = e * (1.0 + centre) < 1.0
        x = np.where(short, e, 0.0)[..., None] * _GAUSS
        p = np.exp(np.where(short, centre, 0.0)[..., None] * x - 0.5 * x**2) * _GAUSS_WEIGHTS
        whole = np.sum(p, axis=-1)
        first = np.sum(p * x, axis=-1) / whole
        second = np.sum(p * (x - first[..., None]) ** 2, axis=-1) / whole
        log_short = np.log(e * whole) - 0.5 * centre**2 - 0.5 * LOG_2PI
    # Far in a tail of the Gaussian, the middle is worth nothing and its moments are rounding.
    inside = np.clip(np.nan_to_num(np.where(short, sd * first, mean + sd * off), nan=k), -k, k)
    width = np.clip(np.nan_to_num(np.where(short, sd**2 * second, var)), 0.0, k**2)
    return np.where(short, log_short, log_p), inside, width
