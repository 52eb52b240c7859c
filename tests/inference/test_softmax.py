"""The coupled softmax against dense formulas of order nC, differences, and the logistic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from scipy.special import softmax as probabilities

from mercer import load, means, save
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import laplace, softmax
from mercer.inference._coupled import CoupledSites
from mercer.inference._problem import LatentProblem
from mercer.inference.softmax import SoftmaxProblem
from mercer.kernels import RBF, Precomputed
from mercer.likelihoods import Logistic
from mercer.posterior import Dense, InverseTriangular
from mercer.posterior.factors import FactorSet, RowBlock

from .latent import PlainLogistic, gram_adjoint_by_differences


def make(n=20, C=3, seed=0, kernel=None, weights=False, mean=False, soft=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    scores = 2.0 * np.stack([np.sin(X[:, 0] + 2 * c) + X[:, 1] * (c % 2) for c in range(C)], axis=1)
    Y = np.eye(C)[np.argmax(scores + rng.gumbel(size=(n, C)), axis=1)]
    if soft:
        Y = rng.dirichlet(np.ones(C), n)
    m = 0.5 * rng.normal(size=(n, C)) if mean else np.zeros((n, C))
    w = rng.uniform(0.3, 2.5, n) if weights else None
    return SoftmaxProblem(1.7 * RBF([0.8, 1.5]) if kernel is None else kernel, X, Y, m, w)


def dense_parts(p, F):
    """K, W and M of order nC, row by row within a class, by the textbook."""
    n, C = p.Y.shape
    K = np.kron(np.eye(C), p.kernel(p.X))
    pi = probabilities(F, axis=1)
    w = np.ones(n) if p.weights is None else p.weights
    W = np.zeros((C, n, C, n))
    for i in range(n):
        W[:, i, :, i] = w[i] * (np.diag(pi[i]) - np.outer(pi[i], pi[i]))
    W = W.reshape(n * C, n * C)
    return K, W, W @ np.linalg.inv(np.eye(n * C) + K @ W)


KINDS = [{}, {"weights": True, "mean": True}, {"soft": True}, {"C": 2}, {"C": 5, "mean": True}]


@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mode_evidence_and_posterior_by_dense_formulas(kind, n):
    p = make(n, **kind)
    C = p.Y.shape[1]
    process, s = softmax.posterior(p, means.Zero(), at_mode=True)
    K, W, M = dense_parts(p, s.latent)
    w = np.ones(n) if p.weights is None else p.weights
    g = w[:, None] * (p.Y - probabilities(s.latent, axis=1))
    assert s.status == "converged" and s.jitter == 0.0
    np.testing.assert_allclose(s.alpha, g, atol=1e-9)
    np.testing.assert_allclose(s.latent, p.mean + p.kernel(p.X) @ s.alpha, atol=1e-11)
    a = s.alpha.T.ravel()
    value = np.sum(w[:, None] * p.Y * log_softmax(s.latent, axis=1)) - 0.5 * a @ K @ a
    value -= 0.5 * np.linalg.slogdet(np.eye(n * C) + K @ W)[1]
    assert s.log_evidence == pytest.approx(value, rel=1e-10)
    assert softmax.solve(p).log_evidence == pytest.approx(value, rel=1e-10)
    X = np.vstack([np.random.default_rng(1).normal(size=(5, 2)), p.X[:1], p.X[:1] + 50])
    k = np.kron(np.eye(C), p.kernel(X, p.X))
    cov = np.kron(np.eye(C), p.kernel(X)) - k @ M @ k.T
    cov = cov.reshape(C, 7, C, 7).transpose(1, 0, 3, 2)
    np.testing.assert_allclose(process.mean(X), p.kernel(X, p.X) @ g, atol=1e-9)
    np.testing.assert_allclose(process.cov(X), cov, atol=1e-9)
    for i in range(7):
        np.testing.assert_allclose(process.var(X)[i], np.diag(cov[i, :, i]), atol=1e-9)


@pytest.mark.parametrize("weights", [False, True])
def test_factorisation_by_dense_formulas(weights):
    p = make(12, C=4, weights=weights)
    F = np.random.default_rng(3).normal(size=(12, 4)) * 3
    K, W, M = dense_parts(p, F)
    sites = CoupledSites(p.gram(), probabilities(F, axis=1), p.weights)
    assert sites.log_determinant == pytest.approx(
        np.linalg.slogdet(np.eye(48) + K @ W)[1], rel=1e-10
    )
    v = np.random.default_rng(4).normal(size=(12, 4))
    np.testing.assert_allclose(sites.solve(v).T.ravel(), M @ v.T.ravel(), atol=1e-11)
    G, S = sites.moments()
    blocks = M.reshape(4, 12, 4, 12)
    np.testing.assert_allclose(
        np.tril(G), np.tril(sum(blocks[c, :, c] for c in range(4))), atol=1e-11
    )
    Sigma = (K - K @ M @ K).reshape(4, 12, 4, 12)
    for i in range(12):
        np.testing.assert_allclose(S[i], Sigma[:, i, :, i], atol=1e-10)


def value_of(p):
    return softmax.solve(p).log_evidence


def with_gram(p, K):
    return replace(
        p, kernel=Precomputed(K, is_mercer=False), X=np.arange(len(K), dtype=float)[:, None]
    )


@pytest.mark.parametrize("kind", [{}, {"weights": True, "mean": True, "soft": True}], ids=str)
def test_adjoints_by_differences(kind):
    p = make(7, seed=2, **kind)
    K = p.kernel(p.X)
    _, adjoints = softmax.evidence(with_gram(p, K))
    wanted = gram_adjoint_by_differences(lambda M: value_of(with_gram(p, M)), K)
    np.testing.assert_allclose(adjoints.factor * np.tril(adjoints.K), wanted, rtol=1e-5, atol=1e-8)
    step = 1e-5
    for index in np.ndindex(p.mean.shape):
        e = np.zeros(p.mean.shape)
        e[index] = step
        rise = value_of(replace(p, mean=p.mean + e)) - value_of(replace(p, mean=p.mean - e))
        assert adjoints.mean[index] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-8)


def test_adjoints_reach_the_kernel():
    p = make(40, C=4, weights=True)
    _, adjoints = softmax.evidence(p)
    got = adjoints.factor * p.kernel.pullback(p.X, None, adjoints.K, inputs=False).theta
    theta, step = p.kernel.theta, 1e-5
    for j in range(theta.size):
        e = step * np.eye(theta.size)[j]
        rise = value_of(replace(p, kernel=p.kernel.with_theta(theta + e)))
        rise -= value_of(replace(p, kernel=p.kernel.with_theta(theta - e)))
        assert got[j] == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)


# --- identities -------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
def test_two_classes_are_the_logistic_with_twice_the_kernel(weights):
    p = make(30, C=2, weights=weights, mean=True)
    y = np.where(p.Y[:, 0] > 0, 1.0, -1.0)
    difference = p.mean[:, 0] - p.mean[:, 1]
    q = LatentProblem(2.0 * p.kernel, p.X, y, PlainLogistic(), difference, p.weights)
    (a, A), (b, B) = softmax.evidence(p), laplace.evidence(q)
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-11)
    np.testing.assert_allclose(a.latent[:, 0] - a.latent[:, 1], b.latent, atol=1e-10)
    np.testing.assert_allclose(A.factor * np.tril(A.K), 2 * B.factor * np.tril(B.K), atol=1e-10)
    np.testing.assert_allclose(A.mean, np.stack([B.mean, -B.mean], axis=1), atol=1e-10)
    X = np.random.default_rng(1).normal(size=(6, 2))
    one, two = softmax.posterior(p, means.Zero())[0], laplace.posterior(q, means.Zero())[0]
    np.testing.assert_allclose(one.mean(X) @ [[1.0], [-1.0]], two.mean(X), atol=1e-9)
    S = one.cov(X)
    contrast = S[:, 0, :, 0] - S[:, 0, :, 1] - S[:, 1, :, 0] + S[:, 1, :, 1]
    np.testing.assert_allclose(contrast, two.cov(X)[:, :, 0], atol=1e-9)


def test_order_of_classes_and_rows():
    p = make(25, C=4, weights=True, mean=True)
    a, A = softmax.evidence(p)
    classes, rows = np.array([2, 0, 3, 1]), np.random.default_rng(0).permutation(25)
    moved = SoftmaxProblem(
        p.kernel, p.X[rows], p.Y[rows][:, classes], p.mean[rows][:, classes], p.weights[rows]
    )
    b, B = softmax.evidence(moved)
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-11)
    np.testing.assert_allclose(a.latent[rows][:, classes], b.latent, atol=1e-9)
    np.testing.assert_allclose(A.mean[rows][:, classes], B.mean, atol=1e-9)
    X = np.random.default_rng(1).normal(size=(4, 2))
    one, two = softmax.posterior(p, means.Zero())[0], softmax.posterior(moved, means.Zero())[0]
    np.testing.assert_allclose(one.mean(X)[:, classes], two.mean(X), atol=1e-9)
    np.testing.assert_allclose(one.var(X)[:, classes], two.var(X), atol=1e-9)


def test_weight_2_is_the_row_twice():
    p = make(15)
    w = np.ones(15)
    w[[2, 7, 4]] = 2.0, 3.0, 0.0
    rows = np.repeat(np.arange(15), w.astype(int))
    a = softmax.solve(replace(p, weights=w))
    b = softmax.solve(replace(p, X=p.X[rows], Y=p.Y[rows], mean=p.mean[rows]))
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-9)
    np.testing.assert_allclose(a.latent[rows], b.latent, atol=1e-8)


def test_what_all_means_have_in_common_changes_nothing():
    p = make(15, mean=True)
    shifted = replace(p, mean=p.mean + np.linspace(-3, 3, 15)[:, None])
    assert value_of(shifted) == pytest.approx(value_of(p), rel=1e-11)
    _, adjoints = softmax.evidence(p)
    np.testing.assert_allclose(np.sum(adjoints.mean, axis=1), 0.0, atol=1e-10)


def test_a_class_that_has_no_rows():
    p = make(15, C=3)
    wider = replace(
        p, Y=np.hstack([p.Y, np.zeros((15, 1))]), mean=np.hstack([p.mean, np.zeros((15, 1))])
    )
    s = softmax.solve(wider)
    assert s.status == "converged" and s.log_evidence < value_of(p)
    assert np.all(np.argmax(s.latent, axis=1) != 3)


def test_evidence_of_one_row_against_simulation():
    p = make(1, C=3, kernel=RBF())
    rng = np.random.default_rng(0)
    draws = log_softmax(rng.normal(size=(200_000, 3)), axis=1) @ p.Y[0]
    assert value_of(p) == pytest.approx(logsumexp(draws) - np.log(200_000), abs=0.03)


# --- the mean ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"weights": True, "mean": True}, {"C": 5}], ids=str)
def test_mean_by_third_derivatives(kind):
    """Mode + Sigma T/2, T_c the derivatives of the curvature's trace with Sigma, by differences."""
    p = make(12, **kind)
    n, C = p.Y.shape
    process, s = softmax.posterior(p, means.Zero())
    K, _, M = dense_parts(p, s.latent)
    Sigma = K - K @ M @ K
    step, T = 1e-5, np.zeros((n, C))
    for index in np.ndindex(n, C):
        e = np.zeros((n, C))
        e[index] = step
        rise = dense_parts(p, s.latent + e)[1] - dense_parts(p, s.latent - e)[1]
        T[index] = -np.sum(Sigma * rise) / (2 * step)
    wanted = s.latent - p.mean + 0.5 * (Sigma @ T.T.ravel()).reshape(C, n).T
    np.testing.assert_allclose(process.mean(p.X), wanted, atol=1e-7)
    _, adjoints = softmax.evidence(p)  # the exact mean is m + K dL/dm
    np.testing.assert_allclose(process.mean(p.X), p.kernel(p.X) @ adjoints.mean, atol=1e-9)


@pytest.mark.parametrize("variance", [0.5, 3.0, 20.0])
def test_the_mean_is_nearer_to_the_exact_one_than_the_mode(variance):
    """Of three rows that are one, by a grid over the two contrasts."""
    p = SoftmaxProblem(variance * RBF(), np.zeros((3, 1)), np.eye(3)[[0, 0, 1]], np.zeros((3, 3)))
    t = np.sqrt(variance) * np.linspace(-6, 6, 401)
    a, b = np.meshgrid(t, t, indexing="ij")
    F = a[..., None] * [0.5**0.5, -(0.5**0.5), 0] + b[..., None] * np.array([1, 1, -2]) / 6**0.5
    logs = log_softmax(F, axis=2) @ p.Y.sum(axis=0) - (a**2 + b**2) / (2 * variance)
    weights = probabilities(logs.ravel())
    exact = weights @ F.reshape(-1, 3)
    process, s = softmax.posterior(p, means.Zero())
    error = np.abs(process.mean(p.X)[0] - exact).max()
    assert error < 0.7 * np.abs(s.latent[0] - exact).max()


def test_the_mean_stays_within_reach_of_the_mode():
    """However large the kernel, no value moves by more than sqrt(3) prior deviations."""
    p = make(20, kernel=1e6 * RBF())
    process, s = softmax.posterior(p, means.Zero())
    moved = np.max(np.abs(process.mean(p.X) - s.latent))
    assert moved == pytest.approx(3**0.5 * 1e3, rel=1e-6)
    mode, _ = softmax.posterior(p, means.Zero(), at_mode=True)
    np.testing.assert_array_equal(process.var(p.X), mode.var(p.X))


# --- starts, extremes, refusals ---------------------------------------------------------------


def test_warm_starts():
    p = make(60, C=4)
    cold = softmax.solve(p)
    near = replace(p, kernel=p.kernel.with_theta(p.kernel.theta + 0.01))
    warm, there = softmax.solve(near, cold.state), softmax.solve(near)
    assert warm.log_evidence == pytest.approx(there.log_evidence, rel=1e-10)
    assert warm.n_iterations < there.n_iterations
    for bad in (np.full((60, 4), np.nan), np.zeros(3), 1e200 * cold.state, -1e8 * cold.state):
        assert softmax.solve(p, bad).log_evidence == pytest.approx(cold.log_evidence, rel=1e-10)


@given(
    n=st.integers(1, 10),
    C=st.integers(2, 5),
    seed=st.integers(0, 10_000),
    size=st.floats(-10, 10),
    width=st.floats(-3, 3),
    repeated=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_kernel_gives_numbers(n, C, seed, size, width, repeated):
    p = make(n, C, seed, kernel=10.0**size * RBF(10.0**width))
    if repeated:
        p = replace(p, X=np.repeat(p.X[:1], n, axis=0))
    s, adjoints = softmax.evidence(p)
    assert np.isfinite(s.log_evidence) and s.log_evidence <= 1e-9
    # a kernel of 3e8 and more, times its rounding, may be of the size of what is sought
    assert np.all(np.isfinite(s.latent)) and (s.status == "converged" or size > 8)
    assert np.all(np.isfinite(np.tril(adjoints.K))) and np.all(np.isfinite(adjoints.mean))
    process, _ = softmax.posterior(p, means.Zero())
    mean, var = process.mean_and_var(np.linspace(-3, 3, 10).reshape(5, 2))
    assert np.all(np.isfinite(mean)) and np.all(var >= 0)
    assert np.all(var <= 10.0**size * (1 + 1e-6))


@pytest.mark.parametrize("variance", [1.0, 1e4, 1e8])
def test_separable_data(variance):
    X = np.linspace(-1, 1, 30)[:, None]
    Y = np.eye(3)[np.digitize(X[:, 0], [-0.4, 0.3])]
    p = SoftmaxProblem(variance * RBF(0.5), X, Y, np.zeros((30, 3)))
    s = softmax.solve(p)
    assert s.status == "converged"
    np.testing.assert_array_equal(np.argmax(s.latent, axis=1), np.argmax(Y, axis=1))


def test_problems_that_are_none():
    p = make(5)
    for Y in (np.zeros((4, 3)), np.ones((5, 1)), np.ones(5)):
        with pytest.raises(ValueError, match="Y must have a row for each of the 5 rows"):
            replace(p, Y=Y)
    for Y in (np.ones((5, 3)), 1.5 * p.Y - 1 / 6, np.full((5, 3), np.nan)):
        with pytest.raises(ValueError, match="must be a distribution"):
            replace(p, Y=Y)
    with pytest.raises(ValueError, match=r"mean must be finite, of shape \(5, 3\)"):
        replace(p, mean=np.zeros((5, 2)))
    with pytest.raises(ValueError, match="weights must be 5 finite numbers"):
        replace(p, weights=-np.ones(5))
    with pytest.raises(NotPositiveDefiniteError):
        softmax.solve(with_gram(p, p.kernel(p.X) - 50 * np.eye(5)))


def test_jitter_is_that_of_the_problem():
    p = make(10)
    s = softmax.solve(replace(p, jitter=0.25))
    assert s.jitter == 0.25
    direct = value_of(with_gram(p, p.kernel(p.X) + 0.25 * np.eye(10)))
    assert s.log_evidence == pytest.approx(direct, rel=1e-12)


def test_jitter_that_only_some_classes_need():
    """The Gram matrix is the same for all of them in the end."""
    K = make(10).kernel(make(10).X)
    values, vectors = np.linalg.eigh(K)
    values[0] = -1e-9
    K = np.asfortranarray((vectors * values) @ vectors.T)
    pi = np.full((10, 3), 1e-9)
    pi[:, 2] = 1.0 - 2e-9
    weights = np.full(10, 1e10)
    sites = CoupledSites(K, pi, weights)
    assert sites.jitter > 0
    again = CoupledSites(K.copy(order="F"), pi, weights, jitter=sites.jitter)
    assert again.jitter == 0.0
    assert again.log_determinant == pytest.approx(sites.log_determinant, rel=1e-12)


def test_a_posterior_is_saved_and_sampled(tmp_path):
    p = make(12)
    process, _ = softmax.posterior(p, means.Constant(0.0, estimate=None))
    save(process, tmp_path / "classes.mercer")
    again = load(tmp_path / "classes.mercer")
    X = np.random.default_rng(1).normal(size=(3, 2))
    np.testing.assert_array_equal(again.cov(X), process.cov(X))
    draws = process.sample(X, 20_000, rng=0)
    S = process.cov(X)
    centred = draws - process.mean(X)[:, None, :]
    np.testing.assert_allclose(np.einsum("isp,jsq->ipjq", centred, centred) / 20_000, S, atol=0.08)
    step = 1e-6
    gradients = process.gradients(X)
    for k in range(2):
        e = step * np.eye(2)[k]
        rise = (process.var(X + e) - process.var(X - e)) / (2 * step)
        np.testing.assert_allclose(gradients.var[:, k], rise, atol=1e-6)


def test_blocks_of_rows():
    """A factor with zeros around it, and what is made of several."""
    rng = np.random.default_rng(0)
    L = np.asfortranarray(np.tril(rng.normal(size=(3, 3))) + 3 * np.eye(3))
    Phi = np.ascontiguousarray(rng.normal(size=(4, 3)))
    padded = [
        RowBlock(InverseTriangular(L), 0, 6),
        RowBlock(Dense(rng.normal(size=(3, 3))), 2, 6),
        RowBlock(InverseTriangular(L), 3, 6),
    ]
    plain = [Dense(np.vstack([F.apply(np.eye(3))])) for F in padded]
    V = rng.normal(size=(6, 4))
    for F, G in zip(padded, plain, strict=True):
        assert (F.n_rows, F.n_columns) == (6, 3) and F.nbytes > 0
        np.testing.assert_allclose(F.apply(Phi), G.apply(Phi), atol=1e-14)
        np.testing.assert_allclose(F.pull(V), G.pull(V), atol=1e-14)
        np.testing.assert_allclose(F.gram(), G.gram(), atol=1e-14)
    one, two = FactorSet("A", padded, 3, 3), FactorSet("A", plain, 3, 3)
    np.testing.assert_allclose(one.products(Phi), two.products(Phi), atol=1e-14)
    np.testing.assert_allclose(one.norms(Phi), two.norms(Phi), atol=1e-14)
    for p in range(3):
        np.testing.assert_allclose(one.half_gradient(Phi, p), two.half_gradient(Phi, p), atol=1e-14)
    with pytest.raises(ValueError, match="3 rows from row 4 on do not fit into 6 rows"):
        RowBlock(InverseTriangular(L), 4, 6)


def test_a_problem_is_only_read():
    p = make(weights=True, mean=True)
    for array in (p.X, p.Y, p.mean, p.weights):
        array.setflags(write=False)
    first, second = softmax.evidence(p), softmax.evidence(p)
    assert first[0].log_evidence == second[0].log_evidence
    np.testing.assert_array_equal(np.tril(first[1].K), np.tril(second[1].K))


@pytest.mark.parametrize("amplitude", [1e6, 3.2e7, 1e8])
def test_a_preconditioner_lost_to_rounding_is_no_end(amplitude):
    """Two classes are the logistic with twice the kernel, also where single precision fails."""
    X = np.sort(np.random.default_rng(2).uniform(-3, 3, (30, 1)), axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    Y = np.column_stack([y < 0, y > 0]).astype(float)
    kernel = amplitude * RBF(1.0)
    solution = softmax.solve(softmax.SoftmaxProblem(kernel, X, Y, np.zeros((30, 2))))
    problem = LatentProblem(2.0 * kernel, X, y, Logistic(), np.zeros(30))
    assert solution.status == "converged"
    assert solution.log_evidence == pytest.approx(laplace.solve(problem).log_evidence, abs=1e-5)
