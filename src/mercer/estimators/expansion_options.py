"""The functions that may be given to an expansion: centres, kernels and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.rows import is_precomputed
from mercer.kernels import Kernel

__all__ = ["check_centres", "check_functions", "check_symmetry"]

# Rows on each side by which a kernel's symmetry is looked at.
_PAIRS = 4


def check_functions(estimator: Any) -> None:
    """Raise ValueError where `centres` and `functions` leave none, or are what they cannot be."""
    functions, centres = estimator.functions, estimator.centres
    if functions is not None and not callable(functions):
        raise ValueError(
            "functions must be a function of X that returns a matrix, a column for each basis "
            f"function, got {functions!r}"
        )
    try:
        none = centres is not None and not len(centres)
    except TypeError:
        raise ValueError(f"centres must be rows like those of X, got {centres!r}") from None
    if none and functions is None:
        raise ValueError("without centres there must be functions, got neither")
    if is_precomputed(estimator) and not (centres is None is functions):
        raise ValueError(
            "with a precomputed kernel the columns of the matrix are all the functions there are; "
            "leave centres and functions out"
        )


def check_centres(centres: Any, X: Any, kernel: Kernel | None) -> None:
    """Raise ValueError where centres, if there are any, have not the columns of X."""
    if centres is None or len(centres) == 0 or (kernel is not None and not kernel.is_numeric):
        return
    try:
        got = np.shape(centres)[1:]
    except ValueError:
        return  # rows of different lengths, of which the kernel says so
    wanted = np.shape(X)[1:]
    if wanted != got:
        raise ValueError(
            f"centres must have the columns of X, {wanted[0]}, got shape {np.shape(centres)}"
        )


def check_symmetry(kernel: Kernel, X: Any) -> None:
    """Raise ValueError for a kernel that says it is symmetric, and is not at some of the rows."""
    if not kernel.is_symmetric or len(X) < 2:
        return
    some = np.unique(np.linspace(0, len(X) - 1, 2 * _PAIRS).astype(np.intp))
    one, other = X[some[::2]], X[some[1::2]]
    there, back = kernel(one, other), kernel(other, one).T
    if not np.allclose(there, back, rtol=1e-6, atol=1e-9 * float(np.max(np.abs(there)))):
        raise ValueError(
            f"{kernel!r} is taken for symmetric, as Mercer kernels are, but k(x, x') differs from "
            "k(x', x) at some of the rows: give a function that is not as Callable(f, "
            "is_mercer=False)"
        )
