"""The Laplacian prior on coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.priors.base import CoefficientPrior, require_generator
from mercer.registry import storable

__all__ = ["Laplacian"]

Floats = NDArray[np.float64]


@storable
class Laplacian(CoefficientPrior):
    """gamma(t) = |t| (BKM 100): p(coef) = exp(-|coef|/scale) / (2 scale).

    Most coefficients are small and a few are large. The mode of the posterior has zeros in it, and
    the problem of finding it is convex wherever the likelihood is log-concave. Samples of the
    posterior have no zeros: sparsity belongs to the mode.

    Parameters
    ----------
    scale : float, default 1.0
        The mean of |coef|, above 0. The variance of a coefficient is 2 scale^2.

    Examples
    --------
    >>> from mercer.priors import Laplacian
    >>> prior = Laplacian(scale=0.5)
    >>> prior.gamma([0.0, 1.0, -2.0])
    array([0., 2., 4.])
    >>> Laplacian.estimate([0.0, 1.0, -2.0])
    Laplacian(scale=1)
    """

    def _gamma(self, t: Floats) -> Floats:
        return t

    def _slope(self, t: Floats) -> Floats:
        return np.ones_like(t)

    def _log_normaliser(self) -> float:
        return float(np.log(2.0))

    @property
    def variance(self) -> float:
        """The variance of a coefficient, 2 scale^2."""
        return 2.0 * self.scale**2

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Return independent draws in an array of shape `size`."""
        require_generator(rng)
        return rng.laplace(0.0, self.scale, size)

    @classmethod
    def _likeliest(cls, size: Floats) -> float:
        return float(np.mean(size))
