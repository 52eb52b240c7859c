"""Bounds on the variance of exact regression, against the variance itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference._variance_bounds import LatentVarianceBounds
from mercer.inference.greedy import Greedy
from mercer.kernels import RBF, Matern

from .greedy_cases import data, near_duplicates


def exact(kernel, X, noise, Z):
    """k(x, x) - k'(K + noise)^-1 k, by eigenvalues, which do not lose what is left."""
    K, k = kernel(X) + np.diag(np.broadcast_to(noise, len(X))), kernel(X, Z)
    values, vectors = np.linalg.eigh(K)
    return kernel.diag(Z) - np.sum((vectors.T @ k) ** 2 / values[:, None], axis=0)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 15),
    seed=st.integers(0, 1000),
    width=st.floats(-1.0, 1.5),
    noise=st.floats(-5, 2),
    repeated=st.booleans(),
    tol=st.sampled_from([None, 0.0, 0.025, 0.5]),
)
def test_the_variance_is_between_the_bounds(n, m, seed, width, noise, repeated, tol):
    X, _ = data(n, 2, seed)
    if repeated:
        X[n // 2 :] = X[0]
    rng = np.random.default_rng(seed)
    Z = np.vstack([rng.normal(size=(6, 2)), X[:2]])
    basis = rng.permutation(n)[:m]
    weights = rng.uniform(0.2, 3.0, size=n)
    kernel, s2 = 2.0 * RBF(10.0**width), 10.0**noise
    found = LatentVarianceBounds(kernel, X, basis, s2, weights)(Z, tol)
    wanted = exact(kernel, X, s2 / weights, Z)
    rounding = 1e-13 * n / s2 + 1e-10
    assert np.all(found.lower >= 0) and np.all(found.lower <= found.upper)
    assert np.all(found.lower <= wanted + rounding) and np.all(wanted <= found.upper + rounding)
    assert np.all((found.n_kernels >= 1) & (found.n_kernels <= len(basis)))


def test_both_are_exact_with_all_rows():
    X, _ = data(40)
    kernel, Z = RBF(0.8), np.random.default_rng(1).normal(size=(300, 2))
    found = LatentVarianceBounds(kernel, X, np.arange(40), 0.1)(Z)
    wanted = exact(kernel, X, 0.1, Z)
    np.testing.assert_allclose(found.lower, wanted, atol=1e-9)
    np.testing.assert_allclose(found.upper, wanted, atol=1e-9)


@pytest.mark.parametrize("rule", ["tol", "gap"])
def test_each_is_its_formula_for_the_beginning_of_the_basis_that_suffices(rule):
    """(BKM 83) and (BKM 81) with (BKM 86), by dense algebra; the first that is close enough."""
    X, _ = data(60, 2)
    kernel, s2, tol = Matern(1.5, nu=1.5), 0.3, 0.4
    basis, Z = np.random.default_rng(2).permutation(60)[:40], np.linspace(-1, 1, 14).reshape(7, 2)
    K, k = kernel(X), kernel(X, Z)
    found = LatentVarianceBounds(kernel, X, basis, s2)(Z, **{rule: tol})

    def bounds(j, m):
        J, t = basis[:m], k[:, j]
        least = t[J] @ np.linalg.solve(K[np.ix_(J, J)] + s2 * np.eye(m), t[J])
        beta = np.linalg.solve(s2 * K[np.ix_(J, J)] + K[J] @ K[:, J], K[J] @ t)
        return least, (t @ t - t @ K[:, J] @ beta) / s2

    prior = kernel.diag(Z)
    for j, used in enumerate(found.n_kernels):
        least, most = bounds(j, used)
        assert found.upper[j] == pytest.approx(prior[j] - least, abs=1e-9)
        assert found.lower[j] == pytest.approx(max(prior[j] - most, 0.0), abs=1e-9)
        pairs = [bounds(j, m) for m in range(1, 41)]
        sizes = [(a + b) / 2 if rule == "gap" else prior[j] for a, b in pairs]
        close = [b - a <= tol * size for (a, b), size in zip(pairs, sizes, strict=True)]
        assert used == (close.index(True) + 1 if any(close) else 40)
    assert np.ptp(found.n_kernels) > 0


def test_a_greedy_basis_of_a_wide_kernel():
    X, y = near_duplicates(400)
    kernel = RBF(5.0)
    fit = Greedy(kernel, X, y, 0.1).grow(1e-3)
    Z = np.random.default_rng(3).normal(size=(50, 3))
    found = LatentVarianceBounds(kernel, X, fit.indices, 0.1)(Z)
    wanted = exact(kernel, X, 0.1, Z)
    assert np.all(found.lower <= wanted + 1e-10) and np.all(wanted <= found.upper + 1e-10)
    assert np.median(found.upper) < 0.1


@pytest.mark.parametrize("width", [3.0, 10.0, 30.0])
@pytest.mark.parametrize("s2", [1e-6, 1e-5])
@pytest.mark.parametrize(("n", "m"), [(60, 30), (200, 60), (400, 30)])
def test_rows_that_repeat_and_little_noise(width, s2, n, m):
    """Where normal equations have the lower bound 1e-6 above the variance."""
    kernel = RBF(width)
    for seed in range(2):
        X, _ = data(n, 2, seed)
        X[n // 2 :] = X[0]
        rng = np.random.default_rng(seed)
        Z = np.vstack([rng.normal(size=(6, 2)), X[:4]])
        found = LatentVarianceBounds(kernel, X, rng.permutation(n)[:m], s2)(Z)
        wanted = exact(kernel, X, s2, Z)
        assert np.all(found.lower <= wanted + 1e-12) and np.all(wanted <= found.upper + 1e-12)
        assert np.all(found.lower >= 0) and np.all(found.upper <= kernel.diag(Z))


def test_no_points():
    X, _ = data(20)
    found = LatentVarianceBounds(RBF(), X, np.arange(3), 0.1)(np.empty((0, 2)))
    assert all(len(each) == 0 for each in found)
