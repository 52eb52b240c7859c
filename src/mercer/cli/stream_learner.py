"""What a model says of a row, and then learns from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mercer.cli.errors import InputError
from mercer.cli.model import TableModel
from mercer.cli.stream_rows import Row
from mercer.estimators.online_options import require_counts
from mercer.estimators.online_rows import ClassRows, NumberRows
from mercer.estimators.process import RowTooLargeError

__all__ = ["Said", "learner_of"]


class Said(NamedTuple):
    """A prediction, and how it compares with what was then observed.

    values : in the order of `TableModel.output_names`
    squared_error, log_density : of the row's own target; of a label the first is 0 or 1. None if it
        has no target, or was skipped
    skipped : whether it has one that could not be learned, of which there is a warning
    """

    values: list[Any]
    squared_error: float | None = None
    log_density: float | None = None
    skipped: bool = False


def learner_of(model: TableModel, coverage: float) -> ClassLearner | NumberLearner:
    """Return what predicts and learns the rows of a model, one at a time.

    Every row is learned by a call of its own, however many have come: a block of rows gives other
    roundings, and a stream that goes on after an interruption is to give the same ones.
    """
    if model.of_classes:
        return ClassLearner(model.estimator)
    return NumberLearner(model.estimator, coverage)


@contextmanager
def _refusals() -> Iterator[None]:
    """Say of a row that cannot be predicted what rows of a stream are to be told."""
    try:
        yield
    except RowTooLargeError:
        raise InputError(
            "its inputs are too large for floating point under the kernel or the mean function, so "
            "that nothing can be predicted; look for wrong entries"
        ) from None


class NumberLearner:
    """Predicts mean, standard deviation and interval."""

    def __init__(self, estimator: Any, coverage: float) -> None:
        self._estimator, self._coverage = estimator, coverage
        self._rows = NumberRows(estimator, coverage)

    def predict(self, row: Row) -> Said:
        """Predict a row that is not learned."""
        with _refusals():
            parts = self._estimator.predict(row.x, return_std=True)
            ends = self._estimator.predict_interval(row.x, coverage=self._coverage)
        return Said([part.item() for part in (*parts, *ends)])

    def learn(self, row: Row) -> Said:
        """Predict a row, then learn it; raises InputError for a target that is no count."""
        try:
            require_counts(self._estimator.likelihood_, np.array([[row.y]]))
        except ValueError as reason:
            raise InputError(f"its target is none of this model's: {reason}") from None
        values, log_density, learned = self._rows.learn(*row)
        if not learned:
            return Said(values, skipped=True)
        error = row.y - values[0]
        return Said(values, error * error, log_density)  # a power would raise OverflowError


class ClassLearner:
    """Predicts a label and the probability of each class."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._labels = estimator.classes_.tolist()
        self._rows = ClassRows(estimator)

    def predict(self, row: Row) -> Said:
        """Predict a row that is not learned."""
        with _refusals():
            proba = self._estimator.predict_proba(row.x)[0].tolist()
        return Said(self._values(proba))

    def learn(self, row: Row) -> Said:
        """Predict a row, then learn it."""
        proba, log_density, learned = self._rows.learn(*row)
        values = self._values(proba)
        if not learned:
            return Said(values, skipped=True)
        return Said(values, float(values[0] != row.y), log_density)

    def _values(self, proba: list[float]) -> list[Any]:
        return [self._labels[proba.index(max(proba))], *proba]
