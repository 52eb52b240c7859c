"""Moments of new observations, and their derivatives, from those of the latent function."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from mercer.errors import MercerWarning, warn
from mercer.likelihoods.base import Likelihood

__all__ = [
    "observed_cov",
    "observed_gradients",
    "observed_interval",
    "observed_mean",
    "observed_training_var",
    "observed_var",
]

Floats = NDArray[np.float64]

# First and second derivatives from values at -2, -1, 0, 1 and 2 steps: errors of the fourth power.
_OFFSETS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
_FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
# A link bends over about one unit of the latent value; the moments are good to 1e-8.
_STEP = 0.01
# The highest level that a distribution function found by quadrature is sure to reach.
_HIGHEST = 1.0 - 1e-14
# Nodes of the quadrature behind covariances, and terms of their series.
_NODES, _TERMS = 100, 50


def observed_mean(likelihood: Likelihood, mean: Floats, var: Floats) -> Floats:
    """Return the mean of new observations; of those that have none the median, with a warning."""
    found = likelihood.predictive_mean(mean, var)
    none = np.isnan(found)
    if np.any(none):
        warn(
            f"under {likelihood!r} an observation has no mean, its tails are too heavy; the median "
            "is predicted instead",
            MercerWarning,
        )
        found = np.where(none, likelihood.quantile(mean, var, 0.5), found)
    return found


def observed_var(likelihood: Likelihood, mean: Floats, var: Floats) -> Floats:
    """Return the variance of new observations; infinite, with a warning, if they have none."""
    return _or_infinite(likelihood, likelihood.predictive_var(mean, var))


def observed_interval(
    likelihood: Likelihood, mean: Floats, var: Floats, coverage: float
) -> tuple[Floats, Floats]:
    """Return the ends of the equal-tailed interval that holds a new observation."""
    tail = 0.5 * (1.0 - float(coverage))
    low = likelihood.quantile(mean, var, tail)
    if likelihood.is_symmetric:
        return low, 2.0 * mean - low  # which knows tails that 1 - tail has lost
    return low, likelihood.quantile(mean, var, min(1.0 - tail, _HIGHEST))


def observed_training_var(likelihood: Likelihood, mean: Floats, var: Floats) -> Floats:
    """Return the variance of observations at the training rows, likewise."""
    return _or_infinite(likelihood, likelihood.training_var(mean, var))


def _or_infinite(likelihood: Likelihood, found: Floats) -> Floats:
    if np.all(np.isfinite(found)):
        return found
    advice = likelihood._variance_advice
    more = f", or {advice}" if advice else ""
    warn(
        f"under {likelihood!r} an observation has no variance, its tails are too heavy, and the "
        "standard deviation is infinite. Intervals and log densities serve, and latent=True for "
        f"the spread of the function alone{more}",
        MercerWarning,
    )
    return np.where(np.isnan(found), np.inf, found)


def observed_cov(likelihood: Likelihood, mean: Floats, cov: Floats) -> Floats:
    """Return the joint covariance (n, n, 1) of new observations from that of the latent function.

    It is written over `cov`. Under noise that is added it is the same but for the diagonal. Under a
    link g(f) = E[y | f] it is Mehler's series, with h_k the Hermite polynomials of unit norm and r
    the correlations of f,

        Cov[y_i, y_j] = sum_k c_ik c_jk r_ij^k,   c_ik = E[g(f_i) h_k((f_i - m_i)/s_i)],   k >= 1,

    whose terms are covariances each. Of an exponential it has eight digits for deviations s up to 3
    or so.
    """
    rows = np.arange(len(mean))
    var = cov[rows, rows]
    if not likelihood.adds_noise:
        m, s = mean[:, 0], np.sqrt(var[:, 0])
        nodes, weights = hermegauss(_NODES)
        weighted = likelihood.conditional_mean(m[:, None] + s[:, None] * nodes) * (
            weights / np.sum(weights)
        )
        safe = np.where(s > 0, s, 1.0)
        r = np.clip(cov[..., 0] / np.outer(safe, safe), -1.0, 1.0)
        cov[..., 0], power = 0.0, np.ones(r.shape)
        before, h = np.zeros(_NODES), np.ones(_NODES)
        for k in range(_TERMS):
            before, h = h, (nodes * h - np.sqrt(k) * before) / np.sqrt(k + 1.0)
            power *= r
            c = weighted @ h
            cov[..., 0] += np.outer(c, c) * power
    cov[rows, rows] = observed_var(likelihood, mean, var)
    return cov


def observed_gradients(
    likelihood: Likelihood, mean: Floats, var: Floats, dmean: Floats, dvar: Floats
) -> tuple[Floats, Floats]:
    """Return the derivatives in x of mean and variance of new observations, (n, d, P) both.

    `mean` and `var` (n, P) are those of the latent function, m and v, and `dmean` and `dvar`
    (n, d, P) their derivatives. E[y] and E[y^2] are averages over N(m, v), which obey the heat
    equation, so that derivatives in m alone are needed: with E and V the mean and the variance of
    y, dE/dv = E''/2 and dV/dv = V''/2 + E'^2.
    """
    if likelihood.adds_noise:
        return dmean, dvar
    points = mean + _STEP * _OFFSETS[:, None, None]
    E = observed_mean(likelihood, points, var)
    V = likelihood.predictive_var(points, var)
    (E1, V1), (E2, V2) = (
        tuple(np.tensordot(stencil, moment, 1) / _STEP**order for moment in (E, V))
        for order, stencil in ((1, _FIRST), (2, _SECOND))
    )
    in_mean = E1[:, None] * dmean + 0.5 * E2[:, None] * dvar
    in_var = V1[:, None] * dmean + (0.5 * V2 + E1**2)[:, None] * dvar
    return in_mean, in_var
