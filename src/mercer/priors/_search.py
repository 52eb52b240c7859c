"""Maxima of a smooth function plus the log density of ln s, for many coefficients at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["REACH", "Table", "maximise", "peaks"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: A function of t = ln s (k, j) for the rows (k,) that gives values and derivatives.
Part = Callable[[Floats, Indices], tuple[Floats, Floats]]
OfLog = Callable[[Floats], Floats]

#: Precisions are looked for from exp(-REACH) to exp(REACH), 1e-100 to 1e100.
REACH = 230.0
_STEP = 0.5
_PARTS = 9  # points of a bracket when it is made smaller
_ZOOMS = 4
_ROUNDS = 60
_BLOCK = 2_000_000  # values held at once
_TOL = 1e-13


class Table(NamedTuple):
    """The log density of t at places that miss no peak of it.

    t, value : (k,)
    """

    t: Floats
    value: Floats

    @classmethod
    def of(cls, log_h: OfLog) -> Table:
        """Return the values of log_h on a grid, made finer around each of its peaks."""
        t = np.linspace(-REACH, REACH, int(2 * REACH / _STEP) + 1)
        near = 2.0 ** np.arange(-1, -16, -1)
        found = peaks(log_h, t)
        t = np.unique(
            np.concatenate([t, found, *(m + near for m in found), *(m - near for m in found)])
        )
        t = t[np.abs(t) <= REACH]
        return cls(t, log_h(t))


def peaks(log_h: OfLog, t: Floats) -> Floats:
    """Return the local maxima of log_h within an ascending grid, which must show them."""
    value = log_h(t)
    inner = np.flatnonzero((value[1:-1] > value[:-2]) & (value[1:-1] >= value[2:])) + 1
    low, high = t[inner - 1], t[inner + 1]
    parts = np.linspace(0.0, 1.0, _PARTS)
    for _ in range(12):
        places = low[:, None] + (high - low)[:, None] * parts
        best = np.clip(np.argmax(log_h(places), axis=1), 1, _PARTS - 2)
        rows = np.arange(len(inner))
        low, high = places[rows, best - 1], places[rows, best + 1]
    return np.asarray(0.5 * (low + high))


def maximise(part: Part, n: int, table: Table, log_h: OfLog, slope: OfLog) -> tuple[Floats, Floats]:
    """Return where part + log_h is greatest for each of n rows, (n,), and the values, (n,).

    Infinite where that is the end of the table.
    """
    t, value = np.empty(n), np.empty(n)
    block = max(1, _BLOCK // len(table.t))
    for start in range(0, n, block):
        rows = np.arange(start, min(start + block, n), dtype=np.intp)
        t[rows], value[rows] = _of_block(part, rows, table, log_h, slope)
    return t, value


def _of_block(
    part: Part, rows: Indices, table: Table, log_h: OfLog, slope: OfLog
) -> tuple[Floats, Floats]:
    n, last = len(rows), len(table.t) - 1
    every = np.arange(n)
    value = part(np.broadcast_to(table.t, (n, last + 1)), rows)[0] + table.value
    best = np.argmax(value, axis=1)
    ends = best == last
    low, high = table.t[np.maximum(best - 1, 0)], table.t[np.minimum(best + 1, last)]

    # Smaller brackets by values, which leaves one maximum in each; then the root of the slope.
    parts = np.linspace(0.0, 1.0, _PARTS)
    for _ in range(_ZOOMS):
        places = low[:, None] + (high - low)[:, None] * parts
        value = part(places, rows)[0] + log_h(places)
        best = np.argmax(value, axis=1)
        low = places[every, np.maximum(best - 1, 0)]
        high = places[every, np.minimum(best + 1, _PARTS - 1)]

    def derivative(t: Floats) -> Floats:
        return np.asarray(part(t[:, None], rows)[1][:, 0] + slope(t))

    t = _root(derivative, low, high)
    reached = part(t[:, None], rows)[0][:, 0] + log_h(t)
    return np.where(ends, np.inf, t), reached


def _root(derivative: OfLog, low: Floats, high: Floats) -> Floats:
    """Return where the derivative falls through 0, by false positions that are made to move."""
    f_low, f_high = derivative(low), derivative(high)
    side = np.zeros(len(low))
    t = 0.5 * (low + high)
    for turn in range(_ROUNDS):
        sound = (f_low > 0) & (f_high < 0) & np.isfinite(f_low) & np.isfinite(f_high)
        sound &= turn % 4 != 3  # now and then a half, whatever the values
        rise = np.where(sound, f_low, 1.0)
        guess = low + (high - low) * rise / (rise - np.where(sound, f_high, -1.0))
        t = np.where(sound, guess, 0.5 * (low + high))
        f = derivative(t)
        up = f > 0
        # The end that stays twice has its value halved (the Illinois rule).
        f_high = np.where(up & (side > 0), 0.5 * f_high, f_high)
        f_low = np.where(~up & (side < 0), 0.5 * f_low, f_low)
        low, f_low = np.where(up, t, low), np.where(up, f, f_low)
        high, f_high = np.where(up, high, t), np.where(up, f_high, f)
        side = np.where(up, 1.0, -1.0)
        if np.all((high - low <= _TOL * (1.0 + np.abs(t))) | (f == 0)):
            break
    return t
