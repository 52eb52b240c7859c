"""Points in the middle of clusters of rows, and the clusters as blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.selection.checks import whole_number

__all__ = ["Clusters", "kmeans"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_ENTRIES = 500_000  # distances in a block
_ROWS = 16_384  # rows in a block of distances from one centre
_REPAIRS = 100


class Clusters(NamedTuple):
    """Clusters of rows.

    centres : (k, d) in the units of the inputs
    assignment : (n,) the number of each row's cluster, from 0 to k - 1; no cluster is empty
    """

    centres: Floats
    assignment: Indices


class _Assignment(NamedTuple):
    """Rows by the centre nearest to each."""

    labels: Indices
    distances: Floats  # (n,) squares
    sums: Floats  # (k, d) of the rows, times their weights
    sizes: Floats  # (k,) sums of weights


def kmeans(
    X: Any,
    m: int,
    scales: ArrayLike | None = None,
    iterations: int = 10,
    weights: ArrayLike | None = None,
    largest: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> Clusters:
    """Return the centres of m clusters of rows, of small squared distances within.

    The first centres are rows drawn one after the other, each with a probability proportional to
    its squared distance from the nearest that was drawn before (k-means++). Lloyd's iterations
    then move each centre to the mean of the rows that are nearest to it.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    m : int
        How many clusters. There are fewer if fewer rows are different.
    scales : float or array of shape (d,), optional
        What to divide the columns by before distances are taken: length scales of the kernel, or
        the columns' widths.
    iterations : int, default 10
        How many of Lloyd's iterations to make at the most. They end when no row changes its
        cluster. With 0 the centres are rows.
    weights : array of shape (n,), optional
        A row of weight 2 counts as two rows. Rows of weight 0 move no centre.
    largest : int, optional
        Cut clusters of more rows than this, across their longest direction and into parts of equal
        size, for use as blocks. There may be more than m then, and not every row is in the cluster
        whose centre is nearest.
    rng : Generator, int or None
        Where the randomness comes from.

    Returns
    -------
    Clusters

    Notes
    -----
    O(n m d) time for the draws and for each iteration; O(n d) memory besides blocks of a few
    megabytes, which Mercer's threads work on.

    Centres follow the density of the inputs and know neither targets nor kernel, beyond its
    scales. They are a good start for inducing inputs that are optimised afterwards. Of discrete
    columns they are averages, which no row has.

    References
    ----------
    Arthur and Vassilvitskii, *k-means++: the advantages of careful seeding*, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import kmeans
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [12.0]])
    >>> clusters = kmeans(X, 2, rng=0)
    >>> np.sort(clusters.centres[:, 0])
    array([ 1., 11.])
    >>> np.sort(kmeans(X, 2, largest=2, rng=0).centres[:, 0])
    array([ 0. ,  1.5, 11. ])
    """
    X = _inputs(X)
    m, w, units = whole_number("m", m), _weights(weights, len(X)), _scales(scales, X.shape[1])
    if iterations != 0:
        iterations = whole_number("iterations", iterations)
    rng = np.random.default_rng(rng)
    # squares are expanded, so the origin must not be far away, and must not overflow
    origin = np.mean(X, axis=0)
    A = (X - origin) / units
    units = np.ldexp(units, np.frexp(np.max(np.abs(A)))[1])
    A = (X - origin) / units
    centres = A[_seeds(A, min(m, len(A)), w, rng)]
    now = _assign(A, centres, w)
    for _ in range(iterations):
        centres = _moved(A, centres, w, now)
        before, now = now, _assign(A, centres, w)
        if np.array_equal(before.labels, now.labels):
            break
    centres, labels = _filled(A, centres, w, now)
    if largest is not None:
        centres, labels = _cut(A, centres, labels, whole_number("largest", largest))
    return Clusters(centres * units + origin, labels)


def _seeds(A: Floats, m: int, w: Floats, rng: np.random.Generator) -> list[int]:
    """Draw rows by their squared distances from those drawn, at most m and none of them twice."""
    blocks = row_blocks(len(A), _ROWS)
    nearest = np.full(len(A), np.inf)
    chances = w
    seeds: list[int] = []

    def approach(s: slice) -> None:
        # differences, not expanded squares: a row that is drawn already has the chance 0
        steps = A[s] - A[seeds[-1]]
        np.minimum(nearest[s], np.einsum("ij,ij->i", steps, steps), out=nearest[s])

    while len(seeds) < m:
        total = np.cumsum(chances)
        if not total[-1] > 0:
            break
        row = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        # a product that is rounded up to the total itself is beyond the last row
        seeds.append(row if row < len(A) else int(np.flatnonzero(chances)[-1]))
        map_tiles(approach, blocks)
        chances = w * nearest
    return seeds


def _assign(A: Floats, centres: Floats, w: Floats) -> _Assignment:
    """Find the nearest centre of each row, and what the centres' rows add up to."""
    n, k = len(A), len(centres)
    labels, distances = np.empty(n, dtype=np.intp), np.empty(n)
    norms = np.einsum("ij,ij->i", centres, centres)
    twice = -2.0 * centres.T

    def work(s: slice) -> Floats:
        rows = A[s]
        away = rows @ twice
        away += norms
        labels[s] = own = np.argmin(away, axis=1)
        steps = rows - centres[own]
        distances[s] = np.einsum("ij,ij->i", steps, steps)
        columns = [np.bincount(own, w[s], k)]
        columns += [np.bincount(own, w[s] * column, k) for column in rows.T]
        return np.array(columns)

    with blas_for(0):
        parts = map_tiles(work, row_blocks(n, max(1, _ENTRIES // k)))
    total = np.sum(parts, axis=0)
    return _Assignment(labels, distances, total[1:].T, total[0])


def _moved(A: Floats, centres: Floats, w: Floats, now: _Assignment) -> Floats:
    """Return the means of the clusters, and for those that have no rows, rows far from theirs."""
    full = now.sizes > 0
    new = centres.copy()
    new[full] = now.sums[full] / now.sizes[full, None]
    empty = np.flatnonzero(~full)
    if empty.size:
        far = _far(A, w * now.distances, empty.size)
        new[empty[: len(far)]] = A[far]
    return new


def _far(A: Floats, away: Floats, number: int) -> list[int]:
    """Return different rows, the farthest first, that are not where their centre is."""
    far: list[int] = []
    seen: set[bytes] = set()
    for row in np.argsort(-away, kind="stable"):
        if len(far) == number or not away[row] > 0:
            break
        if (key := A[row].tobytes()) not in seen:
            seen.add(key)
            far.append(int(row))
    return far


def _filled(A: Floats, centres: Floats, w: Floats, now: _Assignment) -> tuple[Floats, Indices]:
    """Return centres that all have rows, and the assignment of rows to them."""
    for _ in range(_REPAIRS):
        used = np.bincount(now.labels, minlength=len(centres)) > 0
        far = _far(A, w * now.distances, int(np.sum(~used)))
        if not far:
            break
        centres = centres.copy()
        centres[np.flatnonzero(~used)[: len(far)]] = A[far]
        now = _assign(A, centres, w)
    used = np.bincount(now.labels, minlength=len(centres)) > 0
    return centres[used], (np.cumsum(used) - 1)[now.labels]


def _cut(A: Floats, centres: Floats, labels: Indices, largest: int) -> tuple[Floats, Indices]:
    """Cut clusters in two until none has more rows than `largest`."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=len(centres)))
    middles: list[Floats] = []
    numbers = np.empty_like(labels)
    for centre, cluster in zip(centres, np.split(order, ends[:-1]), strict=True):
        parts = _parts(A, cluster, largest)
        for part in parts:
            numbers[part] = len(middles)
            middles.append(centre if len(parts) == 1 else np.mean(A[part], axis=0))
    return np.array(middles), numbers


def _parts(A: Floats, rows: Indices, largest: int) -> list[Indices]:
    """Cut rows across their longest direction, and the parts again, into as few as will do."""
    number = -(-len(rows) // largest)
    if number == 1:
        return [rows]
    steps = A[rows] - np.mean(A[rows], axis=0)
    longest = np.linalg.eigh(steps.T @ steps)[1][:, -1]
    longest *= np.sign(longest[np.argmax(np.abs(longest))])  # LAPACK's choice of sign is its own
    rows = rows[np.argsort(steps @ longest, kind="stable")]
    here = len(rows) * (number // 2) // number
    return _parts(A, rows[:here], largest) + _parts(A, rows[here:], largest)


def _inputs(X: Any) -> Floats:
    try:
        X = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be an array of numbers, for means of rows: {error}") from None
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, at least one of each, got shape {X.shape}")
    if not np.all(np.isfinite(X)):
        raise ValueError("X holds NaN or infinity")
    return np.asarray(X)


def _scales(scales: ArrayLike | None, d: int) -> Floats:
    units = np.asarray(1.0 if scales is None else scales, dtype=float)
    if units.shape not in {(), (d,)} or not np.all((units > 0) & np.isfinite(units)):
        raise ValueError(
            f"scales must be a positive number, or {d} of them, one for each column; got {scales!r}"
        )
    return units


def _weights(weights: ArrayLike | None, n: int) -> Floats:
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=float)
    if w.shape != (n,) or not np.all((w >= 0) & np.isfinite(w)) or not np.any(w > 0):
        raise ValueError(f"weights must be {n} numbers of at least 0, not all 0; got {weights!r}")
    return w
