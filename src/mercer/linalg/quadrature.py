"""Integrals of a function of one Gaussian variable, many at a time.

For rows i = 1..n, with f = mean_i + sd_i z and z standard normal:

* :func:`smoothed` gives log Z_i = log E[p_i(f)] and its first two derivatives in mean_i;
* :func:`expectation` gives E[g_i(f)].

Each integrand gets a rule of its own. Its mode is found by a search that needs no derivatives,
the line is cut at the mode, at the distances where the integrand has vanished, at +-9 standard
deviations and at the knots that the caller names, and every piece is integrated by Gauss-Legendre
panels that are halved until the halves agree with the whole. That serves a likelihood a million
times narrower than the Gaussian, or centred a thousand standard deviations away, where a fixed
Gauss-Hermite rule sees nothing.

A mode is found for certain if the log integrand is concave, or has one peak near the Gaussian's
centre. Functions with other narrow peaks must name them as knots; kinks and jumps are found
anyway, and cost less if they are named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["expectation", "smoothed"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# (rows of shape (k, 1), f of shape (k, q)) -> values of shape (k, q)
RowFunction = Callable[[Rows, Floats], Floats]
# (rows, z) -> log |integrand|, its sign
LogFunction = Callable[[Rows, Floats], tuple[Floats, Floats]]

# Rows handled together: about 10 MB of nodes.
_BLOCK = 1024
# Beyond this many standard deviations the Gaussian holds less than 1e-18.
_REACH = 9.0
# exp(-45) < 3e-20: an integrand that far below its top has vanished.
_DROP = 45.0
# Two levels of panels must agree to this part of the whole. The finer one is kept, whose error is
# smaller still: it is the square or so of this for a smooth integrand.
_TOLERANCE = 1e-11
# 60 halvings locate an unnamed jump to rounding.
_LEVELS = 60
# At most so many panels of a row are halved at once: rounding in f can imitate roughness.
_PANELS = 64
_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(16)
# Just inside the two ends the rule has nodes of weight 0, to see what hides there.
_NODES = np.concatenate([[-1.0 + 1e-9], _GAUSS, [1.0 - 1e-9]])
_WEIGHTS = np.concatenate([[0.0], _GAUSS_WEIGHTS, [0.0]])
# The values at the ends of the polynomial through the Gauss nodes.
_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(_GAUSS, 15).T,
    np.polynomial.legendre.legvander(_NODES[[0, -1]], 15).T,
)
# Distances at which a peak is looked for, in standard deviations: 2^-44 to 2^30, by factors of 4.
_STEPS = 2.0 ** np.arange(-44, 31, 2)
_LADDER = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
_GOLDEN = 0.5 * (3.0 - np.sqrt(5.0))
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


class _Rule(NamedTuple):
    """The nodes of all rows, one after another."""

    row: Rows
    z: Floats
    weight: Floats  # of the panel rule
    value: Floats  # the integrand over exp(top)
    top: Floats  # (n,) the log of the integrand's largest absolute value

    def sum(self, *factors: Floats) -> Floats:
        """Integrate the product of the factors, given at the nodes, for each row."""
        product = self.weight
        for factor in factors:
            product = product * factor
        return _row_sums(self.row, product, self.top.size)


def smoothed(
    log_density: RowFunction, mean: Floats, var: Floats, knots: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return log E[p(f)] for f ~ N(mean, var), and its first two derivatives in the mean.

    With <.> the average under p(f) N(f; mean, var) / Z and z = (f - mean)/sd, these are
    log Z, <z>/sd and (<z^2> - <z>^2 - 1)/var: q and r of (SOGP 2.7).

    Parameters
    ----------
    log_density : callable (rows (k, 1), f (k, q)) -> (k, q)
        log p of the rows that are numbered, at f. -inf and NaN stand for density 0.
    mean, var : arrays of shape (n,)
        The Gaussians; the variances must be positive.
    knots : array of shape (n, j), optional
        Values of f at which log p has a kink, a jump or a peak that is far from the mean.

    Returns
    -------
    log_z, first, second : arrays of shape (n,)
        Good to 1e-8: log Z absolutely (and so Z relatively), the derivatives in units of 1/sd
        and 1/var. Where Z is 0 they are -inf, NaN and NaN.
    """
    sd = np.sqrt(var)
    out = np.empty((3, mean.size))
    for block in _blocks(mean.size):
        out[:, block] = _smoothed_block(log_density, mean[block], sd[block], knots, block)
    return out[0], out[1] / sd, out[2] / var


def expectation(
    function: RowFunction, mean: Floats, var: Floats, knots: Floats | None = None
) -> Floats:
    """Return E[g(f)] for f ~ N(mean, var), shape (n,).

    Parameters are those of :func:`smoothed`, but for `function`, which gives g itself, of any
    sign; a variance may be 0. Where g is infinite or NaN at the mean, that value is returned.
    """
    sd = np.sqrt(var)
    out = np.empty(mean.size)
    for block in _blocks(mean.size):
        m, s, start = mean[block], sd[block], block.start

        def integrand(
            row: Rows, z: Floats, m: Floats = m, s: Floats = s, start: int = start
        ) -> tuple[Floats, Floats]:
            g = function(row + start, m[row] + s[row] * z)
            return np.log(np.abs(g)) - 0.5 * z**2 - _LOG_ROOT_2PI, np.sign(g)

        rule = _adapted(integrand, m.size, _in_z(knots, m, s, block))
        with np.errstate(all="ignore"):
            total = np.exp(rule.top) * rule.sum(rule.value)
            centre = function(np.arange(m.size)[:, None] + start, m[:, None])[:, 0]
        # What is infinite or undefined at the centre has no expectation that is finite.
        out[block] = np.where(np.isfinite(centre), np.where(total == 0, 0.0, total), centre)
    return out


def _row_sums(row: Rows, values: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(row, values, minlength=n), dtype=float)


def _blocks(n: int) -> list[slice]:
    return [slice(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]


def _in_z(knots: Floats | None, mean: Floats, sd: Floats, block: slice) -> Floats:
    """Return the knots of a block of rows in standard deviations from the mean."""
    if knots is None:
        return np.empty((mean.size, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (knots[block] - mean[:, None]) / sd[:, None]
    # A variance of 0 puts every knot out of reach.
    return np.where(np.isfinite(z), z, 0.0)


def _smoothed_block(
    log_density: RowFunction, mean: Floats, sd: Floats, knots: Floats | None, block: slice
) -> tuple[Floats, Floats, Floats]:
    """Return log Z, <z> and <z^2> - <z>^2 - 1 for a block of rows."""

    def log_p(row: Rows, z: Floats) -> Floats:
        return log_density(row + block.start, mean[row] + sd[row] * z)

    def integrand(row: Rows, z: Floats) -> tuple[Floats, Floats]:
        return log_p(row, z) - 0.5 * z**2 - _LOG_ROOT_2PI, np.ones_like(z)

    n = mean.size
    rule = _adapted(integrand, n, _in_z(knots, mean, sd, block))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = rule.sum(rule.value)
        log_z = np.where(rule.top == -np.inf, -np.inf, rule.top + np.log(total))
        first = rule.sum(rule.value, rule.z) / total
        centred = rule.z - first[rule.row]
        second = rule.sum(rule.value, centred**2) / total - 1.0

        # Where p hardly changes over the Gaussian, <z> and <z^2> - 1 are small differences. Since
        # E[z] = E[z^2 - 1] = 0, p may be replaced by p - p(mean), which loses nothing.
        weak = (np.abs(first) < 0.5) & (np.abs(second) < 0.5)
        rows = np.arange(n)
        at_mean = log_p(rows[:, None], np.zeros((n, 1)))[:, 0]
        log_ratio = log_p(rule.row[:, None], rule.z[:, None])[:, 0] - at_mean[rule.row]
        rho = np.expm1(log_ratio) * np.exp(-0.5 * rule.z**2 - _LOG_ROOT_2PI)
        change = rule.sum(rho)
        mean_z = rule.sum(rho, rule.z) / (1.0 + change)
        mean_z2 = rule.sum(rho, rule.z**2 - 1.0) / (1.0 + change)
        weak &= np.isfinite(mean_z) & np.isfinite(mean_z2) & (change > -1.0)
        log_z = np.where(weak, at_mean + np.log1p(change), log_z)
    return log_z, np.where(weak, mean_z, first), np.where(weak, mean_z2 - mean_z**2, second)


def _adapted(integrand: LogFunction, n: int, knots: Floats) -> _Rule:
    """Return nodes and weights that integrate n integrands, given by their logarithms."""

    def quiet(row: Rows, z: Floats) -> tuple[Floats, Floats]:
        # The search goes far out, where functions overflow; what is not finite does not count.
        with np.errstate(all="ignore"):
            log_value, sign = integrand(row, z)
        return np.where(np.isfinite(log_value), log_value, -np.inf), sign

    cuts, top = _cuts(quiet, n, knots)
    row = np.repeat(np.arange(n), cuts.shape[1] - 1)
    a, b = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
    some = b > a
    row, a, b = row[some], a[some], b[some]
    whole, _ = _integral(_panel(quiet, top, row, a, b)[2], a, b)
    scale = np.zeros(n)
    parts: list[tuple[Rows, Floats, Floats, Floats]] = []
    for level in range(_LEVELS):
        middle = 0.5 * (a + b)
        halves = _panel(quiet, top, row, a, middle), _panel(quiet, top, row, middle, b)
        left, hidden_left = _integral(halves[0][2], a, middle)
        right, hidden_right = _integral(halves[1][2], middle, b)
        if level == 0:
            scale = _row_sums(row, np.abs(left) + np.abs(right), n)
        error = np.maximum(np.abs(left + right - whole), np.maximum(hidden_left, hidden_right))
        split = (error > _TOLERANCE * scale[row]) & (middle > a) & (middle < b)
        split &= np.bincount(row[split], minlength=n)[row] <= _PANELS
        if level == _LEVELS - 1:
            split[:] = False
        for z, weight, value in halves:
            nodes = np.repeat(row[~split], _NODES.size)
            kept = [v[~split].ravel() for v in (z, weight, value)]
            parts.append((nodes, kept[0], kept[1], kept[2]))
        if not split.any():
            break
        row, a, b, middle = np.tile(row[split], 2), a[split], b[split], middle[split]
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        whole = np.concatenate([left[split], right[split]])
    rows, z, weight, value = (np.concatenate(p) for p in zip(*parts, strict=True))
    return _Rule(rows, z, weight, value, top)


def _panel(
    integrand: LogFunction, top: Floats, row: Rows, a: Floats, b: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return nodes, weights and values over exp(top) on the intervals (a, b), each (k, q)."""
    half = 0.5 * (b - a)[:, None]
    z = 0.5 * (a + b)[:, None] + half * _NODES
    log_value, sign = integrand(row[:, None], z)
    scale = np.where(np.isfinite(top), top, 0.0)[row][:, None]
    return z, half * _WEIGHTS, sign * np.exp(np.minimum(log_value - scale, _DROP))


def _integral(value: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the integrals over (a, b), and what may hide between an end and the nearest node.

    A jump, or a smooth change over a short length, that lies there escapes every Gauss rule; but
    the value at the end then differs from the extrapolated one.
    """
    half = 0.5 * (b - a)
    surprise = np.abs(value[:, [0, -1]] - value[:, 1:-1] @ _ENDS).max(axis=1)
    return half * (value @ _WEIGHTS), half * _GAUSS_WEIGHTS[0] * surprise


def _cuts(integrand: LogFunction, n: int, knots: Floats) -> tuple[Floats, Floats]:
    """Return the places at which the line is cut (n, c), sorted, and the log of the top (n,)."""
    starts = np.concatenate([np.zeros((n, 1)), knots], axis=1)
    found = [_peak(integrand, start) for start in starts.T]
    top = np.max([height for _, height in found], axis=0)
    fixed = np.broadcast_to([-_REACH, 0.0, _REACH], (n, 3))
    cuts = [fixed, knots]
    rows = np.arange(n)
    for peak, _ in found:
        around = peak[:, None] + _LADDER
        live = integrand(rows[:, None], around)[0] > (top - _DROP)[:, None]
        live[:, _LADDER.size // 2] = True
        # The furthest step at which the integrand lives, and one more.
        first = np.maximum(np.argmax(live, axis=1) - 1, 0)
        last = np.minimum(_LADDER.size - np.argmax(live[:, ::-1], axis=1), _LADDER.size - 1)
        cuts += [peak[:, None], around[rows, first][:, None], around[rows, last][:, None]]
    return np.sort(np.concatenate(cuts, axis=1), axis=1), top


def _peak(integrand: LogFunction, start: Floats) -> tuple[Floats, Floats]:
    """Climb from the start: return a maximum of each log integrand (within 1/2), and its height."""
    rows = np.arange(start.size)

    def height(z: Floats) -> Floats:
        return integrand(rows[:, None], z[:, None])[0][:, 0]

    ladder = start[:, None] + _LADDER
    heights = integrand(rows[:, None], ladder)[0]
    best = np.argmax(heights, axis=1)
    below, above = np.maximum(best - 1, 0), np.minimum(best + 1, _LADDER.size - 1)
    a, x, b = ladder[rows, below], ladder[rows, best], ladder[rows, above]
    ha, hx, hb = heights[rows, below], heights[rows, best], heights[rows, above]
    # Golden section, the best point always inside. Points that are level with it at both ends
    # bound the height of a concave function.
    for _ in range(100):
        with np.errstate(invalid="ignore"):
            wide = b - a > 4 * np.finfo(float).eps * np.abs(x)
            if not np.any(wide & (hx - np.minimum(ha, hb) > 0.5)):
                break
        right = b - x > x - a
        u = np.where(right, x + _GOLDEN * (b - x), x - _GOLDEN * (x - a))
        hu = height(u)
        up = hu > hx
        # The probe becomes the best point, or the end on its side.
        a, ha = (
            np.where(up, np.where(right, x, a), np.where(right, a, u)),
            np.where(up, np.where(right, hx, ha), np.where(right, ha, hu)),
        )
        b, hb = (
            np.where(up, np.where(right, b, x), np.where(right, u, b)),
            np.where(up, np.where(right, hb, hx), np.where(right, hu, hb)),
        )
        x, hx = np.where(up, u, x), np.where(up, hu, hx)
    return x, hx
