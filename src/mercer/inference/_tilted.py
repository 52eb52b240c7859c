"""Powers of a likelihood, averaged over Gaussians: what expectation propagation asks of it.

Not an engine. A row of power 1 is `Likelihood.smoothed` itself, in closed form where that has one;
so is any power of Gaussian noise. Other powers go by quadrature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods import Gaussian
from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import quadrature

__all__ = ["Tilted"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Of a five-point difference in theta, whose own error is its fourth power.
_STEP = 2e-3


class Tilted:
    """Z_i = E[p(y_i | f)^power_i] over Gaussians f, for n rows.

    likelihood : Likelihood
    y : (n,) observations
    power : (n,) positive
    """

    def __init__(self, likelihood: Likelihood, y: Floats, power: Floats) -> None:
        self.likelihood, self.y, self.power = likelihood, y, power
        self._fractional = np.flatnonzero(power != 1.0)

    def row(self, i: int) -> Tilted:
        """Return the same for one row."""
        likelihood = self.likelihood
        if isinstance(likelihood, Gaussian):  # which may have a variance for each row
            likelihood = likelihood.subset(np.arange(self.y.size) == i)
        return Tilted(likelihood, self.y[i : i + 1], self.power[i : i + 1])

    def moments(self, mean: Floats, var: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its first two derivatives in the mean, each (n,).

        NaN where Z is 0 in floating-point numbers, or has no derivative. Z is log-concave where the
        likelihood is: a second derivative above 0 is rounding there, as of log Z = -1e17.
        """
        with np.errstate(all="ignore"):
            if not self._fractional.size:
                log_z, first, second = self.likelihood.smoothed(self.y, mean, var)
            elif isinstance(self.likelihood, Gaussian):
                return self._gaussian(self.likelihood, mean, var)
            else:
                log_z, first, second = self._by_quadrature(self.likelihood, mean, var)
            concave = self.likelihood.log_concave_at(self.y)
            return log_z, first, np.where(concave, np.minimum(second, 0.0), second)

    def pull(self, mean: Floats, var: Floats, g: Floats) -> Floats:
        """Return d/dtheta of sum(g log Z) over the likelihood's free parameters, (p,)."""
        likelihood = self.likelihood
        if not likelihood.theta.size:
            return np.empty(0)
        if not self._fractional.size:
            return likelihood.pull_smoothed(self.y, mean, var, g)
        if isinstance(likelihood, Gaussian):
            s, eta = likelihood.variances(self.y.size), self.power
            t = var + s / eta
            slope = 0.5 * (((self.y - mean) ** 2 / t - 1.0) / (t * eta) + (1.0 - eta) / s)
            return likelihood.pull_variances(g * slope)
        theta = likelihood.theta
        out, slope = np.zeros(theta.size), np.empty(theta.size)
        rows = np.flatnonzero(self.power == 1.0)
        if rows.size:
            out = likelihood.pull_smoothed(self.y[rows], mean[rows], var[rows], g[rows])
        rows = self._fractional
        for j in range(theta.size):
            difference = []
            for k in (1, 2):
                step = np.zeros(theta.size)
                step[j] = k * _STEP
                ends = [
                    self._integrals(likelihood.with_theta(theta + sign * step), mean, var)[0]
                    for sign in (1, -1)
                ]
                difference.append(float(np.sum(g[rows] * (ends[0] - ends[1]))))
            slope[j] = (8.0 * difference[0] - difference[1]) / (12.0 * _STEP)
        return np.asarray(out + slope)

    def _gaussian(
        self, likelihood: Gaussian, mean: Floats, var: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """N(y; f, s)^power is N(y; f, s/power) times a constant."""
        s, eta = likelihood.variances(self.y.size), self.power
        t = var + s / eta
        residual = self.y - mean
        constant = (eta - 1.0) * likelihood.log_density(self.y, self.y) - 0.5 * np.log(eta)
        log_z = constant - 0.5 * (residual**2 / t + np.log(t) + LOG_2PI)
        return log_z, residual / t, -1.0 / t

    def _by_quadrature(
        self, likelihood: Likelihood, mean: Floats, var: Floats
    ) -> tuple[Floats, Floats, Floats]:
        out = np.empty((3, self.y.size))
        rows = np.flatnonzero(self.power == 1.0)
        if rows.size:
            out[:, rows] = likelihood.smoothed(self.y[rows], mean[rows], var[rows])
        out[:, self._fractional] = self._integrals(likelihood, mean, var)
        return out[0], out[1], out[2]

    def _integrals(self, likelihood: Likelihood, mean: Floats, var: Floats) -> Floats:
        """Return the moments of the rows whose power is not 1, (3, k)."""
        rows = self._fractional
        y, eta, v = self.y[rows], self.power[rows], var[rows]

        def log_density(row: Rows, f: Floats) -> Floats:
            return np.asarray(eta[row] * likelihood.log_density(y[row], f))

        out = np.empty((3, rows.size))
        some, none = v > 0, v <= 0
        out[:, none] = eta[none] * np.array(
            likelihood.smoothed(y[none], mean[rows[none]], np.zeros(int(np.sum(none))))
        )
        y, eta, v = y[some], eta[some], v[some]
        out[:, some] = quadrature.smoothed(log_density, mean[rows[some]], v, likelihood.knots(y))
        return out
