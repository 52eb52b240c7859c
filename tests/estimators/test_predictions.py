"""Predictions: spread, gradients, samples, the prior."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed, make


def test_default_model_predicts_well_and_its_errors_are_honest():
    X, y = make(300, noise=0.2)
    X_test, y_test = make(500, seed=1, noise=0.2)
    model = GPRegressor().fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    assert np.sqrt(np.mean((mean - y_test) ** 2)) < 0.24
    for coverage in (0.5, 0.9, 0.95):
        lo, hi = model.predict_interval(X_test, coverage)
        # three standard errors of a binomial over 500 rows
        width = 3 * np.sqrt(coverage * (1 - coverage) / 500)
        assert np.mean((lo <= y_test) & (y_test <= hi)) == pytest.approx(coverage, abs=width)
    np.testing.assert_allclose(
        model.log_predictive_density(X_test, y_test), norm.logpdf(y_test, mean, std), rtol=1e-10
    )


def test_latent_spread_lacks_the_noise():
    model = fixed().fit(X, Y)
    _, std = model.predict(X_NEW, return_std=True)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(std**2 - latent**2, 0.2, rtol=1e-10)
    _, cov = model.predict(X_NEW, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-10)


def test_input_gradients():
    model = fixed().fit(X, Y)
    gradient = model.predict_gradient(X_NEW)
    step = 1e-5
    for k in range(3):
        E = step * np.eye(3)[k]
        up, down = (model.predict(X_NEW + s * E, return_std=True) for s in (1, -1))
        for ours, a, b in zip(gradient, up, down, strict=True):
            np.testing.assert_allclose(ours[:, k], (a - b) / (2 * step), rtol=1e-5, atol=1e-8)


def test_samples_have_the_predicted_moments():
    model = fixed().fit(X, Y)
    mean, cov = model.predict(X_NEW, return_cov=True)
    draws = model.sample_y(X_NEW, 20_000, random_state=1)
    assert draws.shape == (7, 20_000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.06)
    np.testing.assert_array_equal(draws, model.sample_y(X_NEW, 20_000, random_state=1))


def test_unfitted_model_predicts_from_its_prior():
    model = GPRegressor(2.0 * RBF(), Gaussian(0.5))
    mean, std = model.predict(X_NEW, return_std=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(std, np.sqrt(2.5))
    assert GPRegressor().sample_y(X_NEW, 4).shape == (7, 4)


@pytest.mark.parametrize("normalize", [False, True])
def test_predicted_probabilities(normalize):
    rows, both = X, np.column_stack([Y, 1000.0 + 50.0 * Y])
    for targets in (Y, both):
        model = fixed(normalize_y=normalize).fit(rows, targets)
        mean, std = model.predict(X_NEW, return_std=True)
        for z in (-2.0, 0.0, 1.0):
            found = model.predict_cdf(X_NEW, mean + z * std)
            assert found.shape == mean.shape
            np.testing.assert_allclose(found, norm.cdf(z), rtol=1e-9)
        low, high = model.predict_interval(X_NEW, 0.8)
        np.testing.assert_allclose(model.predict_cdf(X_NEW, low), 0.1, rtol=1e-9)
        np.testing.assert_allclose(model.predict_cdf(X_NEW, high), 0.9, rtol=1e-9)
    with pytest.raises(ValueError, match=r"y must have shape \(7, 2\), as the predictions"):
        model.predict_cdf(X_NEW, mean[:, 0])


@pytest.mark.parametrize("normalize", [False, True])
def test_a_covariance_of_observations_takes_no_more_memory_than_that_of_the_function(normalize):
    model = fixed(normalize_y=normalize).fit(X, Y)
    many = np.random.default_rng(0).normal(size=(600, 3))
    peaks = []
    for latent in (True, False):
        tracemalloc.start()
        _, cov = model.predict(many, return_cov=True, latent=latent)
        peaks.append(tracemalloc.get_traced_memory()[1] / cov.nbytes)
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 0.1 and peaks[1] < 3.2
    _, std = model.predict(many, return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-10)
