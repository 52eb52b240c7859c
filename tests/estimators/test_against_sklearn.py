"""Exact regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor
from mercer.kernels import RBF, Linear, Matern
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed

PAIRS = [
    (1.7 * RBF([1.0, 2.0, 0.7]), 1.7 * sk.RBF([1.0, 2.0, 0.7])),
    (0.5 * Matern(1.3, nu=1.5), 0.5 * sk.Matern(1.3, nu=1.5)),
    (Matern(1.3, nu=0.7), sk.Matern(1.3, nu=0.7)),
    (RBF(2.0) + 0.5 * Linear(0.49), sk.RBF(2.0) + 0.5 * sk.DotProduct(0.7)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=repr)
def test_agrees_with_scikit_learn(ours, theirs):
    model = fixed(ours).fit(X, Y)
    peer = GaussianProcessRegressor(theirs + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None)
    peer.fit(X, Y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        peer.log_marginal_likelihood_value_, rel=1e-8
    )
    for return_what in ("return_std", "return_cov"):
        for a, b in zip(
            model.predict(X_NEW, **{return_what: True}),
            peer.predict(X_NEW, **{return_what: True}),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_evidence_gradient_agrees_with_scikit_learn():
    model = fixed().fit(X, Y)
    kernel = 1.7 * sk.RBF([1.0, 2.0, 0.7]) + sk.WhiteKernel(0.2)
    peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, Y)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    peer_value, peer_gradient = peer.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert value == pytest.approx(peer_value, rel=1e-8)
    np.testing.assert_allclose(gradient, peer_gradient, rtol=1e-8, atol=1e-8)


def test_takes_scikit_learn_kernels():
    theirs = 1.7 * sk.RBF([1.0, 2.0, 0.7]) + sk.WhiteKernel(0.2)
    model = GPRegressor(theirs, mean="zero", optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), fixed().fit(X, Y).predict(X_NEW), rtol=1e-12)


def test_finds_at_least_the_evidence_that_scikit_learn_finds():
    kernel = 1.0 * sk.RBF([1.0] * 3) + sk.WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=2, random_state=0)
    peer.fit(X, Y)
    model = GPRegressor(1.0 * RBF([1.0] * 3), Gaussian(0.1), mean="zero").fit(X, Y)
    assert model.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-3
