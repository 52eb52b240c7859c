"""Predictions against dense formulas."""

from __future__ import annotations

import tracemalloc
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer.errors import JitterWarning
from mercer.kernels import RBF
from mercer.means import Linear
from mercer.posterior import (
    Basis,
    Dense,
    InverseTriangular,
    Posterior,
    Predictive,
    basis,
    bilinear,
    prior,
)
from mercer.posterior import posterior as module

CASES = {
    "exact": lambda naive, seed: naive.Exact(seed),
    "exact, two outputs, scaled": lambda naive, seed: naive.Exact(seed, P=2, scale=[0.5, 3.0]),
    "integrated mean": lambda naive, seed: naive.Exact(seed, P=2, linear=True, scale=[2.0, 0.1]),
    "coupled": lambda naive, seed: naive.Coupled(seed, scale=[1.0, 2.0, 0.3]),
    "degenerate": lambda naive, seed: naive.Degenerate(seed, scale=[2.0, 0.7]),
    "degenerate with a line": lambda naive, seed: naive.Degenerate(seed, linear=True),
}


@pytest.fixture(params=list(CASES))
def case(request, naive):
    return CASES[request.param](naive, 3)


def diagonal(cov):
    if cov.ndim == 4:
        return np.einsum("ipip->ip", cov)
    return np.einsum("iip->ip", cov)


def test_mean_variance_and_covariance(case):
    p, X = case.posterior, case.Xs
    assert isinstance(p, Predictive)
    assert_allclose(p.mean(X), case.mean(X), rtol=1e-10, atol=1e-12)
    assert_allclose(p.cov(X), case.cov(X), rtol=1e-9, atol=1e-12)
    assert_allclose(p.var(X), diagonal(case.cov(X)), rtol=1e-9, atol=1e-12)
    mean, var = p.mean_and_var(X)
    assert_allclose(mean, p.mean(X), rtol=1e-12, atol=1e-14)  # tiles add up in another order
    assert_array_equal(var, p.var(X))


def test_covariance_is_symmetric_and_its_diagonal_is_the_variance(case):
    S = case.posterior.cov(case.Xs)
    mirrored = S.transpose(2, 3, 0, 1) if S.ndim == 4 else S.transpose(1, 0, 2)
    assert_array_equal(S, mirrored)
    assert_allclose(diagonal(S), case.posterior.var(case.Xs), rtol=1e-9, atol=1e-13)


def test_from_phi(case, naive):
    p, X = case.posterior, case.Xs
    Phi = np.hstack([naive.rbf(X, case.X), naive.regressors(X)])[:, : len(p.alpha)]
    assert_allclose(p.basis.phi(X), Phi, rtol=1e-12)
    kdiag, Kss = np.ones(len(X)), naive.rbf(X, X)
    assert_allclose(p.mean_from(Phi), case.mean(X), rtol=1e-10, atol=1e-12)
    assert_allclose(p.var_from(Phi, kdiag), p.var(X), rtol=1e-10, atol=1e-13)
    assert_allclose(p.cov_from(Phi, Kss), p.cov(X), rtol=1e-10, atol=1e-13)


def test_fixed_mean_is_added_unscaled(naive):
    p = naive.Exact(0, P=2, scale=[2.0, 3.0]).posterior
    line = Linear(intercept=1.5, slope=[2.0, -1.0], estimate=None)
    shifted = p.replace(mean=line)
    X = np.array([[0.3, -0.2], [1.0, 2.0]])
    expected = p.mean(X) + (1.5 + X @ [2.0, -1.0])[:, None]
    assert_allclose(shifted.mean(X), expected, rtol=1e-12)
    assert_array_equal(shifted.var(X), p.var(X))


def test_blocks_change_nothing(case, monkeypatch):
    X = np.vstack([case.Xs, case.X, case.Xs + 0.1])
    p = case.posterior
    whole = p.mean(X), p.var(X), *p.mean_and_var(X), *p.gradients(X)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    assert len(p._blocks(len(X), 1)) == len(X)
    blocked = p.mean(X), p.var(X), *p.mean_and_var(X), *p.gradients(X)
    for a, b in zip(whole, blocked, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_memory_does_not_grow_with_the_rows(naive):
    rng = np.random.default_rng(0)
    m = 400
    points = rng.uniform(-2, 2, (m, 1))
    A = InverseTriangular(np.asfortranarray(2.0 * np.eye(m)))
    p = Posterior(Basis(RBF(0.01), points), rng.standard_normal((m, 1)), A)
    X = rng.uniform(-2, 2, (40_000, 1))  # phi as a whole would take 128 MB
    p.mean_and_var(X[:10])
    tracemalloc.start()
    try:
        p.mean_and_var(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


def test_blocks_are_narrow_where_factors_are_wide():
    """A has far more rows than there are basis functions: its image is the largest array."""
    A = Dense(np.ones((5000, 2)))
    p = Posterior(Basis(RBF(1.0), np.zeros((2, 1))), np.ones((2, 1)), A)
    assert max(b.stop - b.start for b in p._blocks(10**6, 8 * 10**6)) <= 200


def test_variance_of_a_triangular_factor_is_solved_in_place(naive):
    p = naive.Exact(1).posterior
    Phi = p.basis.phi(np.zeros((3, 2)))
    kept = Phi.copy()
    p.var_from(Phi, np.ones(3))
    assert_array_equal(Phi, kept)
    p.var_from(Phi, np.ones(3), overwrite=True)
    assert not np.array_equal(Phi, kept)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_empty_basis_is_the_prior(n_outputs, naive):
    p = prior(RBF(naive.LENGTH), n_outputs=n_outputs)
    X = np.array([[0.0, 1.0], [0.5, 0.5], [2.0, -1.0]])
    assert p.n_basis == 0 and p.n_features == 0 and p.n_outputs == n_outputs
    assert_array_equal(p.mean(X), np.zeros((3, n_outputs)))
    assert_allclose(p.var(X), np.ones((3, n_outputs)))
    assert_allclose(p.cov(X)[:, :, -1], naive.rbf(X, X), rtol=1e-12)
    assert p.C.shape == p.Q.shape == (0, 0)
    assert p.sample(X, 4, 0).shape == (3, 4, n_outputs)
    assert_allclose(p.gradients(X).var, 0.0)
    assert p.prune(1) == (p, 0.0)


def test_C_and_Q(naive):
    case = naive.Exact(5, P=2)
    K = naive.rbf(case.X, case.X)
    assert_allclose(case.posterior.C, -np.linalg.inv(K + case.noise * np.eye(len(K))), rtol=1e-9)
    assert_allclose(case.posterior.Q @ K, np.eye(len(K)), atol=1e-8)


def test_Q_tells_what_was_added_to_a_singular_gram_matrix(naive):
    X = np.repeat(naive.Exact(5).X, 2, axis=0)
    p = Posterior(Basis(RBF(naive.LENGTH), X), np.zeros((len(X), 1)))
    with pytest.warns(JitterWarning, match=r"1e-10 was added .* redundant"):
        Q = p.Q
    K = naive.rbf(X, X) + 1e-10 * np.eye(len(X))
    assert_allclose(Q @ K, np.eye(len(X)), atol=1e-4)
    assert_array_equal(Q, Q.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert naive.Exact(5).posterior.Q.shape == (8, 8)


def test_C_with_explicit_functions_and_with_coupled_outputs(naive):
    p = naive.Exact(5, linear=True).posterior
    m = p.n_basis
    M = p.B.M.T @ p.B.M
    L = np.tril(p.A.L)
    assert_allclose(p.C, M[:m, :m] - np.linalg.inv(L @ L.T), rtol=1e-9)
    case = naive.Coupled(5)
    C = -np.linalg.inv(case.joint(case.X)).reshape(case.P, 6, case.P, 6)
    assert_allclose(case.posterior.C, C, rtol=1e-9, atol=1e-12)


def test_variance_is_never_negative(naive):
    case = naive.Exact(7, m=40, d=1, noise=1e-10)
    p = case.posterior
    X = np.vstack([case.X, case.X + 1e-9])
    assert np.all(p.var(X) >= 0)
    # A factor that takes away a little more than there is, as rounding does.
    greedy = Posterior(Basis(RBF(1.0), [[0.0]]), [[1.0]], InverseTriangular([[1.0 - 1e-12]]))
    assert greedy.var([[0.0]]) == 0.0
    assert greedy.cov([[0.0]]) == 0.0


def test_coupled_triangular_factors_do_not_destroy_each_others_input(naive):
    exact = naive.Exact(2)
    A = exact.posterior.A
    alpha = np.hstack([exact.posterior.alpha, exact.posterior.alpha])
    coupled = Posterior(exact.posterior.basis, alpha, [A, A])
    var = exact.posterior.var(exact.Xs)
    assert_allclose(coupled.var(exact.Xs), np.hstack([var, var]), rtol=1e-12)
    assert_allclose(diagonal(coupled.cov(exact.Xs)), np.hstack([var, var]), rtol=1e-9)


# --- samples ----------------------------------------------------------------------------------


def test_sample_moments(case):
    X = case.Xs[:3]
    N = 40_000
    draws = case.posterior.sample(X, N, np.random.default_rng(0))
    P = case.posterior.n_outputs
    assert draws.shape == (3, N, P)
    flat = draws.transpose(0, 2, 1).reshape(3 * P, N)
    S = case.cov(X)
    if S.ndim == 3:
        full = np.zeros((3, P, 3, P))
        for p in range(P):
            full[:, p, :, p] = S[:, :, p]
        S = full
    S = S.reshape(3 * P, 3 * P)
    sd = np.sqrt(np.diagonal(S))
    assert np.all(np.abs(flat.mean(axis=1) - case.mean(X).ravel()) < 5 * sd / np.sqrt(N) + 1e-12)
    error = np.abs(np.cov(flat) - S)
    assert np.all(error < 6 * np.outer(sd, sd) * np.sqrt(2 / N) + 1e-12)


def test_samples_repeat_with_the_seed_and_survive_duplicates(naive):
    p = naive.Exact(2).posterior
    X = np.repeat(naive.Exact(2).Xs[:2], 3, axis=0)
    draws = p.sample(X, 5, 11)
    assert_array_equal(draws, p.sample(X, 5, np.random.default_rng(11)))
    assert_allclose(draws[0], draws[1], atol=1e-6)


def test_samples_without_any_variance():
    p = Posterior(Basis(RBF(1.0), [[0.0]]), [[2.0]], weight=0)
    assert_allclose(p.sample([[0.0], [0.0]], 3, 0), 2.0)
    A = InverseTriangular([[1.0]])
    certain = Posterior(Basis(RBF(1.0), [[0.0]]), [[2.0]], A)
    assert_allclose(certain.sample([[0.0]], 3, 0), 2.0, atol=1e-4)


def test_nothing_is_added_to_a_singular_covariance_for_samples(naive):
    # Inputs that repeat have one value in every draw: jitter would tell them apart by 1e-5.
    p = prior(RBF(naive.LENGTH))
    draws = p.sample(np.repeat(np.linspace(-1, 1, 20), 3)[:, None], 4, 0)
    groups = draws.reshape(20, 3, 4)
    assert_allclose(groups[:, 1:], groups[:, :1].repeat(2, axis=1), atol=3e-7)
    # Where nothing varies, nothing does.
    certain = Posterior(Basis(RBF(1.0), [[0.0]]), [[2.0]], InverseTriangular([[1.0]]))
    assert_allclose(certain.sample([[0.0], [0.0]], 3, 0), 2.0, atol=1e-7)


# --- gradients --------------------------------------------------------------------------------


def test_gradients_agree_with_differences(case):
    p, X, h = case.posterior, case.Xs, 1e-5
    if p.basis.features is None:
        slope = np.arange(1.0, 1.0 + X.shape[1])
        p = p.replace(mean=Linear(intercept=0.5, slope=slope, estimate=None))
    found = p.gradients(X)
    assert found.mean.shape == found.var.shape == (*X.shape, p.n_outputs)
    for j in range(X.shape[1]):
        step = h * np.eye(X.shape[1])[j]
        assert_allclose(
            found.mean[:, j], (p.mean(X + step) - p.mean(X - step)) / (2 * h), rtol=1e-6, atol=1e-8
        )
        assert_allclose(
            found.var[:, j], (p.var(X + step) - p.var(X - step)) / (2 * h), rtol=1e-6, atol=1e-8
        )


# --- units, threads ---------------------------------------------------------------------------


def test_scale_is_ones_unless_a_predictive_says_otherwise(naive):
    class Bare(Predictive):
        n_outputs = 3
        mean = var = cov = sample = gradients = to_state = describe = None

    assert_array_equal(Bare().scale, np.ones(3))
    assert_array_equal(naive.Exact(0, P=2, scale=[2.0, 3.0]).posterior.scale, [2.0, 3.0])


def test_the_blas_is_told_the_order_of_every_product(case, monkeypatch):
    # Small matrices are left to one thread: on a busy machine two wait for each other.
    told = []

    @contextmanager
    def blas_for(n):
        told.append(n)
        yield

    for where in (module, bilinear, basis):
        monkeypatch.setattr(where, "blas_for", blas_for)
    p, X = case.posterior, np.vstack([case.Xs] * 3)
    m = len(p.alpha)
    joint = max(len(X) * (p.n_outputs if p.is_coupled else 1), m)
    for method, orders in [
        (p.var, {m}), (p.mean_and_var, {m}), (p.gradients, {m}),
        (p.cov, {joint}), (p.sample, {joint}),
    ]:  # fmt: skip
        told.clear()
        method(X)
        assert set(told) == orders
    told.clear()
    assert p.C is not None and p.Q is not None
    assert told == [p.n_basis, p.n_basis]


# --- properties over random shapes ------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    d=st.integers(1, 4),
    P=st.integers(1, 3),
    noise=st.sampled_from([1e-3, 0.1, 10.0]),
    linear=st.booleans(),
)
def test_any_shape(naive, seed, m, d, P, noise, linear):
    scale = np.random.default_rng(seed).uniform(0.1, 5.0, P)
    case = naive.Exact(seed, m=m, d=d, P=P, noise=noise, linear=linear, scale=scale)
    p = case.posterior
    size = 1 + np.abs(case.mean(case.Xs)).max()
    assert_allclose(p.mean(case.Xs), case.mean(case.Xs), rtol=1e-7, atol=1e-9 * size)
    assert_allclose(p.cov(case.Xs), case.cov(case.Xs), rtol=1e-7, atol=1e-8 * scale.max() ** 2)


# --- what is refused --------------------------------------------------------------------------


def test_bad_arguments_are_named():
    basis = Basis(RBF(1.0), np.zeros((2, 1)))
    line = Basis(RBF(1.0), np.zeros((2, 1)), Linear(estimate="integrate"))
    L = InverseTriangular(np.eye(2))
    for arguments, text in [
        ((basis, np.zeros(2)), "a column for each output"),
        ((basis, np.zeros((1, 1))), "2 basis points"),
        ((basis, np.full((2, 1), np.nan)), "finite"),
        ((basis, np.zeros((3, 1))), "explicit functions"),
        ((line, np.zeros((3, 1))), "2 explicit functions"),
        ((basis, np.zeros((2, 1)), L, None, 0), "weight"),
        ((basis, np.zeros((2, 1)), L, None, 2), "weight"),
        ((basis, np.zeros((2, 1)), InverseTriangular(np.eye(3))), "at most 2 columns"),
        ((basis, np.zeros((2, 2)), [L]), "2 factor"),
        ((basis, np.zeros((2, 2)), [L, Dense(np.ones((1, 2)))]), "equally many rows"),
        ((basis, np.zeros((2, 1)), [np.eye(2)]), "must be a Factor"),
        ((basis, np.zeros((2, 1)), L, None, 1, None, [0.0]), "positive"),
        ((basis, np.zeros((2, 1)), L, None, 1, None, [1.0, 2.0]), "1 positive"),
    ]:
        with pytest.raises(ValueError, match=text):
            Posterior(*arguments)
    p = Posterior(basis, np.zeros((2, 1)), L)
    with pytest.raises(ValueError, match="n_samples"):
        p.sample([[0.0]], 0)
    with pytest.raises(ValueError, match="NaN"):
        p.mean([[np.nan]])
    with pytest.raises(ValueError, match="columns"):
        p.var([[0.0, 1.0]])
    with pytest.raises(ValueError, match="no \\['gamma'\\]"):
        p.replace(gamma=1)


def test_nothing_given_can_be_changed_through_the_posterior(naive):
    points, alpha = np.zeros((2, 1)), np.ones((2, 1))
    p = Posterior(Basis(RBF(1.0), points), alpha)
    before = p.mean([[0.0]])
    points += 1.0
    alpha += 1.0
    assert_array_equal(p.mean([[0.0]]), before)
    for array in (p.alpha, p.scale, p.basis.points, naive.Exact(0).posterior.A.L):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_describe(naive):
    text = naive.Exact(0, m=8, P=2, linear=True).posterior.describe()
    for part in ("8", "3", "2 independent", "RBF", "w = 1", "MB"):
        assert part in text
    assert "coupled" in naive.Coupled(0).posterior.describe()
    assert "degenerate" in naive.Degenerate(0).posterior.describe()
    assert "8 basis points" in repr(naive.Exact(0).posterior)
