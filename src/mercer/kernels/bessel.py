"""The Matérn profile for any smoothness, to nearly all digits.

M(nu, z) = 2^(1-nu)/Gamma(nu) z^nu K_nu(z), which is 1 at z = 0. As it stands the product is of one
factor that overflows and one that underflows as soon as nu is large or z small; its limits are
RBF(s) = exp(-s/2) for large nu at z^2 = 2 nu s, and the power series for small z.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import gamma, kve

__all__ = ["matern_slope", "matern_value"]

Floats = NDArray[np.float64]

# From this order the expansion in 1/nu has all digits; below it no factor overflows but at small z.
_LARGE = 25.0
_TERMS = 12


def matern_value(s: Floats, nu: float) -> Floats:
    """Return k(s) = M(nu, sqrt(2 nu s)) at squared distances s."""
    return _profile(nu, 2.0 * nu * s)


def matern_slope(s: Floats, nu: float) -> Floats:
    """Return dk/ds = -nu/(2 (nu - 1)) M(nu - 1, sqrt(2 nu s)), from d[z^nu K_nu]/dz.

    For nu <= 1 it is infinite at s = 0, where everything it multiplies vanishes: taken as 0 there.
    """
    square = 2.0 * nu * s
    if nu > 1.0:
        return -0.5 * nu / (nu - 1.0) * _profile(nu - 1.0, square)
    z = np.minimum(np.sqrt(square), 1e4)
    with np.errstate(all="ignore"):
        slope = -(2.0 ** (1.0 - nu)) / gamma(nu) * nu * z ** (nu - 1.0) * kve(1.0 - nu, z)
        slope *= np.exp(-z)
    return np.where(np.isfinite(slope), slope, 0.0)


def _profile(nu: float, square: Floats) -> Floats:
    """Return M(nu, z), given z^2."""
    if nu > _LARGE:
        return _expanded(nu, square)
    z = np.minimum(np.sqrt(square), 1e4)  # further out it is 0, and z^nu must not overflow
    with np.errstate(all="ignore"):
        k = 2.0 ** (1.0 - nu) / gamma(nu) * z**nu * kve(nu, z) * np.exp(-z)
    # Where K_nu overflows z^(2 nu) is below 1e-300: of the series only the powers of z^2 are left.
    series, term = np.ones_like(square), np.ones_like(square)
    for j in range(1, min(3, int(np.ceil(nu)))):
        term = term * square / (4.0 * j * (j - nu))
        series += term
    return np.where(np.isfinite(k), k, series)


def _expanded(nu: float, square: Floats) -> Floats:
    """Return M(nu, z) by Debye's expansion, uniform in z, divided by its value at z = 0.

    K_nu(nu x) ~ sqrt(pi/(2 nu q)) exp(-nu (q + log(x/(1 + q)))) U(1/q), q = sqrt(1 + x^2).
    """
    x2 = square / nu / nu
    q = np.sqrt(1.0 + x2)
    p = x2 / (1.0 + q)  # q - 1 without cancellation
    u = _correction(nu)
    return np.asarray(np.exp(nu * (np.log1p(0.5 * p) - p)) / np.sqrt(q) * (u(1.0 / q) / u(1.0)))


@lru_cache(maxsize=16)
def _correction(nu: float) -> Polynomial:
    """Return U(t) = sum_k (-1)^k u_k(t)/nu^k."""
    total, power = Polynomial([0.0]), 1.0
    for u in _debye():
        total, power = total + power * u, -power / nu
    return total


@lru_cache(maxsize=1)
def _debye() -> tuple[Polynomial, ...]:
    """Return u_0 = 1, u_(k+1) = t^2 (1 - t^2)/2 u_k' + 1/8 int_0^t (1 - 5 r^2) u_k dr."""
    t = Polynomial([0.0, 1.0])
    polynomials = [Polynomial([1.0])]
    for _ in range(_TERMS):
        u = polynomials[-1]
        following = 0.5 * t**2 * (1.0 - t**2) * u.deriv() + 0.125 * ((1.0 - 5.0 * t**2) * u).integ()
        polynomials.append(following)
    return tuple(polynomials)
