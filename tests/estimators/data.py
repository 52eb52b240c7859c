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


X, Y = make()
X_NEW = np.random.default_rng(9).normal(size=(7, 3))


def fixed(kernel=None, noise=0.2, **kwargs):
    kernel = 1.7 * RBF([1.0, 2.0, 0.7]) if kernel is None else kernel
    return GPRegressor(kernel, Gaussian(noise), mean="zero", optimizer=None, **kwargs)


def quiet_fit(model, X, y, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y, **kwargs)
