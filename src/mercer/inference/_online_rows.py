"""Blocks of rows for the recursion, and rows whose likelihood has no compiled average."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inference._online_moments import refresh
from mercer.inference._tilted import Tilted
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.linalg.recursion import Arrays, Block, Rules, recursion
from mercer.linalg.smoothing import SITES

__all__ = ["block_of", "fitting", "learn_rows", "prior_variances", "require_units"]

Floats = NDArray[np.float64]

# A row of more weight than this is learned in as many steps, of a power of the likelihood each.
_STEPS = 100
# Standard deviations of a function, in steps of a probit or of the logistic function, at the most,
# whose averages of powers are compiled.
_WIDEST = 1000.0
# Prior variances at the most, and its inverse at the least: the recursion multiplies two of them.
# Explicit functions are no larger than its root.
_LARGEST = 1e140


def prior_variances(kernel: Kernel, X: Any) -> Floats:
    """Return k(x, x) (n,), those of which doubles do not hold inverse squares as 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        variances = np.array(kernel.diag(X), dtype=float)
    variances[variances < 1.0 / _LARGEST] = 0.0
    return variances


def _are_small(variances: Floats) -> NDArray[np.bool_]:
    """Return which prior variances have squares that are doubles."""
    return np.asarray(variances <= _LARGEST)  # NaN is not


def require_units(variances: Floats, likelihood: Likelihood) -> None:
    """Raise ValueError for prior variances of which none is within what doubles can go on with.

    They may all be 0 beside Gaussian noise that is not; other noise is not asked. One that is too
    large among others is no matter of units, and its row will be skipped.
    """
    some = variances[_are_small(variances)]
    noise = likelihood.new_variance if isinstance(likelihood, Gaussian) else np.inf
    if not len(variances) or (len(some) and max(np.max(some), noise) >= 1.0 / _LARGEST):
        return
    found = f"more than {_LARGEST:.0e} at all rows, the most"
    if len(some):
        found = (
            f"no more than {np.max(some):.3g} beside noise of {noise:.3g}; {1.0 / _LARGEST:.0e} "
        )
        found += "of either is the least"
    raise ValueError(
        f"the kernel has variances k(x, x) of {found} that floating point can go on with. Look for "
        "wrong entries in X and y, standardise the columns, or give the targets in other units, "
        "with a kernel and a likelihood for these"
    )


def block_of(
    values: Floats,
    variances: Floats,
    features: Floats,
    offsets: Floats,
    Y: Floats,
    w: Floats,
    covariances: int,
) -> Block:
    """Return the block of rows that are learned together.

    Parameters
    ----------
    values : array of shape (b, k)
        The kernel of b rows with all that can be points meanwhile; k = 0 for a degenerate process.
    variances : array of shape (b,)
        See `prior_variances`; 0 for a degenerate process.
    features : array of shape (b, r)
        Explicit functions, as the process has them (`posterior.chart`).
    offsets : array of shape (b, P)
        The mean function, with what explicit functions add to it.
    Y, w : the observations (b, P) of the rows, and their weights
    covariances : int
    """
    b, shape = len(Y), Y.shape
    mean, spread = np.zeros(shape), np.zeros((b, covariances))
    return Block(values, variances, features, Y, offsets, w, mean, spread, np.zeros(b))


def learn_rows(A: Arrays, rules: Rules, block: Block, likelihood: Likelihood) -> None:
    """Learn the rows of a block in their order.

    The points there are have the first columns of the block's kernel matrix, in their order. One
    compiled loop for each run of rows that the likelihood's `compiled_site` takes (`_takes`). Of
    all others a call of `Tilted.moments` for each step of each row. Rows too large for floating
    point (`fitting`) are skipped.
    """
    old, n, site = A.m, len(block.y), likelihood.compiled_site()
    fits = fitting(block.variances, block.features, block.offsets)
    skipped = ~fits & (block.weights > 0)
    block.mean[skipped], block.spread[skipped], block.log_density[skipped] = 0.0, _LARGEST, np.nan
    takes = np.zeros(n, dtype=bool)
    if site is not None and recursion().COMPILED:
        takes = fits & _takes(site, block)
    ends = [0, *(np.flatnonzero(np.diff(takes)) + 1), n]
    for start, end in pairwise(ends):
        if site is None or not takes[start]:
            for i in start + np.flatnonzero((block.weights > 0)[start:end] & fits[start:end]):
                _learn_row(A, rules, block, likelihood, int(i), old)
            continue
        run, done = Block(*(each[:end] for each in block)), start
        while done < end:
            done = recursion().advance(A, rules, run, SITES.index(site[0]), site[1], old, done)
            if A.whole[2]:
                refresh(A)


def fitting(variances: Floats, features: Floats, offsets: Floats) -> NDArray[np.bool_]:
    """Return which rows have a mean, and prior variances and functions whose squares are doubles.

    The parameters are those of `block_of`.
    """
    small = np.all(np.abs(features) <= np.sqrt(_LARGEST), axis=1)
    small &= np.all(np.isfinite(offsets), axis=1)
    return np.asarray(small & _are_small(variances))


def _takes(site: tuple[str, Floats], block: Block) -> NDArray[np.bool_]:
    """Return whether a compiled site takes the weight of each row (b,).

    Gaussian noise takes any weight. Labels take any up to 100, unless the function's standard
    deviation is over `_WIDEST` steps of the link, where averages are slow. Others take whole
    numbers up to 100.
    """
    kind, parameters = site
    weights = block.weights
    if kind == "gaussian":
        return np.ones(len(weights), dtype=bool)
    whole = np.asarray(weights == np.minimum(np.ceil(weights), _STEPS))
    if kind not in ("probit", "logistic"):
        return whole
    unit = float(parameters[0]) if kind == "probit" else 1.0
    # No posterior variance is above the prior's, which `variances` has unless there are features.
    narrow = np.sqrt(block.variances) <= _WIDEST * unit
    if unit > 0.0 and block.features.size:
        return whole
    return np.asarray(whole | ((weights <= _STEPS) & (narrow | (unit == 0.0))))


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
