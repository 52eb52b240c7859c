"""What a model says of a row, and then learns from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from mercer.cli.model import TableModel
from mercer.cli.stream_rows import Row
from mercer.likelihoods import Gaussian

__all__ = ["Said", "learner_of"]


class Said(NamedTuple):
    """A prediction, and how it compares with what was then observed.

    values : in the order of `TableModel.output_names`
    squared_error, log_density : of the row's own target; of a label the first is 0 or 1. None if it
        has no target
    """

    values: list[Any]
    squared_error: float | None = None
    log_density: float | None = None


def learner_of(model: TableModel, coverage: float) -> ClassLearner | NumberLearner:
    """Return what predicts and learns the rows of a model, one at a time.

    Every row is learned by a call of its own, however many have come: a block of rows gives other
    roundings, and a stream that goes on after an interruption is to give the same ones.
    """
    if model.of_classes:
        return ClassLearner(model.estimator)
    return NumberLearner(model.estimator, coverage)


class NumberLearner:
    """Predicts mean, standard deviation and interval."""

    def __init__(self, estimator: Any, coverage: float) -> None:
        self._estimator, self._coverage = estimator, coverage
        self._half = float(-ndtri(0.5 * (1.0 - coverage)))
        self._is_gaussian = isinstance(estimator.likelihood_, Gaussian)

    def predict(self, row: Row) -> Said:
        """Predict a row that has no target."""
        mean, std = self._estimator.predict(row.x, return_std=True)
        return Said(self._values(row, float(mean.item()), float(std.item())))

    def learn(self, row: Row) -> Said:
        """Predict a row, then learn it."""
        # Before it is learned: of other noise the ends do not follow from mean and deviation.
        ends = None if self._is_gaussian else self._ends(row)
        weight = None if row.weight == 1.0 else [row.weight]
        before = self._estimator.learn(row.x, np.array([row.y]), weight)
        mean, std = before.mean.item(), before.std.item()
        values = self._values(row, mean, std) if ends is None else [mean, std, *ends]
        return Said(values, (row.y - mean) ** 2, before.log_density.item())

    def _values(self, row: Row, mean: float, std: float) -> list[float]:
        if not self._is_gaussian:
            return [mean, std, *self._ends(row)]
        half = self._half * std
        return [mean, std, mean - half, mean + half]

    def _ends(self, row: Row) -> list[float]:
        ends = self._estimator.predict_interval(row.x, coverage=self._coverage)
        return [end.item() for end in ends]


class ClassLearner:
    """Predicts a label and the probability of each class."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._labels = estimator.classes_.tolist()

    def predict(self, row: Row) -> Said:
        """Predict a row that has no target."""
        return Said(self._values(self._estimator.predict_proba(row.x)[0]))

    def learn(self, row: Row) -> Said:
        """Predict a row, then learn it."""
        weight = None if row.weight == 1.0 else [row.weight]
        before = self._estimator.learn(row.x, np.array([row.y]), sample_weight=weight)
        values = self._values(before.proba[0])
        return Said(values, float(values[0] != row.y), before.log_density.item())

    def _values(self, proba: Any) -> list[Any]:
        return [self._labels[int(np.argmax(proba))], *proba.tolist()]
