"""Gaussian sites against the dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._problem import LatentProblem
from mercer.inference._sites import (
    factorise,
    falling,
    scale_lower,
    symmetric_columns,
    symmetric_product,
)
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.likelihoods.base import Likelihood

from . import dense


def gram(n=23, seed=0, length_scale=0.6, variance=2.0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return dense.rbf(X, X, length_scale, variance) + 1e-6 * np.eye(n)


def lower(K):
    """The lower triangle, with anything above it."""
    out = np.array(np.tril(K) + np.triu(np.full(K.shape, 7e3), 1), order="F")
    return out


def precisions(kind, K, seed=1):
    rng = np.random.default_rng(seed)
    n = len(K)
    S = rng.uniform(0.2, 3.0, n)
    if kind == "zeros":
        S[::3] = 0.0
    elif kind == "all zero":
        S[:] = 0.0
    elif kind == "mixed":
        rows = rng.permutation(n)[: n // 3]
        S[rows] = -rng.uniform(0.01, 0.25, rows.size)
        S[rows[:1]] = 0.0
    elif kind == "wide":
        S = 10.0 ** rng.uniform(-12, 8, n)
    return S


KINDS = ["positive", "zeros", "all zero", "mixed", "wide"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 23, 150])
def test_everything_against_dense_formulas(kind, n):
    K = gram(n)
    S = precisions(kind, K)
    Sigma = np.linalg.inv(np.eye(n) + K * S) @ K
    assert np.all(np.linalg.eigvalsh(np.linalg.inv(K) + np.diag(S)) > 0)
    R = S[:, None] * np.linalg.inv(np.eye(n) + K * S)
    tolerance = 1e-7 if kind == "wide" else 1e-9
    sites = factorise(lower(K), S)
    assert sites.jitter == 0.0
    assert sites.log_determinant == pytest.approx(
        np.linalg.slogdet(np.eye(n) + K * S)[1], rel=1e-8, abs=1e-8
    )
    np.testing.assert_allclose(sites.covariance(), Sigma, atol=tolerance)
    v = np.random.default_rng(2).normal(size=(n, 3))
    scale = max(1.0, np.max(np.abs(R)))
    for _ in range(2):  # from the factor, and from the inverse
        np.testing.assert_allclose(sites.solve(v), R @ v, atol=tolerance * scale)
        np.testing.assert_allclose(sites.solve(v[:, 0]), R @ v[:, 0], atol=tolerance * scale)
        np.testing.assert_allclose(np.tril(sites.inverse()), np.tril(R), atol=tolerance * scale)
    np.testing.assert_allclose(sites.marginal_variances(), np.diag(Sigma), atol=tolerance)
    np.testing.assert_allclose(sites.covariance(), Sigma, atol=1e-6)
    A, B = factorise(lower(K), S).factors()
    assert (B is None) == (not np.any(S < 0))
    product = A.gram() - (0.0 if B is None else B.gram())
    np.testing.assert_allclose(product, R, atol=tolerance * scale)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_variances_hold_their_digits(size):
    """Rows of almost no precision among rows of much, at any size of the kernel."""
    n = 40
    K = gram(n) * size
    S = 10.0 ** np.linspace(-14, 4, n) / size
    variances = factorise(lower(K), S).marginal_variances()
    # a form that squares nothing: K - K s B^-1 s K in extended precision
    Kl, s = K.astype(np.longdouble), np.sqrt(S).astype(np.longdouble)
    C = _longdouble_solve(np.eye(n) + s[:, None] * Kl * s, s[:, None] * Kl)
    expected = np.diag(Kl) - np.sum(Kl * s[:, None] * C, axis=0)
    # rounding leaves eps of the prior's variance
    np.testing.assert_allclose(variances / size, expected / size, rtol=1e-8, atol=1e-13)


def _longdouble_solve(A, B):
    A, B = A.copy(), B.copy()
    for i in range(len(A)):
        for j in range(i + 1, len(A)):
            ratio = A[j, i] / A[i, i]
            A[j] -= ratio * A[i]
            B[j] -= ratio * B[i]
    for i in range(len(A))[::-1]:
        B[i] = (B[i] - A[i, i + 1 :] @ B[i + 1 :]) / A[i, i]
    return B


@given(
    n=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    size=st.floats(-8, 8),
    precision=st.floats(-10, 10),
)
@settings(max_examples=60, deadline=None)
def test_variances_are_within_the_prior(n, seed, size, precision):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    X[n // 2 :] = X[: n - n // 2]  # repeated rows
    K = dense.rbf(X, X, 1.0, 10.0**size)
    S = 10.0 ** (precision + rng.normal(size=n)) * rng.integers(0, 2, n)
    sites = factorise(lower(K), S)
    v = sites.marginal_variances()
    assert np.all(v > 0) and np.all(v <= np.diag(K) * (1 + 1e-6))
    assert np.isfinite(sites.log_determinant) and sites.log_determinant >= 0


def test_precisions_that_outweigh_the_prior():
    K = gram(10)
    S = np.ones(10)
    S[4] = -5.0
    assert np.linalg.eigvalsh(np.linalg.inv(K) + np.diag(S))[0] < 0
    with pytest.raises(NotPositiveDefiniteError, match="1 of the sites' 10 precisions"):
        factorise(lower(K), S)
    d = falling(lower(K), S)
    assert d @ (K + K @ np.diag(S) @ K) @ d < 0
    S[4] = -0.01
    assert falling(lower(K), S) is None and falling(lower(K), np.abs(S)) is None
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            factorise(lower(K), np.full(10, bad))


def test_jitter():
    """A Gram matrix that is not quite positive semidefinite, against huge precisions."""
    K = gram(10)
    values, vectors = np.linalg.eigh(K)
    values[0] = -1e-9
    K = (vectors * values) @ vectors.T
    S = np.full(10, 1e10)
    given_K = lower(K)
    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite"):
        factorise(given_K, S, jitter=0.0)
    np.testing.assert_array_equal(np.tril(given_K), np.tril(K))
    sites = factorise(given_K, S)
    assert sites.jitter == pytest.approx(1e-8 * np.mean(np.diag(K)))
    np.testing.assert_allclose(np.diag(given_K), np.diag(K) + sites.jitter, rtol=1e-15)
    again = factorise(given_K, S)
    assert again.jitter == 0.0 and again.log_determinant == sites.log_determinant
    with pytest.raises(NotPositiveDefiniteError):
        factorise(lower(K - np.eye(10)), S)


def test_the_factor_is_had_once():
    sites = factorise(lower(gram(5)), np.ones(5))
    sites.inverse()
    with pytest.raises(ValueError, match="memory"):
        sites.factors()


def test_memory_that_is_given_is_used():
    out = np.empty((9, 9), order="F")
    sites = factorise(lower(gram(9)), np.ones(9), out=out)
    assert np.shares_memory(sites.inverse(), out)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_triangles(n):
    rng = np.random.default_rng(n)
    M = rng.normal(size=(n, n))
    M, s = M + M.T, rng.normal(size=n)
    half = lower(M)
    np.testing.assert_allclose(np.tril(scale_lower(half, s, half)), np.tril(M * np.outer(s, s)))
    columns = rng.permutation(n)[:7]
    np.testing.assert_array_equal(symmetric_columns(lower(M), columns), M[:, columns])
    np.testing.assert_allclose(symmetric_product(lower(M), s), M @ s, atol=1e-12)
    np.testing.assert_allclose(symmetric_product(lower(M), M[:, :2]), M @ M[:, :2], atol=1e-11)


def problem(**changes):
    X = np.random.default_rng(0).normal(size=(4, 2))
    arguments = {"kernel": RBF(), "X": X, "y": np.arange(4.0), "likelihood": Gaussian(0.3)}
    return LatentProblem(**(arguments | {"mean": np.zeros(4)} | changes))


def test_a_latent_problem_in_pieces():
    p = problem(weights=np.array([1.0, 2.0, 0.0, 1.0]), jitter=0.5)
    f = np.full(4, 0.5)
    np.testing.assert_allclose(np.tril(p.gram()), np.tril(dense.rbf(p.X, p.X) + 0.5 * np.eye(4)))
    rows = -0.5 * (p.y - f) ** 2 / 0.3 - 0.5 * np.log(2 * np.pi * 0.3)
    assert p.log_likelihood(f) == pytest.approx(rows @ p.weights)
    assert p.log_likelihood(f + np.inf) == -np.inf
    first, second, third = p.derivatives(f)
    np.testing.assert_allclose(first, p.weights * (p.y - f) / 0.3)
    np.testing.assert_allclose(second, -p.weights / 0.3)
    np.testing.assert_array_equal(third, 0.0)
    np.testing.assert_array_equal(p.weighted(f), 0.5 * p.weights)
    assert problem().weighted(f) is f and p.n == 4


def test_latent_problems_that_are_none():
    with pytest.raises(ValueError, match=r"y must have shape \(4,\), got \(3,\)"):
        problem(y=np.zeros(3))
    with pytest.raises(ValueError, match="mean must be finite"):
        problem(mean=np.full(4, np.nan))
    with pytest.raises(ValueError, match="not be negative, got -1"):
        problem(weights=np.array([1.0, -1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="at least one row"):
        problem(X=np.zeros((0, 2)), y=np.zeros(0), mean=np.zeros(0))

    class Nothing(Likelihood):
        def __init__(self):
            self._set()

    with pytest.raises(ValueError, match="needs of a likelihood: log_density, fisher; Nothing has"):
        problem(likelihood=Nothing()).require("Laplace's method", "log_density", "fisher")
    problem().require("Laplace's method", "log_density", "fisher")
