"""Two classes by the logistic function."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from mercer.likelihoods.base import rows_of
from mercer.likelihoods.labels import Binary, margin
from mercer.likelihoods.trapezoid import equal_steps
from mercer.registry import storable

__all__ = ["Logistic"]

Floats = NDArray[np.float64]

# The rule's error is exp(-STRIP/(step sd)), the logistic function being analytic within pi.
_STRIP = 2.0 * np.pi**2
# Beyond these, adaptive quadrature takes over: steps would be too many, or values too small.
_WIDEST = 8.0
_FURTHEST = 60.0


@storable
class Logistic(Binary):
    """Labels -1 and 1 with P(y | f) = 1/(1 + exp(-y f)) (BKM 14).

    f is the logarithm of the odds (BKM 15). A wrong label far from the boundary costs as much as
    its distance, so that a few of them do little harm. Use it for two classes unless integrals
    over f must be in closed form, which `Probit` has; the two fit nearly the same.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.likelihoods import Logistic
    >>> np.exp(Logistic().log_density([1, -1], np.log(3.0)))
    array([0.75, 0.25])
    """

    def __init__(self) -> None:
        self._set()

    @property
    def analytic_within(self) -> float:
        """Pi, the poles of the logistic function being at odd multiples of i pi."""
        return float(np.pi)

    def _positive(self, f: Floats) -> Floats:
        return np.asarray(expit(f))

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return -log(1 + exp(-y f))."""
        return np.asarray(log_expit(margin(y, f)[1]))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return y s(-y f), -s(f) s(-f) and s(f) s(-f) tanh(f/2), s the logistic function."""
        y, m = margin(y, f)
        spread = expit(m) * expit(-m)
        third = spread * y * np.tanh(0.5 * m)
        return np.asarray(y * expit(-m)), np.asarray(-spread), np.asarray(third)

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its two derivatives in the mean, Z = E[s(y f)].

        Z = exp(m/2 + var/8) E[1/(2 cosh(f/2))] over N(m + var/2, var) with m = y mean: an even
        function without large exponents, and analytic, for which equal steps are enough.
        """
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        y, m = margin(y, mean)
        sd = np.sqrt(var)
        easy = (sd <= _WIDEST) & (np.abs(m) <= _FURTHEST)
        out = np.empty((3, y.size))
        if not np.all(easy):
            out[:, ~easy] = super().smoothed(y[~easy], mean[~easy], var[~easy])
        # 1e-17 of a value that is as small as exp(-FURTHEST/2)
        for rows, z, w in equal_steps(sd, easy, _STRIP / (40.0 + 0.5 * _FURTHEST), 14.0):
            f = (m + 0.5 * var)[rows][:, None] + sd[rows][:, None] * z
            away = np.abs(f)
            least = np.min(away, axis=1)  # 1/(2 cosh) is kept relative to its value there
            p = w * np.exp(0.5 * (least[:, None] - away)) / (1.0 + np.exp(-away))
            total = p.sum(axis=1)
            p /= total[:, None]
            # Averages over the tilted density of d1 = s(-f) and d2: q = <d1>, r = <d2> + Var(d1).
            wrong = expit(-f)
            slope = np.sum(p * wrong, axis=1)
            spread = (wrong - slope[:, None]) ** 2 - wrong * expit(f)
            out[0, rows] = 0.5 * (m[rows] - least) + var[rows] / 8.0 + np.log(total)
            out[1, rows] = y[rows] * slope
            out[2, rows] = np.sum(p * spread, axis=1)
        log_z, first, second = out.reshape(3, *shape)
        return log_z, first, second

    def compiled_site(self) -> tuple[str, Floats]:
        """Return the name alone: there are no parameters."""
        return "logistic", np.empty(0)

    def log_predictive(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return log Z alone, with an exponential a node: a sixth of the time of `smoothed`."""
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        y, m = margin(y, mean)
        sd = np.sqrt(var)
        easy = (sd <= _WIDEST) & (np.abs(m) <= _FURTHEST)
        out = np.empty(y.size)
        if not np.all(easy):
            out[~easy] = super().smoothed(y[~easy], mean[~easy], var[~easy])[0]
        for rows, z, w in equal_steps(sd, easy, _STRIP / (40.0 + 0.5 * _FURTHEST), 14.0):
            f = np.multiply.outer(0.5 * sd[rows], z)
            f += (0.5 * m + 0.25 * var)[rows][:, None]
            e = np.exp(np.negative(np.abs(f, out=f), out=f), out=f)  # exp(-|f|/2), 1e-45 at least
            density = e / (1.0 + e * e)  # 1/(2 cosh(f/2))
            out[rows] = 0.5 * m[rows] + var[rows] / 8.0 + np.log(density @ w)
        return np.minimum(out, 0.0).reshape(shape)

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)] and its derivatives in mean and variance, by equal steps."""
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        y, m = margin(y, mean)
        sd = np.sqrt(var)
        easy = sd <= _WIDEST
        out = np.empty((3, y.size))
        if not np.all(easy):
            out[:, ~easy] = super().expected(y[~easy], mean[~easy], var[~easy])
        for rows, z, w in equal_steps(sd, easy, _STRIP / 40.0, 9.0):
            f = m[rows][:, None] + sd[rows][:, None] * z
            wrong = expit(-f)
            out[0, rows] = log_expit(f) @ w
            out[1, rows] = y[rows] * (wrong @ w)
            out[2, rows] = -0.5 * (wrong * expit(f)) @ w
        value, first, second = out.reshape(3, *shape)
        return value, first, second

    def fisher(self, f: ArrayLike) -> Floats:
        """Return s(f) s(-f), the curvature, which is the same for both labels."""
        f = np.asarray(f, dtype=float)
        return np.asarray(expit(f) * expit(-f))
