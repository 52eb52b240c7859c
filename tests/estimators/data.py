"""The rows that the tests of regressors share."""

from __future__ import annotations

import warnings

import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian


def make(n=40, d=3, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, -1] + noise * rng.normal(size=n)


def waves(n, width, seed=0):
    """Return inputs, a sine there, noisy targets, these with a fifth grossly wrong, and counts."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0.0, width, (n, 1)), axis=0)
    F = np.sin(X[:, 0])
    Y = F + 0.1 * rng.standard_normal(n)
    wrong = Y + rng.choice([-1.0, 1.0], n) * rng.uniform(3, 9, n)
    gross = np.where(np.arange(n) % 5 == 2, wrong, Y)
    return X, F, Y, gross, rng.poisson(np.exp(1.0 + F)).astype(float)


X, Y = make()
X_NEW = np.random.default_rng(9).normal(size=(7, 3))


def fixed(kernel=None, noise=0.2, **kwargs):
    kernel = 1.7 * RBF([1.0, 2.0, 0.7]) if kernel is None else kernel
    return GPRegressor(kernel, Gaussian(noise), mean="zero", optimizer=None, **kwargs)


def quiet_fit(model, X, y, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y, **kwargs)
