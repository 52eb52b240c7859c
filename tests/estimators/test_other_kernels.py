"""Kernels that are matrices, functions of objects, or no covariances."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor
from mercer.kernels import RBF, Callable, Flipped, Tanh
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed


def test_precomputed_kernel():
    K = RBF()(X)
    model = GPRegressor("precomputed", Gaussian(0.2), mean="zero", optimizer=None).fit(K, Y)
    peer = fixed(RBF()).fit(X, Y)
    cross, new = RBF()(X_NEW, X), RBF()(X_NEW)
    np.testing.assert_allclose(model.predict(cross), peer.predict(X_NEW), rtol=1e-10)
    with_diagonal = np.hstack([cross, np.ones((7, 1))])
    for a, b in zip(
        model.predict(with_diagonal, return_std=True),
        peer.predict(X_NEW, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    _, cov = model.predict(np.hstack([cross, new]), return_cov=True)
    np.testing.assert_allclose(cov, peer.predict(X_NEW, return_cov=True)[1], atol=1e-10)
    with pytest.raises(ValueError, match=r"k\(x, x\)"):
        model.predict(cross, return_std=True)
    with pytest.raises(ValueError, match="square"):
        model.fit(K[:, :5], Y)
    with pytest.raises(ValueError, match="symmetric"):
        model.fit(np.triu(K), Y)


def test_precomputed_kernel_with_a_mean_weights_and_samples():
    K = RBF()(X)
    weights = np.ones(40)
    weights[3], weights[8] = 0.0, 2.0
    model = GPRegressor("precomputed", Gaussian(0.2), optimizer=None).fit(K, Y + 5.0, weights)
    peer = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y + 5.0, weights)
    rows = np.hstack([RBF()(X_NEW, X), RBF()(X_NEW)])
    np.testing.assert_allclose(model.predict(rows[:, :40]), peer.predict(X_NEW), rtol=1e-10)
    np.testing.assert_allclose(model.predictive_.cov(rows), peer.predictive_.cov(X_NEW), atol=1e-10)
    assert model.sample_y(rows, 3).shape == (7, 3)
    model.set_params(kernel=RBF())  # what was fitted stays fitted
    np.testing.assert_allclose(model.predict(rows[:, :40]), peer.predict(X_NEW), rtol=1e-10)
    with pytest.raises(ValueError, match="no inputs for the mean"):
        GPRegressor("precomputed", mean="linear").fit(K, Y)


def test_scikit_learns_periodic_kernel_is_refused_where_it_is_no_covariance():
    """It takes |x - x'| inside the sine, which is indefinite for several columns."""
    with pytest.raises(ValueError, match="not a Mercer kernel"):
        GPRegressor(sk.ExpSineSquared()).fit(X, Y)
    column = X[:, :1]
    model = GPRegressor(sk.ExpSineSquared(1.3, 2.0) + sk.WhiteKernel(0.2), optimizer=None)
    peer = GaussianProcessRegressor(
        sk.ExpSineSquared(1.3, 2.0) + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None
    )
    model.set_params(mean="zero").fit(column, Y)
    peer.fit(column, Y)
    np.testing.assert_allclose(model.predict(column), peer.predict(column), rtol=1e-8)


def test_kernel_over_any_objects():
    words = ["a", "ab", "abc", "b", "bc", "c"]

    def shared(u, v):
        return float(len(set(u) & set(v)))

    model = GPRegressor(Callable(shared), Gaussian(0.1), mean="zero", optimizer=None)
    model.fit(words, np.arange(6.0))
    K = np.array([[shared(u, v) for v in words] for u in words])
    expected = K[:2] @ np.linalg.solve(K + 0.1 * np.eye(6), np.arange(6.0))
    np.testing.assert_allclose(model.predict(words[:2]), expected, rtol=1e-10)


def test_indefinite_kernel_names_the_two_ways_out():
    with pytest.raises(ValueError, match=r"Flipped.*LaplacianProcess"):
        GPRegressor(Tanh()).fit(X, Y)
    model = GPRegressor(Flipped(Tanh()), optimizer=None).fit(X, Y)
    assert np.all(np.isfinite(model.predict(X_NEW)))
