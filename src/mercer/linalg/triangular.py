"""Triangular solves through BLAS, in place where the caller allows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

__all__ = ["solve_lower"]

Floats = NDArray[np.float64]


def solve_lower(
    L: Floats, B: Floats, *, transpose: bool = False, overwrite: bool = False
) -> Floats:
    """Return L^-1 B, or L^-T B with `transpose`; B has shape (n,) or (n, k).

    With `overwrite` and B a Fortran-ordered matrix of doubles no memory is used.
    """
    if L.size == 0 or B.size == 0:
        return B if overwrite else B.copy()
    columns = B if B.ndim == 2 else B[:, None]
    X = dtrsm(1.0, L, columns, lower=1, trans_a=int(transpose), overwrite_b=int(overwrite))
    return np.asarray(X) if B.ndim == 2 else np.asarray(X)[:, 0]
