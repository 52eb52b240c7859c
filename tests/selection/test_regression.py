"""The regression that choices by targets keep, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Exponential, Linear, Matern
from mercer.selection import pivoted_cholesky
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


@pytest.mark.parametrize("noise", [0.3, 1e-6, np.linspace(0.1, 2.0, 40)], ids=["", "small", "rows"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_regression_is_that_of_dense_formulas(kernel, noise):
    X, y = problem()
    rows = pivoted_cholesky(kernel, X, 35).indices
    partial, fit = grown(kernel, X, y, noise, rows)
    N, Q = np.diag(np.broadcast_to(noise, 40)), partial.V @ partial.V.T
    inverse = np.linalg.inv(Q + N)
    root = np.sqrt(np.diagonal(N))
    np.testing.assert_allclose(fit.residual[:, 0], root * (inverse @ y), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fit.leverage, np.diagonal(Q @ inverse), atol=1e-7)
    K = kernel(X)
    for k in (0, 1, 7, 35):
        Q = projection(K, rows[:k]) @ K
        assert fit.losses[k] == pytest.approx(y @ np.linalg.solve(Q + N, y), rel=1e-5)
    assert np.all(np.diff(fit.losses) <= 0)


def test_columns_stay_orthogonal():
    """Though the noise is nothing beside what the columns share."""
    X, y = problem(200, 1)
    partial, fit = grown(RBF(), X, y, 1e-12, pivoted_cholesky(RBF(), X, 12).indices)
    k = len(partial.indices)
    whole = np.vstack([fit._W[:, :k], fit._B[:k, :k]])
    np.testing.assert_allclose(whole.T @ whole, np.eye(k), atol=1e-13)
