"""The columns of an expansion by their singular values, once for all weight decays.

Phi = U S V' makes of f = Phi theta, with a penalty c |theta|^2, f = U S z with c |z|^2, where z is
V'theta: as many variables as there are directions that the rows tell apart. The normal equations of
U S are those of Phi without what makes them ill-conditioned: directions that hardly show have small
columns here, which are scaled out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from mercer.inference._columns import Columns

__all__ = ["Spectrum"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)


class Spectrum:
    """Phi = U S V', without directions that are rounding. O(n p min(n, p)) once.

    values : (n, k) U S
    size : (k,) the singular values
    directions : (k, p) V'
    """

    def __init__(self, columns: Columns) -> None:
        Phi = columns.take(np.arange(columns.size))
        U, s, Vt = svd(Phi, full_matrices=False, overwrite_a=True, check_finite=False)
        del Phi
        k = int(np.sum(s > _EPS * s[0])) if s.size else 0
        if k < len(s):  # views would keep all of it
            U, Vt = U[:, :k].copy(order="F"), Vt[:k].copy(order="F")
        U *= s[:k]
        self.size, self.values, self.directions = s[:k], U, Vt

    def coefficients(self, z: Floats) -> Floats:
        """Return theta (p,) of z (k,)."""
        return np.asarray(z @ self.directions)

    def pulls(self, z: Floats, u: Floats, c: float) -> Floats:
        """Return pulls a near u (n,) with Phi'a = 2 c theta, as those of the optimum have it.

        They are U 2cz/S, and what u has beside U. Made of theta, they lack the error of u that the
        dual problem has multiplied by Phi and divided by c.
        """
        along = (2.0 * c * z - self.values.T @ u) / self.size
        return np.asarray(u + self.values @ (along / self.size))
