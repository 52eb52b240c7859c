"""What a greedy fit returns, what another goes on from, and what it may be told."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference.quadratic import Bounds

__all__ = ["GreedySolution", "GreedyState", "powers", "tolerance"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class GreedySolution(NamedTuple):
    """Where a greedy fit stands.

    indices : (m,) numbers of the rows that are the basis, in the order in which they were added
    coefficients : (m, P) alpha (BKM 86), of their kernel sections
    fitted : (n, P) the values of f at the rows
    bounds : what L_min lies between (BKM 80), summed over outputs, and the Gap (BKM 84)
    gaps : (m,) the Gap when there were 1, 2, ..., m rows: it never increases
    status : "certified" (the Gap is at most `tol`), "stopped" (there are as many rows as may be),
        "exhausted" (no row has anything but rounding to add), "interrupted" or "estimated"
    source : the dual that the lower bound is from
    n_products : how many products with the n x n kernel matrix it took
    """

    indices: Indices
    coefficients: Floats
    fitted: Floats
    bounds: Bounds
    gaps: Floats
    status: str
    source: str
    n_products: int


class GreedyState(NamedTuple):
    """What a fit can be taken up from, in arrays.

    indices : (m,) rows of the basis
    left : (n,) mask over the rows that may still be drawn
    gaps : (m,)
    lower : the best lower bound
    subset : (k,) rows of the dual's own subset
    """

    indices: Indices
    left: NDArray[np.bool_]
    gaps: Floats
    lower: float
    subset: Indices


def powers(weights: ArrayLike | None, n: int) -> Floats | None:
    """Return weights of n rows, or None; ValueError unless they are positive numbers."""
    w = None if weights is None else np.asarray(weights, dtype=float)
    if w is not None and not (w.shape == (n,) and np.all((w > 0) & np.isfinite(w))):
        raise ValueError(f"weights must be {n} positive numbers, one for each row, got {weights!r}")
    return w


def tolerance(tol: Any) -> float:
    """Return a Gap as a number; ValueError unless it is one that is below the largest."""
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not 0 <= tol < 2:
        raise ValueError(f"tol must be a number from 0 to less than 2, got {tol!r}")
    return float(tol)
