"""The hyperprior that says nothing."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mercer.priors.precisions import PrecisionPrior, Size, flat_gain
from mercer.registry import storable

__all__ = ["Flat"]

Floats = NDArray[np.float64]

_IMPROPER = (
    "the flat hyperprior is improper: the density of ln s is the same everywhere, and what it "
    "induces on a coefficient, 1/|coef|, has no finite integral either; `GammaPrecision` with "
    "small a and b is proper and close to it"
)


@storable(name="FlatPrecision")
class Flat(PrecisionPrior):
    """Every ln s is as likely as every other: the limit a, b -> 0 of the Gamma hyperprior.

    The usual choice for relevance vector machines, which then maximise the evidence alone. Both the
    hyperprior and the prior that it induces, proportional to 1/|coef|, are improper: there is
    no density and there are no draws.

    Examples
    --------
    >>> from mercer.priors import Flat
    >>> s, gain = Flat().best_precision(S=[2.0, 2.0], Q=[3.0, 1.0])
    >>> s.round(4), gain.round(4)
    (array([0.5714,    inf]), array([0.998, 0.   ]))
    """

    is_proper = False

    def _log_h(self, t: Floats) -> Floats:
        return np.zeros_like(t)

    def _slope(self, t: Floats) -> Floats:
        return np.zeros_like(t)

    def _log_peak(self) -> NoReturn:
        raise ValueError(_IMPROPER)

    def _log_density(self, size: Floats) -> NoReturn:
        self._log_peak()

    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> NoReturn:
        """Refuse: the hyperprior is improper."""
        self._log_peak()

    def _best(self, level: Floats, quality: Floats) -> tuple[Floats, Floats]:
        return flat_best(level, quality)

    def _update(self, held: Floats, square: Floats) -> Floats:
        return ratio(held, square)


def flat_best(level: Floats, quality: Floats) -> tuple[Floats, Floats]:
    """Return ln s for s = S^2/(Q^2 - S), and the gain; from ln S and Q/sqrt(S)."""
    excess = (quality - 1.0) * (quality + 1.0)
    some = excess > 0
    t = np.where(some, level - np.log(np.where(some, excess, 1.0)), np.inf)
    return t, flat_gain(excess)


def ratio(share: Floats, square: Floats) -> Floats:
    """Return share/square, infinite where the square is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.where(square > 0, share / square, np.inf))
