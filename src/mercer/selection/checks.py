"""The checks that all choices of rows share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from mercer.kernels import Kernel

__all__ = ["require_kernel", "whole_number"]


def require_kernel(kernel: Any) -> None:
    """Raise ValueError for what is no kernel: rows of data, say, which come after it."""
    if not isinstance(kernel, Kernel):
        shown = "an array" if isinstance(kernel, np.ndarray) else repr(kernel)
        raise ValueError(f"kernel must be one of mercer.kernels, such as RBF(), got {shown}")


def whole_number(name: str, value: Any) -> int:
    """Return a number of things, or raise ValueError if it is not a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)
