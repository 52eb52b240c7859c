"""What the cells of a column say: numbers, dates, truth values, or nothing.

Each reader takes an array of float64 or of text and returns floats, NaN where it cannot read; those
of one cell take a text and raise ValueError.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING",
    "day",
    "days",
    "missing",
    "number",
    "numbers",
    "text_of",
    "texts",
    "truth",
    "truths",
]

Floats = NDArray[np.float64]

#: What stands for no value, in capitals or not, beside an empty cell. "None" is a category.
MISSING = frozenset({"na", "n/a", "#n/a", "<na>", "nan", "null"})

# Python reads 1_000 and numbers in the digits of any script, which no table means.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?", re.ASCII)
_TRUTHS = {"true": 1.0, "false": 0.0}
_DAY = 86400.0


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where there is no value."""
    if values.dtype != object:
        return np.asarray(np.isnan(values), dtype=bool)
    return np.array([v is None or v.lower() in MISSING for v in values], dtype=bool)


def numbers(values: NDArray[Any]) -> Floats:
    """Read numbers with a decimal point; infinities are read too."""
    if values.dtype != object:
        return values
    with contextlib.suppress(TypeError, ValueError):
        joined = "".join(values)
        if joined.isascii() and "_" not in joined:
            return values.astype(float)  # the usual case, ten times as fast
    return _read(values, number)


def days(values: NDArray[Any]) -> Floats:
    """Read ISO dates and times as days since 1970-01-01; those with a time zone in UTC."""
    return _read(values, day)


def truths(values: NDArray[Any]) -> Floats:
    """Read true and false, in capitals or not, as 1 and 0."""
    return _read(values, truth)


def texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return the cells as text: whole numbers without a decimal point, missing ones None."""
    if values.dtype == object:
        return values
    return np.array([text_of(v) for v in values.tolist()], dtype=object)


def text_of(value: float) -> str | None:
    """Return a number as the text of a category: whole ones without a decimal point."""
    return None if value != value else str(int(value)) if value.is_integer() else repr(value)


def _read(values: NDArray[Any], read: Any) -> Floats:
    out = np.full(len(values), np.nan)
    if values.dtype != object:
        return out
    for i, value in enumerate(values):
        if value is not None:
            try:
                out[i] = read(value)
            except (ValueError, OverflowError):
                continue
    return out


def number(text: str) -> float:
    """Read one number."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def truth(text: str) -> float:
    """Read one truth value."""
    if text.lower() not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[text.lower()]


def day(text: str) -> float:
    """Read one date."""
    if _DATE.fullmatch(text) is None:
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() / _DAY
