"""Likelihoods of several kinds: counts, times, noise with kinks, shares."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import gammaln

from mercer.likelihoods import Likelihood
from mercer.params import positive
from mercer.registry import storable


@storable
class CountsExample(Likelihood):
    """Counts with rate exp(f)."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        y = np.asarray(y, dtype=float)
        return y * f - np.exp(f) - gammaln(y + 1.0)

    def derivatives(self, y, f):
        rate = np.exp(f) + 0.0 * np.asarray(y)
        return y - rate, -rate, -rate

    def fisher(self, f):
        return np.exp(f)

    def conditional_mean(self, f):
        return np.exp(f)

    def conditional_var(self, f):
        return np.exp(f)

    def conditional_cdf(self, y, f):
        return stats.poisson.cdf(y, np.exp(f))

    def sample(self, f, rng):
        return rng.poisson(np.exp(f)).astype(float)


@storable
class WaitingExample(Likelihood):
    """Times above 0 with mean exp(f), and no methods beyond what is needed."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return -np.asarray(y) * np.exp(-np.asarray(f)) - f

    def conditional_mean(self, f):
        return np.exp(f)

    def conditional_var(self, f):
        return np.exp(2.0 * np.asarray(f))


@storable
class TwoSidedExample(Likelihood):
    """Laplace noise, which has a tip."""

    is_log_concave = True
    has_curvature = False

    def __init__(self, scale=1.0):
        self._set(scale=positive("scale", scale, vector=False))

    def log_density(self, y, f):
        return -np.abs(np.asarray(y) - f) / self.scale - np.log(2.0 * self.scale)

    def derivatives(self, y, f):
        sign = np.sign(np.asarray(y) - f) / self.scale
        return sign, 0.0 * sign, 0.0 * sign

    def fisher(self, f):
        return np.full(np.shape(f), self.scale**-2)

    def conditional_mean(self, f):
        return np.array(f, dtype=float)

    def conditional_var(self, f):
        return np.full(np.shape(f), 2.0 * self.scale**2)

    def conditional_cdf(self, y, f):
        return stats.laplace.cdf(y, f, self.scale)

    def sample(self, f, rng):
        return rng.laplace(f, self.scale)

    def knots(self, y):
        return y[:, None]


@storable
class DeadZoneExample(Likelihood):
    """Noise that is flat up to a distance and exponential beyond: kinks away from the centre.

    With `told`, quadrature knows of them.
    """

    is_log_concave = True
    has_curvature = False

    def __init__(self, zone=0.3, scale=0.5, told=True):
        self.told = told
        self._set(
            zone=positive("zone", zone, vector=False), scale=positive("scale", scale, vector=False)
        )

    def log_density(self, y, f):
        over = np.maximum(np.abs(np.asarray(y) - f) - self.zone, 0.0)
        return -over / self.scale - np.log(2.0 * (self.scale + self.zone))

    def derivatives(self, y, f):
        t = np.asarray(y) - f
        first = np.where(np.abs(t) > self.zone, np.sign(t) / self.scale, 0.0)
        return first, 0.0 * first, 0.0 * first

    def fisher(self, f):
        return np.full(np.shape(f), 1.0 / (self.scale * (self.scale + self.zone)))

    def conditional_mean(self, f):
        return np.array(f, dtype=float)

    def conditional_cdf(self, y, f):
        t, s, e = np.asarray(y) - f, self.scale, self.zone
        tail = 0.5 * s / (s + e) * np.exp(-np.maximum(np.abs(t) - e, 0.0) / s)
        return np.where(np.abs(t) <= e, 0.5 + 0.5 * t / (s + e), np.where(t < 0, tail, 1 - tail))

    def sample(self, f, rng):
        side, outside = rng.uniform(-1.0, 1.0, np.shape(f)), rng.uniform(size=np.shape(f))
        beyond = np.sign(side) * (self.zone + rng.exponential(self.scale, np.shape(f)))
        share = self.scale / (self.scale + self.zone)
        return f + np.where(outside < share, beyond, self.zone * side)

    def knots(self, y):
        return y[:, None] + self.zone * np.array([-1.0, 1.0]) if self.told else None

    def to_state(self):
        return super().to_state() | {"told": self.told}

    def _options(self):
        return {"told": self.told}


@storable
class LogisticExample(Likelihood):
    """Logistic noise."""

    def __init__(self, scale=1.0):
        self._set(scale=positive("scale", scale, vector=False))

    def _z(self, y, f):
        return (np.asarray(y, dtype=float) - f) / self.scale

    def log_density(self, y, f):
        return stats.logistic.logpdf(self._z(y, f)) - np.log(self.scale)

    def derivatives(self, y, f):
        t, s = np.tanh(0.5 * self._z(y, f)), self.scale
        return t / s, -0.5 * (1.0 - t**2) / s**2, -0.5 * t * (1.0 - t**2) / s**3

    def fisher(self, f):
        return np.full(np.shape(f), 1.0 / (3.0 * self.scale**2))

    def conditional_cdf(self, y, f):
        return stats.logistic.cdf(self._z(y, f))

    def sample(self, f, rng):
        return rng.logistic(f, self.scale)


@storable
class SkewedExample(Likelihood):
    """Exponential noise of mean 0: skewed, with a jump away from the centre that nobody names."""

    is_positive = False

    def __init__(self, scale=1.0):
        self._set(scale=positive("scale", scale, vector=False))

    def log_density(self, y, f):
        t = 1.0 + (np.asarray(y) - f) / self.scale
        return np.where(t >= 0, -t - np.log(self.scale), -np.inf)

    def conditional_mean(self, f):
        return np.array(f, dtype=float)

    def conditional_var(self, f):
        return np.full(np.shape(f), self.scale**2)

    def conditional_cdf(self, y, f):
        t = 1.0 + (np.asarray(y) - f) / self.scale
        return -np.expm1(-np.maximum(t, 0.0))

    def sample(self, f, rng):
        return f + rng.exponential(self.scale, np.shape(f)) - self.scale


@storable
class ShareExample(Likelihood):
    """Shares between 0 and 1: a Beta density whose mean is a logistic function of f."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        p = 1.0 / (1.0 + np.exp(-np.asarray(f)))
        return stats.beta.logpdf(y, 1.0 + 3.0 * p, 4.0 - 3.0 * p)
