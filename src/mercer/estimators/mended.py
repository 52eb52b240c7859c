"""Hyperparameters that were found on a sample of the rows, held against more of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.prepare_exact import Begun
from mercer.evidence import Data, Objective, maximise
from mercer.evidence.sparse import SparseObjective

__all__ = ["mended"]

Floats = NDArray[np.float64]

# In nats for each row: what all rows may fall short of the sample.
_SHORTFALL = 0.3
# Else so many of them are searched, for so many iterations, from the best of these shares of the
# targets' variance as noise.
_ROWS, _ITERATIONS = 4000, 50
_NOISES = (1e-3, 1e-2, 0.1, 0.5)


def mended(
    whole: SparseObjective,
    sample: Objective,
    theta: Floats,
    begun: Begun,
    rng: np.random.Generator,
) -> SparseObjective:
    """Return the objective at its start, or at the end of a search among some of its blocks.

    Rows that are denser than in the sample are easier to predict, each from the others. Where they
    are not, by plainly less, the sample was too sparse to tell noise from a rough function. The
    search begins at the best of more noise, with the sample's kernel and the one it began with.
    """
    free = whole.likelihood.theta.size
    if not free:
        return whole
    each = sample.value(theta) / sample.data.total_weight
    found = whole.value(whole.theta)
    if found / whole.data.total_weight > each - _SHORTFALL:
        return whole
    part = _some_blocks(whole, rng)
    low, high = whole.bounds.T
    starts = [
        np.clip(np.append(kernel.theta, np.full(free, np.log(share * begun.variance))), low, high)
        for kernel in (whole.kernel, begun.kernel)
        for share in _NOISES
    ]
    best = max(starts, key=part.value)
    optimum = maximise(_at(part, best), max_iter=_ITERATIONS)
    other = _at(whole, optimum.theta)
    return other if other.value(other.theta) > found else whole


def _some_blocks(whole: SparseObjective, rng: np.random.Generator) -> SparseObjective:
    """Return the objective of the rows of a few blocks."""
    assert whole.groups is not None
    sizes = np.bincount(whole.groups)
    order = rng.permutation(len(sizes))
    chosen = order[: 1 + np.searchsorted(np.cumsum(sizes[order]), _ROWS)]
    rows = np.flatnonzero(np.isin(whole.groups, chosen))
    data = whole.data
    weights = None if data.weights is None else data.weights[rows]
    part = Data(data.X[rows], data.Y[rows], weights, data.scale)
    groups = np.unique(whole.groups[rows], return_inverse=True)[1].astype(np.intp)
    model = whole.kernel, whole.likelihood, whole.mean
    return SparseObjective(*model, part, whole.inducing, whole.kind, groups, whole.bounds)


def _at(whole: SparseObjective, theta: Floats) -> SparseObjective:
    """Return the same objective at another start."""
    kernel, likelihood, inducing = whole.unpack(theta)
    rest = whole.kind, whole.groups, whole.bounds
    return SparseObjective(kernel, likelihood, whole.mean, whole.data, inducing, *rest)
