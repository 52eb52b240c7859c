"""How far the functions of a kernel, and of its terms, vary over some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel

__all__ = ["NEGLIGIBLE", "variance_over", "variances_over"]

Floats = NDArray[np.float64]

#: A term of the kernel whose share of the targets' variance is less than this explains nothing.
NEGLIGIBLE = 1e-3


def variance_over(kernel: Kernel, X: Any, weights: Floats | None = None) -> float:
    """Return the prior variance over the rows, around their mean, of a kernel's functions.

    A kernel that is large and yet nearly constant, as the linear one far from 0, has little of it.
    A row of weight 2 counts twice.
    """
    rows, around = _weighted(X, weights)
    return float(np.sum(around * kernel(rows)))


def variances_over(kernel: Kernel, X: Any, weights: Floats | None = None) -> dict[str, float]:
    """Return that variance of what each variance in the kernel multiplies, by parameter name."""
    if not any(_is_variance(name) for name in kernel.parameter_names):
        return {}
    rows, around = _weighted(X, weights)
    # a variance multiplies its terms, whose derivative in its logarithm they are themselves
    terms = kernel.pullback(rows, None, around, inputs=False).theta
    named = zip(kernel.parameter_names, terms, strict=True)
    return {name: float(term) for name, term in named if _is_variance(name)}


def _is_variance(name: str) -> bool:
    return name.rpartition(".")[2] == "variance"


def _weighted(X: Any, weights: Floats | None) -> tuple[Any, Floats]:
    """Return about 200 of the rows, and what weighs the entries of their matrix."""
    some = slice(None, None, max(1, len(X) // 200))
    rows = X[some]
    w = np.ones(len(rows)) if weights is None else weights[some]
    part = w / np.sum(w)
    return rows, np.diag(part) - np.outer(part, part)
