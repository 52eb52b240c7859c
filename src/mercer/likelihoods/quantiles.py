"""Solving increasing equations, many at a time: quantiles from distribution functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["bracket", "root"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# (rows (k,), x (k,)) -> values (k,), increasing in x
RowFunction = Callable[[Rows, Floats], Floats]


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


def root(function: RowFunction, low: Floats, high: Floats, tolerance: float = 1e-12) -> Floats:
    """Solve increasing equations g_i(x) = 0 with g_i(low_i) <= 0 <= g_i(high_i).

    Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
    interpolation where it is safe, halving where not. `tolerance` is relative to the size of x.
    """
    rows = np.arange(low.size)
    # The root is between a, the newest point, and b; c is the point that a or b replaced.
    a, b = low.copy(), high.copy()
    fa, fb = function(rows, a), function(rows, b)
    t = np.full(low.size, 0.5)
    for _ in range(2000):
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        slack = tolerance * np.abs(best) + np.finfo(float).tiny
        active = np.flatnonzero((np.abs(b - a) > slack) & (fa != 0) & (fb != 0))
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
    return np.where(np.abs(fa) < np.abs(fb), a, b)
