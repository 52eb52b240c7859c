"""Newton's step towards the best Gaussian, for `_ascent`.

The equations alpha = g(mu, v) and S = T(mu, v), with g = dE/dmean and T = -2 dE/dvar, change by

    d mu = K d alpha,   d v = -(Sigma o Sigma) d S,

o the product of entries. With d alpha = (1 + S K)^-1 x one has d mu = Sigma x, and Newton's step
solves, with subscripts for the derivatives of g and T in mean and variance,

    x   - (S + g_mu) d mu - g_v d v = g - alpha
    d S - T_mu d mu       - T_v d v = T - S,

whose matrix is the unit for a Gaussian likelihood, and not far from it otherwise: a few products
with Sigma and with Sigma o Sigma solve it. Where S and T are positive the second equation is taken
as ln S = ln T, since a precision may change by orders of magnitude but must not change its sign.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, gmres

from mercer.inference._sites import Sites, scale_lower, symmetric_columns, symmetric_product

__all__ = ["Curvatures", "Direction", "newton_direction"]

Floats = NDArray[np.float64]

# Krylov vectors kept; more are not worth their time, since the step need not be exact.
_VECTORS = 40
# A precision changes by at most the exponential of this in a step.
_LARGEST = 20.0
# Times the prior variance: a precision below it is next to 0.
_LOW = 1e-8


class _Point(Protocol):
    """What of a point matters here."""

    @property
    def alpha(self) -> Floats: ...
    @property
    def precision(self) -> Floats: ...
    @property
    def variance(self) -> Floats: ...
    @property
    def first(self) -> Floats: ...
    @property
    def target(self) -> Floats: ...
    @property
    def sites(self) -> Sites: ...


class Direction(NamedTuple):
    """Where to go: d alpha and d S, or d ln S for the rows in `logarithmic`."""

    alpha: Floats
    precision: Floats
    logarithmic: NDArray[np.bool_]

    def moved(self, p: _Point, step: float) -> tuple[Floats, Floats]:
        """Return alpha and precision a step away."""
        growth = np.clip(step * self.precision, -_LARGEST, _LARGEST)
        precision = np.where(
            self.logarithmic,
            p.precision * np.exp(np.where(self.logarithmic, growth, 0.0)),
            p.precision + step * self.precision,
        )
        return p.alpha + step * self.alpha, precision


class Curvatures(NamedTuple):
    """The second derivatives of E, each (n,)."""

    mean_mean: Floats
    mean_var: Floats
    var_var: Floats


def newton_direction(p: _Point, E: Curvatures, tolerance: float) -> Direction | None:
    """Return Newton's step, or None where the bound does not rise along it.

    Parameters
    ----------
    p : Point
    E : Curvatures
        At the point's means and variances.
    tolerance : float
        How well the equations are to be solved, in parts of their right sides.
    """
    S, T, v = p.precision, p.target, p.variance
    n = len(v)
    logarithmic = (S > 0) & (T > 0)
    ratio = np.where(logarithmic, S, 1.0) / np.where(logarithmic, T, 1.0)
    right = np.where(logarithmic, -S * np.log(ratio), T - S)
    M, H = _covariances(p.sites, v)
    # units in which the two kinds of unknowns compare: deviations of q
    units = np.concatenate([np.sqrt(v), v])

    def changes(z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        x, dS = z[:n] / units[:n], z[n:] / units[n:]
        return x, dS, -dsymv(1.0, M, x, lower=1), -dsymv(1.0, H, dS, lower=1)

    def equations(z: Floats) -> Floats:
        x, dS, dmu, dv = changes(np.asarray(z, dtype=float).ravel())
        mean = x - (S + E.mean_mean) * dmu - E.mean_var * dv
        precision = dS + 2.0 * ratio * (E.mean_var * dmu + E.var_var * dv)
        return np.asarray(units * np.concatenate([mean, precision]))

    operator = LinearOperator((2 * n, 2 * n), matvec=equations, dtype=np.float64)
    b = units * np.concatenate([p.first - p.alpha, right])
    if not np.all(np.isfinite(b)):
        return None
    z, _ = gmres(operator, b, rtol=tolerance, atol=0.0, restart=_VECTORS, maxiter=1)
    if not np.all(np.isfinite(z)):
        return None
    x, dS, dmu, dv = changes(z)
    slope = (p.first - p.alpha) @ dmu + 0.5 * (S - T) @ dv
    if not slope > 0:
        return None
    growth = np.where(logarithmic, dS / np.where(logarithmic, S, 1.0), dS)
    return Direction(x - S * dmu, growth, logarithmic)


def _covariances(sites: Sites, v: Floats) -> tuple[Floats, Floats]:
    """Return -Sigma and Sigma o Sigma, their lower triangles, from R = (K + S^-1)^-1.

    R = S - S Sigma S, so that off the diagonal -Sigma is R over both precisions. Columns whose
    precision is next to 0 come from S Sigma = R K, and where both are, from Sigma = K - K R K,
    which has the fewest digits. The upper triangles hold anything.
    """
    S, K, R = sites.precision, sites.K, sites.inverse()
    low = np.abs(S) * np.diagonal(K) < _LOW
    divisor = np.where(low, 1.0, S)
    M = scale_lower(R, 1.0 / divisor, np.empty_like(R, order="F"))
    N = np.flatnonzero(low)
    if N.size:
        K_N = symmetric_columns(K, N)
        W = symmetric_product(R, K_N)  # S Sigma_N
        columns = W / divisor[:, None]
        columns[N] = K_N[N] - K_N.T @ W
        i = np.arange(len(K))[:, None]
        M[np.maximum(i, N), np.minimum(i, N)] = -columns
    np.fill_diagonal(M, -v)
    return M, np.square(M)
