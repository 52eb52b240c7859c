"""Rows and models for the tests of on-line regression, and what is to be the same."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    OnlineGPRegressor,
)
from mercer.kernels import Matern
from mercer.likelihoods import Gaussian

KERNEL = 1.5 * Matern([0.8, 1.3], nu=2.5)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=60)
NEW = RNG.normal(size=(9, 2))
#: Marks tests whose basis is much too small, which is not what they are about.
SMALL = pytest.mark.filterwarnings("ignore:max_basis=10 is too small:mercer.errors.MercerWarning")
FIRST, REST = slice(0, 35), slice(35, 60)


def streaming(noise=0.05, **options):
    options = {"max_basis": 80, "tol": 0.0, "mean": "zero"} | options
    return OnlineGPRegressor(KERNEL, Gaussian(noise), **options)


def exact(X, y, new=NEW, noise=0.05, weights=None, kernel=KERNEL):
    """Return mean and variance of the function, by the textbook."""
    s = noise / (np.ones(len(y)) if weights is None else weights)
    K, k = kernel(X) + np.diag(s), kernel(new, X)
    return k @ np.linalg.solve(K, y), kernel.diag(new) - np.sum(k * np.linalg.solve(K, k.T).T, 1)


def in_chunks(model, X, y, sizes, **options):
    at = 0
    for size in sizes:
        own = {k: v[at : at + size] for k, v in options.items()}
        model.partial_fit(X[at : at + size], y[at : at + size], **own)
        at += size
    assert at == len(X)
    return model


def same(a, b):
    for options in ({"return_std": True}, {"return_std": True, "latent": True}):
        for left, right in zip(a.predict(NEW, **options), b.predict(NEW, **options), strict=True):
            np.testing.assert_array_equal(left, right)
    assert a.log_evidence_ == b.log_evidence_
    assert a.projection_loss_ == b.projection_loss_
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.basis_, b.basis_)


def near(a, b):
    """The same but for rounding: kernels round by how many values are found at once."""
    for left, right in zip(*(m.predict(NEW, return_std=True) for m in (a, b)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(a.log_evidence_, b.log_evidence_, rtol=1e-8)
    np.testing.assert_allclose(a.projection_loss_, b.projection_loss_, rtol=1e-6, atol=1e-5)
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.basis_, b.basis_)


def finite(model, X=NEW):
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(std > 0)
    assert np.isfinite(model.projection_loss_) and model.projection_loss_ >= 0
