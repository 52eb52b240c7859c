"""Posteriors of every kind go on as on-line processes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mercer import SparseGPRegressor
from mercer.inference import _online_rows, ep, exact, softmax, sparse
from mercer.inference._approximations import approximation
from mercer.inference._online_moments import refresh
from mercer.inference._online_takeover import joined, lifted, likeliest_factor, within
from mercer.inference._problem import LatentProblem
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Gaussian, Laplace, Probit
from mercer.means import Constant, Linear, Zero
from mercer.posterior import Basis, Dense, Posterior
from mercer.posterior.pruning import restrict

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
    if max_basis < M:  # of one output the least sum of divergences is the least largest
        Y, scale = Y[:, :1], scale[:1]
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


@pytest.mark.parametrize("weight", [0, 1])
def test_a_posterior_without_covariances_goes_on(weight):
    """Of weights that are known nothing is learned; a function between points is."""
    points = np.arange(3.0)[:, None]
    known = Posterior(Basis(RBF(1.0), points), np.ones((3, 1)), weight=weight)
    process = OnlineProcess.from_posterior(known, Gaussian(0.1), max_basis=5 if weight else None)
    new = np.array([[0.5], [7.0]])
    np.testing.assert_allclose(process.posterior().mean(new), known.mean(new))
    np.testing.assert_allclose(process.posterior().var(new), known.var(new), atol=1e-12)
    process.learn(new[1:], [[2.0]])
    mean, var = process.posterior().mean_and_var(new[1:])
    prior = known.mean(new[1:])[0, 0]
    wanted = prior + (2.0 - prior) / 1.1 if weight else prior
    assert mean[0, 0] == pytest.approx(wanted) and var[0, 0] == pytest.approx(weight * 0.1 / 1.1)


def test_lifted_with_explicit_functions():
    points, Y = problem()
    H, rows = np.c_[np.ones(len(points)), points], slice(M, M + N)
    posterior = sparse_posterior(
        "sor", points, Y, np.ones(2), Linear(estimate="integrate"), H[rows]
    )
    process = OnlineProcess.from_posterior(
        posterior, Gaussian(NOISE), max_basis=10, tol=0.05, lift=1.0
    )
    process.learn(points[M + N : -T], Y[M + N : -T])
    K = k(points, points)
    Phi = np.hstack([H, K[:, :M]])  # the coefficients of the plane, then of the sections
    precision = Phi[rows].T @ Phi[rows] / NOISE
    precision[3:, 3:] += K[:M, :M]
    to_z = np.zeros((3 + len(K), 3 + M))
    to_z[:3, :3], to_z[3:, 3:] = np.eye(3), K[:, :M]
    cov = to_z @ np.linalg.solve(precision, to_z.T)
    cov[3:, 3:] += K - K[:, :M] @ np.linalg.solve(K[:M, :M], K[:M])
    mean = to_z @ np.linalg.solve(precision, Phi[rows].T @ Y[rows] / NOISE)
    expected = Everywhere(K, mean, cov, H, range(M))
    for i in range(M + N, len(points) - T):
        expected.learn(i, Y[i], gaussian_site(NOISE), 10, 0.05, "kl")
    mean, cov = expected.functions()
    check(process, points[-T:], mean[-T:], cov[-T:, -T:], tol=1e-7)
    assert process.projection_loss == pytest.approx(expected.loss, rel=1e-6)


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


def refreshes(process, monkeypatch):
    """Return a list that grows whenever Q and P of a process are made anew."""
    count = []

    def counted(A):
        count.append(A.m)
        refresh(A)

    monkeypatch.setattr(_online_rows, "refresh", counted)
    return count


def rounding(process):
    A = process.arrays
    return np.max(np.abs(A.Q[: A.m, : A.m] @ A.K[: A.m, : A.m] - np.eye(A.m)))


@pytest.mark.parametrize("length", [1.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_an_exact_posterior_of_many_rows_begins_with_a_sound_inverse(d, length, monkeypatch):
    """With points closer to each other than the recursion allows, Q would be wrong from the first
    row on and be made anew at every other.
    """
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(1300, d)), 2.0 * RBF(length)
    Y = np.sin(2.0 * X[:, :1]) + 0.3 * rng.normal(size=(1300, 1))
    given = exact.ExactProblem(kernel, X[:300], Y[:300], np.full(300, 0.09))
    posterior, _ = exact.posterior(given, Zero(), np.ones(1))
    process = OnlineProcess.from_posterior(posterior, Gaussian(0.09), max_basis=100)
    assert rounding(process) < 1e-7
    assert np.max(np.diag(process.arrays.Q)[: process.n_basis]) * 2.0 < 1.01e6
    mean = process.posterior().mean(X[:300])
    close = np.abs(mean - posterior.mean(X[:300])) / np.sqrt(posterior.var(X[:300]))
    if process.n_basis < 100:  # else what did not have room is lost
        assert process.projection_loss < 0.1 and np.max(close) < 0.2
    count = refreshes(process, monkeypatch)
    process.learn(X[300:], Y[300:])
    assert len(count) < 20
    assert rounding(process) < 1e-6


@pytest.mark.parametrize("seed, d, length", [(19, 1, 2.0), (53, 2, 4.0), (18, 2, 2.0)])
def test_no_point_that_is_taken_over_is_determined_by_all_others(seed, d, length):
    """Each is new after those of more novelty, and yet all of these together determine some."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, d))
    Y = np.sin(2.0 * X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
    given = exact.ExactProblem(RBF(length), X, Y, np.full(80, 0.09))
    posterior, _ = exact.posterior(given, Zero(), np.ones(1))
    in_turn, _ = within(posterior, 80, 1e-6)
    process = OnlineProcess.from_posterior(posterior, Gaussian(0.09))
    assert process.n_basis < in_turn.n_basis
    assert np.max(np.diag(np.linalg.inv(RBF(length)(process.points)))) < 1.01e6
    # what that costs is what it costs to leave out all of them at once
    kept = np.flatnonzero(np.any(np.all(X[:, None] == process.points, axis=2), axis=1))
    _, loss = restrict(posterior, kept)
    assert len(kept) == process.n_basis
    assert process.projection_loss == pytest.approx(loss, rel=1e-2)
    assert rounding(process) < 1e-7


def test_lifting_a_singular_basis(monkeypatch):
    """Sixty inducing inputs where a dozen tell all: the same functions, and a sound inverse."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (1200, 1))
    Y, kernel = np.sin(X) + 0.2 * rng.normal(size=X.shape), RBF(2.0)
    given = sparse.SparseProblem(
        kernel,
        X[:200],
        Y[:200],
        np.full(200, 0.04),
        np.linspace(0, 6, 60)[:, None],
        approximation("sor"),
    )
    posterior, _ = sparse.posterior(given, Zero(), np.ones(1))
    process = OnlineProcess.from_posterior(posterior, Gaussian(0.04), lift=1.0)
    assert process.n_basis < 20
    assert rounding(process) < 1e-7
    assert process.projection_loss < 0.01
    new = np.linspace(0, 6, 50)[:, None]
    mean, var = process.posterior().mean_and_var(new)
    np.testing.assert_allclose(mean, posterior.mean(new), atol=2e-3)
    np.testing.assert_allclose(var, posterior.var(new), atol=1e-4)
    count = refreshes(process, monkeypatch)
    before = process.learn(X[200:], Y[200:])
    assert rounding(process) < 1e-6 and len(count) < 20
    assert process.projection_loss < 0.1
    assert np.mean((before.mean - np.sin(X[200:])) ** 2) < 0.01


@pytest.mark.parametrize("coupled", [False, True])
def test_lifted_with_a_covariance_for_each_output(coupled):
    """As each output lifted by itself."""
    points, Y = problem()
    parts = [sparse_posterior("sor", points, Y[:, p : p + 1], np.ones(1)) for p in range(2)]
    both = joined(parts, Laplace(0.3)) if coupled else sparse_posterior("sor", points, Y, (1, 1))
    got = lifted(both)
    assert got.weight == 1 and got.is_coupled == coupled
    for p, part in enumerate(parts):
        _, mean, cov = sparse_moments("dtc", points, Y[:, p : p + 1])
        own = lifted(part)
        np.testing.assert_allclose(got.mean(points)[:, p], mean[:, 0], atol=1e-9)
        np.testing.assert_allclose(got.var(points)[:, p], np.diag(cov), atol=1e-9)
        np.testing.assert_allclose(own.mean(points)[:, 0], mean[:, 0], atol=1e-9)


def test_what_is_no_covariance_is_not_lifted():
    """Weights of columns go on whatever the columns are, but no process has this covariance."""
    points, _ = problem()
    posterior = Posterior(
        Basis(Tanh(1.0, 0.5), points[:M]), np.ones((M, 1)), B=Dense(np.eye(M)), weight=0
    )
    with pytest.raises(ValueError, match=r"Tanh.* is none. Leave lift out"):
        OnlineProcess.from_posterior(posterior, Gaussian(NOISE), lift=1.0)
    OnlineProcess.from_posterior(posterior, Gaussian(NOISE)).learn(points[:9], np.ones((9, 1)))


OPTIONS = [
    {"forget": 0.1},
    {"max_basis": 3},
    {"tol": 1e-3},
    {"novelty": "mean"},
    {"criterion": "mean"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: next(iter(o)))
def test_options_that_can_do_nothing_are_refused(options):
    points, Y = problem()
    posterior = sparse_posterior("sor", points, Y, np.ones(2))
    with pytest.raises(ValueError, match=f"{next(iter(options))} would do nothing.*lift=True"):
        OnlineProcess.from_posterior(posterior, Gaussian(NOISE), **options)
    OnlineProcess.from_posterior(posterior, Gaussian(NOISE), lift=1.0, **options)
    process = OnlineProcess.from_posterior(posterior, Gaussian(NOISE))
    usual = {"tol": 1e-6, "novelty": "geometry", "criterion": "kl", "forget": 0.0}
    assert process.obey(M, **usual) == 0.0
    if "max_basis" not in options:
        with pytest.raises(ValueError, match="would do nothing"):
            process.obey(M, **(usual | options))


def test_no_array_of_all_outputs_at_once():
    """The state of ten outputs has 2 x 10 + 2 matrices; to come to it took (10 m)^2 numbers."""
    rng = np.random.default_rng(0)
    points = 3.0 * rng.normal(size=(100, 2))
    given = exact.ExactProblem(KERNEL, points, rng.normal(size=(100, 1)), np.full(100, NOISE))
    one, _ = exact.posterior(given, Zero(), np.ones(1))
    posterior = joined([one] * 10, Probit(1.0))
    matrix = 8 * posterior.n_basis**2
    tracemalloc.start()
    OnlineProcess.from_posterior(posterior, Probit(1.0), tol=0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * matrix  # where the blocks alone would be 200


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


@pytest.mark.parametrize("coupled", [False, True])
def test_a_function_is_lifted_under_so_many_times_the_kernel(coupled):
    """The moments at the points stay, and all beyond them is the larger prior's."""
    points, Y = problem()
    parts = [sparse_posterior("sor", points, Y[:, p : p + 1], np.ones(1)) for p in range(2)]
    both = joined(parts, Laplace(0.3)) if coupled else sparse_posterior("sor", points, Y, (1, 1))
    got, new = lifted(both, 7.0), points[:9] + 0.3
    own = got.basis.points
    np.testing.assert_allclose(got.mean(new), both.mean(new), atol=1e-8)
    np.testing.assert_allclose(got.var(own), both.var(own), atol=1e-8)
    K, k = both.kernel(own), both.kernel(new, own)
    rest = both.kernel.diag(new) - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(got.var(new), both.var(new) + 7.0 * rest[:, None], atol=1e-7)
    assert got.kernel(new[:1])[0, 0] == pytest.approx(7.0 * both.kernel(new[:1])[0, 0])


def test_the_likeliest_factor_is_the_step_of_expectation_maximisation():
    """Dense: E[z'K^-1 z]/m, of the mean and of the covariance; and 1 at the evidence's maximum."""
    points, Y = problem()
    posterior = sparse_posterior("sor", points, Y, (1, 1))
    own = posterior.basis.points
    K, mean = posterior.kernel(own), posterior.mean(own)
    S = posterior.cov(own)[..., 0] if posterior.cov(own).ndim == 3 else posterior.cov(own)
    inverse = np.linalg.inv(K)
    wanted = np.mean([z @ inverse @ z + np.trace(inverse @ S) for z in mean.T]) / len(own)
    assert likeliest_factor(posterior) == pytest.approx(wanted, rel=1e-7)
    X = np.random.default_rng(0).uniform(0, 6, (80, 1))
    y = 3.0 * np.sin(X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=80)
    options = {"approximation": "sor", "n_inducing": 9, "learn_inducing": False, "mean": "zero"}
    fitted = SparseGPRegressor(1.0 * RBF(1.0), **options, random_state=0).fit(X, y)
    assert likeliest_factor(fitted.posterior_) == pytest.approx(1.0, abs=1e-2)
