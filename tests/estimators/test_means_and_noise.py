"""Means, weights and noise that is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor, means
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed


def test_estimated_means_shift_with_the_targets():
    base = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y)
    moved = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y + 100.0)
    np.testing.assert_allclose(moved.predict(X_NEW), base.predict(X_NEW) + 100.0, rtol=1e-10)
    assert moved.mean_.value == pytest.approx(base.mean_.value + 100.0)


def test_linear_mean_finds_a_plane():
    y = 3.0 + X @ [1.0, -2.0, 0.5]
    model = GPRegressor(0.01 * RBF(), Gaussian(1e-4), mean="linear", optimizer=None).fit(X, y)
    np.testing.assert_allclose(model.mean_.coefficients[:, 0], [3.0, 1.0, -2.0, 0.5], atol=1e-6)
    far = 100.0 * X_NEW
    np.testing.assert_allclose(model.predict(far), 3.0 + far @ [1.0, -2.0, 0.5], rtol=1e-6)


def test_function_as_mean():
    def trend(X):
        return 10.0 * X[:, 0]

    model = fixed().set_params(mean=trend).fit(X, Y + trend(X))
    np.testing.assert_allclose(
        model.predict(X_NEW), fixed().fit(X, Y).predict(X_NEW) + trend(X_NEW), rtol=1e-10
    )


def test_integrating_the_mean_out_widens_the_error_bars():
    estimated = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y)
    integrated = GPRegressor(
        RBF(), Gaussian(0.2), mean=means.Constant(estimate="integrate"), optimizer=None
    ).fit(X, Y)
    np.testing.assert_allclose(estimated.predict(X_NEW), integrated.predict(X_NEW), rtol=1e-9)
    assert np.all(
        integrated.predict(X_NEW, return_std=True)[1] > estimated.predict(X_NEW, return_std=True)[1]
    )


@pytest.mark.parametrize("mean", ["zero", "constant", means.Linear(estimate="integrate")])
def test_weights_repeat_and_remove_rows(mean):
    weights = np.ones(40)
    weights[5], weights[7] = 2.0, 0.0
    rows = np.append(np.delete(np.arange(40), 7), 5)
    weighted = GPRegressor(mean=mean).fit(X, Y, sample_weight=weights)
    repeated = GPRegressor(mean=mean).fit(X[rows], Y[rows])
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(
        repeated.log_marginal_likelihood_value_, rel=1e-9
    )
    assert weighted.likelihood_.noise == pytest.approx(repeated.likelihood_.noise, rel=1e-5)
    np.testing.assert_allclose(weighted.predict(X_NEW), repeated.predict(X_NEW), rtol=1e-5)


def test_known_noise_variances_are_held():
    noise = np.linspace(0.01, 1.0, 40)
    model = GPRegressor(RBF(), Gaussian(noise), mean="zero", optimizer=None).fit(X, Y)
    peer = GaussianProcessRegressor(sk.RBF(), alpha=noise, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), peer.predict(X_NEW), rtol=1e-8)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(latent, peer.predict(X_NEW, return_std=True)[1], rtol=1e-8)
    weights = np.ones(40)
    weights[3] = 0.0
    keep = weights > 0
    dropped = GPRegressor(RBF(), Gaussian(noise), optimizer=None).fit(X, Y, sample_weight=weights)
    removed = GPRegressor(RBF(), Gaussian(noise[keep]), optimizer=None).fit(X[keep], Y[keep])
    np.testing.assert_allclose(dropped.predict(X_NEW), removed.predict(X_NEW), rtol=1e-12)


def test_weighted_rows_of_known_noise_are_repeated_rows():
    noise = np.linspace(0.01, 1.0, 40)
    weights = np.ones(40)
    weights[[3, 30]] = 2.0, 3.0
    rows = np.repeat(np.arange(40), weights.astype(int))
    weighted = GPRegressor(RBF(), Gaussian(noise), optimizer=None).fit(X, Y, weights)
    repeated = GPRegressor(RBF(), Gaussian(noise[rows]), optimizer=None).fit(X[rows], Y[rows])
    for a, b in zip(
        weighted.predict(X_NEW, return_std=True),
        repeated.predict(X_NEW, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_rows_can_be_dropped_under_a_full_noise_covariance():
    S = 0.1 * np.eye(40) + 0.05
    weights = np.ones(40)
    weights[5] = 0.0
    keep = weights > 0
    dropped = GPRegressor(RBF(), Gaussian(S), optimizer=None).fit(X, Y, weights)
    removed = GPRegressor(RBF(), Gaussian(S[np.ix_(keep, keep)]), optimizer=None)
    removed.fit(X[keep], Y[keep])
    np.testing.assert_allclose(dropped.predict(X_NEW), removed.predict(X_NEW), rtol=1e-12)
    with pytest.raises(ValueError, match="full noise covariance"):
        GPRegressor(RBF(), Gaussian(S), optimizer=None).fit(X, Y, 2.0 * weights)


def test_full_noise_covariance():
    S = 0.1 * np.eye(40) + 0.05
    model = GPRegressor(RBF(), Gaussian(S), mean="zero", optimizer=None).fit(X, Y)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    K_new = np.exp(-0.5 * np.sum((X_NEW[:, None] - X[None]) ** 2, axis=2))
    np.testing.assert_allclose(model.predict(X_NEW), K_new @ np.linalg.solve(K + S, Y), rtol=1e-9)
