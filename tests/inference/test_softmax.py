"""The coupled softmax against dense formulas of order nC, differences, and the logistic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from scipy.special import softmax as probabilities

from mercer import means
from mercer.inference import laplace, softmax
from mercer.inference._coupled import CoupledSites
from mercer.inference._problem import LatentProblem
from mercer.inference.softmax import SoftmaxProblem
from mercer.kernels import RBF

from .latent import PlainLogistic, gram_adjoint_by_differences
from .softmax_cases import dense_parts, make, value_of, with_gram

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
