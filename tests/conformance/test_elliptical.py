"""The elliptical slice sampler where the posterior is known."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.testing import elliptical_slice

K = np.array([[1.5, 0.9, 0.2], [0.9, 1.2, 0.5], [0.2, 0.5, 0.8]])
MEAN = np.array([0.5, -1.0, 2.0])
Y = np.array([1.0, 0.3, 1.0])
NOISE = np.array([0.3, 0.5, 2.0])


def gaussian(f):
    return -0.5 * np.sum((Y - f) ** 2 / NOISE)


def test_gaussian_noise_gives_the_exact_posterior():
    samples = elliptical_slice(gaussian, K, 20_000, mean=MEAN, rng=0)
    Q = np.linalg.inv(K + np.diag(NOISE))
    mean, cov = MEAN + K @ Q @ (Y - MEAN), K - K @ Q @ K
    # draws are worth a third or so of independent ones: four standard errors
    error = 4 * np.sqrt(np.diag(cov) / 7000)
    assert np.all(np.abs(samples.mean(axis=0) - mean) < error)
    np.testing.assert_allclose(np.cov(samples.T), cov, atol=0.04)


def test_without_data_it_draws_from_the_prior():
    samples = elliptical_slice(lambda f: 0.0, K, 20_000, mean=MEAN, n_burn=0, rng=1)
    np.testing.assert_allclose(samples.mean(axis=0), MEAN, atol=0.05)
    np.testing.assert_allclose(np.cov(samples.T), K, atol=0.07)


def test_hard_limits_are_kept():
    """Half-normal: mean sqrt(2/pi)."""

    def positive(f):
        return 0.0 if f[0] > 0 else (np.nan if f[0] < -1 else -np.inf)

    samples = elliptical_slice(positive, [[1.0]], 20_000, start=[0.5], rng=2)
    assert samples.min() > 0
    assert samples.mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.03)


def test_a_singular_prior_is_respected():
    samples = elliptical_slice(lambda f: -0.5 * (f[0] - 1) ** 2, np.ones((2, 2)), 500, rng=0)
    np.testing.assert_allclose(samples[:, 0], samples[:, 1], atol=1e-6)


def test_thinning_keeps_every_few_steps():
    every = elliptical_slice(gaussian, K, 12, n_burn=5, rng=3)
    third = elliptical_slice(gaussian, K, 4, n_burn=5, thin=3, rng=3)
    np.testing.assert_array_equal(third, every[2::3])
    assert np.unique(every, axis=0).shape == every.shape


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"covariance": np.ones(3)}, "square matrix"),
        ({"covariance": [[np.nan]]}, "finite"),
        ({"mean": [1.0]}, "mean must be 3 finite"),
        ({"start": [np.inf, 0, 0]}, "start must be 3 finite"),
        ({"n_samples": 0}, "n_samples must be"),
        ({"n_burn": -1}, "n_burn must be"),
        ({"thin": 1.5}, "thin must be"),
        ({"log_likelihood": lambda f: -np.inf}, "likelihood is 0"),
    ],
)
def test_refusals(change, text):
    arguments = {"log_likelihood": gaussian, "covariance": K, "n_samples": 3} | change
    with pytest.raises(ValueError, match=text):
        elliptical_slice(**arguments)
