"""Integrals over the logarithm of a positive variable, by panels that a density is resolved in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from mercer.priors._search import peaks

__all__ = ["Nodes", "log_sums"]

Floats = NDArray[np.float64]
OfLog = Callable[[Floats], Floats]

_ORDER = 12
_POINTS, _WEIGHTS = legendre.leggauss(_ORDER)
_DEPTH = 44
_TOL = 1e-14
_BLOCK = 2_000_000  # exponentials held at once


class Nodes(NamedTuple):
    """Nodes and log weights: the integral of f(t) exp(log_h(t)) is sum_k exp(log_weight_k) f(t_k).

    t, log_weight : (k,), in panels of `_ORDER`
    edges : (k/_ORDER, 2) of the panels
    """

    t: Floats
    log_weight: Floats
    edges: Floats

    @classmethod
    def of(cls, log_h: OfLog, reach: float) -> Nodes:
        """Return nodes from -reach to reach, in panels that are short around the peaks.

        No panel is longer than 1, so that functions of exp(t) and exp(2t) are resolved too.
        """
        coarse = np.linspace(-reach, reach, int(4 * reach) + 1)
        found = peaks(log_h, coarse)
        near = 2.0 ** np.arange(-1, -22, -2)
        marks = [m + side * near for m in found for side in (-1.0, 1.0)]
        ends = np.unique(np.concatenate([np.arange(-reach, reach + 0.5), *marks]))
        top = float(np.max(log_h(np.append(coarse, found))))

        def masses(log_weight: Floats) -> Floats:
            return np.asarray(np.sum(np.exp(np.minimum(log_weight - top, 700.0)), axis=1))

        # Panels are halved until their halves have the same integral, which shows jumps too.
        edges = np.column_stack([ends[:-1], ends[1:]])
        t, log_weight = _panels(log_h, edges)
        total = float(np.sum(masses(log_weight)))
        kept = []
        for _ in range(_DEPTH):
            halves = np.column_stack([edges[:, 0], *2 * [np.mean(edges, axis=1)], edges[:, 1]])
            t2, log_weight2 = _panels(log_h, halves.reshape(-1, 2))
            parts = np.sum(masses(log_weight2).reshape(-1, 2), axis=1)
            rough = np.abs(masses(log_weight) - parts) > _TOL * total
            kept.append((edges[~rough], t[~rough], log_weight[~rough]))
            twice = np.repeat(rough, 2)
            edges, t, log_weight = halves.reshape(-1, 2)[twice], t2[twice], log_weight2[twice]
            if not len(edges):
                break
        kept.append((edges, t, log_weight))
        edges, t, log_weight = (np.concatenate(part) for part in zip(*kept, strict=True))
        order = np.argsort(edges[:, 0])
        return cls(t[order].ravel(), log_weight[order].ravel(), edges[order])

    def quantiles(self, mass: Floats) -> Floats:
        """Return t that has these masses (n,) below it."""
        weights = np.exp(self.log_weight).reshape(-1, _ORDER)
        upto = np.concatenate([[0.0], np.cumsum(np.sum(weights, axis=1))])
        at = np.clip(np.searchsorted(upto, mass, side="right") - 1, 0, len(self.edges) - 1)
        left, right = self.edges[at].T
        # The density within a panel as a polynomial, and its integral from the left.
        series = _SERIES @ (weights[at] / _WEIGHTS).T  # (order, n)
        integral = legendre.legint(series, lbnd=-1.0)
        low, high = np.full(len(mass), -1.0), np.ones(len(mass))
        for _ in range(50):
            middle = 0.5 * (low + high)
            below = legendre.legval(middle, integral, tensor=False) < mass - upto[at]
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(left + (right - left) * 0.25 * (2.0 + low + high))


def _panels(log_h: OfLog, edges: Floats) -> tuple[Floats, Floats]:
    half = 0.5 * np.diff(edges, axis=1)
    t = np.mean(edges, axis=1)[:, None] + half * _POINTS
    return t, log_h(t) + np.log(half * _WEIGHTS)


# Legendre coefficients of the polynomial through values at the points.
_SERIES = (np.arange(_ORDER) + 0.5)[:, None] * legendre.legvander(_POINTS, _ORDER - 1).T * _WEIGHTS


def log_sums(exponents: Callable[[Floats], Floats], at: Floats, k: int) -> Floats:
    """Return ln sum_k exp(exponents(at)[i, k]) for each of at (n,), in blocks."""
    out = np.empty(len(at))
    block = max(1, _BLOCK // k)
    for start in range(0, len(at), block):
        terms = exponents(at[start : start + block])
        top = np.max(terms, axis=1)
        out[start : start + block] = top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1))
    return out
