"""The regression that choices by targets keep, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF
from mercer.selection import pivoted_cholesky
from mercer.selection.regression import Regression

from .dense import KERNELS, grown, problem, projection


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


@pytest.mark.parametrize("apart", [1e-2, 1e-6, 1e-8])
def test_columns_that_are_nearly_parallel(apart):
    rng = np.random.default_rng(0)
    first, others, y = rng.normal(size=30), rng.normal(size=(3, 30)), rng.normal(size=(30, 2))
    columns = [first, *(first + apart * other for other in others)]
    fit = Regression(y, np.full(30, 1e-12), 4)
    for column in columns:
        fit.add(column)
    whole = np.vstack([1e6 * np.transpose(columns), np.eye(4)])
    Q = np.linalg.qr(whole)[0]
    np.testing.assert_allclose(fit.leverage, np.sum(Q[:30] ** 2, axis=1), atol=1e-6 * apart)
    top = np.vstack([1e6 * y, np.zeros((4, 2))])
    wanted = np.sum(top**2) - np.sum((Q.T @ top) ** 2)
    assert fit.losses[-1] == pytest.approx(wanted, rel=1e-9)
