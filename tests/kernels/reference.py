"""Naive kernels, one pair of points at a time, written from the formulas in the docstrings.

Each function takes parameters and returns a function of two points. Nothing here comes from Mercer.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, linalg


def gram(pair, X, Z):
    return np.array([[pair(x, z) for z in Z] for x in X], dtype=float).reshape(len(X), len(Z))


def _scaled(x, length_scale):
    scales = np.broadcast_to(1.0 if length_scale is None else length_scale, np.shape(x))
    return [float(a) / float(b) for a, b in zip(x, scales, strict=True)]


def _dot(x, y, length_scale=None):
    return math.fsum(
        a * b for a, b in zip(_scaled(x, length_scale), _scaled(y, length_scale), strict=True)
    )


def _distance(x, y, length_scale):
    difference = [float(a) - float(b) for a, b in zip(x, y, strict=True)]
    return math.sqrt(_dot(difference, difference, length_scale))


def rbf(length_scale):
    return lambda x, y: math.exp(-0.5 * _distance(x, y, length_scale) ** 2)


def exponential(length_scale):
    return lambda x, y: math.exp(-_distance(x, y, length_scale))


def matern(length_scale, nu):
    """The Bessel function by its integral, K_nu(z) = int_0^inf exp(-z cosh t) cosh(nu t) dt."""

    def pair(x, y):
        z = math.sqrt(2.0 * nu) * _distance(x, y, length_scale)
        if z == 0.0:
            return 1.0
        far = math.acosh(1.0 + 750.0 / z)  # beyond it the integrand is below the smallest number
        bessel = integrate.quad(
            lambda t: math.exp(-z * math.cosh(t)) * math.cosh(nu * t),
            0.0,
            far,
            epsabs=0.0,
            epsrel=1e-12,
            limit=200,
        )[0]
        return 2.0 ** (1.0 - nu) / math.gamma(nu) * z**nu * bessel

    return pair


def rational(length_scale, alpha):
    return lambda x, y: (1.0 + _distance(x, y, length_scale) ** 2 / (2.0 * alpha)) ** -alpha


def periodic(length_scale, periodicity):
    def pair(x, y):
        scales = np.broadcast_to(length_scale, np.shape(x))
        periods = np.broadcast_to(periodicity, np.shape(x))
        parts = zip(x, y, scales, periods, strict=True)
        total = math.fsum((math.sin(math.pi * (a - b) / p) / s) ** 2 for a, b, s, p in parts)
        return math.exp(-2.0 * total)

    return pair


def constant(value):
    return lambda x, y: value


def linear(offset, length_scale=None):
    return lambda x, y: _dot(x, y, length_scale) + offset


def polynomial(degree, offset, length_scale=None):
    return lambda x, y: (_dot(x, y, length_scale) + offset) ** degree


def tanh(scale, offset, length_scale=None):
    return lambda x, y: math.tanh(scale * _dot(x, y, length_scale) + offset)


def arcsine(scale, length_scale=None):
    def pair(x, y):
        def u(a, b):
            return scale * (1.0 + _dot(a, b, length_scale))

        bottom = math.sqrt((1.0 + 2.0 * u(x, x)) * (1.0 + 2.0 * u(y, y)))
        return 2.0 / math.pi * math.asin(2.0 * u(x, y) / bottom)

    return pair


def categorical(correlation):
    def pair(x, y):
        rhos = np.broadcast_to(correlation, np.shape(x))
        return math.prod(1.0 if a == b else rho for a, b, rho in zip(x, y, rhos, strict=True))

    return pair


def features(f, Sigma):
    """f here is a function of one point."""
    return lambda x, y: float(np.asarray(f(x)) @ np.asarray(Sigma) @ np.asarray(f(y)))


def equivalent(inner, points):
    return lambda x, y: math.fsum(inner(x, p) * inner(p, y) for p in points) / len(points)


def flipped(inner, anchors):
    K = gram(inner, anchors, anchors)
    inverse = linalg.pinv(np.real(linalg.sqrtm(K @ K)))  # |K| is the root of its square

    def pair(x, y):
        a = np.array([inner(x, p) for p in anchors])
        b = np.array([inner(y, p) for p in anchors])
        return float(a @ inverse @ b)

    return pair


def precomputed(K):
    return lambda x, y: K[int(x[0]), int(y[0])]


def add(*pairs):
    return lambda x, y: math.fsum(pair(x, y) for pair in pairs)


def multiply(*pairs):
    return lambda x, y: math.prod(pair(x, y) for pair in pairs)


def power(pair, exponent):
    return lambda x, y: pair(x, y) ** exponent


def on(pair, columns):
    return lambda x, y: pair([x[c] for c in columns], [y[c] for c in columns])
