"""Data of the tests of relevance vectors for numbers."""

from __future__ import annotations

import numpy as np

from mercer.kernels import RBF

HELD = {"kernel": RBF(1.0), "optimizer": None}


def rows(n=80, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, 2.0 + np.sinc(X[:, 0]) + noise * rng.standard_normal(n)


def waves(X):
    return np.column_stack([np.sin(X[:, 0]), X[:, 0], np.cos(3.0 * X[:, 0])])
