"""Blocks of rows for the recursion, and rows whose likelihood has no compiled average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inference._online_moments import refresh
from mercer.inference._tilted import Tilted
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.linalg.recursion import Arrays, Block, Rules, recursion
from mercer.linalg.smoothing import SITES

__all__ = ["block_of", "learn_rows"]

Floats = NDArray[np.float64]

# A row of more weight than this is learned in as many steps, of a power of the likelihood each.
_STEPS = 100
# Standard deviations of a function, in steps of a probit or of the logistic function, at the most,
# whose averages of powers are compiled.
_WIDEST = 1000.0
# Prior variances at the most, and its inverse at the least: the recursion multiplies two of them.
_LARGEST = 1e140


def block_of(
    kernel: Kernel, X: Any, rows: Any, features: Floats, Y: Floats, w: Floats, covariances: int
) -> Block:
    """Return the block of rows that are learned together, without their offsets.

    Parameters
    ----------
    kernel : Kernel
    X, Y, w : the rows (b of them), their observations (b, P) and weights
    rows : inputs
        All that can be points meanwhile; none for a degenerate process.
    features : array of shape (b, r)
        Explicit functions, of a degenerate process phi(x) itself.
    covariances : int
    """
    b, shape = len(X), Y.shape
    values, variances = np.empty((b, 0)), np.zeros(b)
    if len(rows):
        # In one call: what rows of the block have with each other is found twice, which costs less
        # than a call for each half.
        values, variances = kernel(X, rows), np.array(kernel.diag(X), dtype=float)
    mean, spread = np.zeros(shape), np.zeros((b, covariances))
    return Block(values, variances, features, Y, np.zeros(shape), w, mean, spread, np.zeros(b))


def learn_rows(A: Arrays, rules: Rules, block: Block, likelihood: Likelihood) -> None:
    """Learn the rows of a block in their order.

    The points there are have the first columns of the block's kernel matrix, in their order. One
    compiled loop where the likelihood has a `compiled_site`, and rows a weight that it takes
    (`_takes`). Else a call of `Tilted.moments` for each step of each row.

    Raises
    ------
    ValueError
        If prior variances are too large, or with the noise too small, for what is made of them.
    """
    if block.kernel.shape[1]:
        _require_sizes(float(np.max(block.variances)), likelihood)
    old = A.m
    site = likelihood.compiled_site()
    if site is None or not _takes(site, block) or not recursion().COMPILED:
        for i in np.flatnonzero(block.weights > 0):
            _learn_row(A, rules, block, likelihood, int(i), old)
        return
    done, kind = 0, SITES.index(site[0])
    while done < len(block.y):
        done = recursion().advance(A, rules, block, kind, site[1], old, done)
        if A.whole[2]:
            refresh(A)


def _require_sizes(variance: float, likelihood: Likelihood) -> None:
    """Raise ValueError for a largest prior variance whose square or its inverse is no double.

    A small one may be beside Gaussian noise that is not; other noise is not asked.
    """
    noise = likelihood.new_variance if isinstance(likelihood, Gaussian) else np.inf
    if 1.0 / _LARGEST <= max(variance, noise) and variance <= _LARGEST:
        return
    limit = f"{_LARGEST:.0e} is the most"
    if variance < 1.0:
        limit = f"{1.0 / _LARGEST:.0e} is the least, unless there is more noise"
    raise ValueError(
        f"the kernel has variances up to {variance:.3g} at the rows, of which doubles do not hold "
        f"the squares with what is made of them: {limit}. Give the targets in other units, with a "
        "kernel and a likelihood for these"
    )


def _takes(site: tuple[str, Floats], block: Block) -> bool:
    """Whether a compiled site takes the weights of all rows.

    Gaussian noise takes any weight. Labels take any up to 100, unless the function's standard
    deviation is over `_WIDEST` steps of the link, where averages are slow. Others take whole
    numbers up to 100.
    """
    kind, parameters = site
    if kind == "gaussian" or np.all(block.weights == np.minimum(np.ceil(block.weights), _STEPS)):
        return True
    if kind not in ("probit", "logistic") or np.max(block.weights) > _STEPS:
        return False
    unit = float(parameters[0]) if kind == "probit" else 1.0
    # No posterior variance is above the prior's, which `variances` has unless there are features.
    widest = np.max(block.variances, initial=0.0)
    return unit == 0.0 or (not block.features.size and bool(np.sqrt(widest) <= _WIDEST * unit))


def _learn_row(
    A: Arrays, rules: Rules, block: Block, likelihood: Likelihood, i: int, old: int
) -> None:
    """Do what the compiled `advance` does for one row."""
    loop = recursion()
    weight, variance = block.weights[i], float(block.variances[i])
    steps = 1 if isinstance(likelihood, Gaussian) else int(min(np.ceil(weight), _STEPS))
    tilted = Tilted(likelihood, block.y[i], np.full(len(A.mu), weight / steps))
    for step in range(steps):
        if rules.keep < 1.0 and step == 0:
            loop.forget(A, rules.keep)
        A.k[: A.m] = block.kernel[i, A.source[: A.m]]
        A.e[: A.n_features] = block.features[i]
        gamma = loop.predict(A, variance, rules.floor)
        mean, var = A.mean + block.offsets[i], gamma + A.spread
        log_z, A.q[:], slopes = tilted.moments(mean, np.broadcast_to(var, mean.shape))
        A.r[:] = slopes[: len(A.r)]
        if step == 0:
            block.mean[i], block.spread[i] = mean, var
        if not np.all(np.isfinite([*log_z, *A.q, *A.r])):
            if step == 0:
                block.log_density[i] = np.nan
            break  # what the steps before have said of it stays, and counts
        loop.learn(A, rules, variance, gamma, old + i)
        total = float(np.sum(log_z))
        block.log_density[i] += total
        A.sums[1:] += total, weight / steps
    if A.whole[2]:
        refresh(A)
