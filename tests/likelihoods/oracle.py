"""Integrals over a Gaussian by brute force, in long double: slow, plain, and of no shared code.

The line is cut at distances of all sizes around the Gaussian's centre, around every place that is
named, and around the highest point of the integrand; each panel has a Gauss rule of 40 nodes.
"""

from __future__ import annotations

import numpy as np

NODES, WEIGHTS = (a.astype(np.longdouble) for a in np.polynomial.legendre.leggauss(40))
LADDER = np.longdouble(2.0) ** np.arange(-7, 15)
LADDER = np.concatenate([-LADDER[::-1], [0.0], LADDER])


def posterior_nodes(log_p, mean, var, places=()):
    """Return f and the log of weight * p(f) * N(f; mean, var), for `places` [(centre, width)]."""
    mean, var = np.longdouble(mean), np.longdouble(var)
    sd = np.sqrt(var)

    def height(f):
        with np.errstate(all="ignore"):
            value = log_p(f) - 0.5 * ((f - mean) / sd) ** 2
        return np.where(np.isnan(value), -np.inf, value)

    cuts = [mean + sd * LADDER] + [c + np.longdouble(w) * LADDER for c, w in places]
    cuts.append(_around_the_top(height, np.unique(np.concatenate(cuts))))
    edges = np.unique(np.concatenate(cuts))
    half = 0.5 * np.diff(edges)[:, None]
    f = (edges[:-1, None] + half + half * NODES).ravel()
    with np.errstate(divide="ignore"):
        log_w = np.log((half * WEIGHTS).ravel())
    return f, height(f) + log_w - 0.5 * np.log(2 * np.longdouble(np.pi) * var)


def _around_the_top(height, grid):
    for _ in range(18):  # each brings the ends twelve times nearer, in the end to the last digit
        i = int(np.argmax(height(grid)))
        ends = grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)]
        grid = np.linspace(*ends, 25, dtype=np.longdouble)
    top = grid[np.argmax(height(grid))]
    widths = np.longdouble(2.0) ** np.arange(-40, 20)
    falls = height(top) - np.minimum(height(top + widths), height(top - widths))
    return top + widths[np.argmax(falls > 0.5)] * LADDER


def smoothed(log_p, mean, var, places=()):
    """Return log Z and its first two derivatives in the mean."""
    f, log_w = posterior_nodes(log_p, mean, var, places)
    top = np.max(log_w)
    p = np.exp(log_w - top)
    total = p.sum()
    sd = np.sqrt(np.longdouble(var))
    z = (f - np.longdouble(mean)) / sd
    first = (p * z).sum() / total
    second = (p * (z - first) ** 2).sum() / total - 1
    return float(top + np.log(total)), float(first / sd), float(second / var)


def expectation(function, mean, var, places=()):
    """Return E[function(f)] for f ~ N(mean, var); of functions in rows, that of each."""
    f, log_w = posterior_nodes(np.zeros_like, mean, var, places)
    some = log_w > -1500  # within 50 standard deviations
    return np.sum(np.exp(log_w[some]) * function(f[some]), axis=-1).astype(float)
