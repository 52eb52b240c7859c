"""The Gaussian prior on coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.priors.base import CoefficientPrior, require_generator
from mercer.registry import storable

__all__ = ["WeightDecay"]

Floats = NDArray[np.float64]


@storable
class WeightDecay(CoefficientPrior):
    """gamma(t) = t^2 (BKM 99): p(coef) = exp(-coef^2/scale^2) / (scale sqrt(pi)).

    The prior of Bayesian neural networks. The function is a Gaussian process, with the covariance
    scale^2/2 sum_i k(x, x_i) k(x_i, x'); no coefficient of the mode is 0.

    Parameters
    ----------
    scale : float, default 1.0
        The standard deviation of a coefficient times sqrt(2), above 0.

    Examples
    --------
    >>> from mercer.priors import WeightDecay
    >>> prior = WeightDecay(scale=0.5)
    >>> prior.gamma([0.0, 1.0, -2.0])
    array([ 0.,  4., 16.])
    >>> prior.variance
    0.125
    """

    def _gamma(self, t: Floats) -> Floats:
        return np.square(t)

    def _slope(self, t: Floats) -> Floats:
        return 2.0 * t

    def _log_normaliser(self) -> float:
        return float(0.5 * np.log(np.pi))

    @property
    def variance(self) -> float:
        """The variance of a coefficient, scale^2/2."""
        return 0.5 * self.scale**2

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Return independent draws in an array of shape `size`."""
        require_generator(rng)
        return rng.normal(0.0, np.sqrt(self.variance), size)

    @classmethod
    def _likeliest(cls, size: Floats) -> float:
        return float(np.sqrt(2.0 * np.mean(size**2)))
