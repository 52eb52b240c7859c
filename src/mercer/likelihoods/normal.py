"""The normal density and distribution function, a variance of 0 included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["LOG_2PI", "log_normal", "normal_cdf"]

Floats = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))


def log_normal(residual: Floats, var: float | Floats) -> Floats:
    """Return log N(residual; 0, var); without variance, inf at 0 and -inf elsewhere."""
    with np.errstate(all="ignore"):
        out = -0.5 * ((residual / np.sqrt(var)) ** 2 + np.log(var) + LOG_2PI)
    return np.where(np.equal(var, 0.0), np.where(residual == 0.0, np.inf, -np.inf), out)


def normal_cdf(residual: Floats, var: float | Floats) -> Floats:
    """Return the distribution function of N(0, var); without variance, a step to 1 at 0."""
    with np.errstate(all="ignore"):
        out = ndtr(residual / np.sqrt(var))
    return np.where(np.equal(var, 0.0), np.where(residual >= 0.0, 1.0, 0.0), out)
