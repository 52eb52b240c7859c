"""Which inducing inputs, rows and blocks of rows a sparse fit or a committee begins with.

Nothing here depends on the order of the rows, or on whether one that counts twice is written
twice: choices are made among the different rows, in an order of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.prepare_exact import Begun
from mercer.evidence.defaults import spread
from mercer.evidence.parts import relevances
from mercer.kernels import Kernel
from mercer.selection import (
    information_gain,
    kmeans,
    matching_pursuit,
    pivoted_cholesky,
    random_subset,
    sparse_greedy_matrix,
)

__all__ = [
    "Different",
    "block_numbers",
    "block_units",
    "chosen_rows",
    "different_rows",
    "inducing_inputs",
    "member_numbers",
    "require_columns",
    "unless_ones",
    "wanted_number",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Inducing inputs, and rows of a block, where it is not said how many.
_NUMBER = 500
# Random candidates of each greedy step.
_CANDIDATES = 59
# Rows of a block at the most, in units of the rows that it is meant to have.
_DIFFERENT, _REPEATED = 2, 4


class Different(NamedTuple):
    """The different rows among some.

    first : (k,) the number of one row of each kind, in the order of their values
    weights : (k,) what the rows of a kind weigh together
    kinds : (n,) which kind each row is
    """

    first: Indices
    weights: Floats
    kinds: Indices


def different_rows(begun: Begun, targets: bool = False) -> Different:
    """Return the rows whose inputs, or inputs and targets with their noise, are different."""
    data = begun.data
    n = len(data.Y)
    weights = np.ones(n) if data.weights is None else data.weights
    if not begun.kernel.is_numeric:  # of which nothing is known, not even what is equal
        return Different(np.arange(n), weights, np.arange(n))
    columns = [*np.asarray(data.X).T]
    if targets:
        columns += [*data.Y.T, begun.likelihood.variances(n)]
    order = np.lexsort(columns[::-1])
    new = np.zeros(n, dtype=bool)
    new[0] = True
    for column in columns:
        values = column[order]
        new[1:] |= values[1:] != values[:-1]
    numbers = np.cumsum(new) - 1
    kinds = np.empty(n, dtype=np.intp)
    kinds[order] = numbers
    return Different(order[new], np.bincount(numbers, weights[order]).astype(float), kinds)


def inducing_inputs(
    estimator: Any, begun: Begun, query: Any, rng: np.random.Generator, last: Any = None
) -> tuple[Any, bool]:
    """Return the inducing inputs at their start, and whether there may be better places for them.

    There are none where every row is one of them, and points to be predicted are to stay. `last`
    are those of the last fit, if it is to go on from there and they are as many as are wanted.
    """
    kernel, data, spec = begun.kernel, begun.data, estimator.inducing
    given = given_inputs(estimator, begun, query)
    if given is not None:
        return given, query is None
    if last is not None and _as_many(estimator, last, data.X):
        return last, True
    rows = different_rows(begun, targets=spec in _BY_TARGETS)
    X, m = data.X[rows.first], _number_of(estimator, rows)
    if spec == "kmeans" and kernel.is_numeric and m < len(X):
        widths = spread(X, rows.weights)
        return kmeans(X, m, widths, weights=rows.weights, rng=rng).centres, True
    return X[_chosen(spec, begun, rows, m, rng)], m < len(X)


def given_inputs(estimator: Any, begun: Begun, query: Any) -> Any:
    """Return the inducing inputs that were given, by name or as the query, checked; or None."""
    spec = estimator.inducing
    if query is None and isinstance(spec, str):
        return None
    name, given = ("inducing", spec) if query is None else ("query", query)
    require_columns(name, given, begun)
    return begun.kernel.inputs(given, name)


def require_columns(name: str, given: Any, begun: Begun) -> None:
    """Raise ValueError for inputs of another number of columns than the rows have."""
    shape, X = np.shape(given), begun.data.X
    if begun.kernel.is_numeric and len(shape) == 2 and shape[1] != X.shape[1]:
        raise ValueError(f"{name} must have the {X.shape[1]} columns of X, got {shape[1]}")


def _as_many(estimator: Any, last: Any, X: Any) -> bool:
    """Whether there were as many inducing inputs as are wanted, of as many columns."""
    return bool(len(last) == wanted_number(estimator) and last.shape[1:] == np.shape(X)[1:])


def _number_of(estimator: Any, rows: Different) -> int:
    return min(wanted_number(estimator), len(rows.first))


def wanted_number(estimator: Any) -> int:
    """Return how many inducing inputs an estimator asks for."""
    return _NUMBER if estimator.n_inducing is None else int(estimator.n_inducing)


def chosen_rows(
    estimator: Any, begun: Begun, rng: np.random.Generator
) -> tuple[Indices, Floats | None]:
    """Return the numbers of the rows that stand for all, and their weights.

    One of many rows counts once, if others are the same as it: a target that comes twice, where
    its neighbours are left out, would say that there is no noise.
    """
    rows = different_rows(begun, targets=True)
    m = _number_of(estimator, rows)
    kept = np.sort(_chosen(estimator.inducing, begun, rows, m, rng))
    weights = rows.weights[kept]
    if len(kept) < len(rows.first):
        weights = np.minimum(weights, 1.0)
    return rows.first[kept], unless_ones(weights)


def unless_ones(weights: Floats) -> Floats | None:
    """Return weights, None where all are 1."""
    return None if np.all(weights == 1.0) else weights


def _chosen(spec: str, begun: Begun, rows: Different, m: int, rng: np.random.Generator) -> Indices:
    """Return which m of the different rows a strategy chooses."""
    kernel, data = begun.kernel, begun.data
    X = data.X[rows.first]
    if spec in ("kmeans", "random") and m >= len(X):
        return np.arange(len(X))
    if spec == "kmeans" and kernel.is_numeric:
        return _nearest_to_centres(X, m, rows.weights, rng)
    if spec in ("kmeans", "random"):
        return random_subset(X, m, rng)
    if spec == "cholesky":
        return pivoted_cholesky(kernel, X, m).indices
    if spec == "greedy":
        return sparse_greedy_matrix(kernel, X, m, _CANDIDATES, rng).indices
    n, outputs = data.Y.shape
    if begun.mean.estimate is None:
        residual = data.Y - begun.mean(data.X, outputs)
    else:
        residual = data.Y - np.average(data.Y, axis=0, weights=data.weights)
    noise = begun.likelihood.variances(n)[rows.first] / rows.weights
    targets = residual[rows.first] / data.scale
    found = _BY_TARGETS[spec](kernel, X, targets, m, noise, _CANDIDATES, rng)
    return np.asarray(found.indices)


_BY_TARGETS: dict[str, Callable[..., Any]] = {
    "information": information_gain,
    "pursuit": matching_pursuit,
}


def _nearest_to_centres(X: Floats, m: int, weights: Floats, rng: np.random.Generator) -> Indices:
    """Return the row in the middle of each of m clusters."""
    widths = spread(X, weights)
    found = kmeans(X, m, widths, weights=weights, rng=rng)
    away = np.sum(((X - found.centres[found.assignment]) / widths) ** 2, axis=1)
    order = np.lexsort([away, found.assignment])
    numbers = found.assignment[order]
    return np.asarray(order[np.append(True, numbers[1:] != numbers[:-1])])


def block_numbers(estimator: Any, begun: Begun, rng: np.random.Generator) -> Indices:
    """Return the block that each row belongs to: about as many rows each as inducing inputs."""
    n = len(begun.data.Y)
    size = min(n, wanted_number(estimator))
    if estimator.blocks == "contiguous" or not begun.kernel.is_numeric:
        return np.arange(n) // size
    rows = different_rows(begun)
    X = begun.data.X[rows.first]
    count = -(-len(X) // size)
    units = block_units(begun.kernel, X, rows.weights)
    found = kmeans(X, count, units, weights=rows.weights, largest=_DIFFERENT * size, rng=rng)
    return _cut(found.assignment[rows.kinds], _REPEATED * size)


def block_units(kernel: Kernel, X: Floats, weights: Floats | None = None) -> Floats:
    """Return units of the columns in which rows of a block are to be near each other, (d,).

    The kernel's shortest length scales, so that columns that do not matter do not separate rows; a
    column's width where there is none.
    """
    units = spread(X, weights)
    shortest = np.full(len(units), np.inf)
    for part in relevances(kernel, X, weights):
        shortest = np.fmin(shortest, part.length_scales)
    return np.where(np.isfinite(shortest), shortest, units)


def member_numbers(
    begun: Begun, n_members: int | None, rows_each: int, regions: bool, rng: np.random.Generator
) -> Indices:
    """Return the member of a committee that each row belongs to, from 0 on, none without rows.

    `n_members` None is one for each `rows_each`; `regions` says whether each has one of its own.
    """
    n, regions = len(begun.data.Y), regions and begun.kernel.is_numeric
    rows = different_rows(begun, targets=not regions)
    kinds = len(rows.first)
    count = -(-kinds // rows_each) if n_members is None else min(n_members, kinds)
    size = rows_each if n_members is None else -(-n // count)
    if count == 1:
        members = np.zeros(kinds, dtype=np.intp)
    elif regions:
        X = begun.data.X[rows.first]
        widths, largest = spread(X, rows.weights), _DIFFERENT * -(-kinds // count)
        found = kmeans(X, count, widths, weights=rows.weights, largest=largest, rng=rng)
        members = found.assignment
    else:
        members = rng.permutation(np.arange(kinds) % count)
    return _cut(members[rows.kinds], _REPEATED * size)


def _cut(blocks: Indices, most: int) -> Indices:
    """Cut blocks of more rows than these, which inputs that repeat often make."""
    counts = np.bincount(blocks)
    if np.max(counts) <= most:
        return blocks
    order = np.argsort(blocks, kind="stable")
    within = np.empty_like(blocks)
    within[order] = np.arange(len(blocks)) - (np.cumsum(counts) - counts)[blocks[order]]
    parts = blocks * (len(blocks) // most + 1) + within // most
    return np.asarray(np.unique(parts, return_inverse=True)[1], dtype=np.intp)
