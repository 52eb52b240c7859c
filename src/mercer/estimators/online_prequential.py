"""What an on-line process had predicted of rows, as predictions of their observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference.online import Before
from mercer.likelihoods import Likelihood
from mercer.likelihoods.class_probabilities import link_probabilities
from mercer.likelihoods.observed import observed_interval, observed_mean, observed_var

__all__ = ["Numbers", "classes_before", "interval_before", "label_codes", "numbers_before"]

Floats = NDArray[np.float64]


class Numbers(NamedTuple):
    """Predictions of numbers: mean and std (n, P), and the log density of what they were (n,)."""

    mean: Floats
    std: Floats
    log_density: Floats


def numbers_before(likelihood: Likelihood, scale: Floats, before: Before, Y: Floats) -> Numbers:
    """Return what was predicted of observations Y (n, P), whatever the weights of the rows.

    -inf is the log density of what could not be, or was too far away for floating point.
    """
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
    low, high = observed_interval(likelihood, *_in_units(scale, before), coverage)
    return scale * low, scale * high


def _in_units(scale: Floats, before: Before) -> tuple[Floats, Floats]:
    return before.mean / scale, before.var / scale**2


def classes_before(links: Sequence[Likelihood], before: Before, Y: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities (n, C) of the classes, and the log of that of each row's own (n,).

    Y (n, P) has the labels as `label_codes`.
    """
    proba = link_probabilities(links, before.mean, before.var).values
    own = np.argmax(Y, axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0) * 1
    return proba, np.log(proba[np.arange(len(Y)), own])


def label_codes(n_classes: int) -> Floats:
    """Return the targets of a label of each class: 1 of its own function, -1 of the others (C, P).

    Two classes have one function, positive where the second is.
    """
    codes = 2.0 * np.eye(n_classes) - 1.0
    return codes[:, 1:] if n_classes == 2 else codes
