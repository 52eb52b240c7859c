"""On-line regression where it is exact: against dense formulas, whatever the order and chunking."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from mercer.inference import _online_rows, online
from mercer.inference import exact as engine
from mercer.inference._online_moments import refresh
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Probit
from mercer.linalg import _recursion_twins
from mercer.means import Constant, Linear

from .online_dense import Everywhere, exact, gaussian_site, rbf

LENGTHS, VARIANCE, NOISE = np.array([0.8, 1.1]), 1.3, 0.2
KERNEL = VARIANCE * RBF(LENGTHS)


def k(X, Z):
    return rbf(X, Z, LENGTHS, VARIANCE)


def problem(seed=0, n=25, P=2, t=7):
    rng = np.random.default_rng(seed)
    X, new = 1.5 * rng.normal(size=(n, 2)), 2.0 * rng.normal(size=(t, 2))
    Y = np.sin(2.0 * X[:, :1] + np.arange(P)) + 0.4 * rng.normal(size=(n, P))
    return X, Y, new


def process(n, P=1, **changes):
    options = {"max_basis": n, "tol": 0.0, "n_outputs": P}
    return OnlineProcess(KERNEL, Gaussian(NOISE), **(options | changes))


def check(got, new, mean, cov, scale=1.0, tol=1e-8):
    """Mean (t, P), variance and covariance (t, t) of each output, in units of `scale`."""
    scale = np.broadcast_to(scale, mean.shape[1:])
    posterior = got.posterior()
    np.testing.assert_allclose(posterior.mean(new), mean, rtol=tol, atol=tol * np.max(scale))
    everything = posterior.cov(new)
    for p, s in enumerate(scale):
        np.testing.assert_allclose(everything[:, :, p] / s**2, cov, rtol=tol, atol=tol)
        np.testing.assert_allclose(posterior.var(new)[:, p] / s**2, np.diag(cov), rtol=tol)


@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_without_sparsity_it_is_exact_whatever_the_order(seed, P):
    X, Y, new = problem(seed, P=P)
    mean, cov, evidence = exact(k(X, X), np.full(25, NOISE), Y, k(new, X), k(new, new))
    for order in (np.arange(25), np.arange(25)[::-1], np.random.default_rng(seed).permutation(25)):
        got = process(25, P)
        before = got.learn(X[order], Y[order])
        assert got.n_basis == 25
        assert got.n_seen == 25
        check(got, new, mean, cov)
        assert got.log_evidence == pytest.approx(evidence, abs=1e-8)
        assert np.sum(before.log_density) == pytest.approx(evidence, abs=1e-8)
        assert got.projection_loss == 0.0


def test_what_is_said_of_a_row_is_the_exact_prediction_from_the_rows_before():
    X, Y, _ = problem()
    before = process(25, 2).learn(X, Y)
    for i in range(1, 25):
        mean, cov, _ = exact(
            k(X[:i], X[:i]), np.full(i, NOISE), Y[:i], k(X[i : i + 1], X[:i]), np.full((1, 1), 1.3)
        )
        np.testing.assert_allclose(before.mean[i], mean[0], rtol=1e-8)
        np.testing.assert_allclose(before.var[i], cov[0, 0], rtol=1e-8)
        density = sum(
            gaussian_site(NOISE)(y, m, cov[0, 0])[0] for y, m in zip(Y[i], mean[0], strict=True)
        )
        assert before.log_density[i] == pytest.approx(density, rel=1e-8)


def test_units_of_outputs_and_a_mean_function():
    X, Y, new = problem()
    scale, constant = np.array([100.0, 0.01]), np.array([250.0, -3.0])
    got = process(25, 2, scale=scale, mean=Constant(constant, estimate=None))
    before = got.learn(X, constant + scale * Y)
    mean, cov, evidence = exact(k(X, X), np.full(25, NOISE), Y, k(new, X), k(new, new))
    check(got, new, constant + scale * mean, cov, scale)
    evidence -= 25 * np.sum(np.log(scale))
    assert got.log_evidence == pytest.approx(evidence, abs=1e-7)
    assert np.sum(before.log_density) == pytest.approx(evidence, abs=1e-7)
    np.testing.assert_allclose(before.mean[0], constant, rtol=1e-12)
    np.testing.assert_allclose(before.var[0], scale**2 * VARIANCE, rtol=1e-12)


@pytest.mark.parametrize("first", [4, 15])
def test_an_integrated_mean_goes_on_as_the_exact_process_on_all_rows(first):
    X, Y, new = problem()
    scale = np.array([2.0, 0.3])
    Y, function = Y + X @ [[1.0, 2.0], [-3.0, 0.5]] + 5.0, Linear(estimate="integrate")
    noise = np.full(25, NOISE)
    H, H_new = np.c_[np.ones(25), X], np.c_[np.ones(7), new]
    start = engine.ExactProblem(KERNEL, X[:first], Y[:first], noise[:first], H[:first], True)
    posterior, solution = engine.posterior(start, function, scale)
    got = OnlineProcess.from_posterior(posterior, Gaussian(NOISE), max_basis=25, tol=0.0)
    got.learn(X[first:], scale * Y[first:])
    mean, cov, evidence = exact(k(X, X), noise, Y, k(new, X), k(new, new), H, H_new)
    assert got.n_basis == 25
    check(got, new, scale * mean, cov, scale)
    gained = evidence - solution.log_evidence - (25 - first) * np.sum(np.log(scale))
    assert got.log_evidence == pytest.approx(gained, abs=1e-7)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("max_basis", [6, 9])
def test_explicit_functions_beside_a_basis_that_is_full(max_basis, criterion):
    X, Y, new = problem(n=30)
    first, points = 6, np.vstack([X, new])
    H = np.c_[np.ones(37), points]
    start = engine.ExactProblem(KERNEL, X[:6], Y[:6], np.full(6, NOISE), H[:6], True)
    posterior, _ = engine.posterior(start, Linear(estimate="integrate"), np.ones(2))
    got = OnlineProcess.from_posterior(
        posterior, Gaussian(NOISE), max_basis=max_basis, tol=0.05, criterion=criterion
    )
    got.learn(X[first:], Y[first:])

    K = k(points, points)
    inverse = np.linalg.inv(K[:6, :6] + NOISE * np.eye(6))
    beta_cov = np.linalg.inv(H[:6].T @ inverse @ H[:6])
    beta = beta_cov @ H[:6].T @ inverse @ Y[:6]
    gain = K[:, :6] @ inverse  # of g from the rows, given beta
    cov = np.block(
        [
            [beta_cov, -beta_cov @ (gain @ H[:6]).T],
            [
                -(gain @ H[:6]) @ beta_cov,
                K - gain @ K[:6] + gain @ H[:6] @ beta_cov @ (gain @ H[:6]).T,
            ],
        ]
    )
    mean = np.vstack([beta, gain @ (Y[:6] - H[:6] @ beta)])
    expected = Everywhere(K, mean, cov, H, range(6))
    for i in range(first, 30):
        expected.learn(i, Y[i], gaussian_site(NOISE), max_basis, 0.05, criterion)
    mean, cov = expected.functions()
    check(got, new, mean[30:], cov[30:, 30:])
    assert sorted(got.points[:, 0]) == sorted(points[expected.basis, 0])
    assert got.projection_loss == pytest.approx(expected.loss, rel=1e-7)
    assert got.log_evidence == pytest.approx(expected.log_evidence, abs=1e-8)


# --- chunks, paths, weights -----------------------------------------------------------------------


def same(a, b, tol=1e-9):
    """Whether two processes are one, in whatever order their points are kept."""
    A, B = a.arrays, b.arrays
    assert A.m == B.m
    np.testing.assert_array_equal(a.points, b.points)
    n = A.n_features + A.m
    np.testing.assert_allclose(A.mu[:, :n], B.mu[:, :n], rtol=tol, atol=tol)
    np.testing.assert_allclose(A.S[:, :n, :n], B.S[:, :n, :n], rtol=tol, atol=tol)
    np.testing.assert_allclose(A.sums, B.sums, rtol=tol, atol=tol)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    criterion=st.sampled_from(["mean", "kl"]),
    novelty=st.sampled_from(["geometry", "mean"]),
    forget=st.sampled_from([0.0, 0.01]),
)
def test_any_chunking_gives_the_same(seed, cuts, criterion, novelty, forget):
    X, Y, _ = problem(seed, n=300)
    options = {"criterion": criterion, "novelty": novelty, "forget": forget, "tol": 1e-3}
    whole, pieces = process(12, 2, **options), process(12, 2, **options)
    expected = whole.learn(X, Y)
    got = [
        pieces.learn(*rows)
        for rows in zip(np.split(X, sorted(cuts)), np.split(Y, sorted(cuts)), strict=True)
    ]
    same(whole, pieces)
    for name in ("mean", "var", "log_density"):
        joined = np.concatenate([getattr(part, name) for part in got])
        np.testing.assert_allclose(joined, getattr(expected, name), rtol=1e-9, atol=1e-9)
    assert pieces.n_seen == 300


def test_one_by_one_is_all_at_once():
    X, Y, _ = problem(n=150)
    whole, single = process(10, 2), process(10, 2)
    whole.learn(X, Y)
    for x, y in zip(X, Y, strict=True):
        single.learn(x[None], y[None])
    same(whole, single)


@pytest.mark.parametrize("forget", [0.0, 0.02])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("other", ["python", "twin"])
def test_compiled_python_and_twin_agree(other, weighted, forget, monkeypatch):
    X, Y, _ = problem(n=200)
    w = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 1.5, 3.0], 200) if weighted else None
    options = {"criterion": "kl", "tol": 1e-3, "forget": forget}
    compiled, plain = process(12, 2, **options), process(12, 2, **options)
    expected = compiled.learn(X, Y, w)
    if other == "twin":
        monkeypatch.setattr(_online_rows, "recursion", lambda: _recursion_twins)
    else:
        monkeypatch.setattr(Gaussian, "compiled_site", lambda self: None)
    got = plain.learn(X, Y, w)
    same(compiled, plain)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_weight_is_a_power_of_the_likelihood(compiled, monkeypatch):
    X, Y, new = problem(P=1)
    if not compiled:
        monkeypatch.setattr(Gaussian, "compiled_site", lambda self: None)
    w = np.random.default_rng(1).choice([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.7], 25)
    got = process(25)
    before = got.learn(X, Y, w)
    some = w > 0
    noise, U, V = NOISE / w[some], X[some], Y[some]
    mean, cov, evidence = exact(k(U, U), noise, V, k(new, U), k(new, new))
    check(got, new, mean, cov)
    # N(y; f, s)^w is N(y; f, s/w) times (2 pi s)^((1 - w)/2) w^(-1/2)
    evidence += 0.5 * np.sum((1 - w[some]) * np.log(2 * np.pi * NOISE) - np.log(w[some]))
    assert got.log_evidence == pytest.approx(evidence, abs=1e-8)
    assert np.sum(before.log_density) == pytest.approx(evidence, abs=1e-8)
    np.testing.assert_array_equal(before.log_density[~some], 0.0)


def test_weight_2_is_the_row_twice_and_weight_0_is_nothing():
    X, Y, _ = problem()
    w = np.array([1.0, 2.0, 0.0, 3.0, 1.0] * 5)
    weighted, repeated = process(25, 2, tol=1e-6), process(25, 2, tol=1e-6)
    weighted.learn(X, Y, w)
    repeated.learn(np.repeat(X, w.astype(int), axis=0), np.repeat(Y, w.astype(int), axis=0))
    same(weighted, repeated, 1e-9)
    count = weighted.arrays.sums.copy()
    weighted.learn(X, Y, np.zeros(25))
    np.testing.assert_array_equal(weighted.arrays.sums, count)


def test_a_weight_divides_gaussian_noise_whatever_the_basis():
    X, Y, _ = problem()
    once, others = process(5, 2, tol=1e-4), process(5, 2, tol=1e-4)
    once.learn(X, Y, np.full(25, 4.0))
    others.likelihood = Gaussian(float(others.likelihood.noise) / 4.0)
    others.learn(X, Y)
    assert once.projection_loss == pytest.approx(others.projection_loss, rel=1e-9)
    np.testing.assert_allclose(once.posterior().alpha, others.posterior().alpha, rtol=1e-8)


def test_weight_2_of_other_noise_is_the_row_twice():
    X, Y, _ = problem()
    y = np.sign(Y[:, :1])
    w = np.array([1.0, 2.0, 0.0, 3.0, 1.0] * 5)
    weighted, repeated = (
        OnlineProcess(RBF(1.0), Probit(), max_basis=5, tol=1e-4) for _ in range(2)
    )
    weighted.learn(X, y, w)
    repeated.learn(np.repeat(X, w.astype(int), axis=0), np.repeat(y, w.astype(int), axis=0))
    same(weighted, repeated, 1e-12)


def test_a_row_of_several_steps_is_one_step_in_time(monkeypatch):
    X, Y, _ = problem(n=40)
    y, w = np.sign(Y[:, :1]), np.tile([1.0, 3.0, 2.0, 1.0], 10)
    got = OnlineProcess(RBF(1.0), Probit(), max_basis=8, forget=0.1)
    before = got.learn(X, y, w)
    once = OnlineProcess(RBF(1.0), Probit(), max_basis=8, forget=0.1)
    for i in range(40):
        said = once.learn(X[i : i + 1], y[i : i + 1])
        np.testing.assert_allclose(before.var[i], said.var[0], rtol=1e-6)
        once.rules = once.rules._replace(keep=1.0)  # again, without time going on
        once.learn(
            np.repeat(X[i : i + 1], int(w[i]) - 1, axis=0), np.full((int(w[i]) - 1, 1), y[i])
        )
        once.rules = got.rules
    np.testing.assert_allclose(got.posterior().mean(X), once.posterior().mean(X), atol=1e-6)


def test_weights_count_in_the_units_of_outputs():
    X, Y, _ = problem()
    w, scale = np.array([1.0, 0.5, 0.0, 2.0, 1.0] * 5), np.array([10.0, 0.3])
    plain, scaled = process(25, 2), process(25, 2, scale=scale)
    a, b = plain.learn(X, Y, w), scaled.learn(X, scale * Y, w)
    np.testing.assert_allclose(b.log_density, a.log_density - w * np.sum(np.log(scale)), rtol=1e-9)
    assert scaled.log_evidence == pytest.approx(np.sum(b.log_density), abs=1e-8)


def test_a_large_weight_of_other_noise_takes_no_more_than_some_steps():
    """Their moments are nearer to those of the power than of the row so many times are."""
    X, y = np.array([[0.7]]), np.array([[-1.0]])
    f = np.linspace(-12, 12, 200_001)
    density = np.exp(250 * log_ndtr(-f) - 0.25 * f**2)
    density /= np.sum(density)
    mean = np.sum(f * density)
    wanted = np.array([mean, np.sum((f - mean) ** 2 * density)])
    got = [OnlineProcess(2.0 * RBF(1.0), Probit(1.0)) for _ in range(3)]
    got[0].learn(X, y, [250.0])
    got[1].learn(np.repeat(X, 250, axis=0), np.repeat(y, 250, axis=0))
    found = [np.ravel(each.posterior().mean_and_var(X)) for each in got[:2]]
    errors = [np.abs(each / wanted - 1.0) for each in found]
    assert np.all(errors[0] < errors[1])
    start = time.perf_counter()
    before = got[2].learn(X, y, [1e9])
    assert time.perf_counter() - start < 5.0
    assert np.all(np.isfinite(before.log_density))
    assert got[2].posterior().mean(X)[0, 0] < mean


class Twice(Probit):
    """A likelihood whose third average, and all after it, fail."""

    _calls = 0

    def compiled_site(self):
        return None

    def smoothed(self, y, mean, var):
        self._calls += 1
        found = super().smoothed(y, mean, var)
        return tuple(part + (np.nan if self._calls > 2 else 0.0) for part in found)


def test_a_row_that_fails_at_a_later_step_is_not_told_to_be_skipped():
    """What it has said before that is in the process, and in its sums."""
    whole = OnlineProcess(RBF(1.0), Twice(1.0))
    before = whole.learn(np.zeros((1, 1)), np.ones((1, 1)), [5.0])
    twice = OnlineProcess(RBF(1.0), Probit(1.0))
    wanted = twice.learn(np.zeros((1, 1)), np.ones((1, 1)), [2.0])
    np.testing.assert_allclose(before.log_density, wanted.log_density, rtol=1e-12)
    assert whole.log_evidence == pytest.approx(twice.log_evidence, rel=1e-12)
    np.testing.assert_allclose(whole.posterior().mean([[0.0]]), twice.posterior().mean([[0.0]]))
    again = whole.learn(np.zeros((1, 1)), np.ones((1, 1)), [5.0])
    assert np.isnan(again.log_density[0])


# --- other rules ----------------------------------------------------------------------------------

USUAL = {"tol": 1e-6, "novelty": "geometry", "criterion": "kl", "forget": 0.0}


def test_other_rules_from_now_on():
    """As a process that had them from the first row on, where they had no say before."""
    rng = np.random.default_rng(0)
    X, Y = 3.0 * rng.normal(size=(120, 2)), rng.normal(size=(120, 1))
    changed = OnlineProcess(RBF(1.0), Gaussian(0.1), max_basis=20)
    changed.learn(X[:20], Y[:20])
    assert changed.obey(50, **USUAL) == 0.0
    changed.learn(X[20:], Y[20:])
    other = OnlineProcess(RBF(1.0), Gaussian(0.1), max_basis=50)
    other.learn(X[:20], Y[:20])
    other.learn(X[20:], Y[20:])
    assert changed.n_basis == 50
    np.testing.assert_array_equal(changed.points, other.points)
    np.testing.assert_allclose(changed.posterior().mean(X), other.posterior().mean(X), atol=1e-9)
    loss = changed.obey(10, **(USUAL | {"criterion": "mean"}))
    assert changed.n_basis == 10 and changed.rules.criterion == 0
    assert loss > 0 and changed.projection_loss == pytest.approx(other.projection_loss + loss)
    changed.learn(X, Y)
    assert changed.n_basis == 10


def test_what_no_longer_forgets_knows_its_precision():
    rng = np.random.default_rng(0)
    X, Y = 3.0 * rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    process = OnlineProcess(RBF(1.0), Gaussian(0.1), max_basis=20, forget=0.1)
    process.learn(X, Y)
    process.learn(process.points[:3], Y[:3])  # which become no points, and P is of the past
    process.obey(20, **USUAL)
    A = process.arrays
    np.testing.assert_allclose(A.P[0, :20, :20] @ A.S[0, :20, :20], np.eye(20), atol=1e-8)


def test_a_tolerance_below_rounding_counts_as_more():
    """Of a point at a distance h from another 1 - exp(-h^2) is left."""
    for h, expected in ((5e-5, 1), (2e-4, 2)):
        process = OnlineProcess(RBF(1.0), Gaussian(0.1), tol=0.0)
        process.learn([[0.0], [h]], [[1.0], [0.0]])
        assert process.n_basis == expected


def test_pruning_far_down_leaves_all_that_is_derived_right():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (400, 2))
    process = OnlineProcess(RBF(1.0), Probit(1.0), max_basis=200)
    process.learn(X, np.sign(np.sin(2.0 * X[:, :1])))
    assert process.n_basis > 130
    process.prune(60)
    A, K = process.arrays, rbf(process.points, process.points, 1.0)
    Q, S, P = A.Q[:60, :60], A.S[0, :60, :60], A.P[0, :60, :60]
    np.testing.assert_allclose(Q @ K, np.eye(60), atol=1e-8)
    np.testing.assert_allclose(P @ S, np.eye(60), atol=1e-8)
    C = np.diag(Q @ S @ Q - Q)  # by which the next to go is chosen
    np.testing.assert_allclose(A.curvature[0, :60], C, atol=1e-6 * np.max(np.abs(C)))


# --- forgetting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("forget", [0.01, 0.2])
def test_forgetting_is_a_process_in_time_as_well(forget):
    X, Y, new = problem()
    got = process(25, 2, forget=forget)
    got.learn(X, Y)
    root, times = np.sqrt(1 - forget), np.arange(25)
    K = k(X, X) * root ** np.abs(times[:, None] - times)
    cross = k(new, X) * root ** (24 - times)
    mean, cov, evidence = exact(K, np.full(25, NOISE), Y, cross, k(new, new))
    check(got, new, mean, cov)
    assert got.log_evidence == pytest.approx(evidence, abs=1e-8)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
def test_forgetting_with_a_basis_that_is_full(criterion):
    X, Y, new = problem(n=40)
    got = process(8, 2, forget=0.05, criterion=criterion, tol=0.01)
    got.learn(X, Y)
    points = np.vstack([X, new])
    K = k(points, points)
    expected = Everywhere(K, np.zeros((47, 2)), K)
    for i in range(40):
        expected.learn(i, Y[i], gaussian_site(NOISE), 8, 0.01, criterion, 0.95)
    mean, cov = expected.functions()
    assert sorted(got.points[:, 0]) == sorted(points[expected.basis, 0])
    check(got, new, mean[40:], cov[40:, 40:])
    assert got.projection_loss == pytest.approx(expected.loss, rel=1e-7)


def test_pruning_what_forgets_makes_its_precision_anew_once(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = 3.0 * rng.normal(size=(100, 2)), rng.normal(size=(100, 1))
    process = OnlineProcess(RBF(1.0), Gaussian(0.1), max_basis=60, forget=0.1)
    process.learn(X, Y)
    one_by_one = OnlineProcess.from_state(process.to_state())
    count = []

    def counted(A):
        count.append(A.m)
        refresh(A)

    monkeypatch.setattr(online, "refresh", counted)
    loss = process.prune(10)
    assert count == [60]
    monkeypatch.undo()
    expected = sum(one_by_one.prune(n) for n in range(59, 9, -1))
    assert loss == pytest.approx(expected, rel=1e-8)
    np.testing.assert_array_equal(process.points, one_by_one.points)
