"""How far the coverage of predictions is from what they promise, over many levels at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.metrics.checks import average, columns

__all__ = ["LEVELS", "CalibrationCurve", "calibration_curve", "calibration_error", "checked_levels"]

Floats = NDArray[np.float64]

#: The levels at which coverage is looked at: 5%, 10%, ..., 95%.
LEVELS: Floats = np.arange(1, 20) / 20.0
LEVELS.setflags(write=False)


class CalibrationCurve(NamedTuple):
    """Coverage promised and coverage observed.

    nominal : (k,) the probabilities that equal-tailed intervals are to hold
    observed : (k,), or (k, P) for several outputs: the fractions of targets that they did hold
    """

    nominal: Floats
    observed: Floats


def calibration_curve(
    pit_values: ArrayLike,
    levels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> CalibrationCurve:
    """Return which fraction of targets lay in the equal-tailed interval of each level.

    Parameters
    ----------
    pit_values : array-like of shape (n,) or (n, P)
        The predicted probability of at most each observed target, as of `pit`.
    levels : array-like of shape (k,), optional
        Probabilities between 0 and 1; 0.05, 0.1, ..., 0.95 without them.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.

    Returns
    -------
    CalibrationCurve
        `nominal` and `observed`. Observed above nominal: the error bars are too wide.

    Examples
    --------
    >>> from mercer.metrics import calibration_curve
    >>> calibration_curve([0.1, 0.4, 0.5, 0.6, 0.9], levels=[0.5, 0.9]).observed
    array([0.6, 1. ])
    """
    values = _probabilities(pit_values)
    nominal = checked_levels(levels)
    reach = 2.0 * np.abs(values - 0.5)  # the least level whose interval holds the target
    observed = [
        average((reach <= level).astype(float), sample_weight, "raw_values") for level in nominal
    ]
    return CalibrationCurve(nominal, np.array(observed))


def calibration_error(
    pit_values: ArrayLike,
    levels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the mean absolute difference between nominal and observed coverage.

    Parameters
    ----------
    pit_values : array-like of shape (n,) or (n, P)
        The predicted probability of at most each observed target, as of `pit`.
    levels : array-like of shape (k,), optional
        Probabilities between 0 and 1; 0.05, 0.1, ..., 0.95 without them.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    Notes
    -----
    Between 0 and about one half. Calibrated predictions of n rows have about 0.3/sqrt(n), not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import calibration_error
    >>> round(calibration_error(np.linspace(0.0, 1.0, 1001)), 3)
    0.0
    >>> calibration_error([0.5, 0.5])  # as if the error bars could not be wide enough
    0.5
    """
    nominal, observed = calibration_curve(pit_values, levels, sample_weight=sample_weight)
    difference = np.abs(observed.T - nominal).T
    return average(difference, None, multioutput)


def checked_levels(levels: ArrayLike | None) -> Floats:
    """Return levels, each between 0 and 1, both excluded."""
    if levels is None:
        return LEVELS
    (nominal,) = columns(levels=levels)
    if nominal.ndim != 1 or np.any((nominal <= 0) | (nominal >= 1)):
        raise ValueError(f"levels must be numbers between 0 and 1, got {levels!r}")
    return nominal


def _probabilities(pit_values: ArrayLike) -> Floats:
    (values,) = columns(pit_values=pit_values)
    if np.any((values < 0) | (values > 1)):
        raise ValueError(
            "pit_values must be probabilities from 0 to 1, as pit(y, mean, std) returns them, got "
            f"some from {values.min():.4g} to {values.max():.4g}"
        )
    return values
