"""Low-rank Newton against Laplace's method, dense formulas, the paper's equation, differences."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import exact, laplace, low_rank
from mercer.inference._problem import LatentProblem
from mercer.inference._reduced import LowRankSearch, LowRankSites
from mercer.inference.low_rank import LowRankProblem
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Laplace
from mercer.posterior import load, save
from mercer.selection import pivoted_cholesky, random_subset, sparse_greedy_matrix

from .latent import LIKELIHOODS, PlainStudentT, make
from .low_rank_cases import ROUGH, as_dense, case, dense_gram, with_points

KINDS = list(LIKELIHOODS)


# --- the two limits ---------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_are_laplaces_method(kind, weights):
    p = make(kind, 40, kernel=ROUGH, weights=weights, mean=False)
    q = with_points(p, p.X[np.random.default_rng(0).permutation(40)])
    mean = means.Zero()
    full, solution = laplace.posterior(p, mean)
    got, low = low_rank.posterior(q, mean)
    assert low.log_evidence == pytest.approx(solution.log_evidence, rel=1e-12)
    assert low.residual < 1e-14 and low.status == "converged"
    np.testing.assert_allclose(low.latent, solution.latent, atol=1e-10)
    np.testing.assert_allclose(low.alpha, solution.alpha, atol=1e-10)
    X = np.vstack([p.X[:5], np.random.default_rng(1).normal(size=(6, 2))])
    np.testing.assert_allclose(got.mean(X), full.mean(X), atol=1e-9)
    # at the rows the process has nothing more to say, elsewhere only with what they leave
    np.testing.assert_allclose(got.cov(p.X), full.cov(p.X), atol=1e-9)
    lifted, _ = low_rank.posterior(q, mean, lift=True)
    assert (got.weight, lifted.weight) == (0, 1)
    np.testing.assert_allclose(lifted.mean(X), full.mean(X), atol=1e-9)
    np.testing.assert_allclose(lifted.cov(X), full.cov(X), atol=1e-9)
    np.testing.assert_allclose(low_rank.evidence(q)[1].mean, laplace.evidence(p)[1].mean, atol=1e-9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_fewer_points_are_laplaces_method_with_another_matrix(kind, weights):
    p = case(kind, weights=weights, mean=True)
    got, wanted = low_rank.solve(p), laplace.solve(as_dense(p))
    assert got.log_evidence == pytest.approx(wanted.log_evidence, rel=1e-11)
    assert got.status == "converged" and got.jitter == 0.0
    np.testing.assert_allclose(got.latent, wanted.latent, atol=1e-9)
    np.testing.assert_allclose(got.alpha, p.derivatives(got.latent)[0], atol=1e-9)
    np.testing.assert_allclose(got.latent, p.mean + dense_gram(p) @ got.alpha, atol=1e-9)
    np.testing.assert_allclose(got.coefficients, got.basis.V.T @ got.alpha, atol=1e-12)
    if kind == "student":
        W = got.sites.precision
        assert np.any(W < 0) and np.any(W > 0)
    left = np.trace(p.kernel(p.X) - dense_gram(p))
    assert np.sum(got.basis.residual) == pytest.approx(left, rel=1e-10)
    assert got.residual == pytest.approx(left / np.trace(p.kernel(p.X)), rel=1e-10)


def test_gaussian_noise_is_exact():
    """With Gaussian noise the model is y ~ N(m, K~ + noise), and one step finds the mode."""
    p = replace(case("student", weights=True, mean=True), likelihood=Gaussian(0.3))
    Q = dense_gram(p) + np.diag(0.3 / p.weights)
    y = p.y - p.mean
    value = -0.5 * (y @ np.linalg.solve(Q, y) + np.linalg.slogdet(2 * np.pi * Q)[1])
    got = low_rank.solve(p)
    constant = p.likelihood.weight_constant(p.n, p.weights)
    assert got.log_evidence == pytest.approx(value + constant, rel=1e-11)
    assert got.n_factorisations == 1
    np.testing.assert_allclose(got.alpha, np.linalg.solve(Q, y), atol=1e-9)
    plain = replace(p, weights=None, points=p.X)
    whole = exact.ExactProblem(p.kernel, p.X, y[:, None], np.full(p.n, 0.3))
    solution = exact.solve(whole)
    assert low_rank.solve(plain).log_evidence == pytest.approx(solution.log_evidence, rel=1e-11)


# --- the paper's step -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_newtons_step_is_that_of_the_paper(kind):
    """(BKM 75), as corrected, in its own letters: K_sub, U, C, c; and (BKM 72) with K~."""
    p = case(kind, weights=True)
    K_sub = p.kernel(p.points)
    U = np.linalg.solve(K_sub, p.kernel(p.points, p.X))
    alpha = np.zeros(p.n)
    for _ in range(30):
        first, second, _ = p.derivatives(U.T @ K_sub @ U @ alpha)
        c, C = -first, np.diag(-second)
        inner = np.linalg.inv(np.linalg.inv(K_sub) + U @ C @ U.T)
        left = np.eye(p.n) - C @ U.T @ inner @ U
        new = left @ (C @ U.T @ K_sub @ U @ alpha - c)
        K = U.T @ K_sub @ U
        direct = np.linalg.solve(C @ K + np.eye(p.n), C @ K @ alpha - c)
        np.testing.assert_allclose(new, direct, atol=1e-8)
        # the engine's own form of it
        sites = LowRankSites(low_rank.solve(p).basis.V, -second)
        r = first - alpha
        np.testing.assert_allclose(alpha + r - sites.solve(K @ r), new, atol=1e-8)
        alpha = new
    np.testing.assert_allclose(low_rank.solve(p).alpha, alpha, atol=1e-8)


def test_sites_by_dense_formulas():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(20, 4))
    for W in (rng.uniform(0, 3, 20), np.where(np.arange(20) < 3, -0.02, 1.0), np.zeros(20)):
        sites = LowRankSites(V, W)
        K = V @ V.T
        R = np.diag(W) @ np.linalg.inv(np.eye(20) + K @ np.diag(W))
        v = rng.normal(size=20)
        np.testing.assert_allclose(sites.solve(v), R @ v, atol=1e-10)
        wanted = np.linalg.slogdet(np.eye(20) + K @ np.diag(W))
        assert wanted[0] == 1 and sites.log_determinant == pytest.approx(wanted[1], rel=1e-10)
    with pytest.raises(NotPositiveDefiniteError, match="20 of the sites' 20 precisions are neg"):
        LowRankSites(V, np.full(20, -1.0))
    with pytest.raises(ValueError, match="must be finite"):
        LowRankSites(V, np.full(20, np.nan))


# --- the posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("lift", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_posterior_by_dense_formulas(kind, lift, tmp_path):
    p = replace(case(kind, weights=True), mean=np.full(30, 0.7))
    process, solution = low_rank.posterior(p, means.Constant(0.7, estimate=None), lift=lift)
    W = -p.derivatives(solution.latent)[1]
    X = np.vstack([np.random.default_rng(5).normal(size=(8, 2)), p.X[:3], 100 + p.X[:1]])
    # weights b of the sections at the points: b ~ N(0, K_mm^-1) beforehand
    K_mm, K_nm, k = p.kernel(p.points), p.kernel(p.X, p.points), p.kernel(X, p.points)
    S = np.linalg.inv(K_mm + K_nm.T @ (W[:, None] * K_nm))
    target = W * (solution.latent - p.mean) + p.derivatives(solution.latent)[0]
    np.testing.assert_allclose(process.mean(X)[:, 0], 0.7 + k @ S @ K_nm.T @ target, atol=1e-8)
    cov = k @ S @ k.T
    if lift:
        cov += p.kernel(X) - k @ np.linalg.solve(K_mm, k.T)
    np.testing.assert_allclose(process.cov(X)[:, :, 0], cov, atol=1e-9)
    np.testing.assert_allclose(process.var(X)[:, 0], np.diag(cov), atol=1e-9)
    far = process.var(X)[-1, 0]
    assert far == pytest.approx(1.7 if lift else 0.0, abs=1e-12)
    np.testing.assert_allclose(process.mean(p.X)[:, 0], solution.latent, atol=1e-9)
    assert process.n_basis == len(p.points)
    draws = process.sample(X[:4], 20_000, rng=0)[:, :, 0]
    np.testing.assert_allclose(np.cov(draws), cov[:4, :4], atol=0.05)
    slopes = process.gradients(X[:4])
    e = np.array([1e-5, 0.0])
    rise = process.var(X[:4] + e) - process.var(X[:4] - e)
    np.testing.assert_allclose(slopes[1][:, 0], rise / 2e-5, rtol=1e-4, atol=1e-7)
    save(process, tmp_path / "process.mercer")
    again = load(tmp_path / "process.mercer")
    np.testing.assert_array_equal(again.mean_and_var(X), process.mean_and_var(X))
    pruned, loss = process.prune(4)
    assert pruned.n_basis <= 4 and loss >= 0


# --- choices of points ------------------------------------------------------------------------


def test_more_points_come_nearer():
    p = make("logistic", 300, d=1, kernel=2.0 * RBF(0.5))
    wanted = laplace.solve(p).log_evidence
    error, left = [], []
    chosen = pivoted_cholesky(p.kernel, p.X, 28).indices
    for m in (4, 8, 14, 28):
        got = low_rank.solve(with_points(p, p.X[chosen[:m]]))
        error.append(abs(got.log_evidence - wanted))
        left.append(got.residual)
    assert np.all(np.diff(error) < 0) and np.all(np.diff(left) < 0)
    assert error[-1] < 1e-6 * abs(wanted) and left[-1] < 1e-8
    by_chance = low_rank.solve(with_points(p, p.X[random_subset(p.X, 28, 0)]))
    assert by_chance.log_evidence == pytest.approx(wanted, rel=2e-2)
    greedy = sparse_greedy_matrix(p.kernel, p.X, 28, rng=0).indices
    assert low_rank.solve(with_points(p, p.X[greedy])).log_evidence == pytest.approx(wanted, 1e-8)


def test_points_that_repeat_change_nothing_but_jitter():
    p = case("logistic")
    twice = replace(p, points=np.vstack([p.points, p.points[:3]]))
    once, got = low_rank.solve(p), low_rank.solve(twice)
    assert once.jitter == 0.0 and got.jitter == pytest.approx(1.7e-10)
    assert got.log_evidence == pytest.approx(once.log_evidence, rel=1e-8)
    process, _ = low_rank.posterior(twice, means.Zero())
    X = np.random.default_rng(0).normal(size=(6, 2))
    wanted, _ = low_rank.posterior(p, means.Zero())
    np.testing.assert_allclose(process.mean_and_var(X), wanted.mean_and_var(X), atol=1e-6)


def test_nothing_of_the_size_of_the_matrix_is_made():
    p = make("logistic", 4000)
    q = with_points(p, p.X[:20])
    low_rank.evidence(with_points(make("logistic", 5), p.X[:2]))  # what is loaded once
    tracemalloc.start()
    low_rank.evidence(q)
    low_rank.posterior(q, means.Zero())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 4000**2


def test_blocks_of_rows_add_up(monkeypatch):
    p = case("student", 120, weights=True)
    wanted = low_rank.evidence(p)
    monkeypatch.setattr("mercer.inference._reduced._BLOCK", 4 * len(p.points))
    got = low_rank.evidence(p)
    assert got[0].log_evidence == pytest.approx(wanted[0].log_evidence, rel=1e-13)
    np.testing.assert_allclose(got[1].cross, wanted[1].cross, atol=1e-9)


# --- starts and extremes ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_warm_starts(kind):
    p = case(kind, 60)
    cold = low_rank.solve(p)
    near = replace(p, kernel=p.kernel.with_theta(p.kernel.theta + 0.01))
    warm, there = low_rank.solve(near, cold.state), low_rank.solve(near)
    assert warm.log_evidence == pytest.approx(there.log_evidence, rel=1e-10)
    assert warm.n_iterations < there.n_iterations
    moved = replace(p, points=p.points + 0.01)
    assert low_rank.solve(moved, cold.state).log_evidence == pytest.approx(
        low_rank.solve(moved).log_evidence, 1e-10
    )
    for bad in (np.full(60, np.nan), np.zeros(3), np.full(60, 1e200)):
        if kind != "student" or not np.isfinite(bad[0]):
            assert low_rank.solve(p, bad).log_evidence == pytest.approx(cold.log_evidence, 1e-10)


@pytest.mark.parametrize("size", [0.1, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("seed", range(3))
def test_student_noise_converges_from_bad_starts(size, seed):
    p = case("student", 50, 9, seed=seed, outliers=10)
    s, adjoints = low_rank.evidence(p, size * np.random.default_rng(seed).normal(size=50))
    assert s.status == "converged"
    g, second, _ = p.derivatives(s.latent)
    np.testing.assert_allclose(s.alpha, g, atol=1e-7)
    V = s.basis.V
    assert np.linalg.eigvalsh(np.eye(9) - V.T @ (second[:, None] * V))[0] > 0
    assert np.all(np.isfinite(adjoints.cross)) and np.all(np.isfinite(adjoints.basis))


def test_level_points_that_are_no_maximum_are_left():
    """Two rows at one place that disagree: between them the gradient is 0, in a trough."""
    y = np.array([-5.0, 5.0])
    p = LowRankProblem(
        9.0 * RBF(), np.zeros((2, 1)), y, PlainStudentT(2.0, 0.3), np.zeros(2),
        points=np.zeros((1, 1)),
    )  # fmt: skip
    for start in (None, np.zeros(2)):
        s = low_rank.solve(p, start)
        assert s.status == "converged" and abs(s.latent[0]) > 4.0
        assert s.latent[0] == pytest.approx(s.latent[1])
    whole = laplace.solve(replace(p, y=y))
    assert s.log_evidence == pytest.approx(whole.log_evidence, rel=1e-8)


@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    size=st.floats(-8, 8),
    width=st.floats(-3, 3),
    repeated=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_kernel_gives_numbers(kind, n, m, seed, size, width, repeated):
    p = make(kind, n, d=1, seed=seed, kernel=10.0**size * RBF(10.0**width))
    if repeated:
        p = replace(p, X=np.repeat(p.X[:1], n, axis=0))
    points = np.random.default_rng(seed).normal(size=(m, 1))
    q = with_points(p, points)
    s, adjoints = low_rank.evidence(q)
    assert np.isfinite(s.log_evidence) and np.all(np.isfinite(s.latent))
    assert np.all(np.isfinite(adjoints.cross)) and np.all(np.isfinite(adjoints.mean))
    assert 0.0 <= s.residual <= 1.0 + 1e-12
    for lift in (False, True):
        process, _ = low_rank.posterior(q, means.Zero(), lift=lift)
        mean, var = process.mean_and_var(np.linspace(-3, 3, 7)[:, None])
        assert np.all(np.isfinite(mean)) and np.all(np.isfinite(var)) and np.all(var >= 0)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [Laplace(0.5), EpsilonInsensitive(0.1, 0.5)], ids=repr)
def test_likelihoods_without_curvature_are_refused(likelihood):
    p = replace(case("student"), likelihood=likelihood)
    with pytest.raises(
        ValueError,
        match=f"curvature of the likelihood at the mode.* of {type(likelihood).__name__}",
    ):
        low_rank.solve(p)


def test_bad_problems():
    p = make("logistic")
    with pytest.raises(ValueError, match="at least one basis point is wanted"):
        with_points(p, np.empty((0, 2)))
    with pytest.raises(ValueError, match="the inputs have 1 columns"):
        low_rank.solve(with_points(p, np.zeros((3, 1))))
    with pytest.raises(ValueError, match="points holds NaN"):
        low_rank.solve(with_points(p, np.full((3, 2), np.nan)))
    with pytest.raises(ValueError, match="y must have shape"):
        replace(with_points(p, p.X), y=p.y[:3])


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_only_read(kind):
    p = case(kind, weights=True, mean=True)
    for array in (p.X, p.y, p.mean, p.weights, p.points):
        array.setflags(write=False)
    first, second = low_rank.evidence(p), low_rank.evidence(p)
    assert first[0].log_evidence == second[0].log_evidence
    np.testing.assert_array_equal(first[1].cross, second[1].cross)


@pytest.mark.parametrize(("noise", "weight"), [(1e-14, None), (1e-16, None), (1e-8, 1e6)])
def test_noise_that_1_would_be_lost_beside(noise, weight):
    X = np.random.default_rng(0).normal(size=(30, 2))
    weights = None if weight is None else np.full(30, weight)
    p = LatentProblem(RBF(1.0), X, X[:, 0].copy(), Gaussian(noise), np.zeros(30), weights)
    got = low_rank.solve(with_points(p, X))
    assert got.status == "converged"
    assert got.log_evidence == pytest.approx(laplace.solve(p).log_evidence, rel=1e-8)


def test_few_points_and_hardly_any_noise():
    """alpha is of the order of 1e13 here, and V'alpha of it made of rounding."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y, noise = np.sin(X[:, 0]), 1e-14
    p = LatentProblem(RBF(1.0), X, y, Gaussian(noise), np.zeros(200))
    got = low_rank.solve(with_points(p, X[:20]))
    U, s, _ = np.linalg.svd(got.basis.V, full_matrices=False)
    z = U.T @ y
    left = y - U @ z
    value = np.sum(z**2 / (s**2 + noise) + np.log(s**2 + noise)) + left @ left / noise
    value = -0.5 * (value + 180 * np.log(noise) + 200 * np.log(2 * np.pi))
    assert got.log_evidence == pytest.approx(value, rel=1e-10)
    assert got.status == "converged"
    np.testing.assert_allclose(got.basis.V @ got.coefficients, got.latent, atol=1e-12)


@pytest.mark.parametrize("scale", [1e2, 1e7, 1e14])
def test_large_precisions_are_factorised_without_losing_the_1(scale):
    """A column of V that is 0 to W has the pivot 1; by Cholesky's method it would be rounding."""
    V = np.column_stack([np.ones(5), np.ones(5) + 1e-9 * np.arange(5)])
    sites = LowRankSites(V, np.full(5, scale))
    values = np.linalg.svd(np.vstack([np.eye(2), np.sqrt(scale) * V]))[1]
    assert sites.log_determinant == pytest.approx(2 * np.sum(np.log(values)), rel=1e-6)
    assert np.all(np.diagonal(sites.L) >= 1.0)


def test_precisions_that_overflow_are_told_without_warnings(recwarn):
    p = make("poisson", 30, weights=True)
    search = LowRankSearch(p, np.ones((30, 1)))
    g, W = search.slopes(np.array([1e4]))
    assert not np.all(np.isfinite(g)) and not recwarn.list
    with pytest.raises(ValueError, match="finite"):
        search.fresh_sites(W)


@pytest.mark.parametrize(
    ("kind", "variance", "weight"), [("poisson", 1e8, 1.0), ("logistic", 1e8, 1e6)]
)
def test_vague_priors_and_large_weights(kind, variance, weight):
    """The mode is found where alpha has too few digits to say it."""
    p = replace(make(kind, 30, kernel=variance * RBF(1.0)), weights=np.full(30, weight))
    got = low_rank.solve(with_points(p, p.X[:7]))
    V, a = got.basis.V, got.coefficients
    g, W = p.derivatives(got.latent)[0], -p.derivatives(got.latent)[1]
    left = V.T @ g - a
    gain = left @ np.linalg.solve(np.eye(7) + V.T @ (W[:, None] * V), left)
    assert got.status == "converged" and gain <= 1e-8 * (1 + abs(got.log_evidence))
