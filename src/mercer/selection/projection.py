"""The approximation K_nm K_mm^-1 K_mn of a kernel matrix, as a factor (BKM 73)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.kernels import Kernel
from mercer.linalg import cholesky, solve_lower
from mercer.selection.checks import require_kernel

__all__ = ["Nystrom", "nystrom"]

Floats = NDArray[np.float64]

_ROWS = 512  # that a thread takes at a time


class Nystrom(NamedTuple):
    """K is about V V', the covariance of what the basis points say of f.

    V : (n, m) C order, K_nm L^-T; K - V V' is positive semidefinite
    L : (m, m) Fortran order, K_mm + jitter = L L'; its upper triangle holds anything
    jitter : what had to be added to the diagonal of K_mm
    residual : (n,) the diagonal of K - V V', never negative: the variance of f at each row that
        the basis points leave
    """

    V: Floats
    L: Floats
    jitter: float
    residual: Floats


def nystrom(kernel: Kernel, X: Any, points: Any, jitter: float | None = None) -> Nystrom:
    """Return the factor of the Nyström approximation on given basis points.

    With U = K_mm^-1 K_mn it is U' K_mm U (BKM 73), the orthogonal projection of the kernel's
    sections at the rows on those at the points.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    points : inputs
        m basis points, which need not be rows of X.
    jitter : float, optional
        What to add to the diagonal of K_mm. Without it, 1e-10, 1e-8 and 1e-6 times its mean are
        tried where the factorisation fails, as it does if points repeat.

    Notes
    -----
    O(n m^2) time; O(n m) memory, one array of that size.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import nystrom
    >>> X = np.linspace(0.0, 1.0, 5)[:, None]
    >>> nystrom(RBF(), X, X[[0, 4]]).residual.round(4)
    array([0.    , 0.0165, 0.0305, 0.0165, 0.    ])
    """
    require_kernel(kernel)
    X, points = kernel.inputs(X), kernel.inputs(points, "points")
    n, m = len(X), len(points)
    if m == 0:
        raise ValueError("at least one basis point is wanted, got none")
    with blas_for(m):
        factor = cholesky(np.asfortranarray(kernel(points)), jitter)
    V = kernel(X, points)
    with blas_for(int(np.cbrt(float(n) * m * m))):
        # V' is (m, n) in Fortran order, and L^-1 K' takes its memory
        map_tiles(lambda r: solve_lower(factor.L, V[r].T, overwrite=True), row_blocks(n, _ROWS))
    residual = kernel.diag(X) - np.einsum("ij,ij->i", V, V)
    return Nystrom(V, factor.L, factor.jitter, np.maximum(residual, 0.0))
