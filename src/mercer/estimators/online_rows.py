"""Single rows for on-line estimators, learned without the checks that tables want.

The state is the one to which `learn` with the same rows one at a time leads, to the last bit, and
comes to it in a third of the time: what scikit-learn asks of every array takes longer than the
recursion does. Rows must be as those checks would leave them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.labels import label_codes
from mercer.estimators.online_classifier import OnlineGPClassifier
from mercer.estimators.online_fit import LearnsOnline
from mercer.estimators.online_prequential import (
    classes_before,
    interval_before,
    numbers_before,
)
from mercer.estimators.online_regressor import OnlineGPRegressor
from mercer.evidence.target_sums import with_row
from mercer.inference.online import Before

__all__ = ["ClassRows", "NumberRows", "RowBefore"]

Floats = NDArray[np.float64]


class RowBefore(NamedTuple):
    """What was predicted of a row before it was learned.

    values : mean, standard deviation, lower and upper end of an observation at x; or the
        probabilities of the classes
    log_density : the log predictive density of what it was, whatever the weight
    learned : whether the row could be learned; else it was skipped, of which there is a warning
    """

    values: list[float]
    log_density: float
    learned: bool


def _learned(estimator: LearnsOnline, x: Floats, Y: Floats, weight: float) -> tuple[Before, bool]:
    """Learn one row; return what the latent functions were before, and whether it was learned."""
    estimator._require_begun()
    estimator._posterior = None
    before = estimator._learned(x, Y, None if weight == 1.0 else np.array([weight]))
    estimator._warn_of(before)
    return before, not np.isnan(before.log_density[0])


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
        self._model = estimator.likelihood_, estimator._require_begun().scale

    def learn(self, x: Floats, y: float, weight: float = 1.0) -> RowBefore:
        """Learn a row; return what was predicted of it.

        Parameters
        ----------
        x : (1, d) array of float64
            Finite inputs.
        y : float
            A finite target.
        weight : float, default 1.0
            The power of its likelihood, above 0.
        """
        Y = np.array([[y]])
        sums = vars(self.estimator).get("_target_sums")
        if sums is not None:
            self.estimator._target_sums = with_row(sums, y, weight)
        before, learned = _learned(self.estimator, x, Y, weight)
        mean, std, log_density = numbers_before(*self._model, before, Y)
        ends = interval_before(*self._model, before, self.coverage)
        values = [part.item() for part in (mean, std, *ends)]
        return RowBefore(values, log_density.item(), learned)


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
        self._codes: dict[Any, Floats] = dict(
            zip(labels, label_codes(len(labels))[:, None], strict=True)
        )

    def learn(self, x: Floats, y: Any, weight: float = 1.0) -> RowBefore:
        """Learn a row; return the probabilities of the classes before, and the log of its own.

        Parameters
        ----------
        x, weight : as for `NumberRows`
        y : label
            One of `classes_`.
        """
        Y = self._codes[y]
        before, learned = _learned(self.estimator, x, Y, weight)
        proba, logs = classes_before(self.estimator._links, before, Y)
        return RowBefore(proba[0].tolist(), logs.item(), learned)
