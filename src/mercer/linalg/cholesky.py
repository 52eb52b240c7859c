"""Cholesky factorisation in place, with jitter that is reported, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri

from mercer.errors import NotPositiveDefiniteError
from mercer.linalg._blocks import factorise_by_blocks, invert_by_blocks, update_by_blocks
from mercer.linalg.triangular import mirror_lower

__all__ = [
    "JITTERS",
    "Factorisation",
    "cholesky",
    "inverse_lower",
    "semidefinite_root",
    "update_lower",
]

Floats = NDArray[np.float64]

# Orders beyond this are worked on in blocks: with few threads OpenBLAS (0.3.30, and kernels for
# AVX-512) writes beyond a buffer in syrk, and so in potrf and potri, from some 15,000 on.
_WHOLE = 14_000

#: What a failed factorisation is tried again with, in units of the mean of the diagonal.
JITTERS = (0.0, 1e-10, 1e-8, 1e-6)


class Factorisation(NamedTuple):
    """A lower Cholesky factor and what had to be added to the diagonal to get it.

    The strict upper triangle of `L` is not part of the factor and holds anything.
    """

    L: Floats
    jitter: float

    def log_determinant(self) -> float:
        """Return ln det of the factorised matrix."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.L))))


def _factorise(Q: Floats) -> bool:
    """Factorise the lower triangle in place; False if a pivot was not positive."""
    if Q.size == 0:
        return True
    if len(Q) > _WHOLE:
        return factorise_by_blocks(Q)
    _, info = dpotrf(Q, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0) and bool(np.isfinite(Q[-1, -1]))


def cholesky(
    Q: Floats, jitter: float | None = None, rebuild: Callable[[], object] | None = None
) -> Factorisation:
    """Factorise a symmetric matrix in place.

    Parameters
    ----------
    Q : ndarray of shape (n, n), Fortran order
        Its lower triangle is read and **overwritten by the factor**.
    jitter : float, optional
        A value, absolute, to add to the diagonal at once and instead of the ladder; this is how a
        fit keeps to the jitter it has decided on. Without it the factorisation is tried with 0,
        and where that fails with 1e-10, 1e-8 and 1e-6 times the mean of the diagonal.
    rebuild : function, optional
        Called after a failed attempt to fill the lower triangle of Q again. Without it the strict
        upper triangle, which the factorisation leaves alone, must hold the same matrix.

    Raises
    ------
    NotPositiveDefiniteError
        When every attempt failed. The matrix is lost then.
    """
    if not Q.flags.f_contiguous:
        raise ValueError("cholesky works in place on a matrix in Fortran order")
    diagonal = np.diagonal(Q).copy()
    mean = float(np.mean(diagonal)) if diagonal.size else 1.0
    if not np.isfinite(mean) or mean <= 0:
        raise NotPositiveDefiniteError(
            f"the matrix has a diagonal with mean {mean}, which no covariance has"
        )
    attempts = [j * mean for j in JITTERS] if jitter is None else [jitter]
    for attempt, value in enumerate(attempts):
        if attempt:
            if rebuild is None:
                mirror_lower(Q.T)
            else:
                rebuild()
        np.fill_diagonal(Q, diagonal + value)
        if _factorise(Q):
            return Factorisation(Q, value)
    raise NotPositiveDefiniteError(
        f"the matrix is not positive definite, even with {attempts[-1]:.3g} added to its diagonal"
    )


def inverse_lower(L: Floats) -> Floats:
    """Overwrite a lower factor by the lower triangle of (L L')^-1 and return it."""
    if L.size == 0:
        return L
    if len(L) > _WHOLE:
        return invert_by_blocks(L)
    out, info = dpotri(L, lower=1, overwrite_c=1)
    if info:
        raise NotPositiveDefiniteError("the factor has a zero on its diagonal")
    return np.asarray(out)


def update_lower(
    scale: float, A: Floats, keep: float, C: Floats, *, transpose: bool = False
) -> Floats:
    """Overwrite the lower triangle of C (n, n), Fortran order, by scale A A' + keep C; return C.

    With `transpose` by scale A'A + keep C.
    """
    if len(C) <= _WHOLE:
        return np.asarray(dsyrk(scale, A, keep, C, trans=int(transpose), lower=1, overwrite_c=1))
    update_by_blocks(C, scale, A.T if transpose else A, keep)
    return C


def semidefinite_root(S: Floats) -> Floats:
    """Return R (n, n) with RR' = S, for a covariance that may be singular; S is left as it is.

    The Cholesky factor where there is one. Otherwise R comes from the eigenvalues, those that
    rounding has made negative taken as 0: nothing is added to S.
    """
    try:
        return np.tril(cholesky(np.array(S, order="F"), 0.0).L)
    except NotPositiveDefiniteError:
        values, vectors = eigh(S)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
