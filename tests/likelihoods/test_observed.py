"""Moments of new observations, and what likelihoods say of themselves to that end."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    SoftLabels,
    StudentT,
)
from mercer.likelihoods.observed import observed_cov, observed_gradients


def test_derivatives_of_moments_in_closed_form():
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=(4, 1)), rng.uniform(0.0, 0.5, (4, 1))
    var[0] = 0.0
    dmean, dvar = rng.normal(size=(2, 4, 3, 1))
    in_mean, in_var = observed_gradients(Poisson(), mean, var, dmean, dvar)
    r, e = np.exp(mean + 0.5 * var)[:, None], np.exp(var)[:, None]
    np.testing.assert_allclose(in_mean, r * (dmean + 0.5 * dvar), rtol=1e-6, atol=1e-8)
    # V = r + (e^v - 1) r^2
    expected = (r + 2 * (e - 1) * r**2) * (dmean + 0.5 * dvar) + e * r**2 * dvar
    np.testing.assert_allclose(in_var, expected, rtol=1e-6, atol=1e-7)


def test_joint_covariances_of_wide_and_of_certain_values():
    v = np.array([[9.0, -4.0, 0.0], [-4.0, 4.0, 0.0], [0.0, 0.0, 0.0]])[..., None]
    m = np.array([[0.5], [-1.0], [2.0]])
    cov = observed_cov(Poisson(), m, v.copy())[..., 0]
    rate = np.exp(m[:, 0] + 0.5 * np.diag(v[..., 0]))
    expected = np.outer(rate, rate) * np.expm1(v[..., 0]) + np.diag(rate)
    np.testing.assert_allclose(cov, expected, rtol=1e-6, atol=1e-8)


# --- what likelihoods say of themselves ---------------------------------------------------------


def log_normal(y, f):
    return -0.5 * (y - f) ** 2 - 0.5 * np.log(2 * np.pi)


class Shifted(StudentT):
    """As StudentT, but one above f."""

    def log_density(self, y, f):
        return super().log_density(np.asarray(y) - 1.0, f)


class Narrow(Huber):
    """Even again, and says so."""

    is_symmetric = True


# likelihood: (adds noise, symmetric)
FLAGS = {
    Gaussian(0.5): (True, True),
    Gaussian(): (True, True),
    Laplace(0.3): (True, True),
    EpsilonInsensitive(0.1, 0.3): (True, True),
    Huber(0.3): (True, True),
    StudentT(4.0, 0.3): (True, True),
    MixtureNoise([0.8, 0.2], [0.0, 2.0], [0.1, 1.0]): (True, False),
    Poisson(): (False, False),
    Logistic(): (False, False),
    Probit(): (False, False),
    SoftLabels(Logistic()): (False, False),
    Custom(log_normal): (False, False),
    Shifted(4.0, 0.3): (True, False),  # no such claim is inherited
    Narrow(0.3): (True, True),
}


@pytest.mark.parametrize("likelihood", FLAGS, ids=repr)
def test_flags(likelihood):
    assert (likelihood.adds_noise, likelihood.is_symmetric) == FLAGS[likelihood]
