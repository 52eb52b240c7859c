"""The metrics as scorers: ``scorer(model, X, y)``, the higher the better unless said otherwise."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from mercer.metrics.calibration import LEVELS
from mercer.metrics.checks import average
from mercer.metrics.intervals import interval_score, interval_width
from mercer.metrics.predictions import Predictions, predictions

__all__ = [
    "Scorer",
    "get_scorer",
    "get_scorer_names",
    "neg_calibration_error",
    "neg_crps",
    "neg_log_predictive_density",
    "neg_mean_standardised_log_loss",
]

Metric = Callable[[Predictions, ArrayLike | None], float]


class Scorer:
    """A metric of a fitted model, called as scikit-learn calls what it is given as `scoring`.

    Made by :func:`get_scorer`. Takes regressors with ``predict(X, return_std=True)``, alone or
    in pipelines, searches and `MultiOutputRegressor`; those with ``log_predictive_density``,
    ``predict_interval`` and ``predict_cdf`` are asked through these, so that the score is right for
    any likelihood. Several outputs are averaged.

    Of a classifier there is ``neg_log_predictive_density``, the mean log probability of the labels;
    the other metrics are of numbers, and refuse it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from mercer import GPRegressor
    >>> from mercer.metrics import get_scorer
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> scoring = {name: get_scorer(name) for name in ("neg_crps", "coverage_90")}
    >>> scores = cross_validate(GPRegressor(), X, y, scoring=scoring)
    >>> sorted(scores)
    ['fit_time', 'score_time', 'test_coverage_90', 'test_neg_crps']
    """

    def __init__(self, name: str, metric: Metric) -> None:
        self.__name__ = name
        self._metric = metric
        self._request: bool | str | None = None

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the score of a fitted model on the rows of X and their targets.

        Parameters
        ----------
        estimator : fitted estimator
            The model.
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Observed targets, or labels.
        sample_weight : array-like of shape (n,), optional
            How much each row counts.
        """
        return self._metric(predictions(estimator, X, y), sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Return a scorer that asks scikit-learn's metadata routing for weights.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: weights are passed on to the scorer. False: they are not. A name: what is passed
            under that name. None: passing any is an error.
        """
        new = copy.copy(self)  # scorers are shared, so that none of them changes
        new._request = sample_weight
        return new

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn's searches ask this of scorers while metadata routing is off
        return True

    def __repr__(self) -> str:
        return self.__name__


def _log_predictive_density(given: Predictions, sample_weight: ArrayLike | None) -> float:
    return float(average(given.log_density(), sample_weight, "uniform_average"))


def _standardised_log_density(given: Predictions, sample_weight: ArrayLike | None) -> float:
    gain = given.log_density() - given.baseline_log_density()
    return float(average(gain, sample_weight, "uniform_average"))


def _neg_crps(given: Predictions, sample_weight: ArrayLike | None) -> float:
    return -float(average(given.crps(), sample_weight, "uniform_average"))


def _neg_calibration_error(given: Predictions, sample_weight: ArrayLike | None) -> float:
    observed = [
        average(given.inside(level).astype(float), sample_weight, "raw_values") for level in LEVELS
    ]
    return -float(np.mean(np.abs(np.transpose(observed) - LEVELS)))


def _coverage(level: float, given: Predictions, sample_weight: ArrayLike | None) -> float:
    return float(average(given.inside(level).astype(float), sample_weight, "uniform_average"))


def _neg_interval_width(level: float, given: Predictions, sample_weight: ArrayLike | None) -> float:
    return -float(interval_width(*given.interval(level), sample_weight=sample_weight))


def _neg_interval_score(level: float, given: Predictions, sample_weight: ArrayLike | None) -> float:
    ends = given.interval(level)
    return -float(interval_score(given.y, *ends, level, sample_weight=sample_weight))


#: The mean log predictive density, of classifiers the log probability of the labels; by the
#: model's own `log_predictive_density`.
neg_log_predictive_density = Scorer("neg_log_predictive_density", _log_predictive_density)
#: By how much that is above the log density of the training targets' mean and variance; of Mercer's
#: regressors, and of models that keep their targets as `y_train_`.
neg_mean_standardised_log_loss = Scorer("neg_mean_standardised_log_loss", _standardised_log_density)
#: Minus the continuous ranked probability score.
neg_crps = Scorer("neg_crps", _neg_crps)
#: Minus the mean absolute difference between nominal and observed coverage, from 5% to 95%.
neg_calibration_error = Scorer("neg_calibration_error", _neg_calibration_error)

_NAMED = {
    scorer.__name__: scorer
    for scorer in (
        neg_log_predictive_density,
        neg_mean_standardised_log_loss,
        neg_crps,
        neg_calibration_error,
    )
}
_LEVELLED = {
    "coverage": _coverage,
    "neg_interval_width": _neg_interval_width,
    "neg_interval_score": _neg_interval_score,
}


def get_scorer(name: str) -> Scorer:
    """Return a scorer by its name.

    Parameters
    ----------
    name : str
        - "neg_log_predictive_density": the mean log density of the targets, or log probability
          of the labels.
        - "neg_mean_standardised_log_loss": by how much that is above the log density of the
          training targets' mean and variance.
        - "neg_crps": minus the continuous ranked probability score.
        - "neg_calibration_error": minus the mean absolute difference between nominal and observed
          coverage.
        - "neg_interval_width_95", "neg_interval_score_95": minus the mean width or score of
          intervals of 95%, or of any other whole percentage.
        - "coverage_95": the fraction of targets within these intervals. To be near 0.95, so that
          it is for reports, not for choosing the best.

    Returns
    -------
    Scorer
        For `scoring` of scikit-learn's ``cross_val_score``, ``cross_validate`` and searches.

    Notes
    -----
    scikit-learn takes only its own scorers by name, and offers no way to add others. Pass the
    scorer itself, or a dictionary of scorers.

    Intervals of counts end at whole numbers, both included, so that right ones hold more than they
    promise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from mercer import GPRegressor
    >>> from mercer.metrics import get_scorer
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> scores = cross_val_score(GPRegressor(), X, y, scoring=get_scorer("neg_crps"))
    >>> bool(np.all(scores < 0))
    True
    """
    if name in _NAMED:
        return _NAMED[name]
    found = re.fullmatch(r"(\w+)_([1-9][0-9]?)", str(name))
    if found and found[1] in _LEVELLED:
        return Scorer(str(name), partial(_LEVELLED[found[1]], int(found[2]) / 100.0))
    raise ValueError(
        f"there is no scorer {name!r}; the scorers are {', '.join(get_scorer_names())}, the last "
        "three with any whole percentage from 1 to 99"
    )


def get_scorer_names() -> list[str]:
    """Return the names that `get_scorer` takes, those with a percentage for one of 95.

    Examples
    --------
    >>> from mercer.metrics import get_scorer_names
    >>> get_scorer_names()[0]
    'neg_log_predictive_density'
    """
    return [*_NAMED, *(f"{name}_95" for name in _LEVELLED)]
