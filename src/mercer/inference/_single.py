"""A factorisation in single precision, for what need not be exact.

A preconditioner changes how many steps conjugate gradients take, not where they end. In single
precision it costs half the time to make, and half to use, since both go by memory or by the width
of the processor's vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strsm, strsv
from scipy.linalg.lapack import spotrf

from mercer.compute import blas_for

__all__ = ["Single", "single"]

Floats = NDArray[np.float64]

# Columns that are worked on at once where a triangle is passed over.
_STRIP = 64
# How far apart the roots may be. What is divided by the least of them is made to fit single
# precision, whose numbers end at 1e-38 (1e-45 with fewer digits), and the others with it.
_EVEN = 1e-20


class Single:
    """R = s B^-1 s with B = 1 + s K s = L L', to multiply by; see `_sites`.

    L : (n, n) the factor, of single precision
    root : (n,) s
    """

    def __init__(self, L: NDArray[np.float32], root: Floats) -> None:
        self._L, self._root = L, root
        self._is_even = bool(np.min(root) > _EVEN * np.max(root))

    def solve(self, v: Floats) -> Floats:
        """Return R v for v of shape (n,) or (n, c), to about 1e-6 of its size."""
        s = self._root if v.ndim == 1 else self._root[:, None]
        return np.asarray(s * self._divided(s * v))

    def shrink(self, v: Floats) -> Floats | None:
        """Return v - R K v = s B^-1 v/s for v (n,), without K; None where s is too uneven."""
        s = self._root
        return np.asarray(s * self._divided(v / s)) if self._is_even else None

    def _divided(self, u: Floats) -> Floats:
        """Return B^-1 u."""
        L = self._L
        # numbers that single precision does not hold would spoil it
        size = float(np.max(np.abs(u), initial=0.0)) or 1.0
        x = np.asarray(u / size, dtype=np.float32, order="F")
        with blas_for(len(L)):
            if u.ndim == 1:
                x = strsv(L, x, lower=1, overwrite_x=1)
                x = strsv(L, x, lower=1, trans=1, overwrite_x=1)
            else:
                x = strsm(1.0, L, x, lower=1, overwrite_b=1)
                x = strsm(1.0, L, x, lower=1, trans_a=1, overwrite_b=1)
        return np.asarray(size * x.astype(float))


def single(K: Floats, precision: Floats, memory: Floats | None = None) -> Single | None:
    """Factorise K^-1 + S in single precision; None where that cannot be done.

    Parameters
    ----------
    K : (n, n) array, Fortran order
        Its lower triangle is read.
    precision : (n,) array
        The diagonal of S, not negative.
    memory : (n, n) array, Fortran order, optional
        Memory for the factor, which takes half of it.
    """
    n = len(K)
    s = np.sqrt(precision)
    flat = np.empty(n * n, np.float32) if memory is None else memory.T.reshape(-1).view(np.float32)
    B = flat[: n * n].reshape((n, n), order="F")
    KT, BT = K.T, B.T  # C order: rows are columns of K
    with np.errstate(all="ignore"), blas_for(n):
        rounded = s.astype(np.float32)
        for j in range(0, n, _STRIP):
            columns = slice(j, j + _STRIP)
            strip = BT[columns, j:]
            strip[:] = KT[columns, j:]
            strip *= rounded[j:]
            strip *= rounded[columns, None]
        B.reshape(-1, order="F")[:: n + 1] += 1.0
        _, info = spotrf(B, lower=1, clean=0, overwrite_a=1)
    return Single(B, s) if info == 0 and np.isfinite(B[-1, -1]) else None
