"""What an on-line process had predicted of rows, as predictions of their observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer.inference.online import Before
from mercer.likelihoods import Gaussian, Likelihood
from mercer.likelihoods.class_probabilities import link_probabilities
from mercer.likelihoods.observed import observed_interval, observed_mean, observed_var

__all__ = ["Numbers", "classes_before", "interval_before", "numbers_before"]

Floats = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Numbers(NamedTuple):
    """Predictions of numbers: mean and std (n, P), and the log density of what they were (n,)."""

    mean: Floats
    std: Floats
    log_density: Floats


def numbers_before(likelihood: Likelihood, scale: Floats, before: Before, Y: Floats) -> Numbers:
    """Return what was predicted of observations Y (n, P), whatever the weights of the rows.

    -inf is the log density of what could not be, or was too far away for floating point.
    """
    if isinstance(likelihood, Gaussian):
        std = _gaussian_std(likelihood, scale, before)
        with np.errstate(over="ignore"):
            logs = -0.5 * ((Y - before.mean) / std) ** 2 - np.log(std) - _LOG_ROOT_2PI
        return Numbers(before.mean, std, np.sum(logs, axis=1))
    m, v = _in_units(scale, before)
    mean = scale * observed_mean(likelihood, m, v)
    std = scale * np.sqrt(observed_var(likelihood, m, v))
    with np.errstate(all="ignore"):
        own = np.sum(likelihood.log_predictive(Y / scale, m, v) - np.log(scale), axis=1)
    return Numbers(mean, std, np.where(np.isnan(own), -np.inf, own))


def interval_before(
    likelihood: Likelihood, scale: Floats, before: Before, coverage: float
) -> tuple[Floats, Floats]:
    """Return the ends (n, P) of the equal-tailed intervals of the observations."""
    if isinstance(likelihood, Gaussian):
        half = -ndtri(0.5 * (1.0 - coverage)) * _gaussian_std(likelihood, scale, before)
        return before.mean - half, before.mean + half
    low, high = observed_interval(likelihood, *_in_units(scale, before), coverage)
    return scale * low, scale * high


def _gaussian_std(likelihood: Gaussian, scale: Floats, before: Before) -> Floats:
    """Return what `observed_var` is the square of, in the time that a stream has for it."""
    return np.asarray(np.sqrt(before.var + likelihood.new_variance * scale**2))


def _in_units(scale: Floats, before: Before) -> tuple[Floats, Floats]:
    return before.mean / scale, before.var / scale**2


def classes_before(links: Sequence[Likelihood], before: Before, Y: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities (n, C) of the classes, and the log of that of each row's own (n,).

    Y (n, P) has the labels as `labels.label_codes`.
    """
    proba = link_probabilities(links, before.mean, before.var).values
    own = np.argmax(Y, axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0) * 1
    return proba, np.log(proba[np.arange(len(Y)), own])
