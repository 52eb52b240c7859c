"""Metrics of predictions that are a mean and a standard deviation, read as Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from mercer.likelihoods.normal import LOG_2PI
from mercer.metrics.checks import average, columns, row_weights

__all__ = [
    "baseline_log_density",
    "crps",
    "crps_of_rows",
    "gaussian_interval",
    "log_density_about",
    "log_density_of_rows",
    "mean_standardised_log_loss",
    "negative_log_predictive_density",
    "pit",
    "standardised",
]

Floats = NDArray[np.float64]


def negative_log_predictive_density(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the mean of -log N(y; mean, std^2): the lower, the better.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    mean, std : array-like of the same shape
        The prediction of each new observation, noise included; std above 0.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    See Also
    --------
    mercer.metrics.neg_log_predictive_density : the scorer, for any likelihood.

    Notes
    -----
    In natural logarithms, for the targets' own units: in units ten times larger it is log(10)
    less. `mean_standardised_log_loss` has no units.

    Examples
    --------
    >>> from mercer.metrics import negative_log_predictive_density
    >>> round(negative_log_predictive_density([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.1689
    """
    return average(-log_density_of_rows(y, mean, std), sample_weight, multioutput)


def mean_standardised_log_loss(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    y_train: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    train_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return by how much the log loss is above that of the training targets' mean and variance.

    0 is no better than predicting N(mean of y_train, variance of y_train) everywhere; the lower,
    the better.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    mean, std : array-like of the same shape
        The prediction of each new observation, noise included; std above 0.
    y_train : array-like of shape (m,) or (m, P)
        The targets that the model was fitted to.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    train_weight : array-like of shape (m,), optional
        How much each training row counts in the mean and variance.
    multioutput : {"uniform_average", "raw_values"}, default "uniform_average"
        Whether to average over the P outputs, or to return a value for each.

    Returns
    -------
    float, or ndarray of shape (P,)

    Examples
    --------
    >>> from mercer.metrics import mean_standardised_log_loss
    >>> round(mean_standardised_log_loss([0.0, 2.0], [0.1, 2.1], [0.2, 0.2], [0.0, 2.0]), 4)
    -1.9844
    """
    model = log_density_of_rows(y, mean, std)
    loss = baseline_log_density(np.asarray(y, dtype=float), y_train, train_weight) - model
    return average(loss, sample_weight, multioutput)


def baseline_log_density(
    y: Floats, y_train: ArrayLike, train_weight: ArrayLike | None = None
) -> Floats:
    """Return log N(y; mean, variance) with those of the training targets."""
    (train,) = columns(y_train=y_train)
    if train.ndim != y.ndim or train.shape[1:] != y.shape[1:]:
        raise ValueError(
            f"y_train must have the outputs of y, which has shape {y.shape}, got {train.shape}"
        )
    weights = row_weights(train_weight, len(train))
    centre = np.average(train, axis=0, weights=weights)
    deviation = np.sqrt(np.average((train - centre) ** 2, axis=0, weights=weights))
    return log_density_about(y, centre, deviation)


def log_density_about(y: Floats, centre: ArrayLike, deviation: ArrayLike) -> Floats:
    """Return log N(y; centre, deviation^2), the moments being those of the training targets."""
    if np.any(np.asarray(deviation) == 0):
        raise ValueError(
            "the training targets have no variance, so there is no loss to compare with: there "
            "must be at least two different ones an output"
        )
    return log_density_of_rows(
        y, np.broadcast_to(centre, y.shape), np.broadcast_to(deviation, y.shape)
    )


def crps(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Any:
    """Return the continuous ranked probability score of Gaussian predictions.

    The integral of (F(x) - [x >= y])^2 over x, F the predicted distribution function: in the
    targets' units, the absolute error of a prediction without spread. The lower, the better.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    mean, std : array-like of the same shape
        The prediction of each new observation, noise included. A std of 0 gives the absolute
        error.
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
    Journal of the American Statistical Association 102, equation 21.

    Examples
    --------
    >>> from mercer.metrics import crps
    >>> round(crps([0.0], [0.0], [1.0]), 4)
    0.2337
    >>> crps([3.0], [1.0], [0.0])
    2.0
    """
    return average(crps_of_rows(y, mean, std), sample_weight, multioutput)


def crps_of_rows(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """Return the continuous ranked probability score of each Gaussian prediction."""
    y, mean, std = columns(y=y, mean=mean, std=std)
    z = np.abs(standardised(y, mean, std))
    density = np.exp(-0.5 * np.minimum(z, 40.0) ** 2) / np.sqrt(2.0 * np.pi)
    far = np.abs(y - mean) * (2.0 * ndtr(z) - 1.0)
    return np.asarray(far + std * (2.0 * density - 1.0 / np.sqrt(np.pi)))


def pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """Return the probability integral transform: the predicted probability of at most y.

    Uniform between 0 and 1 where the predictions are calibrated.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, P)
        Observed targets.
    mean, std : array-like of the same shape
        The prediction of each new observation, noise included. Where std is 0 the value is 0, 1,
        or, at the mean itself, one half.

    Returns
    -------
    ndarray of the shape of y

    See Also
    --------
    calibration_error : what is made of them.

    Examples
    --------
    >>> from mercer.metrics import pit
    >>> pit([0.0, 1.0, -3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]).round(4)
    array([0.5   , 0.8413, 0.0013])
    """
    y, mean, std = columns(y=y, mean=mean, std=std)
    return np.asarray(ndtr(standardised(y, mean, std)))


def log_density_of_rows(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """Return log N(y; mean, std^2) for each prediction."""
    y, mean, std = columns(y=y, mean=mean, std=std)
    if not np.all(std > 0):
        row = int(np.argwhere(std <= 0)[0, 0])
        raise ValueError(
            f"std must be above 0, row {row} has {std[row]}: a prediction without spread has no "
            "density"
        )
    with np.errstate(over="ignore"):  # a std that is all but 0
        return np.asarray(-0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * LOG_2PI)


def gaussian_interval(mean: Floats, std: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the central interval of each Gaussian prediction."""
    half = -ndtri(0.5 * (1.0 - level)) * std
    return mean - half, mean + half


def standardised(y: Floats, mean: Floats, std: Floats) -> Floats:
    """Return (y - mean)/std, and its limit where std is 0."""
    if np.any(std < 0):
        row = int(np.argwhere(std < 0)[0, 0])
        raise ValueError(f"std must be at least 0, row {row} has {std[row]}")
    error = y - mean
    with np.errstate(over="ignore"):
        ratio = np.divide(error, std, out=np.zeros_like(error), where=std > 0)
    return np.where((std == 0) & (error != 0), np.copysign(np.inf, error), ratio)
