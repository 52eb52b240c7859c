"""Triangular solves and what goes with them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.linalg import mirror_lower, product, solve_lower


@pytest.mark.parametrize("k", [None, 0, 1, 3])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_solve_lower(k, transpose, overwrite):
    rng = np.random.default_rng(0)
    L = np.asfortranarray(np.tril(rng.normal(size=(5, 5))) + 4 * np.eye(5))
    full = L + np.triu(np.full((5, 5), np.nan), 1)  # the other triangle is not read
    B = rng.normal(size=5) if k is None else np.asfortranarray(rng.normal(size=(5, k)))
    expected = np.linalg.solve(L.T if transpose else L, B)
    given = B.copy(order="F")
    X = solve_lower(np.asfortranarray(full), given, transpose=transpose, overwrite=overwrite)
    np.testing.assert_allclose(X, expected, rtol=1e-13)
    assert X.shape == B.shape
    if overwrite:
        assert np.shares_memory(X, given) or X.size == 0
    else:
        np.testing.assert_array_equal(given, B)


@pytest.mark.parametrize("n", [0, 1, 3, 256, 300])
def test_mirror_lower(n):
    M = np.random.default_rng(n).normal(size=(n, n))
    lower = np.tril(M)
    assert mirror_lower(M) is M
    np.testing.assert_array_equal(M, lower + np.tril(lower, -1).T)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((0, 4), (4, 2)), ((3, 0), (0, 2))])
def test_product(shapes):
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=shape) for shape in shapes)
    np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-13)
