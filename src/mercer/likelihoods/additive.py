"""Noise that is added to the latent value: y = f + e with e independent of f."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood, broadcast
from mercer.params import Parameter

__all__ = ["AdditiveNoise", "bounded"]

Floats = NDArray[np.float64]


def bounded(value: float | Parameter, low: float, high: float) -> Parameter:
    """Return the parameter of a quantity without units, bounded where its maker did not do it.

    Nothing in the data could bound it; a value outside widens the bounds.
    """
    if isinstance(value, Parameter) and value.bounds is not None:
        return value
    parameter = value if isinstance(value, Parameter) else Parameter(value)
    if parameter.is_vector or float(parameter.value) <= 0:
        return parameter  # refused by whoever asked
    at = float(parameter.value)
    return parameter.replace(bounds=(min(low, at), max(high, at)))


class AdditiveNoise(Likelihood):
    """y = f + e; a subclass gives the density of e and what is known of it."""

    adds_noise = True

    def _log_noise(self, t: Floats) -> Floats:
        """Return the log density of e at t."""
        raise NotImplementedError

    def _noise_slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return its first three derivatives in t."""
        raise NotImplementedError

    def _noise_cdf(self, t: Floats) -> Floats:
        """Return P(e <= t)."""
        raise NotImplementedError

    def _noise_moments(self) -> tuple[float, float]:
        """Return mean and variance of e; NaN where there is none."""
        raise NotImplementedError

    def _information(self) -> float:
        """Return the Fisher information of a shift of e."""
        raise NotImplementedError

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Draw e."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------ what follows

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return the log density of the noise at y - f."""
        return np.asarray(self._log_noise(_residual(y, f)))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives of log p(y | f) in f."""
        first, second, third = self._noise_slopes(_residual(y, f))
        return np.asarray(-first), np.asarray(second), np.asarray(-third)

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the Fisher information E[d1^2], the same for every f."""
        return np.full(np.shape(f), self._information())

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return f plus the mean of the noise."""
        return np.array(f, dtype=float) + self._noise_moments()[0]

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return the variance of the noise."""
        return np.full(np.shape(f), self._noise_moments()[1])

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return P(Y <= y | f)."""
        return np.asarray(self._noise_cdf(_residual(y, f)))

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the mean plus that of the noise; NaN where it has none."""
        return np.asarray(broadcast(mean=mean, var=var)[0] + self._noise_moments()[0])

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the variance plus that of the noise, which may be infinite, or NaN."""
        return np.asarray(broadcast(mean=mean, var=var)[1] + self._noise_moments()[1])

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one y for each f."""
        f = np.asarray(f, dtype=float)
        return np.asarray(f + self._draw(rng, f.shape))

    def knots(self, y: Floats) -> Floats | None:
        """Return y, where the density has its peak."""
        return np.array(y, dtype=float)[:, None]


def _residual(y: ArrayLike, f: ArrayLike) -> Floats:
    return np.asarray(np.asarray(y, dtype=float) - np.asarray(f, dtype=float))
