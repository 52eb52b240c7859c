"""Rows far from the others, or all of them far from 0."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Matern, Periodic


@pytest.mark.parametrize("kernel", [RBF(1.3), Matern(0.7, nu=2.5), Periodic(1.0, 1.7), RBF([1.3])])
@pytest.mark.parametrize("far", [1e12, 1e20, -1e300])
@pytest.mark.parametrize("place", [0, 3, 11])
def test_a_row_far_away_spoils_no_other(kernel, far, place):
    near = np.linspace(5.0, 11.0, 11)[:, None]
    X = np.insert(near, place, far, axis=0)
    rest = np.arange(12) != place
    V, G = np.ones((12, 1)), np.ones((12, 12))
    V[place] = G[place] = G[:, place] = 0.0
    np.testing.assert_allclose(kernel(X)[np.ix_(rest, rest)], kernel(near), rtol=1e-13)
    np.testing.assert_allclose(kernel(X, near)[rest], kernel(near), rtol=1e-13)
    products = kernel.times(X, X, V)[rest]
    np.testing.assert_allclose(products, kernel.times(near, near, V[rest]), rtol=1e-13)
    gradients = kernel.pullback(X, None, G, inputs=False).theta
    expected = kernel.pullback(near, None, np.ones((11, 11)), inputs=False).theta
    np.testing.assert_allclose(gradients, expected, rtol=1e-12)


def test_columns_far_from_0_keep_the_digits_of_their_differences():
    X = np.random.default_rng(0).uniform(0.0, 4.0, (9, 2)).round(6)
    shifted = X + np.array([1e9, -(2.0**40)])
    differences = shifted - shifted[0]  # exact: the rows are within a factor of 2 of each other
    np.testing.assert_allclose(RBF(0.8)(shifted), RBF(0.8)(differences), rtol=1e-12)
