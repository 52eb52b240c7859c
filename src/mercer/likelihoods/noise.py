"""Checking what is given as the variance of Gaussian noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.params import Parameter

__all__ = ["known", "number"]

Floats = NDArray[np.float64]


def number(noise: ArrayLike | Parameter) -> Any:
    """Return what may be a variance; text that says so replaces NumPy's."""
    if isinstance(noise, Parameter):
        return noise
    try:
        value = float(noise)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise ValueError(f"noise must be a positive variance, got {noise!r}")
    return value


def known(noise: ArrayLike) -> Floats:
    """Copy known variances or a covariance, or say what is wrong with them."""
    try:
        array = np.array(noise, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"noise must hold numbers, got {noise!r}") from None
    if array.ndim > 2 or array.size == 0:
        raise ValueError(
            "noise must be one variance, a variance for each row (n,) or a covariance (n, n), got "
            f"an array of shape {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("noise must be finite, got NaN or infinity in it")
    diagonal = array
    if array.ndim == 2:
        if array.shape[0] != array.shape[1]:
            raise ValueError(f"a noise covariance must be square, got shape {array.shape}")
        diagonal = np.diag(array)
        if not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * np.abs(array).max()):
            raise ValueError("a noise covariance must be symmetric, got one that is not")
        array = 0.5 * (array + array.T)
    if np.any(diagonal < 0):
        raise ValueError(f"noise variances must not be negative, got {diagonal.min()!r}")
    if array.ndim == 2:
        sd = np.sqrt(diagonal)
        if np.any(np.abs(array) > np.outer(sd, sd) * (1 + 1e-8)):
            raise ValueError(
                "noise is no covariance: an entry is larger than its two variances allow"
            )
    array.setflags(write=False)
    return array
