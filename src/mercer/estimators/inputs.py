"""What is given as X and y: refused in words that say which columns and rows and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

__all__ = ["is_missing", "names_left_out", "require_numbers", "require_targets"]

_ADVICE = {
    "text": "encode text by scikit-learn's OneHotEncoder, or by its OrdinalEncoder with "
    "mercer.kernels.Categorical().on(column) in the kernel",
    "dates or times": "turn them into numbers, such as days since the first",
}


class _Fault(NamedTuple):
    """A column that is no numbers: what it holds, and what `float` says of one of its values."""

    column: str
    kind: str
    reason: str


def require_numbers(X: Any, name: str = "X") -> None:
    """Raise an error that names the columns, if X has any that are no numbers, or none at all.

    Takes arrays, lists, and frames of pandas and polars; values that are missing are named too.
    What else may be wrong with X, such as its shape, is left to scikit-learn's checks. It is a
    ValueError; a TypeError for a sparse matrix and for objects that are neither text nor dates, as
    scikit-learn's checks demand.
    """
    if issparse(X):
        raise TypeError(
            f"{name} is a sparse matrix, and kernels work on dense numbers; give {name}.toarray()"
        )
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 0 and shape[0] > 0:
        # in scikit-learn's words, which its checks look for
        raise ValueError(
            f"{name} has no columns to learn from: 0 feature(s) (shape={tuple(shape)}) while a "
            "minimum of 1 is required. Give a column that the targets may depend on"
        )
    faults = [fault for column, values in _columns(X) if (fault := _fault(column, values))]
    if faults:
        known = any(fault.kind in _ADVICE for fault in faults)
        raise (ValueError if known else TypeError)(_text(name, faults))
    _require_finite(X, name)


def require_targets(estimator: Any, y: Any) -> None:
    """Raise ValueError if there is no y, in words that scikit-learn's checks look for."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


@contextmanager
def names_left_out() -> Iterator[None]:
    """Predict from a matrix where the model knows its columns by name, and they are in order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _require_finite(X: Any, name: str) -> None:
    """Raise ValueError that names columns and rows, if numbers are missing in a table or in y.

    None and pandas' NA count as missing too. An X of any other shape is left to scikit-learn's
    checks, whose first words are these.
    """
    try:
        values = np.asarray(X)
        if values.dtype.kind == "c":
            return
        values = _without_na(values).astype(float, copy=False)
    except (TypeError, ValueError):
        return
    single = name == "y" and values.ndim == 1
    if not (single or values.ndim == 2) or np.all(np.isfinite(values)):
        return
    labels = [repr(label) for label in X.columns] if hasattr(X, "columns") else None
    what = "NaN" if np.any(np.isnan(values)) else "infinity"
    bad = (np.isnan(values) if what == "NaN" else np.isinf(values)).reshape(len(values), -1)
    columns = np.flatnonzero(bad.any(axis=0))
    parts = []
    for k in columns[:5]:
        rows = np.flatnonzero(bad[:, k])
        shown = ", ".join(map(str, rows[:5])) + (" ..." if rows.size > 5 else "")
        label = str(k) if labels is None else labels[k]
        column = "" if single else f"column {label} "
        parts.append(f"{column}in row{'s' if rows.size > 1 else ''} {shown}")
    if columns.size > 5:
        parts.append(f"{columns.size - 5} more columns")
    raise ValueError(
        f"Input {name} contains {what}: {'; '.join(parts)} (counted from 0). Leave those rows out"
        + ("" if name == "y" else ", or fill the values in, for instance by SimpleImputer")
    )


def is_missing(value: Any) -> bool:
    """Whether this stands for no value: None, NaN, and what pandas has for it."""
    return value is None or _is_na(value) or bool(value != value)


def _is_na(value: Any) -> bool:
    """Whether this is what pandas has for missing values in columns of whole numbers."""
    pandas = sys.modules.get("pandas")  # without which there is none
    return pandas is not None and value is pandas.NA


def _without_na(values: NDArray[Any]) -> NDArray[Any]:
    """Return objects with NaN in the place of pandas' NA, of which `float` makes nothing."""
    if values.dtype != object or "pandas" not in sys.modules:
        return values
    missing = np.asarray(np.frompyfunc(_is_na, 1, 1)(values), dtype=bool)
    return np.where(missing, np.nan, values) if np.any(missing) else values


def _columns(X: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the columns that may be no numbers, each with a name to show."""
    if hasattr(X, "shape") and hasattr(X, "columns"):
        for i, label in enumerate(X.columns):
            column = X.iloc[:, i] if hasattr(X, "iloc") else X[label]
            if getattr(column.dtype, "kind", "O") not in "biufc":
                yield repr(label), np.asarray(column)
        return
    try:
        values = X if isinstance(X, np.ndarray) else np.asarray(X)
        if values.dtype.kind in "US":  # a list with text among its numbers
            values = np.asarray(X, dtype=object)
    except (TypeError, ValueError):  # of no shape
        return
    if values.dtype.kind in "biufc":
        return
    if values.ndim == 1:
        yield "", values
    elif values.ndim == 2:
        yield from ((str(i), values[:, i]) for i in range(values.shape[1]))


def _fault(column: str, values: NDArray[Any]) -> _Fault | None:
    """Return what is wrong with a column, None if it can be read as numbers."""
    if values.dtype.kind in "Mm":
        return _Fault(column, "dates or times", "")
    try:
        _without_na(values).astype(float)
        return None
    except (TypeError, ValueError):
        pass
    for value in values:
        try:
            if value is not None and not _is_na(value):  # missing, of which others speak
                float(value)
        except (TypeError, ValueError) as error:
            if isinstance(value, (str, bytes)):
                shown = value if isinstance(value, bytes) else str(value)  # of NumPy's str too
                return _Fault(column, "text", f" ({shown!r})")
            if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
                return _Fault(column, "dates or times", "")
            return _Fault(column, f"objects of type {type(value).__name__}", f" ({error})")
    return None


def _text(name: str, faults: Sequence[_Fault]) -> str:
    parts = []
    for kind in dict.fromkeys(fault.kind for fault in faults):
        same = [fault for fault in faults if fault.kind == kind]
        shown = ", ".join(fault.column for fault in same[:5] if fault.column)
        if len(same) > 5:
            shown += f" and {len(same) - 5} more"
        if shown:
            shown = f"column{'s' if len(same) > 1 else ''} {shown} "
        verb = "holds" if len(same) == 1 else "hold"
        advice = _ADVICE.get(kind, "give numbers")
        if name == "y":
            advice = "the targets of a regression are numbers"
        parts.append(f"{shown}{verb} {kind}{same[0].reason}: {advice}")
    return f"{name} must be numbers, but " + "; ".join(parts)
