"""Posteriors of every kind go on as on-line processes."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import ep, exact, softmax, sparse
from mercer.inference._approximations import approximation
from mercer.inference._problem import LatentProblem
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace, Probit
from mercer.means import Constant, Linear, Zero

from .online_dense import Everywhere, gaussian_site, moments_site, probit_site, rbf
from .softmax_cases import make as softmax_problem

LENGTHS, VARIANCE, NOISE = np.array([0.8, 1.1]), 1.3, 0.2
KERNEL = VARIANCE * RBF(LENGTHS)
M, N, T = 6, 20, 5  # inducing inputs, rows that are learned before, points to ask about


def k(X, Z):
    return rbf(X, Z, LENGTHS, VARIANCE)


def problem(seed=0, more=25):
    """Inducing inputs, rows of two outputs, further rows, and new points."""
    rng = np.random.default_rng(seed)
    points = 1.5 * rng.normal(size=(M + N + more + T, 2))
    Y = np.sin(2.0 * points[:, :1] + np.arange(2)) + 0.4 * rng.normal(size=(len(points), 2))
    return points, Y


def sparse_posterior(kind, points, Y, scale, mean=None, H=None):
    rows = slice(M, M + N)
    given = sparse.SparseProblem(
        KERNEL,
        points[rows],
        Y[rows],
        np.full(N, NOISE),
        points[:M],
        approximation(kind),
        H,
        H is not None,
    )
    return sparse.posterior(given, Zero() if mean is None else mean, scale)[0]


def sparse_moments(kind, points, Y):
    """Mean and covariance at all points by the textbook (UV 16b, 20b, 24b)."""
    K, rows = k(points, points), slice(M, M + N)
    Kuu, Kuf = K[:M, :M], K[:M, rows]
    Q = K[:, :M] @ np.linalg.solve(Kuu, K[:M])
    Lambda = np.full(N, NOISE) + (np.diag(K - Q)[rows] if kind == "fitc" else 0.0)
    A = Kuu + (Kuf / Lambda) @ Kuf.T
    mean = K[:, :M] @ np.linalg.solve(A, (Kuf / Lambda) @ Y[rows])
    cov = K[:, :M] @ np.linalg.solve(A, K[:M])
    return K, mean, cov + (0.0 if kind == "sor" else K - Q)


def check(process, new, mean, cov, scale=1.0, tol=1e-8):
    posterior = process.posterior()
    scale = np.broadcast_to(scale, mean.shape[1:])
    np.testing.assert_allclose(posterior.mean(new) / scale, mean, rtol=tol, atol=tol)
    both = posterior.cov(new)
    for p, s in enumerate(scale):
        own = both[:, :, p] if both.ndim == 3 else both[:, p, :, p]
        np.testing.assert_allclose(own / s**2, cov if cov.ndim == 2 else cov[p], rtol=tol, atol=tol)


def go_on(process, points, Y, scale, start, max_basis, tol=0.05):
    """Learn the further rows, beside the dense Gaussian of all points."""
    K, mean, cov = start
    expected = Everywhere(K, mean, cov, basis=range(M))
    np.testing.assert_allclose(process.posterior().mean(points) / scale, mean, rtol=1e-7, atol=1e-8)
    first = M + N
    process.learn(points[first:-T], scale * Y[first:-T])
    for i in range(first, len(points) - T):
        expected.learn(i, Y[i], gaussian_site(NOISE), max_basis, tol, "kl")
    mean, cov = expected.functions()
    check(process, points[-T:], mean[-T:], cov[-T:, -T:], scale, 1e-7)
    assert process.projection_loss == pytest.approx(expected.loss, rel=1e-6)
    return expected


@pytest.mark.parametrize("max_basis", [M, 10])
@pytest.mark.parametrize("kind", ["fitc", "dtc", "vfe"])
def test_sparse_posteriors_go_on(kind, max_basis):
    points, Y = problem()
    scale = np.array([3.0, 0.1])
    posterior = sparse_posterior(kind, points, Y, scale)
    process = OnlineProcess.from_posterior(
        posterior, Gaussian(NOISE), max_basis=max_basis, tol=0.05, criterion="kl"
    )
    assert process.projection_loss == 0.0
    start = sparse_moments("dtc" if kind == "vfe" else kind, points, Y)
    expected = go_on(process, points, Y, scale, start, max_basis)
    assert sorted(process.points[:, 0]) == sorted(points[expected.basis, 0])


def test_a_degenerate_posterior_goes_on_as_a_linear_model():
    """Weights of the sections and of a plane: all rows at once by least squares with a prior."""
    points, Y = problem()
    H = np.c_[np.ones(len(points)), points]
    scale = np.array([3.0, 0.1])
    posterior = sparse_posterior(
        "sor", points, Y, scale, Linear(estimate="integrate"), H[M : M + N]
    )
    process = OnlineProcess.from_posterior(posterior, Gaussian(NOISE))
    rows, kept = slice(M, len(points) - T), process.points.copy()
    assert posterior.weight == 0
    before = process.learn(points[M + N : -T], scale * Y[M + N : -T])
    Phi = np.hstack([k(points, points[:M]), H])
    precision = Phi[rows].T @ Phi[rows] / NOISE
    precision[:M, :M] += k(points[:M], points[:M])
    cov = Phi @ np.linalg.solve(precision, Phi.T)
    mean = Phi @ np.linalg.solve(precision, Phi[rows].T @ Y[rows] / NOISE)
    check(process, points[-T:], mean[-T:], cov[-T:, -T:], scale, 1e-7)
    assert process.posterior().weight == 0
    assert process.projection_loss == 0.0
    assert process.n_basis == M
    np.testing.assert_array_equal(process.points, kept)
    assert np.all(np.isfinite(before.log_density))
    with pytest.raises(ValueError, match="prune it before"):
        process.prune(3)


@pytest.mark.parametrize("max_basis", [4, M, 10])
def test_lifted_it_is_dtc(max_basis):
    points, Y = problem()
    scale = np.array([3.0, 0.1])
    posterior = sparse_posterior("sor", points, Y, scale)
    options = {"lift": True, "tol": 0.05, "criterion": "kl"}
    process = OnlineProcess.from_posterior(
        posterior, Gaussian(NOISE), max_basis=max_basis, **options
    )
    start = sparse_moments("dtc", points, Y)
    if max_basis >= M:
        go_on(process, points, Y, scale, start, max_basis)
        return
    expected = Everywhere(*start, basis=range(M))
    while len(expected.basis) > max_basis:
        expected.keep(expected.cheapest("kl"))
    assert process.projection_loss == pytest.approx(expected.loss, rel=1e-7)
    mean, cov = expected.functions()
    check(process, points, mean, cov, scale, 1e-7)


def test_an_exact_posterior_is_pruned_to_the_room_there_is():
    points, Y = problem()
    rows = slice(0, M + N)
    given = exact.ExactProblem(KERNEL, points[rows], Y[rows], np.full(M + N, NOISE))
    posterior, _ = exact.posterior(given, Zero(), np.ones(2))
    process = OnlineProcess.from_posterior(posterior, Gaussian(NOISE), max_basis=8)
    pruned, loss = posterior.prune(8)
    assert process.n_basis == 8
    assert process.projection_loss == pytest.approx(loss, rel=1e-9)
    np.testing.assert_allclose(process.posterior().mean(points), pruned.mean(points), rtol=1e-7)
    np.testing.assert_allclose(process.posterior().var(points), pruned.var(points), rtol=1e-7)
    whole = OnlineProcess.from_posterior(posterior, Gaussian(NOISE))
    assert whole.rules.max_basis == whole.n_basis == M + N
    assert whole.projection_loss == 0.0


def test_points_that_repeat_are_left_out():
    points, Y = problem()
    rows = np.r_[0:10, 0:10]
    given = exact.ExactProblem(KERNEL, points[rows], Y[:20], np.full(20, NOISE))
    posterior, _ = exact.posterior(given, Zero(), np.ones(2))
    process = OnlineProcess.from_posterior(posterior, Gaussian(NOISE), max_basis=30, tol=0.0)
    assert process.n_basis == 10
    assert abs(process.projection_loss) < 1e-6
    np.testing.assert_allclose(process.posterior().mean(points), posterior.mean(points), atol=1e-8)
    np.testing.assert_allclose(process.posterior().var(points), posterior.var(points), atol=1e-8)
    process.learn(points[10:20], Y[20:30])
    more = exact.ExactProblem(KERNEL, points[np.r_[rows, 10:20]], Y[:30], np.full(30, NOISE))
    expected, _ = exact.posterior(more, Zero(), np.ones(2))
    np.testing.assert_allclose(process.posterior().mean(points), expected.mean(points), atol=1e-7)


def test_the_posterior_of_ep_goes_on():
    points, Y = problem()
    labels, mean = np.where(Y[:, 0] > 0, 1.0, -1.0), Constant(0.3, estimate=None)
    given = LatentProblem(KERNEL, points[:15], labels[:15], Probit(0.8), np.full(15, 0.3))
    posterior, _ = ep.posterior(given, mean)
    start = posterior.mean(points) - 0.3, posterior.cov(points)[:, :, 0]
    process = OnlineProcess.from_posterior(posterior, Probit(0.8), max_basis=40, tol=1e-8)
    process.learn(points[15:40], labels[15:40, None])
    expected = Everywhere(k(points, points), *start, basis=range(15))

    def site(y, mean, var):  # of f and the constant
        return probit_site(0.8)(y, mean + 0.3, var)

    for i in range(15, 40):
        expected.see(i, labels[i : i + 1], site)
    mean, cov = expected.functions()
    check(process, points[-T:], 0.3 + mean[-T:], cov[-T:, -T:], tol=1e-7)


def test_outputs_of_one_covariance_go_on_with_one_each():
    points, Y = problem()
    given = exact.ExactProblem(KERNEL, points[:10], Y[:10], np.full(10, NOISE))
    posterior, _ = exact.posterior(given, Zero(), np.ones(2))
    start = posterior.mean(points), posterior.cov(points)[:, :, 0]
    process = OnlineProcess.from_posterior(posterior, Laplace(0.3), max_basis=20, tol=1e-6)
    process.learn(points[10:20], Y[10:20])
    site = moments_site(lambda y, f: np.exp(-np.abs(y - f) / 0.3) / 0.6, lambda y: [y])
    means, covs = [], []
    for p in range(2):
        expected = Everywhere(k(points, points), start[0][:, p : p + 1], start[1], basis=range(10))
        for i in range(10, 20):
            expected.see(i, Y[i, p : p + 1], site)
        mean, cov = expected.functions()
        means.append(mean[-T:, 0])
        covs.append(cov[-T:, -T:])
    check(process, points[-T:], np.stack(means, axis=1), np.stack(covs), tol=1e-6)


def test_coupled_outputs_are_refused():
    p = softmax_problem()
    posterior, _ = softmax.posterior(p, Zero())
    with pytest.raises(ValueError, match="coupled"):
        OnlineProcess.from_posterior(posterior, Probit(1.0))
