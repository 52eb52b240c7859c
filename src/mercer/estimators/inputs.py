"""Refusing inputs that are no numbers, in words that say which columns and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

__all__ = ["require_numbers"]

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
            f"{name} is a sparse matrix, and an exact Gaussian process works on dense numbers; "
            f"give {name}.toarray()"
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


def _require_finite(X: Any, name: str = "X") -> None:
    """Raise ValueError that names columns and rows, if X is a table of numbers with some missing.

    None counts as missing too. Anything but a table of two dimensions is left to scikit-learn's
    checks, whose first words are these.
    """
    try:
        values = np.asarray(X)
        if values.dtype.kind == "c":
            return
        values = values.astype(float)
    except (TypeError, ValueError):
        return
    if values.ndim != 2 or np.all(np.isfinite(values)):
        return
    labels = [repr(label) for label in X.columns] if hasattr(X, "columns") else None
    what = "NaN" if np.any(np.isnan(values)) else "infinity"
    bad = np.isnan(values) if what == "NaN" else np.isinf(values)
    columns = np.flatnonzero(bad.any(axis=0))
    parts = []
    for k in columns[:5]:
        rows = np.flatnonzero(bad[:, k])
        shown = ", ".join(map(str, rows[:5])) + (" ..." if rows.size > 5 else "")
        label = str(k) if labels is None else labels[k]
        parts.append(f"column {label} in row{'s' if rows.size > 1 else ''} {shown}")
    if columns.size > 5:
        parts.append(f"{columns.size - 5} more columns")
    raise ValueError(
        f"Input {name} contains {what}: {'; '.join(parts)} (counted from 0). Leave those rows out, "
        "or fill the values in, for instance by scikit-learn's SimpleImputer"
    )


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
        values.astype(float)
        return None
    except (TypeError, ValueError):
        pass
    for value in values:
        try:
            if value is not None:  # missing, which scikit-learn's checks speak of
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
