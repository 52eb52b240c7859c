"""Rows chosen by chance, and the checks that all choices share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel

__all__ = ["random_subset", "require_kernel", "whole_number"]


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


def require_kernel(kernel: Any) -> None:
    """Raise ValueError for what is no kernel: rows of data, say, which come after it."""
    if not isinstance(kernel, Kernel):
        shown = "an array" if isinstance(kernel, np.ndarray) else repr(kernel)
        raise ValueError(f"kernel must be one of mercer.kernels, such as RBF(), got {shown}")


def whole_number(name: str, value: Any) -> int:
    """Return a number of things, or raise ValueError if it is not a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)
