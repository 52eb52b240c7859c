"""Moments of new observations, and what likelihoods say of themselves to that end."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import MercerWarning
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
from mercer.likelihoods.observed import observed_cov, observed_gradients, observed_var


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


def test_a_training_row_has_its_own_noise():
    mean, var = np.array([0.5, -1.0, 2.0]), np.array([0.3, 0.1, 0.0])
    known = np.array([1.0, 4.0, 2.0])
    np.testing.assert_allclose(Gaussian(known).training_var(mean, var), var + known)
    for likelihood in (Gaussian(0.5), StudentT(4.0, 0.3), Poisson()):
        expected = likelihood.predictive_var(mean, var)
        np.testing.assert_allclose(likelihood.training_var(mean, var), expected, rtol=1e-12)


class Cauchy(Custom):
    """Has neither mean nor variance."""

    def conditional_mean(self, f):
        return np.full(np.shape(f), np.nan)

    conditional_var = conditional_mean


def test_only_who_has_degrees_of_freedom_is_told_to_fix_them():
    for likelihood in (StudentT(1.5, 0.3), Cauchy(log_normal)):
        with pytest.warns(MercerWarning, match="no variance.*latent=True") as caught:
            assert np.all(np.isinf(observed_var(likelihood, np.zeros(2), np.ones(2))))
        assert ("fix df" in str(caught[0].message)) == isinstance(likelihood, StudentT)


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


# likelihood: (adds noise, symmetric, of labels)
FLAGS = {
    Gaussian(0.5): (True, True, False),
    Gaussian(): (True, True, False),
    Laplace(0.3): (True, True, False),
    EpsilonInsensitive(0.1, 0.3): (True, True, False),
    Huber(0.3): (True, True, False),
    StudentT(4.0, 0.3): (True, True, False),
    MixtureNoise([0.8, 0.2], [0.0, 2.0], [0.1, 1.0]): (True, False, False),
    Poisson(): (False, False, False),
    Logistic(): (False, False, True),
    Probit(): (False, False, True),
    SoftLabels(Logistic()): (False, False, True),
    Custom(log_normal): (False, False, False),
    Shifted(4.0, 0.3): (True, False, False),  # no such claim is inherited
    Narrow(0.3): (True, True, False),
}


@pytest.mark.parametrize("likelihood", FLAGS, ids=repr)
def test_flags(likelihood):
    flags = likelihood.adds_noise, likelihood.is_symmetric, likelihood.is_of_labels
    assert flags == FLAGS[likelihood]
