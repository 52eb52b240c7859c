"""Noise with heavy tails: Student's t."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, stdtr

from mercer.likelihoods.additive import bounded
from mercer.likelihoods.base import rows_of
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.scaled import ScaledNoise
from mercer.likelihoods.tilted import by_steps
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["StudentT"]

Floats = NDArray[np.float64]

# Beyond this many degrees of freedom the normaliser is a series: the gamma functions are so large
# that their ratio loses digits.
_MANY = 1e3
# Beyond so many the compiled integral would lose digits.
_MOST = 1e6
# Beyond so many steps in a standard deviation, or so steep a density, adaptive quadrature takes
# fewer nodes.
_WIDEST, _STEEPEST = 20.0, 8.0


@storable
class StudentT(ScaledNoise):
    """y = f + s e with e from Student's t distribution.

    The density falls off as abs(y - f)^-(df + 1), so that an outlier is not only bounded in its
    pull but ignored when it is far enough. Use it for data with gross errors. The price is a log
    density that is not concave: posteriors can have several modes, Laplace's approximation takes
    the expected curvature where the actual one is negative, and EP may need damping.

    Parameters
    ----------
    df : float or Parameter, default 4.0
        The degrees of freedom: 1 is a Cauchy density, large values a Gaussian one. It is bounded
        by 1 and 1000 in a search, if not otherwise said. There is a mean above 1, a variance above
        2: below, predicted standard deviations are infinite, and intervals are the thing to use.
    scale : float or Parameter, optional
        s. The variance of the noise is s^2 df/(df - 2). Without it, it is chosen from the data
        (see `begun`).

    Examples
    --------
    >>> from mercer.likelihoods import StudentT
    >>> StudentT(4.0, scale=0.5).derivatives(10.0, 0.0)[0].round(3)  # an outlier hardly pulls
    np.float64(0.495)
    >>> StudentT(4.0, scale=0.5).predictive_var(0.0, 1.0)
    array(1.5)
    """

    is_symmetric = True
    _variance_advice = "fix df above 2: StudentT(df=Parameter(4.0, fixed=True))"

    def __init__(self, df: float | Parameter = 4.0, scale: float | Parameter | None = None) -> None:
        self._set(
            df=positive("df", bounded(df, 1.0, 1e3), vector=False),
            **self._open(scale=scale),
        )

    def _log_noise(self, t: Floats) -> Floats:
        n = float(self.df)
        return np.asarray(_log_constant(n) - np.log(self._scale) - 0.5 * (n + 1) * self._log1p(t))

    def _log1p(self, t: Floats) -> Floats:
        """Return log(1 + t^2/(n s^2)), squares that overflow included."""
        q = np.abs(t) / (self._scale * np.sqrt(self.df))
        small = np.minimum(q, 1e100)
        large = 2.0 * np.log(np.maximum(q, 1e100))
        return np.asarray(np.where(q < 1e100, np.log1p(small**2), large))

    def _ratio(self, t: Floats) -> tuple[Floats, Floats]:
        """Return z = t/s and 1/(n + z^2)."""
        z = np.asarray(t / self._scale)
        with np.errstate(over="ignore"):
            return z, np.asarray(1.0 / (self.df + z**2))

    def _noise_slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        n, s = self.df, self._scale
        z, w = self._ratio(t)
        first = -(n + 1) * z * w / s
        second = (n + 1) * w * (1.0 - 2.0 * n * w) / s**2
        third = -2.0 * (n + 1) * z * w * w * (1.0 - 4.0 * n * w) / s**3
        return first, second, third

    def _noise_cdf(self, t: Floats) -> Floats:
        return np.asarray(stdtr(self.df, t / self._scale))

    def _noise_moments(self) -> tuple[float, float]:
        n = float(self.df)
        if n <= 2.0:
            return (0.0, np.inf) if n > 1.0 else (np.nan, np.nan)
        return 0.0, self._scale**2 * n / (n - 2.0)

    def _information(self) -> float:
        return float((self.df + 1.0) / ((self.df + 3.0) * self._scale**2))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.asarray(self._scale * rng.standard_t(self.df, shape))

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its two derivatives in the mean, Z = E[p(y | f)], by equal steps.

        The density has its poles at a distance b = s sqrt(df) from the real line. On a line half
        as far (by squares) it is larger by 2^((df + 1)/2) at most, which the step makes up for.
        log p is nowhere steeper than (df + 1)/(2 b): so far the Gaussian has to be followed.
        """
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        n, sd = float(self.df), np.sqrt(var)
        pole = self._scale * np.sqrt(n)
        step = 2.0 * np.pi * np.sqrt(0.5) * pole / (36.0 + 0.5 * np.log(2.0) * (n + 1.0))
        pull = 0.5 * (n + 1.0) * sd / pole
        easy = (sd > 0.0) & (sd <= _WIDEST * step) & (pull <= _STEEPEST)
        out = np.empty((3, y.size))
        if not np.all(easy):
            out[:, ~easy] = super().smoothed(y[~easy], mean[~easy], var[~easy])
        level = np.ceil(pull)  # rows of similar reach go together
        for value in np.unique(level[easy]):
            rows = easy & (level == value)
            reach = value + np.sqrt(value**2 + 80.0)
            out[:, rows] = by_steps(self, y[rows], mean[rows], var[rows], mean[rows], step, reach)
        log_z, first, second = out.reshape(3, *shape)
        return log_z, first, second

    def compiled_site(self) -> tuple[str, Floats] | None:
        """Return the scale, df, and the logarithm of what the compiled integral is divided by.

        That is over the logarithm of a precision with density exp(-n/2 (e^u - 1 - u)), of
        Gaussians without their 1/sqrt(2 pi). For more than a million degrees of freedom it loses
        digits, and there is none.
        """
        n, s = float(self.df), self._scale
        if n > _MOST:
            return None
        half = 0.5 * n
        log_gamma = gammaln(half) - half * (np.log(half) - 1.0)
        if n > _MANY:
            log_gamma = 0.5 * np.log(2.0 * np.pi / half) + 1.0 / (12.0 * half)
        constant = log_gamma + 0.5 * np.log(2.0 * np.pi) + np.log(s)
        return "student", np.array([s, n, constant])

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        t, n, s = y - f, float(self.df), self._scale
        z, w = self._ratio(t)
        zero = _log_constant_slope(n) - 0.5 * self._log1p(t) + 0.5 * (n + 1) * (1 / n - w)
        first = z * w * (1.0 - (n + 1) * w) / s
        second = (w * (1.0 - 2.0 * n * w) + (n + 1) * w * w * (4.0 * n * w - 3.0)) / s**2
        own: Slopes = {"df": (np.asarray(zero), np.asarray(first), np.asarray(second))}
        return own | super()._slopes(y, f)


def _log_constant(n: float) -> float:
    """Return log[Gamma((n + 1)/2) / (Gamma(n/2) sqrt(n pi))]."""
    if n > _MANY:
        return float(-0.5 * np.log(2.0 * np.pi) - 1.0 / (4.0 * n) + 1.0 / (24.0 * n**3))
    return float(gammaln(0.5 * (n + 1)) - gammaln(0.5 * n) - 0.5 * np.log(n * np.pi))


def _log_constant_slope(n: float) -> float:
    if n > _MANY:
        return 1.0 / (4.0 * n**2) - 1.0 / (8.0 * n**4)
    return float(0.5 * (digamma(0.5 * (n + 1)) - digamma(0.5 * n)) - 0.5 / n)
