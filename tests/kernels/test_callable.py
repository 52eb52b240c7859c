"""Functions and matrices as kernels."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Callable, Precomputed

from .cases import TABLE, cauchy, cauchy_matrix, shared_letters

X = np.random.default_rng(0).normal(size=(6, 2))
WORDS = ["abc", "bcd", "xyz"]


def test_any_objects():
    expected = [[3, 2, 0], [2, 3, 0], [0, 0, 3]]
    k = Callable(shared_letters)
    for words in (WORDS, tuple(WORDS), np.array(WORDS), np.array(WORDS, dtype=object)):
        np.testing.assert_array_equal(k(words), expected)
    lists = [list(w) for w in WORDS]  # of equal lengths: not to be taken for a matrix
    np.testing.assert_array_equal(k(lists), expected)
    np.testing.assert_array_equal(k(lists, lists[:1]), np.array(expected)[:, :1])
    arrays = [np.array(list(w)) for w in WORDS]
    np.testing.assert_array_equal(k(arrays), expected)
    sets = [set(w) for w in WORDS]
    np.testing.assert_array_equal((2.0 * k + 1.0)(sets), 2.0 * np.array(expected) + 1.0)
    np.testing.assert_array_equal(k(w for w in WORDS), expected)


def test_vectorised_is_the_same_function():
    one, many = Callable(cauchy), Callable(cauchy_matrix, vectorised=True)
    np.testing.assert_allclose(one(X), many(X))
    np.testing.assert_allclose(one.diag(X), many.diag(X))
    G = np.random.default_rng(1).normal(size=(6, 6))
    for a, b in zip(one.pullback(X, X[::-1], G), many.pullback(X, X[::-1], G), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_half_the_calls_where_the_matrix_is_symmetric():
    calls = []
    k = Callable(lambda a, b: calls.append(1) or 1.0)
    k(WORDS)
    assert len(calls) == 6


def test_rows_of_numbers_reach_the_function_as_they_are():
    seen = []
    Callable(lambda a, b: seen.append(a.dtype) or 1.0)(np.array([[1, 2], [3, 4]]))
    assert all(dtype.kind == "i" for dtype in seen)
    # beside a kernel that needs numbers all rows are numbers
    seen.clear()
    k = Callable(lambda a, b: seen.append(a.dtype) or 1.0) + RBF()
    assert k.is_numeric
    k(np.array([[1, 2], [3, 4]]))
    assert all(dtype == np.dtype("f8") for dtype in seen)
    with pytest.raises(ValueError, match="must be an array of numbers"):
        k(WORDS)


def test_what_callable_refuses():
    with pytest.raises(ValueError, match="f must be a function"):
        Callable("rbf")
    with pytest.raises(ValueError, match="must return a number, got 'ab'; one that takes"):
        Callable(lambda a, b: "ab")(WORDS)
    with pytest.raises(ValueError, match="f returned NaN or infinity"):
        Callable(lambda a, b: float("nan"))(WORDS)
    with pytest.raises(ValueError, match=r"f must return an array of shape \(6, 6\), got \(6, 2\)"):
        Callable(lambda A, B: A, vectorised=True)(X)
    with pytest.raises(ValueError, match="X must be a sequence of objects, got 3"):
        Callable(shared_letters)(3)
    with pytest.raises(ValueError, match="no derivatives"):
        Callable(lambda a, b: 1.0).pullback(np.ones(3), None, np.ones((3, 3)))


def test_precomputed():
    k = Precomputed(TABLE)
    rows = np.array([[3], [0], [3]])
    np.testing.assert_array_equal(k(rows), TABLE[np.ix_([3, 0, 3], [3, 0, 3])])
    np.testing.assert_array_equal(k.diag(rows), TABLE[[3, 0, 3], [3, 0, 3]])
    gradient = k.pullback(rows, None, np.ones((3, 3)))
    np.testing.assert_array_equal(gradient.X, np.zeros((3, 1)))
    assert gradient.theta.shape == (0,)


def test_what_precomputed_refuses():
    for K, message in (
        (np.ones((2, 3)), r"square, got \(2, 3\)"),
        (np.ones(2), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (np.full((2, 2), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            Precomputed(K)
    k = Precomputed(TABLE)
    for rows in ([[4]], [[-1]], [[0.5]]):
        with pytest.raises(ValueError, match="whole numbers from 0 to 3"):
            k(np.array(rows))
    with pytest.raises(ValueError, match="one column, of row numbers, got 2"):
        k(np.zeros((2, 2)))
