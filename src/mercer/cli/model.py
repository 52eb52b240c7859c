"""A fitted estimator together with the table it was fitted to: what a model file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import TableColumn, encode
from mercer.cli.tables import Table, table_of
from mercer.estimators.inputs import names_left_out
from mercer.registry import storable

__all__ = ["ClassPredictions", "RowPredictions", "TableModel"]

Floats = NDArray[np.float64]


class RowPredictions(NamedTuple):
    """A prediction of each row of a table.

    mean, std : (n,) mean and standard deviation of a new observation
    lower, upper : (n,) the ends of its interval
    """

    mean: Floats
    std: Floats
    lower: Floats
    upper: Floats


class ClassPredictions(NamedTuple):
    """A prediction of each row of a table by a classifier.

    label : (n,) the most probable class
    proba : (n, C) the probability of each class, in the order of the estimator's `classes_`
    """

    label: NDArray[Any]
    proba: Floats


@storable
class TableModel:
    """Predicts a column of a table from others, which it finds by name: its number, or its class.

    Parameters
    ----------
    target : str
        The name of the column that is predicted.
    columns : sequence of TableColumn
        What is made of each input, in the order of the estimator's columns.
    estimator : estimator
        Fitted to the encoded columns.
    summary : dict
        How it was fitted and how well it does, in plain values; empty if that is not known.

    Examples
    --------
    >>> import mercer
    >>> model = mercer.load("model.mercer")               # doctest: +SKIP
    >>> model.predict(frame).mean                         # doctest: +SKIP
    """

    def __init__(
        self, target: str, columns: Sequence[TableColumn], estimator: Any, summary: dict[str, Any]
    ) -> None:
        if not columns or not all(isinstance(c, TableColumn) for c in columns):
            raise ValueError(f"columns must be a list of TableColumn, got {columns!r}")
        if not (hasattr(estimator, "predict_interval") or hasattr(estimator, "predict_proba")):
            raise ValueError(
                f"estimator must be a regressor or classifier of Mercer's, got {estimator!r}"
            )
        self.target, self.columns = str(target), list(columns)
        self.estimator, self.summary = estimator, dict(summary)

    def to_state(self) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {
            "target": self.target,
            "columns": self.columns,
            "estimator": self.estimator,
            "summary": self.summary,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __repr__(self) -> str:
        names = ", ".join(c.name for c in self.columns[:5])
        more = ", ..." if len(self.columns) > 5 else ""
        return f"TableModel({self.target} from {names}{more}; {self.estimator!r})"

    def encode(self, data: Any) -> Floats:
        """Return the estimator's inputs for the rows of a table or a frame."""
        return encode(self.columns, table_of(data))

    @property
    def of_classes(self) -> bool:
        """Whether the target is one of several classes rather than a number."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def output_names(self) -> list[str]:
        """The names of the columns that predictions are written in."""
        if self.of_classes:
            shown = [f"{self.target}_p_{label}" for label in self.estimator.classes_.tolist()]
            return [f"{self.target}_label", *shown]
        return [f"{self.target}_{part}" for part in RowPredictions._fields]

    def predict(self, data: Any, coverage: float = 0.95) -> RowPredictions | ClassPredictions:
        """Predict each row of a table, or of a frame of pandas, polars or Arrow.

        Parameters
        ----------
        data : Table or frame
            Columns are matched by name; those that the model does not know are not looked at.
        coverage : float, default 0.95
            What the interval is to hold of new observations; classes have none.
        """
        X = self.encode(data)
        with names_left_out():
            if self.of_classes:
                proba = self.estimator.predict_proba(X)
                return ClassPredictions(self.estimator.classes_[np.argmax(proba, axis=1)], proba)
            mean, std = self.estimator.predict(X, return_std=True)
            lower, upper = self.estimator.predict_interval(X, coverage=coverage)
        # one target may have come as a column
        return RowPredictions(*map(np.ravel, (mean, std, lower, upper)))

    def ignored(self, table: Table) -> list[str]:
        """Return the columns of a table that the model has no use for."""
        known = {self.target, *(c.name for c in self.columns), *self.summary.get("left_out", [])}
        return [name for name in table.names if name not in known]
