"""Solving increasing equations, many at a time: quantiles from distribution functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["bracket", "root"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# (rows (k,), x (k,)) -> values (k,), increasing in x
RowFunction = Callable[[Rows, Floats], Floats]

_EPS = float(np.finfo(float).eps)


def bracket(function: RowFunction, centre: Floats, width: Floats) -> tuple[Floats, Floats]:
    """Return low and high with function(low) <= 0 <= function(high), widening by doubling."""
    low, high = centre - width, centre + width
    for end, sign in ((low, -1.0), (high, 1.0)):
        step = width.copy()
        short = np.arange(centre.size)
        # 2000 doublings cover every float.
        for _ in range(2000):
            short = short[sign * function(short, end[short]) < 0]
            if short.size == 0:
                break
            with np.errstate(over="ignore"):
                step[short] *= 2.0
                end[short] += sign * step[short]
            if not np.all(np.isfinite(end[short])):
                raise ValueError("the quantile is too large for a floating-point number")
    return low, high


def root(function: RowFunction, low: Floats, high: Floats, tolerance: ArrayLike = 0.0) -> Floats:
    """Solve increasing equations g_i(x) = 0 with g_i(low_i) <= 0 <= g_i(high_i).

    Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
    interpolation where it is safe, halving where not. It ends with |g_i| at most `tolerance`,
    which has nothing to do with where x lies or how far g_i stretches; or where g_i jumps over
    0, with the upper of two neighbours.
    """
    rows = np.arange(low.size)
    # The root is between a, the newest point, and b; c is the point that a or b replaced.
    a, b = low.copy(), high.copy()
    fa, fb = function(rows, a), function(rows, b)
    t = np.full(low.size, 0.5)
    least_width = _EPS * high - _EPS * low  # a root at 0 has no size of its own
    for _ in range(2000):
        slack = least_width + 2.0 * _EPS * np.maximum(np.abs(a), np.abs(b))
        solved = np.minimum(np.abs(fa), np.abs(fb)) <= tolerance
        active = np.flatnonzero((np.abs(b - a) > slack) & ~solved)
        if active.size == 0:
            break
        ai, bi, fai, fbi = a[active], b[active], fa[active], fb[active]
        least = 0.5 * slack[active] / np.abs(bi - ai)
        x = ai + np.clip(t[active], least, 1.0 - least) * (bi - ai)
        fx = function(active, x)
        same = np.sign(fx) == np.sign(fai)
        ci, fci = np.where(same, ai, bi), np.where(same, fai, fbi)
        bi, fbi = np.where(same, bi, ai), np.where(same, fbi, fai)
        ai, fai = x, fx
        a[active], b[active], fa[active], fb[active] = ai, bi, fai, fbi
        with np.errstate(all="ignore"):
            place, drop = (ai - bi) / (ci - bi), (fai - fbi) / (fci - fbi)
            safe = (drop**2 < place) & ((1 - drop) ** 2 < 1 - place)
            inverse = fai / (fbi - fai) * fci / (fbi - fci)
            inverse += (ci - ai) / (bi - ai) * fai / (fci - fai) * fbi / (fci - fbi)
        t[active] = np.where(safe & np.isfinite(inverse), inverse, 0.5)
    best = np.where(np.abs(fa) < np.abs(fb), a, b)
    return np.where(solved, best, np.maximum(a, b))
