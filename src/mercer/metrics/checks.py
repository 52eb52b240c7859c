"""Checking what metrics are given, and averaging over rows and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be {n} numbers, got {sample_weight!r}") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must hold finite numbers that are not negative")
    if not np.any(weights):
        raise ValueError("sample_weight must hold at least one non-zero number")
    return weights


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
