"""Plain integrals, slow and obvious, that likelihoods are held against.

They share no code with the adaptive quadrature of :mod:`mercer.linalg.quadrature`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Panels", "edges_around", "integrate", "peak"]

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)

# Distances of all sizes, two an octave, from 1e-12 to 1e60: tails as heavy as abs(y)^-1.1 included.
_DISTANCES = 2.0 ** np.arange(-40.0, 200.0, 0.5)


class Panels(NamedTuple):
    """An integral in parts: `edges` (m + 1,), and `values` (k, m) of k integrands between them."""

    edges: Floats
    values: Floats

    @property
    def total(self) -> Floats:
        """The integrals (k,)."""
        return np.asarray(np.sum(self.values, axis=1))

    @property
    def below(self) -> Floats:
        """The first integral up to each of the edges (m + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.values[0])])


def edges_around(points: ArrayLike, low: float, high: float) -> Floats:
    """Return edges of panels over [low, high] that grow in proportion to their distance.

    They are dense around each of the points, whatever the width of what is there, and around the
    ends that are finite. Infinite ones are cut off at 1e60.
    """
    centres = np.asarray(points, dtype=float).ravel()
    ends = np.array([end for end in (low, high) if np.isfinite(end)])
    centres = np.unique(np.concatenate([centres[np.isfinite(centres)], ends]))
    edges = centres[:, None] + np.concatenate([-_DISTANCES, [0.0], _DISTANCES])
    edges = np.concatenate([edges.ravel(), ends])
    return np.unique(edges[(edges >= low) & (edges <= high)])


def peak(log_function: Callable[[Floats], Floats], grid: Floats) -> float:
    """Return where a function is largest, close to the largest value on a sorted grid."""
    for _ in range(12):
        with np.errstate(all="ignore"):
            values = np.asarray(log_function(grid), dtype=float)
        at = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
        best = float(grid[at])
        grid = np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)], 41)
    return best


def integrate(function: Callable[[Floats], Floats], edges: Floats) -> Panels:
    """Integrate a function of x (n,), with values (k, n), from the first edge to the last.

    Panels are halved until what that changes is 1e-12 of the integral of the absolute value, so
    that kinks and jumps need not be known. What is not finite counts as 0.
    """

    def sums(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return the integrals over the panels [a, b], of the function and its absolute value."""
        half = 0.5 * (b - a)
        x = a[:, None] + half[:, None] * (1.0 + _NODES)
        with np.errstate(all="ignore"):
            values = np.atleast_2d(np.asarray(function(x.ravel()), dtype=float))
        values = np.where(np.isfinite(values), values, 0.0).reshape(len(values), *x.shape)
        return (values @ _WEIGHTS) * half, (np.abs(values) @ _WEIGHTS) * half

    a, b = edges[:-1], edges[1:]
    coarse, size = sums(a, b)
    total = np.sum(size, axis=1, keepdims=True)
    left, values = [], []
    for _ in range(60):
        middle = 0.5 * (a + b)
        (first, size), (second, more) = sums(a, middle), sums(middle, b)
        # what a coarse rule has not seen makes the whole larger, and what is wanted with it
        total = np.maximum(total, np.sum(size + more, axis=1, keepdims=True))
        fine = first + second
        settled = np.all(np.abs(fine - coarse) <= 1e-12 * total, axis=0)
        # rounding of x itself is all there is to see in a panel that is narrower
        settled |= b - a <= 1e-13 * np.maximum(np.abs(a), np.abs(b))
        left.append(a[settled])
        values.append(fine[:, settled])
        a, b = np.r_[a[~settled], middle[~settled]], np.r_[middle[~settled], b[~settled]]
        coarse = np.concatenate([first[:, ~settled], second[:, ~settled]], axis=1)
        if not a.size:
            break
    left.append(a)
    values.append(coarse)
    order = np.argsort(np.concatenate(left), kind="stable")
    return Panels(
        np.append(np.concatenate(left)[order], edges[-1]), np.concatenate(values, axis=1)[:, order]
    )
