"""Which part of a many-columned input space a picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.plotting.models import column_names, to_matrix, training_rows

__all__ = ["Slice", "along", "is_range", "slice_of", "span"]

Floats = NDArray[np.float64]


class Slice(NamedTuple):
    """One or two columns that vary, the others held.

    columns : their numbers
    names : of all d columns
    held : (d,) the values at which the others are held
    ranges : (low, high) of each column that varies
    at : words for the captions: " at their medians", or none where values were given
    """

    columns: tuple[int, ...]
    names: list[str]
    held: Floats
    ranges: list[tuple[float, float]]
    at: str

    @property
    def is_whole(self) -> bool:
        """Whether no column is held."""
        return len(self.columns) == len(self.names)

    def grid(self, n_points: int) -> tuple[list[Floats], Floats]:
        """Return the values along each column, and the rows at all their combinations."""
        values = [np.linspace(low, high, n_points) for low, high in self.ranges]
        mesh = np.meshgrid(*values)
        rows = np.tile(self.held, (mesh[0].size, 1))
        for column, value in zip(self.columns, mesh, strict=True):
            rows[:, column] = value.ravel()
        return values, rows

    def caption(self) -> str:
        """Say at which values the other columns are held; "" where there are none."""
        others = [i for i in range(len(self.names)) if i not in self.columns]
        if len(others) > 4:
            return f"the other {len(others)} columns held{self.at}"
        return ", ".join(f"{self.names[i]} = {self.held[i]:.3g}" for i in others)


def is_range(X: Any) -> bool:
    """Whether X is a pair of numbers, (low, high)."""
    return isinstance(X, tuple) and len(X) == 2 and all(np.ndim(end) == 0 for end in X)


def along(ends: Any, n_points: int) -> Floats:
    """Return points from the lower to the higher of two ends."""
    low, high = sorted(float(end) for end in ends)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"a range must have two ends, finite and different, got {ends!r}")
    return np.linspace(low, high, n_points)


def span(values: Floats, margin: float) -> tuple[float, float]:
    """Return the least and largest value, with a margin on either side."""
    low, high = float(np.min(values)), float(np.max(values))
    width = high - low if high > low else max(abs(low), 1.0)
    return low - margin * width, high + margin * width


def slice_of(model: Any, X: Any, columns: Any, at: Any, margin: float) -> Slice:
    """Return the slice of a fitted model that was asked for, or the whole of one or two columns."""
    known = training_rows(model).X
    given = None if X is None else X if is_range(X) else to_matrix(X)
    if known is None and given is None:
        raise ValueError(
            f"this {type(model).__name__} does not tell the inputs it was fitted to: give X, rows "
            "whose range is to be drawn"
        )
    whole = known if given is None else given
    d = _n_columns(model, known, whole)
    names = column_names(model, d, X)
    if not isinstance(whole, tuple) and whole is not None and whole.shape[1] != d:
        raise ValueError(f"X has {whole.shape[1]} columns, the model was fitted to {d}")
    chosen = _chosen(columns, names)
    if isinstance(whole, tuple):
        if len(chosen) > 1:
            raise ValueError(f"a range (low, high) is for one column, and {len(chosen)} vary")
        low, high = along(whole, 2).tolist()
        ranges, rows = [(low, high)], known
    else:
        assert whole is not None
        ranges, rows = [span(whole[:, c], margin) for c in chosen], whole
    words = " at their medians" if at is None else ""
    return Slice(chosen, names, _held(at, names, rows, chosen), ranges, words)


def _n_columns(model: Any, known: Floats | None, rows: Any) -> int:
    if hasattr(model, "n_features_in_"):
        return int(model.n_features_in_)
    if known is not None:
        return int(known.shape[1])
    return 1 if isinstance(rows, tuple) else int(rows.shape[1])


def _number(column: Any, names: Sequence[str]) -> int:
    """Return the number of a column given by number or name."""
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if 0 <= column < len(names):
            return int(column)
    raise ValueError(
        f"there is no column {column!r}; columns are 0 to {len(names) - 1}, or by name {names}"
    )


def _chosen(columns: Any, names: list[str]) -> tuple[int, ...]:
    if columns is None:
        if len(names) <= 2:
            return tuple(range(len(names)))
        raise ValueError(
            f"the model has {len(names)} columns, {names}, and a picture has room for two: name "
            "the one or two that vary by columns, such as columns=0; the others are held at the "
            "values in at, or at their medians"
        )
    several = columns if isinstance(columns, (Sequence, np.ndarray)) else [columns]
    chosen = tuple(_number(c, names) for c in ([columns] if isinstance(columns, str) else several))
    if len(set(chosen)) != len(chosen) or not 1 <= len(chosen) <= 2:
        raise ValueError(f"columns must be one column or two different ones, got {columns!r}")
    return chosen


def _held(at: Any, names: list[str], rows: Floats | None, chosen: tuple[int, ...]) -> Floats:
    d = len(names)
    held = np.zeros(d) if rows is None else np.median(rows, axis=0)
    given = set(chosen)
    if isinstance(at, Mapping):
        for column, value in at.items():
            number = _number(column, names)
            held[number] = float(value)
            given.add(number)
    elif at is not None:
        values = np.array(at, dtype=float)
        if values.shape != (d,):
            raise ValueError(
                f"at must hold a value for each of the {d} columns, or be a dictionary of some of "
                f"them; got shape {values.shape}"
            )
        return values
    if rows is None and len(given) < d:
        raise ValueError(f"the other columns have no medians: give at, a value for each of {names}")
    return held
