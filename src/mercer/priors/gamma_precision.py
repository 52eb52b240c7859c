"""The Gamma hyperprior on precisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mercer.priors._cubic import downward_roots
from mercer.priors.base import require_generator
from mercer.priors.flat import flat_best, ratio
from mercer.priors.precisions import PrecisionPrior, Size, number, one_evidence
from mercer.registry import storable

__all__ = ["GammaPrecision"]

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2.0 * np.pi))


@storable
class GammaPrecision(PrecisionPrior):
    """p(s) = b^a s^(a-1) exp(-b s)/Gamma(a) (BKM 123): coefficients have Student's t.

    The coefficient's density is b^a Gamma(a + 1/2)/(Gamma(a) sqrt(2 pi)) (b + coef^2/2)^-(a + 1/2)
    (BKM 124, as corrected), Student's t of 2 a degrees of freedom and scale sqrt(b/a).

    Parameters
    ----------
    a, b : float, default 1e-4
        Shape, and rate in units of 1/s, at least 0. The defaults are Tipping's: next to flat in
        ln s from exp(-1/a) to 1/b. The hyperprior is improper where one of them is 0; with both
        it is `Flat`.

    Examples
    --------
    >>> from mercer.priors import GammaPrecision
    >>> prior = GammaPrecision(a=2.0, b=1.0)
    >>> prior.density([0.0, 1.0]).round(4)
    array([0.5303, 0.1925])
    >>> prior.update(s=1.0, mu2=0.25, xi=0.4).round(4)
    np.float64(2.0444)
    """

    _arguments = ("a", "b")
    a: float
    b: float

    def __init__(self, a: float = 1e-4, b: float = 1e-4) -> None:
        shape = number("GammaPrecision", "a", a, strict=False)
        rate = number("GammaPrecision", "b", b, strict=False)
        if shape > 0 and rate == 0:
            raise ValueError(
                f"GammaPrecision: b = 0 with a = {shape:g} makes precisions likelier the larger "
                "they are, without end, and nothing stays in a model; give b > 0"
            )
        self.__dict__.update(a=shape, b=rate, is_proper=shape > 0)

    def _log_h(self, t: Floats) -> Floats:
        if self.a == 0:
            return np.asarray(-self.b * np.exp(t)) if self.b > 0 else np.zeros_like(t)
        # a ln s - b s, less its value at the peak, s = a/b
        above = t - np.log(self.a / self.b)
        with np.errstate(over="ignore", invalid="ignore"):
            value = -self.a * (np.expm1(above) - above)
        return np.where(t == np.inf, -np.inf, value)

    def _slope(self, t: Floats) -> Floats:
        return np.asarray(self.a - self.b * np.exp(t))

    def _log_peak(self) -> float:
        if not self.is_proper:
            raise ValueError(
                f"{self!r} is improper: the density of ln s does not fall towards s = 0 unless "
                "a > 0, and has no finite integral"
            )
        return float(self.a * np.log(self.a) - self.a - gammaln(self.a))

    def _log_density(self, size: Floats) -> Floats:
        a, b = self.a, self.b
        spread = np.logaddexp(np.log(b), 2.0 * np.log(size) - np.log(2.0))  # (BKM 124)
        constant = a * np.log(b) + gammaln(a + 0.5) - gammaln(a) - 0.5 * _LOG_2PI
        return np.asarray(constant - (a + 0.5) * spread)

    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent draws of ln s; ValueError where the hyperprior is improper."""
        self._log_peak()
        # A draw for a + 1 times U^(1/a) is one for a, and does not underflow where a is small.
        require_generator(rng)
        larger = rng.standard_gamma(self.a + 1.0, size)
        return np.asarray(np.log(larger) - rng.standard_exponential(size) / self.a - np.log(self.b))

    def _best(self, level: Floats, quality: Floats) -> tuple[Floats, Floats]:
        if self.b == 0:
            return flat_best(level, quality)
        a, q = self.a, quality**2
        # With x = s/S and B = b S: 1/(1 + x) - q x/(1 + x)^2 + 2 (a - B x) = 0.
        B = self.b * np.exp(level)
        roots = downward_roots(
            np.full(len(q), a + 0.5), 2.0 * a - B + 0.5 * (1.0 - q), a - 2.0 * B, B
        )
        return greater(self, level, q, *roots)

    def _update(self, held: Floats, square: Floats) -> Floats:
        return ratio(held + 2.0 * self.a, square + 2.0 * self.b)  # (BKM 134)


def greater(
    prior: PrecisionPrior, level: Floats, q: Floats, *roots: Floats
) -> tuple[Floats, Floats]:
    """Return ln s and the value at the better of the maxima x = s/S; NaN is none."""
    best, value = np.full(len(q), np.inf), np.full(len(q), -np.inf)
    for x in roots:
        t = np.log(np.where(np.isnan(x), 1.0, x))
        here = one_evidence(t, q)[0] + prior._log_h(t + level)
        better = ~np.isnan(x) & (here > value)
        best, value = np.where(better, t + level, best), np.where(better, here, value)
    return best, value
