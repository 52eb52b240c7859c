"""Loops over half of a symmetric matrix, against NumPy on the whole of it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.linalg.recursion import empty_arrays, symmetric

matrices = pytest.importorskip("mercer.linalg._recursion_matrices")

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 37, 64, 101]
ROOM = 3


def half(A):
    """Return the matrix with NaN wherever the loops promise to look at nothing."""
    i, j = np.indices(A.shape)
    return np.where(j < (i // matrices.SQUARE + 1) * matrices.SQUARE, A, np.nan)


def case(n, count):
    """Return a symmetric matrix with room for more, half of it with NaN, and vectors."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n + ROOM, n + ROOM))
    A += A.T
    vectors = [np.append(rng.normal(size=n), np.full(ROOM, np.nan)) for _ in range(count)]
    return A[:n, :n].copy(), half(A), vectors


def same(A, B, n):
    """Hold the half of A that is kept to B; squares are symmetric to the last digit."""
    lower = np.tril(A[:n, :n])
    np.testing.assert_allclose(lower, np.tril(B), rtol=1e-13, atol=1e-13)
    kept = np.isfinite(half(B))
    np.testing.assert_array_equal(A[:n, :n][kept], (lower + np.tril(lower, -1).T)[kept])


@pytest.mark.parametrize("n", SIZES)
def test_product_with_a_vector(n):
    whole, A, (x, out) = case(n, 2)
    matrices.times(A, n, x, out)
    np.testing.assert_allclose(out[:n], whole @ x[:n], rtol=1e-12, atol=1e-12)
    assert np.all(np.isnan(out[n:]))


@pytest.mark.parametrize("n", SIZES)
def test_updates_of_rank_one_and_two(n):
    whole, A, (x, y) = case(n, 2)
    matrices.add_outer(A, n, -0.7, x)
    whole -= 0.7 * np.outer(x, x)[:n, :n]
    same(A, whole, n)
    matrices.add_two(A, n, 1.3, x, -0.4, y)
    same(A, whole + 1.3 * np.outer(x, x)[:n, :n] - 0.4 * np.outer(y, y)[:n, :n], n)


@pytest.mark.parametrize("n", SIZES)
def test_rows_are_taken_put_and_moved(n):
    for j in {0, n // 2, n - 1}:
        whole, A, (x, out) = case(n, 2)
        matrices.take(A, j, n, out)
        np.testing.assert_array_equal(out[:n], whole[j])
        matrices.put(A, j, n, x)
        whole[j] = whole[:, j] = x[:n]
        same(A, whole, n)
        matrices.move(A, n - 1, j, out)
        order = np.arange(n - 1)
        order[order == j] = n - 1
        same(A, whole[np.ix_(order, order)], n - 1)


@pytest.mark.parametrize("n", SIZES)
def test_squares_are_completed_from_below(n):
    whole, A, _ = case(n, 0)
    A[np.triu_indices(n + ROOM, 1)] = np.nan
    matrices.complete(A, n)
    same(A, whole, n)


def test_arrays_begin_with_a_line_of_the_cache_and_have_room_for_whole_ones():
    A = empty_arrays(101, 0, 1, 2)
    assert A.K.shape == (104, 104)
    assert A.S.shape == (2, 104, 104)
    for array in (A.K, A.Q, A.S, A.P, A.e, A.k):
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous


def test_symmetric_fills_in_what_is_above_the_diagonal():
    A = empty_arrays(9, 2, 1, 2)
    A.whole[0] = 7
    rng, kept = np.random.default_rng(0), {}
    for name in ("K", "Q", "S", "P"):
        array = getattr(A, name)
        array[:] = rng.normal(size=array.shape)
        kept[name] = np.tril(array)
    assert symmetric(A) is A
    for name, lower in kept.items():
        n = 7 if name in "KQ" else 9
        array = getattr(A, name)[..., :n, :n]
        np.testing.assert_array_equal(np.tril(array), lower[..., :n, :n])
        np.testing.assert_array_equal(array, np.swapaxes(array, -1, -2))
