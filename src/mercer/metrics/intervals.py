"""Metrics of predicted intervals, whatever distribution they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.metrics.checks import average, columns, require_level

__all__ = ["coverage", "interval_score", "interval_width"]

Floats = NDArray[np.float64]


def coverage(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the fraction of targets that lie within their intervals, ends included.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    lower, upper : array-like of the same shape
        The ends of the intervals, as of ``predict_interval``; they may be infinite.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    Examples
    --------
    >>> from mercer.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0])
    0.75
    """
    y, lower, upper = _ends(y, lower, upper)
    inside = (lower <= y) & (y <= upper)
    return average(inside.astype(float), sample_weight, multioutput)


def interval_width(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the mean width of the intervals, in the targets' units.

    Of two models whose intervals hold what they should, the one with narrower ones is better;
    `interval_score` weighs both.

    Parameters
    ----------
    lower, upper : array-like of shape (n,) or (n, P)
        The ends of the intervals, as of ``predict_interval``.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    Examples
    --------
    >>> from mercer.metrics import interval_width
    >>> interval_width([0.0, 1.0], [2.0, 5.0])
    3.0
    """
    _, lower, upper = _ends(None, lower, upper)
    return average(upper - lower, sample_weight, multioutput)


def interval_score(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    coverage: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the interval score: the width, and what targets outside it cost.

    (upper - lower) + 2/(1 - coverage) times the distance of y from the interval. The lower, the
    better; least, on average, for the true quantiles.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    lower, upper : array-like of the same shape
        The ends of the equal-tailed intervals, as of ``predict_interval``.
    coverage : float, default 0.95
        The probability that the intervals are to hold.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    References
    ----------
    T. Gneiting and A. Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
    Journal of the American Statistical Association 102, equation 43.

    Examples
    --------
    >>> from mercer.metrics import interval_score
    >>> interval_score([1.0, 5.0], [0.0, 0.0], [4.0, 4.0], coverage=0.5)
    6.0
    """
    tails = 1.0 - require_level("coverage", coverage)
    y, lower, upper = _ends(y, lower, upper)
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return average(upper - lower + 2.0 / tails * outside, sample_weight, multioutput)


def _ends(y: ArrayLike | None, lower: ArrayLike, upper: ArrayLike) -> list[Floats]:
    """Return targets and ends of one shape, no interval upside down."""
    targets = None if y is None else columns(y=y)[0]
    low, high = columns(finite=False, lower=lower, upper=upper)
    if targets is None:
        targets = low
    if targets.shape != low.shape:
        raise ValueError(f"lower must have the shape of y, {targets.shape}, got {low.shape}")
    if np.any(low > high):
        row = int(np.argwhere(low > high)[0, 0])
        raise ValueError(f"lower must not be above upper, row {row} has {low[row]} and {high[row]}")
    return [targets, low, high]
