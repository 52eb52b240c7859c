"""Choices that look at the targets, against posteriors and losses from dense algebra."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import spearmanr

from mercer.kernels import RBF, Callable, Exponential, Linear, Matern
from mercer.selection import information_gain, matching_pursuit, pivoted_cholesky
from mercer.selection.targets import information_scores

from .dense import KERNELS, grown, problem, projection

CHOICES = {"information": information_gain, "pursuit": matching_pursuit}


@pytest.fixture(params=CHOICES)
def choose(request):
    return CHOICES[request.param]


def posterior(K, seen, y, noise):
    """Mean and covariance of f ~ N(0, K) given y ~ N(seen f, noise)."""
    gain = np.linalg.solve(seen @ K @ seen.T + np.diag(noise), seen @ K).T
    return gain @ y, K - gain @ seen @ K


def divergence(new, old):
    (m, C), (n, D) = new, old
    inverse = np.linalg.inv(D)
    logs = np.linalg.slogdet(D)[1] - np.linalg.slogdet(C)[1]
    return 0.5 * (np.trace(inverse @ C) - len(m) + (n - m) @ inverse @ (n - m) + logs)


def gains(K, y, noise, chosen, exact):
    """KL(new || old) for each row: all see the new variable (exact), or its own row only."""
    before = projection(K, chosen)
    old, out = posterior(K, before, y, noise), []
    for i in range(len(K)):
        if exact:
            after = projection(K, sorted({*chosen, i}))
        else:
            after = before.copy()
            after[i] = np.eye(len(K))[i]
        out.append(divergence(posterior(K, after, y, noise), old))
    return np.array(out)


def scores(kernel, X, y, noise, chosen):
    partial, fit = grown(kernel, X, y, noise, chosen)
    return information_scores(partial.residual / noise, fit.leverage, fit.residual)


# --- information gain -------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.05, 2.0, np.linspace(0.1, 2.0, 15)], ids=["", "much", "rows"])
@pytest.mark.parametrize("chosen", [[], [4], [0, 9, 3], list(range(9))], ids=len)
@pytest.mark.parametrize("kernel", [1.5 * Exponential(0.8), Matern([0.7, 2.0], nu=1.5)], ids=repr)
def test_the_score_is_the_divergence_it_stands_for(kernel, chosen, noise):
    X, y = problem(15)
    noise = np.broadcast_to(noise, 15)
    wanted = gains(kernel(X), y, noise, chosen, exact=False)
    np.testing.assert_allclose(scores(kernel, X, y, noise, chosen), wanted, rtol=1e-6, atol=1e-8)


def test_the_score_is_the_gain_of_rows_alone():
    """Where no other row shares what is left of a row, its inducing variable is seen by it only."""
    X, y = problem(12, 1)
    X[6:] += 100.0 * np.arange(1, 7)[:, None]
    noise, chosen, kernel = np.full(12, 0.1), [0, 1, 2, 3, 4, 5], Exponential(0.5)
    exact = gains(kernel(X), y, noise, chosen, exact=True)
    np.testing.assert_allclose(scores(kernel, X, y, noise, chosen), exact, atol=1e-9)
    assert np.all(exact[6:] > 0.5) and np.all(np.abs(exact[:6]) < 1e-9)


def test_the_score_ranks_rows_as_the_exact_gain_does():
    """The less rows share, the closer: left out is what others learn of the new variable."""
    X, y = problem(30, 2)
    agreement = []
    for width in (0.05, 0.3, 1.0):
        kernel, noise, chosen = Exponential(width), np.full(30, 0.3), [3, 11, 20]
        others = np.setdiff1d(np.arange(30), chosen)
        exact = gains(kernel(X), y, noise, chosen, exact=True)[others]
        got = scores(kernel, X, y, noise, chosen)[others]
        agreement.append(spearmanr(exact, got).statistic)
    assert agreement[0] > 0.95 and np.all(np.diff(agreement) < 0) and agreement[2] > 0.3


def test_of_all_candidates_that_of_the_largest_gain():
    X, y = problem(20)
    kernel, noise, chosen = Exponential(0.8), np.full(20, 0.2), []
    for row in information_gain(kernel, X, y, 8, 0.2, n_candidates=None).indices:
        assert row == np.argmax(gains(kernel(X), y, noise, chosen, exact=False))
        chosen.append(row)


def test_the_formula_of_the_paper():
    a, q, r = np.array([0.3, 2.0]), np.array([0.1, 0.7]), np.array([[1.5], [-0.2]])
    xi = 1.0 / (1.0 / a + 1.0 - q)
    kappa = xi * (1.0 + 2.0 / a)
    wanted = 0.5 * np.log(a) - 0.5 * (np.log(xi) + xi * (1 - kappa) * r[:, 0] ** 2 - kappa + 2)
    np.testing.assert_allclose(information_scores(a, q, r), wanted, rtol=1e-13)
    assert information_scores(np.zeros(1), q[:1], r[:1]) == 0.0


# --- matching pursuit -------------------------------------------------------------------------


def fall(K, y, noise, chosen, j):
    """By how much the loss falls as alpha_j alone changes, found by search."""

    def objective(alpha):
        return np.sum((y - K @ alpha) ** 2 / noise) + alpha @ K @ alpha

    alpha = np.zeros(len(y))
    if chosen:
        A = K[:, chosen]
        H = A.T @ (A / noise[:, None]) + K[np.ix_(chosen, chosen)]
        alpha[chosen] = np.linalg.solve(H, A.T @ (y / noise))
    found = minimize_scalar(lambda a: objective(alpha + a * np.eye(len(y))[j]), tol=1e-12)
    return objective(alpha) - found.fun


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("noise", [0.1, np.linspace(0.1, 2.0, 20)], ids=["", "rows"])
def test_each_step_is_that_of_a_search(kernel, noise):
    X, y = problem(20)
    K, chosen = kernel(X), []
    noise = np.broadcast_to(noise, 20)
    for row in matching_pursuit(kernel, X, y, 5, noise, n_candidates=None).indices:
        falls = [fall(K, y, noise, chosen, j) for j in range(20)]
        others = np.setdiff1d(np.arange(20), chosen)
        assert falls[row] == pytest.approx(np.max(np.array(falls)[others]), rel=1e-6)
        chosen.append(int(row))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_choice_by_its_formula(seed):
    """In noise so large that the penalty on a coefficient counts."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    kernel = RBF(0.5) * Linear(1.0)
    K = kernel(X)
    gains = (K @ y / 50.0) ** 2 / (np.sum(K**2, axis=0) / 50.0 + np.diagonal(K))
    chosen = matching_pursuit(kernel, X, y, 1, 50.0, None)
    assert chosen.indices[0] == np.argmax(gains)


def test_the_loss_falls_until_all_rows_are_in():
    X, y = problem(30)
    got = matching_pursuit(Exponential(), X, y, 30, 0.1, n_candidates=None)
    assert np.all(np.diff(got.losses) < 0) and len(got.losses) == 31
    whole = y @ np.linalg.solve(Exponential()(X) + 0.1 * np.eye(30), y)
    assert got.losses[-1] == pytest.approx(whole, rel=1e-12)
    # and by no less than its own coefficient alone would have made it
    chosen = got.indices.tolist()
    for k in range(10):
        alone = fall(Exponential()(X), y, np.full(30, 0.1), chosen[:k], chosen[k])
        assert got.losses[k] - got.losses[k + 1] >= alone * (1 - 1e-9)


def test_a_weight_is_a_noise_that_is_divided():
    X, y = problem(20)
    w = np.random.default_rng(1).integers(1, 4, 20)
    once = matching_pursuit(RBF(), X, y, 6, 0.1 / w, n_candidates=None)
    often = matching_pursuit(
        RBF(), np.repeat(X, w, axis=0), np.repeat(y, w), 6, 0.1, n_candidates=None
    )
    np.testing.assert_array_equal(np.repeat(X, w, axis=0)[often.indices], X[once.indices])


def test_they_fit_better_than_a_choice_that_knows_no_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-4.0, 4.0, (500, 1))
    y = np.where(X[:, 0] > 2.0, np.sin(8.0 * X[:, 0]), 0.0) + 0.05 * rng.normal(size=500)
    kernel = RBF(0.3)
    _, blind = grown(kernel, X, y, 0.0025, pivoted_cholesky(kernel, X, 12).indices)
    loss = {c: CHOICES[c](kernel, X, y, 12, 0.0025, rng=0).losses[-1] for c in CHOICES}
    assert max(loss.values()) < 0.1 * blind.losses[-1]


# --- both -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 33, 40])
def test_the_factor_and_the_loss(choose, kernel, m):
    X, y = problem()
    got = choose(kernel, X, y, m, 0.2, rng=0)
    K, i = kernel(X), got.indices
    Q = projection(K, i) @ K
    np.testing.assert_allclose(got.V @ got.V.T, Q, atol=1e-7 * np.max(K))
    np.testing.assert_allclose(got.residual, np.diagonal(K - Q), atol=1e-7 * np.max(K))
    assert i.shape == (len(got.losses) - 1,) == (len(got.traces) - 1,) and len(set(i)) == len(i)
    wanted = y @ np.linalg.solve(Q + 0.2 * np.eye(40), y)
    assert got.losses[-1] == pytest.approx(wanted, rel=1e-6)


def test_outputs_add_up(choose):
    X, y = problem()
    one = choose(RBF(), X, y, 6, 0.2, rng=0)
    for Y, factor in ((y[:, None], 1), (np.column_stack([y, y]), 2)):
        got = choose(RBF(), X, Y, 6, 0.2, rng=0)
        assert got.indices.tolist() == one.indices.tolist()
        np.testing.assert_allclose(got.losses, factor * one.losses)
    other = choose(RBF(), X, np.column_stack([y, y[::-1]]), 6, 0.2, rng=0)
    apart = one.losses[0] + np.sum(y**2) / 0.2
    assert other.losses[0] == pytest.approx(apart)


def test_candidates_are_drawn_by_the_seed(choose):
    X, y = problem(300)
    runs = [choose(RBF(0.3), X, y, 8, 0.1, 5, seed) for seed in (1, 1, 2)]
    assert runs[0].indices.tolist() == runs[1].indices.tolist() != runs[2].indices.tolist()
    few = choose(RBF(0.3), X, y, 3, 0.1, 5, np.random.default_rng(1))
    assert few.indices.tolist() == runs[0].indices[:3].tolist()
    first = [choose(RBF(), X, y, 1, 0.1, 1, seed).indices[0] for seed in range(40)]
    assert len(set(first)) > 30


def test_rows_that_repeat_are_chosen_once(choose):
    X, y = problem(6)
    got = choose(RBF(), np.repeat(X, 5, axis=0), np.repeat(y, 5), 30, 0.1, rng=0)
    assert len(got.indices) == 6 and got.traces[-1] == 0.0


def test_odd_rows(choose):
    X, y = problem()
    assert len(choose(Linear(), X, y, 20, 0.1).indices) == 2
    assert choose(RBF(), [[1.0]], [2.0], 5, 0.5).indices.tolist() == [0]
    constant = np.column_stack([X[:, 0], np.ones(40)])
    kept = choose(RBF(), X[:, :1], y, 9, 0.1, rng=0).indices
    assert choose(RBF(), constant, y, 9, 0.1, rng=0).indices.tolist() == kept.tolist()
    silent = choose(RBF(), X, np.zeros(40), 4, 0.1, rng=0)
    assert len(silent.indices) == 4 and np.all(silent.losses == 0.0)
    nothing = choose(Linear(), np.zeros((4, 2)), np.ones(4), 3, 0.1)
    assert nothing.indices.shape == (0,) and nothing.losses == pytest.approx([40.0])


def test_rows_of_any_kind(choose):
    words = ["tree", "trees", "stone", "tones", "free"]
    kernel = Callable(lambda a, b: float(len(set(a) & set(b))))
    assert len(choose(kernel, words, np.arange(5.0), 3, 0.1).indices) == 3


def test_nothing_of_the_size_of_the_matrix_is_made(choose):
    X, y = problem(4000)
    tracemalloc.start()
    choose(RBF(), X, y, 12, 0.1, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.12 * 8 * 4000**2


def test_inputs_are_only_read(choose):
    X, y = problem()
    for array in (X, y):
        array.setflags(write=False)
    first, second = (choose(RBF(), X, y, 9, 0.1, rng=0) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 0}, "m must be a whole number of at least 1, got 0"),
        ({"n_candidates": 0}, "n_candidates must be a whole number"),
        ({"noise": 0.0}, "noise must be a positive variance, or 40 of them"),
        ({"noise": np.ones(3)}, "noise must be a positive variance, or 40 of them"),
        ({"noise": None}, "noise must be a positive variance, or 40 of them"),
        ({"noise": np.nan}, "noise must be a positive variance, or 40 of them"),
        ({"y": np.ones(3)}, r"y must have shape \(40,\) or \(40, P\), got \(3,\)"),
        ({"y": np.ones((40, 0))}, r"y must have shape \(40,\)"),
        ({"y": np.full(40, np.nan)}, "y holds NaN or infinity"),
        ({"y": ["a"] * 40}, "y must be an array of numbers"),
        ({"X": np.empty((0, 2)), "y": np.empty(0)}, "at least one row is wanted"),
    ],
)
def test_bad_arguments(choose, change, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        choose(**{"kernel": RBF(), "X": X, "y": y, "m": 3, "noise": 0.1} | change)
