"""The regression that choices by targets keep, with columns that are nearly the same."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.selection.regression import Regression


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
