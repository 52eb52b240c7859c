"""Plain integrals, slow and obvious, that likelihoods are held against.

They share no code with the adaptive quadrature of :mod:`mercer.linalg.quadrature`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["gaussian_nodes", "interval_nodes"]

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def _panels(low: float, high: float, count: int, cuts: ArrayLike = ()) -> tuple[Floats, Floats]:
    """Return the nodes and weights of a Gauss-Legendre rule on panels that end at the cuts."""
    inside = np.asarray(cuts, dtype=float).ravel()
    inside = inside[(inside > low) & (inside < high)]
    edges = np.union1d(np.linspace(low, high, count + 1), inside)
    half = 0.5 * np.diff(edges)[:, None]
    t = edges[:-1, None] + half + half * _NODES
    return t.ravel(), (half * _WEIGHTS).ravel()


def gaussian_nodes(cuts: ArrayLike = ()) -> tuple[Floats, Floats]:
    """Return z and weights with sum(weights * g(z)) = E[g(z)] for a standard normal z.

    g may have kinks and jumps at the cuts.
    """
    z, w = _panels(-12.0, 12.0, 1600, cuts)
    return z, w * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)


def interval_nodes(
    interval: tuple[float, float], centre: float, width: float
) -> tuple[Floats, Floats]:
    """Return nodes over an interval, dense around `centre`, and their weights.

    They reach 1e13 widths out, so that tails that fall off as 1/y^2 are held to 1e-13. A function
    may have a kink or a jump at the centre.
    """
    low, high = interval
    if np.isinf(low) and np.isinf(high):
        t, w = _panels(-30.0, 30.0, 1200)
        return centre + width * np.sinh(t), w * width * np.cosh(t)
    if np.isinf(high):
        t, w = _panels(-40.0, 30.0, 1200)
        return low + width * np.exp(t), w * width * np.exp(t)
    if np.isinf(low):
        t, w = _panels(-40.0, 30.0, 1200)
        return high - width * np.exp(t), w * width * np.exp(t)
    return _panels(low, high, 2000, [centre])
