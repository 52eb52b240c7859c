"""The normal hyperprior on standard deviations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import k0e, kve

from mercer.priors._cubic import downward_roots
from mercer.priors.base import require_generator
from mercer.priors.gamma_precision import greater
from mercer.priors.precisions import PrecisionPrior, Size, number
from mercer.registry import storable

__all__ = ["NormalDeviation"]

Floats = NDArray[np.float64]


@storable
class NormalDeviation(PrecisionPrior):
    """Standard deviations 1/sqrt(s) that are N(0, width^2) (BKM 121, as corrected).

    The coefficient's density is K_0(|coef|/width)/(pi width), with K_0 the modified Bessel function
    (BKM 122, as corrected): a pole at 0, and tails like those of the Laplacian prior. The sign of
    a standard deviation does not matter.

    Parameters
    ----------
    width : float, default 1.0
        The standard deviation of the standard deviations, and of the coefficient; above 0.

    Examples
    --------
    >>> from mercer.priors import NormalDeviation
    >>> NormalDeviation(width=2.0).density([0.0, 1.0, -2.0]).round(4)
    array([   inf, 0.1471, 0.067 ])
    """

    _arguments = ("width",)
    width: float

    def __init__(self, width: float = 1.0) -> None:
        self.__dict__["width"] = number("NormalDeviation", "width", width)

    def _above(self, t: Floats) -> Floats:
        return np.asarray(t + 2.0 * np.log(self.width))  # the peak is at s = 1/width^2

    def _log_h(self, t: Floats) -> Floats:
        above = self._above(t)
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * (above + np.expm1(-above)))

    def _slope(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.expm1(-self._above(t)))

    def _log_peak(self) -> float:
        return -0.5 * float(np.log(2.0 * np.pi)) - 0.5

    def _log_density(self, size: Floats) -> Floats:
        x = size / self.width
        bessel = kve(0, x) if np.iscomplexobj(x) else k0e(x)
        return np.asarray(np.log(bessel) - x - np.log(np.pi * self.width))  # (BKM 122)

    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent draws of ln s."""
        require_generator(rng)
        return -2.0 * np.log(np.abs(rng.normal(0.0, self.width, size)))

    def _best(self, level: Floats, quality: Floats) -> tuple[Floats, Floats]:
        q = quality**2
        # With x = s/S and c = 1/(width^2 S): 1/(1 + x) - q x/(1 + x)^2 - 1 + c/x = 0. One change
        # of sign in its coefficients: one maximum.
        c = np.exp(-self._above(level))
        roots = downward_roots(c, 2.0 * c, c - 1.0 - q, np.ones(len(q)))
        return greater(self, level, q, *roots)

    def _update(self, held: Floats, square: Floats) -> Floats:
        # held - 1 + 1/(width^2 s) = s mu^2
        rest, c = 1.0 - held, self.width**-2.0
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * c / (rest + np.sqrt(rest**2 + 4.0 * c * square)))
