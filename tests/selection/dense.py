"""What tests of choices by targets share: a problem, and dense algebra."""

from __future__ import annotations

import numpy as np

from mercer.kernels import RBF, Exponential, Linear, Matern
from mercer.selection.partial import PartialCholesky
from mercer.selection.regression import Regression

KERNELS = [2.0 * RBF(0.9), Matern([0.7, 2.0], nu=1.5), 3.0 + Exponential(0.5) * Linear(1.0)]


def problem(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(3.0 * X[:, 0]) + X[:, -1] ** 2 + 0.2 * rng.normal(size=n)


def grown(kernel, X, y, noise, rows):
    """What the choices keep once these rows are chosen."""
    partial = PartialCholesky(kernel, X, len(rows))
    fit = Regression(y.reshape(len(X), -1), np.broadcast_to(noise, len(X)), len(rows))
    for row in rows:
        partial.add(row)
        fit.add(partial.V[:, -1])
    return partial, fit


def projection(K, chosen):
    """What the rows see of f: its mean given f at the chosen rows."""
    seen = np.zeros_like(K)
    if len(chosen):
        seen[:, chosen] = np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]).T
    return seen
