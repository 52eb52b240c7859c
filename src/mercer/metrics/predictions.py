"""What a scorer asks of a fitted model, through pipelines, searches and wrappers.

A model offers ``predict(X, return_std=True)`` and, where it can do better than a Gaussian of that
mean and spread, ``log_predictive_density(X, y)``, ``predict_interval(X, coverage)`` and
``predict_cdf(X, y)``. Mercer's regressors have all four; several of scikit-learn's have the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from mercer.estimators.regressor import BayesianRegressor
from mercer.evidence.target_sums import moments_of
from mercer.likelihoods import Gaussian
from mercer.metrics.checks import columns
from mercer.metrics.gaussian import (
    baseline_log_density,
    crps_of_rows,
    gaussian_interval,
    log_density_about,
    log_density_of_rows,
)
from mercer.metrics.ranked import crps_under

__all__ = ["Predictions", "pit_of", "predictions", "training_targets"]

Floats = NDArray[np.float64]

# The levels at which quantiles are asked of a model that offers no more than intervals: the nodes
# of Gauss and Legendre between 0 and 1/2, and their mirror images.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_TAILS, _SHARES = 0.25 * (1.0 + _NODES), 0.25 * _WEIGHTS


class Predictions(Protocol):
    """A model's predictions of given targets, an array of the targets' shape for each question."""

    @property
    def y(self) -> Floats:
        """The targets."""

    def log_density(self) -> Floats:
        """Return the log density of each target."""

    def baseline_log_density(self) -> Floats:
        """Return the log density of each target under the training targets' mean and variance."""

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the equal-tailed intervals that are to hold the targets."""

    def inside(self, level: float) -> NDArray[np.bool_]:
        """Return which targets lie in these intervals."""

    def crps(self) -> Floats:
        """Return the continuous ranked probability score of each target."""


def predictions(model: Any, X: Any, y: ArrayLike) -> Predictions:
    """Return the predictions of y at the rows of X by a model, whatever is wrapped around it.

    Parameters
    ----------
    model : fitted estimator
        A regressor, or a `Pipeline`, a search or a `MultiOutputRegressor` around one; or a
        classifier, of whose predictions there is the log density alone.
    X : array-like
        Inputs, as the model takes them.
    y : array-like of shape (n,) or (n, P)
        Observed targets, or labels of any type.
    """
    targets = y
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            if len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model.steps[-1][1]
        elif isinstance(model, MultiOutputRegressor):
            outputs = len(model.estimators_)
            (targets,) = columns(y=targets)
            if targets.shape[1:] != (outputs,):
                raise ValueError(
                    f"y must have one column for each of {outputs} outputs, got {targets.shape}"
                )
            parts = zip(model.estimators_, targets.T, strict=True)
            return _Stacked([predictions(part, X, column) for part, column in parts])
        elif is_classifier(model):
            return _Labels(model, X, targets)
        else:
            (targets,) = columns(y=targets)
            return _Single(model, X, targets)


def training_targets(model: Any) -> Floats | None:
    """Return the targets that a model was fitted to, in the user's units, if it has kept them."""
    train = getattr(model, "y_train_", None)
    if train is None:
        return None
    # scikit-learn's Gaussian process, and ours that stands in for it, keep what they normalised
    width, mean = getattr(model, "_y_train_std", 1.0), getattr(model, "_y_train_mean", 0.0)
    return np.asarray(train, dtype=float) * width + mean


def pit_of(model: Any, X: Any, y: Floats) -> Floats:
    """Return the probability integral transform by a model's ``predict_cdf``.

    The middle of a jump stands for it: where a prediction is certain, and of counts.
    """
    below, at_most = _jumps(model, X, y)
    return 0.5 * (below + at_most)


def _jumps(model: Any, X: Any, y: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of less than each target, and of at most it."""
    below = np.nextafter(y, -np.inf)
    return np.asarray(model.predict_cdf(X, below)), np.asarray(model.predict_cdf(X, y))


class _Single:
    """The predictions of one model."""

    def __init__(self, model: Any, X: Any, y: Floats) -> None:
        self._model, self._X, self.y = model, X, y

    def log_density(self) -> Floats:
        if hasattr(self._model, "log_predictive_density"):
            return np.asarray(self._model.log_predictive_density(self._X, self.y))
        return log_density_of_rows(self.y, *self._moments)

    def baseline_log_density(self) -> Floats:
        train = training_targets(self._model)
        if train is not None:
            weights = getattr(self._model, "sample_weight_", None)
            return baseline_log_density(self.y, np.reshape(train, (-1, *self.y.shape[1:])), weights)
        sums = getattr(self._model, "_target_sums", None)
        if sums is None or not np.all(sums[1] > 0):
            raise ValueError(
                f"this {type(self._model).__name__} has not kept the targets it was fitted to, nor "
                "their mean and variance; call mercer.metrics.mean_standardised_log_loss with them"
            )
        mean, deviation = (np.reshape(each, self.y.shape[1:]) for each in moments_of(sums))
        return log_density_about(self.y, mean, deviation)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        if self._is_gaussian:
            return gaussian_interval(*self._moments, level)
        low, high = self._model.predict_interval(self._X, coverage=level)
        return low, high

    def inside(self, level: float) -> NDArray[np.bool_]:
        if self._ranks is not None:
            # What `interval` says, without its quantiles: these are the least values that are
            # reached with the probability of the tail, and with that of all but the tail.
            (below, at_most), tail = self._ranks, 0.5 * (1.0 - level)
            return np.asarray((at_most >= tail) & (below < 1.0 - tail))
        low, high = self.interval(level)
        y, low, high = columns(finite=False, y=self.y, lower=low, upper=high)
        return np.asarray((low <= y) & (y <= high))

    def crps(self) -> Floats:
        if self._is_gaussian:
            return crps_of_rows(self.y, *self._moments)
        if isinstance(self._model, BayesianRegressor):
            likelihood, scale, *scaled = self._model._beside(self._X, self.y)
            return (scale * crps_under(likelihood, *scaled)).reshape(self.y.shape)
        # Twice the integral of the quantile loss over all levels.
        total = np.zeros(self.y.shape)
        for tail, share in zip(_TAILS, _SHARES, strict=True):
            ends = self._model.predict_interval(self._X, coverage=1.0 - 2.0 * tail)
            for level, quantile in zip((tail, 1.0 - tail), ends, strict=True):
                error = self.y - quantile
                total += 2.0 * share * np.maximum(level * error, (level - 1.0) * error)
        return total

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        predict = getattr(self._model, "predict", None)
        if predict is None or "return_std" not in inspect.signature(predict).parameters:
            raise ValueError(
                f"{type(self._model).__name__} predicts no spread: a probabilistic metric needs "
                "a model with predict(X, return_std=True)"
            )
        mean, std = predict(self._X, return_std=True)
        return np.asarray(mean, dtype=float), np.asarray(std, dtype=float)

    @property
    def _is_gaussian(self) -> bool:
        """Whether mean and spread say it all; one call then answers for every level."""
        if isinstance(self._model, BayesianRegressor):
            # of a Gaussian process; a class derived from the likelihood may be anything
            return type(getattr(self._model, "likelihood_", None)) is Gaussian
        return not hasattr(self._model, "predict_interval")

    @cached_property
    def _ranks(self) -> tuple[Floats, Floats] | None:
        """The probabilities of less than and of at most each target; None: ask for intervals."""
        if self._is_gaussian or not hasattr(self._model, "predict_cdf"):
            return None
        return _jumps(self._model, self._X, self.y)


class _Labels:
    """The predictions of a classifier, whose labels are no numbers, even where they look it."""

    def __init__(self, model: Any, X: Any, y: Any) -> None:
        self._model, self._X, self._labels = model, X, y

    @property
    def y(self) -> Floats:
        raise self._refusal("an interval")

    def log_density(self) -> Floats:
        if not hasattr(self._model, "log_predictive_density"):
            raise ValueError(
                f"{type(self._model).__name__} has no log_predictive_density(X, y); of its "
                "predict_proba the same is scikit-learn's scorer 'neg_log_loss'"
            )
        return np.asarray(self._model.log_predictive_density(self._X, self._labels))

    def baseline_log_density(self) -> Floats:
        raise self._refusal("a mean and variance of its training targets")

    def interval(self, level: float) -> tuple[Floats, Floats]:
        raise self._refusal("an interval")

    def inside(self, level: float) -> NDArray[np.bool_]:
        raise self._refusal("an interval")

    def crps(self) -> Floats:
        raise self._refusal("a distribution over numbers")

    def _refusal(self, what: str) -> ValueError:
        return ValueError(
            f"{type(self._model).__name__} is a classifier, and this metric is for regressors: it "
            f"asks for {what}. Of labels take neg_log_predictive_density"
        )


class _Stacked:
    """The predictions of several models, one an output."""

    def __init__(self, parts: Sequence[Predictions]) -> None:
        self._parts = parts
        self.y = np.column_stack([part.y for part in parts])

    def log_density(self) -> Floats:
        return np.column_stack([part.log_density() for part in self._parts])

    def baseline_log_density(self) -> Floats:
        return np.column_stack([part.baseline_log_density() for part in self._parts])

    def interval(self, level: float) -> tuple[Floats, Floats]:
        low, high = zip(*(part.interval(level) for part in self._parts), strict=True)
        return np.column_stack(low), np.column_stack(high)

    def inside(self, level: float) -> NDArray[np.bool_]:
        return np.column_stack([part.inside(level) for part in self._parts])

    def crps(self) -> Floats:
        return np.column_stack([part.crps() for part in self._parts])
