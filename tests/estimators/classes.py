"""The rows that the tests of classifiers share."""

from __future__ import annotations

import warnings

import numpy as np

from mercer import GPClassifier
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(45, 2))
SCORE = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * RNG.normal(size=45)
TWO = np.where(SCORE > 0.3, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.searchsorted([-0.2, 0.8], SCORE)]
X_NEW = RNG.normal(size=(6, 2))
KERNEL = 3.0 * RBF([1.1, 0.8])


def fixed(kernel=KERNEL, likelihood="logistic", **options):
    return GPClassifier(kernel, likelihood, optimizer=None, **options)


def quiet_fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y, **options)


def one_hot(y):
    return (np.asarray(y)[:, None] == np.unique(y)).astype(float)
