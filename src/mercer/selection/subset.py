"""Rows chosen by chance, or by their places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.selection.checks import whole_number

__all__ = ["random_subset", "spread_rows"]

# The golden ratio: multiples of it, less their whole parts, are spread evenly over [0, 1).
_GOLDEN = 0.6180339887498949


def random_subset(X: Any, m: int, rng: np.random.Generator | int | None = None) -> NDArray[np.intp]:
    """Return m different rows, each set of them as probable as any other.

    The plainest basis of the Nyström method (BKM 4.1): it looks neither at the kernel nor at the
    inputs. Rows that repeat may be drawn, and add nothing; where the kernel is smooth, the greedy
    choices need fewer rows for the same error.

    Parameters
    ----------
    X : inputs
        n rows.
    m : int
        How many to choose, at most n.
    rng : Generator, int or None
        Where the randomness comes from. With the same seed, fewer rows are the first ones of more.

    Returns
    -------
    ndarray of shape (m,)
        Their numbers, in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import random_subset
    >>> chosen = random_subset(np.zeros((100, 2)), 5, rng=0)
    >>> len(set(chosen.tolist()))
    5
    """
    n = len(X)
    m = whole_number("m", m)
    if m > n:
        raise ValueError(f"m must be at most the number of rows, {n}, got {m}")
    return np.random.default_rng(rng).permutation(n)[:m].astype(np.intp)


def spread_rows(n: int, count: int) -> NDArray[np.intp]:
    """Return `count` different ones of n rows, in their order; all if there are no more.

    One of each of as many stretches of the rows, at places that have no period: rows may be sorted,
    and may alternate.
    """
    if n <= count:
        return np.arange(n)
    k = np.arange(count + 1)
    ends = k * n // count  # at least a row apart
    place = (k[:-1] * _GOLDEN) % 1.0
    return ends[:-1] + np.asarray(place * np.diff(ends), dtype=np.intp)
