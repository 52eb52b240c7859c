"""Two classes by the normal distribution function, and by a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from mercer.likelihoods.base import broadcast, rows_of
from mercer.likelihoods.labels import Binary, margin
from mercer.likelihoods.mills import log_tail_derivatives
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.trapezoid import equal_steps
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Probit"]

Floats = NDArray[np.float64]

# log Phi is analytic up to the first zeros of Phi, so far from the line; see `trapezoid`.
_FIRST_ZERO = 2.8
_STRIP = 2.0 * np.pi * _FIRST_ZERO
_WIDEST = 8.0  # in units of the noise; beyond, adaptive quadrature takes over


@storable
class Probit(Binary):
    """Labels -1 and 1 with P(y | f) = Phi(y f/s): the sign of f + e, e ~ N(0, s^2) (BKM 16, 17).

    Averages over a Gaussian f stay of this form, with s^2 + var for s^2, so that EP and online
    learning need no quadrature. A wrong label costs as the square of its distance from the
    boundary: mislabelled points do more harm than with `Logistic`.

    Parameters
    ----------
    noise_std : float or Parameter, default 1.0
        s. Only its ratio to the spread of f matters, so that a plain number is held and the
        kernel's variance learned; a `Parameter` is learned as it says. 0 is a step: y is the sign
        of f, without error. That has no derivatives in f, and EP alone takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.likelihoods import Probit
    >>> np.exp(Probit().log_predictive(1, mean=2.0, var=3.0)).round(4)  # Phi(2/sqrt(1 + 3))
    np.float64(0.8413)
    """

    def __init__(self, noise_std: float | Parameter = 1.0) -> None:
        given = noise_std if isinstance(noise_std, Parameter) else Parameter(noise_std, fixed=True)
        parameter = positive("noise_std", given, zero=True, vector=False)
        self.is_positive = self.has_curvature = bool(parameter.value)
        self._set(noise_std=parameter)

    @property
    def analytic_within(self) -> float:
        """The distance of the first zeros of Phi(f/s) from the real line, 2.8 s."""
        return _FIRST_ZERO * float(self.noise_std)

    def missing(self, *methods: str) -> list[str]:
        """Return those of the named methods that there are not: a step has no derivatives."""
        lost = () if self.is_positive else ("derivatives", "fisher")
        inherited = super().missing(*methods)
        return [m for m in methods if m in lost or m in inherited]

    def _positive(self, f: Floats) -> Floats:
        if not self.is_positive:
            return np.asarray(0.5 * (1.0 + np.sign(f)))
        return np.asarray(ndtr(f / self.noise_std))

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log Phi(y f/s); for the step 0, -inf, or log(1/2) at f = 0."""
        m = margin(y, f)[1]
        return _log_phi(m, self.noise_std)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives of log Phi(y f/s) in f."""
        if not self.is_positive:
            raise self._lacking("derivatives")
        y, m = margin(y, f)
        return _derivatives(y, m, self.noise_std)

    def fisher(self, f: ArrayLike) -> Floats:
        """Return phi(z)^2/(Phi(z) Phi(-z) s^2) with z = f/s."""
        if not self.is_positive:
            raise self._lacking("fisher")
        f = np.asarray(f, dtype=float)
        first = log_tail_derivatives(np.asarray(f / self.noise_std))[0]
        other = log_tail_derivatives(np.asarray(-f / self.noise_std))[0]
        return np.asarray(first * other / self.noise_std**2)

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Phi(y mean/t), t^2 = s^2 + var, and its derivatives in the mean (SOGP 4.7).

        s is the noise's standard deviation, of which the paper speaks as of a variance.
        """
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        y, m = margin(y, mean)
        t = np.hypot(self.noise_std, np.sqrt(var))
        some = t > 0
        first, second, _ = _derivatives(y, m, np.where(some, t, 1.0))
        log_z = _log_phi(m, t)
        return log_z, np.where(some, first, np.nan), np.where(some, second, np.nan)

    def compiled_site(self) -> tuple[str, Floats]:
        """Return the noise's standard deviation."""
        return "probit", np.array([self.noise_std], dtype=float)

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)] and its derivatives in mean and variance, by equal steps."""
        self._check_positive()
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        y, m = margin(y, mean)
        s, sd = float(self.noise_std), np.sqrt(var)
        easy = sd <= _WIDEST * s
        out = np.empty((3, y.size))
        if not np.all(easy):
            out[:, ~easy] = super().expected(y[~easy], mean[~easy], var[~easy])
        for rows, z, w in equal_steps(sd / s, easy, _STRIP / 40.0, 9.0):
            x = (m[rows][:, None] + sd[rows][:, None] * z) / s
            first, second, _ = log_tail_derivatives(-x)
            out[0, rows] = log_ndtr(x) @ w
            out[1, rows] = -y[rows] * (first @ w) / s
            out[2, rows] = 0.5 * (second @ w) / s**2
        value, first, second = out.reshape(3, *shape)
        return value, first, second

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return P(y = 1) - P(y = -1) of a new label."""
        mean, var = broadcast(mean=mean, var=var)
        at = self._at(mean, var)
        return np.asarray(ndtr(at) - ndtr(-at))

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return 4 P(y = 1) P(y = -1) of a new label."""
        mean, var = broadcast(mean=mean, var=var)
        at = self._at(mean, var)
        return np.asarray(4.0 * ndtr(at) * ndtr(-at))

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return 0 below -1, P(y = -1) from there to 1, and 1."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        below = ndtr(-self._at(mean, var))
        return np.where(y < -1.0, 0.0, np.where(y < 1.0, below, 1.0))

    def _at(self, mean: Floats, var: Floats) -> Floats:
        t = np.hypot(self.noise_std, np.sqrt(var))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mean == 0, 0.0, mean / t)

    def knots(self, y: Floats) -> Floats:
        """Return 0, where the probability is one half, and the step has its jump."""
        return np.zeros((np.size(y), 1))

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        # log p depends on f/s alone.
        s = self.noise_std
        first, second, third = self.derivatives(y, f)
        return {
            "noise_std": (
                np.asarray(-f * first / s),
                np.asarray(-(first + f * second) / s),
                np.asarray(-(2.0 * second + f * third) / s),
            )
        }

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        if not self.theta.size:
            return np.empty(0)
        s = self.noise_std
        slope = -mean * self.smoothed(y, mean, var)[1] * s / (s**2 + var)
        return self._own_gradient(noise_std=np.sum(g * slope))


def _log_phi(m: Floats, t: float | Floats) -> Floats:
    """Return log Phi(m/t); for t = 0 the step, one half at 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(log_ndtr(np.where(m == 0, 0.0, m / t)))


def _derivatives(y: Floats, m: Floats, t: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Return the first three derivatives of log Phi(y f/t) in f, m being y f."""
    first, second, third = log_tail_derivatives(np.asarray(-m / t))
    return np.asarray(-y * first / t), np.asarray(second / t**2), np.asarray(-y * third / t**3)
