"""Checking what metrics are given, and averaging over rows and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.rows import checked_weights

__all__ = ["average", "columns", "require_level", "row_weights"]

Floats = NDArray[np.float64]

_MULTIOUTPUT = ("uniform_average", "raw_values")


def columns(finite: bool = True, **given: ArrayLike) -> list[Floats]:
    """Return arrays of one common shape, (n,) or (n, P), with at least one entry."""
    out: list[Floats] = []
    first = ""
    for name, values in given.items():
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be an array of numbers, got {values!r}") from None
        if array.ndim not in (1, 2):
            raise ValueError(
                f"{name} must have shape (n,), or (n, P) for P outputs, got {array.shape}"
            )
        if array.size == 0:
            raise ValueError(f"{name} is empty (shape {array.shape}); a metric needs a row")
        if out and array.shape != out[0].shape:
            raise ValueError(
                f"{name} must have the shape of {first}, {out[0].shape}, got {array.shape}"
            )
        if np.any(np.isnan(array)) or (finite and np.any(np.isinf(array))):
            raise ValueError(f"{name} holds NaN{' or infinity' if finite else ''}")
        first = first or name
        out.append(array)
    return out


def row_weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """Return one weight a row, or None where all count alike."""
    return None if sample_weight is None else checked_weights(sample_weight, n)


def average(values: Floats, sample_weight: ArrayLike | None, multioutput: str) -> Any:
    """Return the weighted mean over rows: a number, or one an output if raw values are wanted."""
    if multioutput not in _MULTIOUTPUT:
        known = " or ".join(map(repr, _MULTIOUTPUT))
        raise ValueError(f"multioutput must be {known}, got {multioutput!r}")
    weights = row_weights(sample_weight, len(values))
    if weights is not None:
        # 0 times infinity is no number: rows of weight 0 are left out, as everywhere
        values, weights = values[weights > 0], weights[weights > 0]
    mean = np.asarray(np.average(values, axis=0, weights=weights))
    if mean.ndim and multioutput == "raw_values":
        return mean
    return float(np.mean(mean))


def require_level(name: str, level: Any) -> float:
    """Return a probability between 0 and 1, both excluded."""
    try:
        inside = 0.0 < level < 1.0
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise ValueError(f"{name} must lie between 0 and 1, got {level!r}")
    return float(level)
