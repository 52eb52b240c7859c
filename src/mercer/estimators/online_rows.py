"""Single rows for on-line estimators, learned without the checks that tables want.

The state is the one to which `learn` with the same rows one at a time leads, to the last bit, and
comes to it in a third of the time: what scikit-learn asks of every array takes longer than the
recursion does. Rows must be as those checks would leave them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.online_classifier import OnlineGPClassifier
from mercer.estimators.online_fit import LearnsOnline
from mercer.estimators.online_regressor import OnlineGPRegressor
from mercer.inference.online import Before
from mercer.likelihoods.class_probabilities import link_probabilities
from mercer.likelihoods.observed import observed_interval, observed_mean, observed_var

__all__ = ["ClassRows", "NumberRows"]

Floats = NDArray[np.float64]


def _learned(estimator: LearnsOnline, x: Floats, Y: Floats, weight: float) -> Before:
    """Learn one row; return what the latent functions were before."""
    process = estimator._require_begun()
    estimator._posterior = None
    before = process.learn(x, Y, None if weight == 1.0 else np.array([weight]))
    estimator._warn_of_skipped(before)
    return before


class NumberRows:
    """Rows for a regressor of one target.

    Parameters
    ----------
    estimator : OnlineGPRegressor
        Which learns them.
    coverage : float
        What the interval of a prediction is to hold.
    """

    def __init__(self, estimator: OnlineGPRegressor, coverage: float) -> None:
        self.estimator, self.coverage = estimator, coverage
        self.likelihood, self.scale = estimator.likelihood_, estimator._require_begun().scale

    def learn(self, x: Floats, y: float, weight: float = 1.0) -> tuple[list[float], float]:
        """Learn a row; return what was predicted of it, and the log density of what it was.

        Parameters
        ----------
        x : (1, d) array of float64
            Finite inputs.
        y : float
            A finite target.
        weight : float, default 1.0
            The power of its likelihood, above 0.

        Returns
        -------
        list of float
            Mean, standard deviation, lower and upper end, of an observation at x.
        float
            The log predictive density, whatever the weight.
        """
        s, likelihood = self.scale, self.likelihood
        before = _learned(self.estimator, x, np.array([[y]]), weight)
        m, v = before.mean / s, before.var / s**2
        mean, std = observed_mean(likelihood, m, v), np.sqrt(observed_var(likelihood, m, v))
        parts = mean, std, *observed_interval(likelihood, m, v, self.coverage)
        log = before.log_density.item()
        if weight != 1.0:
            log = (likelihood.log_predictive(y / s[None], m, v) - np.log(s)).item()
        return [(s * part).item() for part in parts], -np.inf if np.isnan(log) else log


class ClassRows:
    """Rows for a classifier.

    Parameters
    ----------
    estimator : OnlineGPClassifier
        Which learns them.
    """

    def __init__(self, estimator: OnlineGPClassifier) -> None:
        self.estimator = estimator
        labels = estimator.classes_.tolist()
        codes = 2.0 * np.eye(len(labels)) - 1.0
        codes = codes[:, 1:] if len(labels) == 2 else codes
        self._codes: dict[Any, tuple[int, Floats]] = {
            label: (i, codes[i : i + 1]) for i, label in enumerate(labels)
        }

    def learn(self, x: Floats, y: Any, weight: float = 1.0) -> tuple[list[float], float]:
        """Learn a row; return the probabilities of the classes before, and the log of its own.

        Parameters
        ----------
        x, weight : as for `NumberRows`
        y : label
            One of `classes_`.
        """
        own, Y = self._codes[y]
        before = _learned(self.estimator, x, Y, weight)
        found = link_probabilities(self.estimator._links, before.mean, before.var).values[0]
        return found.tolist(), float(np.log(found[own]))
