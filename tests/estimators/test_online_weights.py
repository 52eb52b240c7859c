"""Weights and units of on-line regression, and odd streams."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    GPRegressor,
    OnlineGPRegressor,
)
from mercer.errors import MercerWarning, UndeterminedWarning
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian

from .online_cases import (
    KERNEL,
    NEW,
    X,
    Y,
    exact,
    finite,
    streaming,
)


def test_weights_are_powers():
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 60)
    model = streaming().partial_fit(X, Y, sample_weight=weights)
    kept = weights > 0
    mean, var = exact(X[kept], Y[kept], weights=weights[kept])
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std**2, var, atol=1e-8)
    assert model.n_seen_ == np.sum(kept)


def test_known_variances_are_weights():
    variances = np.random.default_rng(1).uniform(0.01, 0.5, 60)
    model = streaming(noise=1.0).partial_fit(X, Y, sample_weight=1.0 / variances)
    whole = GPRegressor(KERNEL, Gaussian(variances), optimizer=None, mean="zero").fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-8)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("novelty", ["geometry", "mean"])
def test_one_basis_vector(criterion, novelty):
    model = streaming(max_basis=1, criterion=criterion, novelty=novelty).partial_fit(X, Y)
    assert model.n_basis_ == 1 and model.basis_.shape == (1, 2)
    finite(model)


def test_duplicates_and_a_constant_stream():
    rows = np.repeat(X[:3], 200, axis=0)
    model = streaming(max_basis=10).partial_fit(rows, np.repeat(Y[:3], 200))
    assert model.n_basis_ == 3
    mean, var = exact(X[:3], Y[:3], weights=np.full(3, 200.0))
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-7)
    np.testing.assert_allclose(std**2, var, atol=1e-7)
    constant = streaming(max_basis=10).partial_fit(np.ones((500, 2)), np.full(500, 4.0))
    assert constant.n_basis_ == 1
    np.testing.assert_allclose(constant.predict([[1.0, 1.0]]), 4.0, atol=1e-3)
    with pytest.warns(UndeterminedWarning):
        default = OnlineGPRegressor(n_init=50).partial_fit(np.ones((60, 2)), np.full(60, 4.0))
    np.testing.assert_allclose(default.predict([[1.0, 1.0]]), 4.0, atol=1e-6)


def test_a_change_of_scale_mid_stream():
    model = streaming(max_basis=20, tol=1e-6)
    model.partial_fit(X, Y).partial_fit(X, 1e6 * Y)
    finite(model)
    # the new rows rule: those before are a millionth of them, under noise that is as small
    assert np.mean(np.abs(model.predict(X))) > 1e5
    inputs = streaming(max_basis=20).partial_fit(X, Y).partial_fit(1e6 * X, Y)
    finite(inputs, np.vstack([NEW, 1e6 * NEW]))


def test_rows_that_are_impossible_are_skipped():
    def within(y, f):
        return np.where((np.abs(y - f) <= 1.0) & (y < 100.0), -np.log(2.0), -np.inf)

    likelihood = Custom(
        within,
        knots=lambda y: y[:, None] + [-1.0, 1.0],
        conditional_mean=np.array,
        conditional_var=lambda f: np.full(np.shape(f), 1.0 / 3.0),
    )
    model = OnlineGPRegressor(RBF(), likelihood)
    model.partial_fit(np.zeros((20, 1)), np.linspace(-0.9, 0.9, 20))
    before = model.predict([[0.0]])
    with pytest.warns(MercerWarning, match=r"1 of 2 rows were skipped, row 0"):
        told = model.learn([[0.0], [0.5]], [500.0, 0.1])
    assert told.log_density[0] == -np.inf
    assert np.isfinite(told.log_density[1])
    assert abs(model.predict([[0.0]])[0] - before[0]) < 0.5
