"""The Cholesky factorisation with its jitter, and roots that need none."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.errors import NotPositiveDefiniteError
from mercer.linalg import (
    JITTERS,
    _blocks,
    cholesky,
    inverse_lower,
    mirror_lower,
    semidefinite_root,
    update_lower,
)

module = import_module("mercer.linalg.cholesky")  # the package has the function by this name
RESTORE = ["upper triangle", "rebuild"]


def with_least_eigenvalue(least, n=6, scale=7.0):
    """A matrix whose diagonal has this scale as its mean, and the least eigenvalue in its units."""
    V = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    values = np.concatenate([[least], np.arange(1.0, n)])
    values[1:] *= (n - least) / values[1:].sum()
    Q = scale * (V * values) @ V.T
    return 0.5 * (Q + Q.T)


def factorise(Q, restore):
    """Factorise by either way of getting the matrix back after a failure."""
    n = len(Q)
    if restore == "upper triangle":
        return cholesky(np.array(Q, order="F"))
    work = np.array(Q, order="F")
    above = np.triu_indices(n, 1)
    work[above] = np.nan  # so that the rebuilt lower triangle is all there is

    def rebuild():
        work[np.tril_indices(n)] = Q[np.tril_indices(n)]

    return cholesky(work, rebuild=rebuild)


@pytest.mark.parametrize("restore", RESTORE)
@pytest.mark.parametrize("rung", [0, 1, 2, 3])
@pytest.mark.parametrize("n", [6, 300])
def test_the_smallest_jitter_that_suffices_is_used(n, rung, restore):
    # Half of a rung below zero: that rung suffices, and none before it does.
    least = -0.5 * (0.0, 1e-10, 1e-8, 1e-6)[rung] or 1e-3
    Q = with_least_eigenvalue(least, n)
    found = factorise(Q, restore)
    assert_allclose(found.jitter, (0.0, 1e-10, 1e-8, 1e-6)[rung] * 7.0, rtol=1e-12)
    L = np.tril(found.L)
    assert_allclose(L @ L.T, Q + found.jitter * np.eye(n), atol=1e-11)


def test_the_ladder():
    assert JITTERS == (0.0, 1e-10, 1e-8, 1e-6)


@pytest.mark.parametrize("restore", RESTORE)
def test_more_than_the_last_jitter_is_not_added(restore):
    with pytest.raises(NotPositiveDefiniteError, match="even with 7e-06"):
        factorise(with_least_eigenvalue(-5e-6), restore)


def test_a_given_jitter_is_the_only_one_tried():
    Q = with_least_eigenvalue(-5e-9)
    assert cholesky(np.array(Q, order="F"), 1e-5).jitter == 1e-5
    with pytest.raises(NotPositiveDefiniteError):
        cholesky(np.array(Q, order="F"), 0.0)


@pytest.mark.parametrize("Q", [np.zeros((2, 2)), -np.eye(2), np.diag([1.0, np.nan])])
def test_no_covariance(Q):
    with pytest.raises(NotPositiveDefiniteError, match="diagonal"):
        cholesky(np.array(Q, order="F"))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_not_factorised(bad):
    """LAPACK itself says that all went well."""
    Q = np.array(with_least_eigenvalue(0.5), order="F")
    Q[4, 1] = Q[1, 4] = bad
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite"):
        cholesky(Q)


def test_the_order_of_the_memory_is_insisted_on():
    with pytest.raises(ValueError, match="Fortran"):
        cholesky(np.ascontiguousarray(with_least_eigenvalue(0.1)))


def test_nothing_to_factorise():
    empty = np.empty((0, 0), order="F")
    assert cholesky(empty).L.shape == inverse_lower(empty).shape == (0, 0)
    assert mirror_lower(empty).shape == semidefinite_root(empty).shape == (0, 0)


def test_inverse():
    Q = with_least_eigenvalue(0.1)
    factor = cholesky(np.array(Q, order="F"))
    assert_allclose(factor.log_determinant(), np.linalg.slogdet(Q)[1], rtol=1e-12)
    assert_allclose(mirror_lower(inverse_lower(factor.L)), np.linalg.inv(Q), rtol=1e-10)
    with pytest.raises(NotPositiveDefiniteError, match="zero"):
        inverse_lower(np.zeros((2, 2), order="F"))


@pytest.mark.parametrize("n", [1, 5, 256, 257, 600])
@pytest.mark.parametrize("order", ["C", "F"])
def test_mirror(n, order):
    M = np.array(np.random.default_rng(n).standard_normal((n, n)), order=order)
    expected = np.tril(M) + np.tril(M, -1).T
    assert mirror_lower(M) is M
    assert_array_equal(M, expected)
    M = np.array(np.random.default_rng(n).standard_normal((n, n)), order=order)
    expected = np.triu(M) + np.triu(M, 1).T
    mirror_lower(M.T)
    assert_array_equal(M, expected)


@pytest.mark.parametrize("least", [0.1, 0.0, -1e-14])
def test_a_root_adds_nothing(least):
    S = with_least_eigenvalue(least)
    kept = S.copy()
    R = semidefinite_root(S)
    assert_array_equal(S, kept)
    assert_allclose(R @ R.T, S, atol=1e-12)


def test_the_root_of_a_regular_matrix_is_its_cholesky_factor():
    S = with_least_eigenvalue(0.1)
    assert_allclose(semidefinite_root(S), np.linalg.cholesky(S), rtol=1e-12, atol=1e-14)
    assert_array_equal(semidefinite_root(np.zeros((3, 3))), np.zeros((3, 3)))


# --- in blocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 5, 23, 40])
@pytest.mark.parametrize(("width", "rows"), [(4, 4), (5, 11), (100, 100)])
def test_blocks_factorise_and_invert_as_lapack_does(n, width, rows, monkeypatch):
    monkeypatch.setattr(_blocks, "_WIDTH", width)
    monkeypatch.setattr(_blocks, "_ROWS", rows)
    monkeypatch.setattr(module, "_WHOLE", 0)
    A = np.random.default_rng(n).normal(size=(n, n + 2))
    S = A @ A.T + np.eye(n)
    Q = np.array(S, order="F")
    Q[np.triu_indices(n, 1)] = np.nan  # neither read nor written
    found = cholesky(Q)
    assert found.L is Q and found.jitter == 0.0
    np.testing.assert_allclose(np.tril(Q), np.linalg.cholesky(S), rtol=1e-12, atol=1e-12)
    inverse = inverse_lower(Q)
    assert inverse is Q
    np.testing.assert_allclose(np.tril(Q), np.tril(np.linalg.inv(S)), rtol=1e-11, atol=1e-12)
    assert np.all(np.isnan(Q[np.triu_indices(n, 1)]))


@pytest.mark.parametrize("n", [1, 4, 5, 23, 40])
@pytest.mark.parametrize(("width", "rows"), [(4, 4), (5, 11), (100, 100)])
@pytest.mark.parametrize("whole", [0, 100])
def test_a_symmetric_update_in_blocks_or_whole(n, width, rows, whole, monkeypatch):
    monkeypatch.setattr(_blocks, "_WIDTH", width)
    monkeypatch.setattr(_blocks, "_ROWS", rows)
    monkeypatch.setattr(module, "_WHOLE", whole)
    rng = np.random.default_rng(n)
    A, S = np.asfortranarray(rng.normal(size=(n, 3))), rng.normal(size=(n, n))
    S += S.T
    for transpose in (False, True):
        C = np.array(S, order="F")
        C[np.triu_indices(n, 1)] = np.nan  # neither read nor written
        given = np.asfortranarray(A.T) if transpose else A
        found = update_lower(-0.7, given, 1.3, C, transpose=transpose)
        assert np.shares_memory(found, C)
        wanted = -0.7 * A @ A.T + 1.3 * S
        np.testing.assert_allclose(np.tril(C), np.tril(wanted), rtol=1e-12, atol=1e-12)
        assert np.all(np.isnan(C[np.triu_indices(n, 1)]))


def test_blocks_tell_of_matrices_that_are_not_positive_definite(monkeypatch):
    monkeypatch.setattr(_blocks, "_WIDTH", 3)
    monkeypatch.setattr(module, "_WHOLE", 0)
    S = np.ones((8, 8))
    found = cholesky(np.asfortranarray(S))  # with jitter, from the upper triangle
    assert found.jitter == 1e-10
    np.testing.assert_allclose(np.tril(found.L) @ np.tril(found.L).T, S, atol=1e-9)
    with pytest.raises(NotPositiveDefiniteError):
        cholesky(np.asfortranarray(S - 0.5 * np.eye(8)))
    L = np.asfortranarray(np.tril(np.ones((8, 8))))
    L[5, 5] = 0.0
    with pytest.raises(NotPositiveDefiniteError, match="zero on its diagonal"):
        inverse_lower(L)
