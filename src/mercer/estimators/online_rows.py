"""Single rows for on-line estimators, learned without the checks that tables want.

The state is the one to which `learn` with the same rows one at a time leads, to the last bit, and
comes to it in a third of the time: what scikit-learn asks of every array takes longer than the
recursion does. Rows must be as those checks would leave them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer.estimators.online_classifier import OnlineGPClassifier
from mercer.estimators.online_fit import LearnsOnline
from mercer.estimators.online_regressor import OnlineGPRegressor
from mercer.inference.online import Before
from mercer.likelihoods import Gaussian
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
        self._half = float(-ndtri(0.5 * (1.0 - coverage)))
        self._noise: float | None = None
        if isinstance(self.likelihood, Gaussian):
            self._noise = float(self.likelihood.new_variance * self.scale[0] ** 2)

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
        before = _learned(self.estimator, x, np.array([[y]]), weight)
        mean, log = before.mean.item(), before.log_density.item()
        if weight != 1.0:
            s = self.scale
            m, v = before.mean / s, before.var / s**2
            log = (self.likelihood.log_predictive(y / s[None], m, v) - np.log(s)).item()
        log = -math.inf if math.isnan(log) else log
        if self._noise is None:
            return self._observed(before), log
        # what `_observed` would say, in the time that a stream has for it
        std = math.sqrt(before.var.item() + self._noise)
        return [mean, std, mean - self._half * std, mean + self._half * std], log

    def _observed(self, before: Before) -> list[float]:
        s, likelihood = self.scale, self.likelihood
        m, v = before.mean / s, before.var / s**2
        mean, std = observed_mean(likelihood, m, v), np.sqrt(observed_var(likelihood, m, v))
        parts = mean, std, *observed_interval(likelihood, m, v, self.coverage)
        return [(s * part).item() for part in parts]


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
