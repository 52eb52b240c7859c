"""From the Gaussian of the latent values to the probabilities of classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer.compute import map_tiles, row_blocks
from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.logistic import Logistic

__all__ = ["Probabilities", "bounded", "link_probabilities", "softmax_probabilities"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

# No probability is nearer to 0 or to 1: a model is not that sure, and log losses stay finite.
_LEAST = 1e-15
#: What the error of a softmax's probabilities is brought down to, and that of quadrature.
TOLERANCE, QUADRATURE = 1e-4, 1e-8
# Independent scramblings of the points, whose spread tells the error, and the points of each.
_COPIES = 8
_FIRST, _LAST = 8, 16  # powers of 2
# The size of roots, at the most, whose products with normal numbers are singles, and of centres.
_LARGEST, _FARTHEST = 1e30, 1e36
# Points in a product, so that what is made of them stays in the cache.
_BLOCK = 2**14


class Probabilities(NamedTuple):
    """What classes the rows have.

    values : (n, C) within [1e-15, 1 - 1e-15], rows adding up to 1
    error : (n,) the error of a row's values by which they may be wrong, as it was estimated
    """

    values: Floats
    error: Floats


def bounded(P: Floats) -> Floats:
    """Return rows (n, C) that add up to 1, no entry nearer to 0 or 1 than 1e-15."""
    P = np.clip(P / np.sum(P, axis=1, keepdims=True), _LEAST, 1.0 - _LEAST)
    # what many small ones were given is taken off the largest
    rows, largest = np.arange(len(P)), np.argmax(P, axis=1)
    P[rows, largest] -= np.sum(P, axis=1) - 1.0
    return P


def link_probabilities(
    likelihoods: Sequence[Likelihood], mean: Floats, var: Floats
) -> Probabilities:
    """Return the averages of scalar links over Gaussian latent values (n, P), in closed form.

    One likelihood, of labels -1 and 1, gives two columns. Several are those of classes against all
    others, and give a column each, which then are made to add up to 1.
    """
    error = np.full(len(mean), QUADRATURE)
    if len(likelihoods) == 1:
        # Of the label that is less likely, so that the other loses nothing by being the rest.
        less = np.where(mean[:, 0] > 0, -1.0, 1.0)
        p = np.exp(likelihoods[0].log_predictive(less, mean[:, 0], var[:, 0]))
        both = np.column_stack([p, 1.0 - p])
        return Probabilities(bounded(np.where(less[:, None] < 0, both, both[:, ::-1])), error)
    logs = np.column_stack(
        [
            likelihood.log_predictive(1.0, mean[:, p], var[:, p])
            for p, likelihood in enumerate(likelihoods)
        ]
    )
    logs = np.maximum(logs, -700.0)  # a step may have no probability at all
    logs -= np.max(logs, axis=1, keepdims=True)
    return Probabilities(bounded(np.exp(logs)), error)


def softmax_probabilities(mean: Floats, cov: Floats, tolerance: float = TOLERANCE) -> Probabilities:
    """Return E[softmax(f)] for Gaussians f with these means (n, C) and covariances (n, C, C).

    Two classes are an average of the logistic function, and go by quadrature. For more, points of a
    scrambled Sobol sequence are doubled until twice the standard error over eight scramblings is
    below the tolerance for every class, or there are half a million. Each row stops by itself, and
    the points are always the same: a row's probabilities depend on nothing else.
    """
    n, C = mean.shape
    if C == 2:
        gap = (mean[:, 1] - mean[:, 0])[:, None]
        spread = np.maximum(cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1], 0.0)[:, None]
        return link_probabilities([Logistic()], gap, spread)
    # Classes in the order of their means, so that what they are called does not matter.
    order = np.argsort(-mean, axis=1, kind="stable")
    mean = np.take_along_axis(mean, order, axis=1)
    cov = np.take_along_axis(cov, order[:, :, None], axis=1)
    cov = np.take_along_axis(cov, order[:, None, :], axis=2)
    with np.errstate(over="ignore"):
        centres, roots = mean - mean[:, :1], _roots(cov)  # centres are 0 at the most
    # With larger roots a softmax is the largest of its terms, whatever their scale.
    size = np.max(np.abs(roots), axis=(1, 2))
    fit = (_LARGEST / np.maximum(size, _LARGEST))[:, None]
    centres = np.maximum(fit * centres, -_FARTHEST).astype(np.float32)
    roots = (fit[:, :, None] * roots).astype(np.float32)
    sums = np.zeros((n, C, _COPIES))
    values, error = np.empty((n, C)), np.full(n, np.inf)
    left = np.arange(n)
    for power in range(_FIRST, _LAST + 1):
        normals = _normals(C - 1, power)

        def added(rows: slice, left: NDArray[np.intp] = left, Z: Singles = normals) -> None:
            for i in left[rows]:
                sums[i] += _sums(centres[i], roots[i], Z)

        map_tiles(added, row_blocks(len(left), 16))
        estimates = sums[left] / 2.0**power
        values[left] = np.mean(estimates, axis=2)
        spread = np.std(estimates, axis=2, ddof=1) / np.sqrt(_COPIES)
        error[left] = 2.0 * np.max(spread, axis=1)
        left = left[error[left] > tolerance]
        if not left.size:
            break
    out = np.empty_like(values)
    np.put_along_axis(out, order, values, axis=1)
    return Probabilities(bounded(out), error)


def _roots(cov: Floats) -> Floats:
    """Return roots (n, C, C - 1) of the covariances of contrasts, the longest columns first.

    What all classes have in common changes nothing, and is left out. The first coordinates of the
    points are the most even ones, so they get the directions of most variance.
    """
    C = cov.shape[1]
    cov = cov - np.mean(cov, axis=1, keepdims=True)
    cov = cov - np.mean(cov, axis=2, keepdims=True)
    values, vectors = np.linalg.eigh(cov)
    longest = np.sqrt(np.maximum(values[:, :-C:-1], 0.0))
    return np.asarray(vectors[:, :, :-C:-1] * longest[:, None, :])


def _sums(centre: Singles, root: Singles, Z: Singles) -> Floats:
    """Return the sums of softmax(centre + root z) over the points z of each scrambling, (C, 8).

    In single precision, which is good to 1e-6 and ten times as fast.
    """
    copies, _, points = Z.shape
    out = np.empty((len(centre), copies))
    for c in range(copies):
        total = np.zeros(len(centre))
        for k in range(0, points, _BLOCK):
            F = root @ Z[c, :, k : k + _BLOCK]
            F += centre[:, None]
            F -= np.max(F, axis=0)
            np.exp(F, out=F)
            F /= np.sum(F, axis=0)
            total += np.sum(F, axis=1)
        out[:, c] = total
    return out


@lru_cache(maxsize=12)
def _normals(dimension: int, power: int) -> Singles:
    """Return the normal points, (8, dimension, number), that lead from half of 2^power to it.

    For the first power they are all of them.
    """
    from scipy.stats import qmc  # which takes longer to import than all of Mercer

    total = 2**power
    begin = 0 if power == _FIRST else total // 2
    out = np.empty((_COPIES, dimension, total - begin), dtype=np.float32)
    for c in range(_COPIES):
        sequence = qmc.Sobol(dimension, scramble=True, seed=np.random.default_rng(c))
        if begin:
            sequence.fast_forward(begin)
        # they are multiples of 2^-30: half of that keeps them off 0
        out[c] = ndtri(sequence.random(total - begin).T + 2.0**-31)
    out.setflags(write=False)
    return out
