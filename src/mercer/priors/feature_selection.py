"""The prior that counts coefficients."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.priors.base import CoefficientPrior
from mercer.registry import storable

__all__ = ["FeatureSelection"]

Floats = NDArray[np.float64]

_IMPROPER = (
    "the feature-selection prior is improper: exp(-gamma) tends to exp(-1), not to 0, and has no "
    "finite integral, so there is {wanted}; `Laplacian` and `WeightDecay` are proper"
)


@storable
class FeatureSelection(CoefficientPrior):
    """gamma(t) = 1 - exp(-|t|) (BKM 98, as corrected): about one nat for each coefficient not 0.

    A coefficient well above the scale costs one nat whatever its size, so that large ones are not
    shrunk and small ones are worth giving up. The paper prints 1 - exp(p |t|), which falls; its p
    is 1/scale here. gamma is concave in |t|: the posterior has many modes, and the one that is
    found depends on where the search begins.

    The prior is improper, and cannot be sampled: there is `gamma` and `slope`, but no density.

    Parameters
    ----------
    scale : float, default 1.0
        The size from which a coefficient counts, above 0.

    Examples
    --------
    >>> from mercer.priors import FeatureSelection
    >>> prior = FeatureSelection(scale=0.5)
    >>> prior.gamma([0.0, 0.5, -5.0]).round(4)
    array([0.    , 0.6321, 1.    ])
    >>> prior.is_proper
    False
    """

    is_proper = False

    def _gamma(self, t: Floats) -> Floats:
        return np.asarray(-np.expm1(-t))

    def _slope(self, t: Floats) -> Floats:
        return np.exp(-t)

    def _log_normaliser(self) -> NoReturn:
        raise ValueError(_IMPROPER.format(wanted="no density"))

    @property
    def variance(self) -> float:
        """Refused: the prior is improper."""
        raise ValueError(_IMPROPER.format(wanted="no variance"))

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NoReturn:
        """Refuse: the prior is improper."""
        raise ValueError(_IMPROPER.format(wanted="nothing to sample from"))

    @classmethod
    def estimate(cls, coef: ArrayLike) -> NoReturn:
        """Refuse: the prior is improper."""
        cls._likeliest(np.asarray(coef))

    @classmethod
    def _likeliest(cls, size: Floats) -> NoReturn:
        raise ValueError(_IMPROPER.format(wanted="no scale of the greatest likelihood"))
