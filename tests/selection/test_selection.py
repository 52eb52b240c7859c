"""Choices of rows against dense algebra that knows nothing of partial factorisations."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError
from mercer.kernels import RBF, Callable, Constant, Exponential, Linear, Matern, Precomputed
from mercer.selection import (
    matching_pursuit,
    nystrom,
    pivoted_cholesky,
    random_subset,
    sparse_greedy_matrix,
)


def inputs(n=40, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def trace_left(K, chosen):
    """The trace of K less its projection on some of its columns, by least squares."""
    if not len(chosen):
        return np.trace(K)
    A, B = K[:, chosen], K[np.ix_(chosen, chosen)]
    return np.trace(K - A @ np.linalg.solve(B, A.T))


def pivots(K, m):
    """Gaussian elimination of the whole matrix, the largest diagonal first."""
    S, chosen = K.copy(), []
    for _ in range(m):
        i = int(np.argmax(np.diagonal(S)))
        S = S - np.outer(S[:, i], S[:, i]) / S[i, i]
        chosen.append(i)
    return chosen


GREEDY = {
    "pivoted": pivoted_cholesky,
    "sparse greedy": lambda k, X, m, **options: sparse_greedy_matrix(k, X, m, rng=0, **options),
}


@pytest.fixture(params=GREEDY)
def choose(request):
    return GREEDY[request.param]


KERNELS = [2.0 * RBF(0.9), Matern([0.7, 2.0], nu=1.5), 3.0 + Exponential(0.5) * Linear(1.0)]


# --- which rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pivots_are_those_of_elimination(kernel):
    X = inputs()
    assert pivoted_cholesky(kernel, X, 12).indices.tolist() == pivots(kernel(X), 12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_of_all_candidates_that_which_leaves_least(kernel):
    X = inputs(25)
    K, chosen = kernel(X), []
    for row in sparse_greedy_matrix(kernel, X, 6, n_candidates=25).indices:
        others = [i for i in range(25) if i not in chosen]
        left = [trace_left(K, [*chosen, i]) for i in others]
        assert row == others[int(np.argmin(left))]
        chosen.append(row)


def test_few_candidates_are_drawn_anew_each_time():
    X, kernel = inputs(300, 1), RBF(0.3)
    runs = [sparse_greedy_matrix(kernel, X, 8, n_candidates=5, rng=seed) for seed in (1, 1, 2)]
    assert runs[0].indices.tolist() == runs[1].indices.tolist() != runs[2].indices.tolist()
    generator = np.random.default_rng(1)
    again = sparse_greedy_matrix(kernel, X, 8, n_candidates=5, rng=generator)
    assert again.indices.tolist() == runs[0].indices.tolist()


def test_one_candidate_is_a_random_choice():
    X = inputs(50)
    first = [sparse_greedy_matrix(RBF(), X, 1, n_candidates=1, rng=s).indices[0] for s in range(40)]
    assert len(set(first)) > 15


def test_the_best_of_59_is_among_the_best_twentieth():
    X = inputs(400)
    K = RBF(0.5)(X)
    gains = np.sum(K**2, axis=0) / np.diagonal(K)
    line = np.quantile(gains, 0.95)
    first = [sparse_greedy_matrix(RBF(0.5), X, 1, rng=s).indices[0] for s in range(100)]
    assert np.mean(gains[first] >= line) > 0.9
    assert 0.95**59 < 0.05 < 0.95**58


def test_greedy_choices_leave_less_than_chance():
    """In a crowd with outliers the sparse greedy choice does at once, pivoting in the end."""
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_t(3, size=(600, 2)), RBF(1.0)
    K = kernel(X)
    chance = {
        m: np.mean([trace_left(K, random_subset(X, m, s)) for s in range(5)]) for m in (8, 60)
    }
    greedy = sparse_greedy_matrix(kernel, X, 60, rng=0).traces
    pivoted = pivoted_cholesky(kernel, X, 60).traces
    best = np.cumsum(np.linalg.eigvalsh(K))[::-1]  # what m eigenvectors leave, m = 1, 2, ...
    assert best[8] < greedy[8] < 0.8 * chance[8] < chance[8] < pivoted[8]
    assert best[60] < greedy[60] < pivoted[60] < 600


def test_chance():
    X = np.zeros((30, 2))
    chosen = random_subset(X, 30, rng=0)
    assert sorted(chosen) == list(range(30)) and chosen.dtype == np.intp
    assert random_subset(X, 7, rng=0).tolist() == chosen[:7].tolist()
    assert random_subset(X, 7, rng=1).tolist() != chosen[:7].tolist()
    often = np.bincount(np.concatenate([random_subset(X, 3, s) for s in range(3000)]))
    assert np.all(np.abs(often - 300) < 6 * np.sqrt(300))


# --- the factor -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 10, 33])
def test_the_factor_is_that_of_the_projection(choose, kernel, m):
    X = inputs(50)
    chosen = choose(kernel, X, m)
    K, i = kernel(X), chosen.indices
    assert i.shape == (m,) and len(set(i)) == m
    wanted = K[:, i] @ np.linalg.solve(K[np.ix_(i, i)], K[i])
    np.testing.assert_allclose(chosen.V @ chosen.V.T, wanted, atol=1e-9 * np.max(K))
    triangle = chosen.V[i]
    np.testing.assert_array_equal(triangle, np.tril(triangle))
    np.testing.assert_allclose(triangle, np.linalg.cholesky(K[np.ix_(i, i)]), atol=1e-7)
    left = np.diagonal(K - wanted)
    np.testing.assert_allclose(chosen.residual, left, atol=1e-10 * np.max(K))
    assert np.all(chosen.residual >= 0) and np.all(chosen.residual[i] == 0)
    wanted_traces = [trace_left(K, i[:j]) for j in range(m + 1)]
    np.testing.assert_allclose(chosen.traces, wanted_traces, atol=1e-9 * np.trace(K))
    assert np.all(np.diff(chosen.traces) < 0)


def test_of_a_larger_choice_a_smaller_is_the_beginning(choose):
    X = inputs(80)
    many, few = choose(RBF(0.8), X, 70), choose(RBF(0.8), X, 9)
    assert many.indices[:9].tolist() == few.indices.tolist()
    np.testing.assert_array_equal(many.V[:, :9], few.V)  # though the array has grown meanwhile
    np.testing.assert_array_equal(many.traces[:10], few.traces)


def test_all_rows_are_the_cholesky_factor(choose):
    X = inputs(30)
    chosen = choose(Exponential(), X, 1000)
    assert sorted(chosen.indices) == list(range(30))
    np.testing.assert_allclose(chosen.V @ chosen.V.T, Exponential()(X), atol=1e-13)
    assert chosen.traces[-1] == 0.0


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-6])
def test_a_tolerance_is_of_the_trace(choose, tol):
    X = inputs(60)
    chosen = choose(5.0 * RBF(), X, 60, tol=tol)
    limit = tol * 5.0 * 60
    assert chosen.traces[-1] <= limit < chosen.traces[-2]
    left = trace_left(5.0 * RBF()(X), chosen.indices)
    assert left == pytest.approx(chosen.traces[-1], rel=1e-6)


def test_nothing_of_the_size_of_the_matrix_is_made(choose):
    X = inputs(4000)
    tracemalloc.start()
    choose(RBF(), X, 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 4000**2


# --- the projection on given points -----------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (30, 1), (30, 7), (1, 7), (5, 12)])
def test_projection_by_dense_formulas(kernel, n, m):
    X, Z = inputs(n), inputs(m, seed=1)
    got = nystrom(kernel, X, Z)
    K = kernel(X, Z)
    wanted = K @ np.linalg.solve(kernel(Z), K.T)
    assert got.V.shape == (n, m) and got.V.flags.c_contiguous and got.jitter == 0.0
    np.testing.assert_allclose(got.V @ got.V.T, wanted, atol=1e-9)
    np.testing.assert_allclose(np.tril(got.L), np.linalg.cholesky(kernel(Z)), atol=1e-10)
    np.testing.assert_allclose(got.residual, kernel.diag(X) - np.diagonal(wanted), atol=1e-9)


def test_projection_on_chosen_rows_is_their_factor(choose):
    X = inputs(50)
    chosen = choose(KERNELS[0], X, 15)
    got = nystrom(KERNELS[0], X, X[chosen.indices])
    np.testing.assert_allclose(got.V, chosen.V, atol=1e-7)
    np.testing.assert_allclose(got.residual, chosen.residual, atol=1e-12)


def test_jitter_is_reported():
    X = inputs(10)
    twice = nystrom(RBF(), X, X[[0, 0, 1]])
    assert twice.jitter == pytest.approx(1e-10)
    once = nystrom(RBF(), X, X[[0, 1]])
    np.testing.assert_allclose(twice.V @ twice.V.T, once.V @ once.V.T, atol=1e-8)
    given = nystrom(RBF(), X, X[[0, 1]], jitter=0.25)
    assert given.jitter == 0.25
    K = RBF()(X, X[:2])
    wanted = K @ np.linalg.solve(RBF()(X[:2]) + 0.25 * np.eye(2), K.T)
    np.testing.assert_allclose(given.V @ given.V.T, wanted, atol=1e-12)


# --- odd rows ---------------------------------------------------------------------------------


def test_rows_that_repeat_are_chosen_once(choose):
    X = np.repeat(inputs(6), 5, axis=0)
    chosen = choose(RBF(), X, 30)
    assert len(chosen.indices) == 6 == len({tuple(x) for x in X[chosen.indices]})
    assert chosen.traces[-1] == 0.0


def test_a_kernel_of_finite_rank_is_used_up(choose):
    X = inputs(40, 3)
    assert len(choose(Linear(), X, 20).indices) == 3
    assert len(choose(Linear() + Constant(2.0), X, 20).indices) == 4
    assert len(choose(Constant(2.0), X, 20).indices) == 1


def test_a_smooth_kernel_is_used_up(choose):
    """Rows of which little more than rounding is left are no proof that K is no covariance."""
    X = inputs(4000, 1)
    chosen = choose(RBF(0.3), X, 70)
    assert np.max(chosen.residual) < 1e-10 and np.all(np.diff(chosen.traces) <= 0)


def test_rows_without_variance(choose):
    X = np.array([[0.0], [1e-8], [0.0], [3.0]])
    chosen = choose(Linear(), X, 4)
    assert chosen.indices.tolist() == [3] and np.all(np.isfinite(chosen.V))
    nothing = choose(Linear(), np.zeros((4, 2)), 3)
    assert nothing.indices.shape == (0,) and nothing.V.shape == (4, 0)
    assert nothing.traces.tolist() == [0.0]


@pytest.mark.parametrize("kernel", [Linear(), Linear() + RBF(), Linear(1.0) ** 2], ids=repr)
def test_rows_of_any_size(choose, kernel):
    """From 1e-8 to 1e8: rounding of the large is far more than all of the small."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 4)) * 10.0 ** rng.uniform(-8, 8, (20, 1))
        chosen = choose(kernel, X, 20)
        diagonal = kernel.diag(X)
        assert len(chosen.indices) >= 1 and np.all(np.isfinite(chosen.V))
        assert np.all((chosen.residual >= 0) & (chosen.residual <= diagonal))
        assert np.all(np.sum(chosen.V**2, axis=1) <= diagonal * (1 + 1e-12))
        assert np.all(np.diff(chosen.traces) <= 0)


def test_rows_of_any_kind(choose):
    words = ["tree", "trees", "stone", "tones", "free"]

    def letters(a, b):
        return float(len(set(a) & set(b)))

    chosen = choose(Callable(letters), words, 3)
    K = np.array([[letters(a, b) for b in words] for a in words])
    assert chosen.traces[-1] == pytest.approx(trace_left(K, chosen.indices))
    numbers = np.arange(5.0)[:, None]
    assert choose(Precomputed(K), numbers, 3).indices.tolist() == chosen.indices.tolist()


@given(
    n=st.integers(1, 25),
    d=st.integers(1, 3),
    m=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    size=st.floats(-8, 8),
    width=st.floats(-3, 4),
    greedy=st.booleans(),
    repeated=st.booleans(),
)
@example(n=9, d=1, m=8, seed=2403, size=0.0, width=0.0, greedy=False, repeated=False)
@example(n=12, d=2, m=3, seed=2, size=1.7, width=1.6953125, greedy=True, repeated=True)
@settings(max_examples=120, deadline=None)
def test_any_rows(n, d, m, seed, size, width, greedy, repeated):
    X = inputs(n, d, seed)
    if repeated:
        X[n // 2 :] = X[0]
    X[:, 0] = 1.0 if repeated else X[:, 0]
    kernel = 10.0**size * RBF(10.0**width)
    choose = GREEDY["sparse greedy" if greedy else "pivoted"]
    chosen = choose(kernel, X, m)
    k = len(chosen.indices)
    assert 1 <= k <= min(n, m) and len(set(chosen.indices)) == k
    K = kernel(X)
    left = K - chosen.V @ chosen.V.T
    unit = 10.0**size
    # a row of the sparse greedy choice may have 1e-4 of the variance of others, and then multiplies
    # their rounding by as much at each of k steps
    rounding = 1e-13 * unit * n * (100 * k if greedy else 1)
    assert np.linalg.eigvalsh(left)[0] > -rounding
    np.testing.assert_allclose(np.diagonal(left), chosen.residual, atol=rounding)
    assert np.all(np.diff(chosen.traces) <= 0)
    if k < min(n, m):
        assert np.max(np.abs(left)) < rounding


# --- what is no rounding and what is ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("width", [2.2, 5.0, 10.0])
def test_rounding_that_rows_pass_on_is_not_taken_for_an_indefinite_kernel(width, seed):
    """Many rows that are all but dependent: what is left of some is rounding of others'."""
    X, kernel = np.random.default_rng(seed + 36).normal(size=(800, 1)), RBF(width)
    for chosen in (
        sparse_greedy_matrix(kernel, X, 60, rng=seed + 36),
        matching_pursuit(kernel, X, np.sin(X[:, 0]), 60, 0.05, rng=seed + 36),
    ):
        left = kernel(X) - chosen.V @ chosen.V.T
        assert np.max(np.abs(left)) < 1e-5
        assert np.all(chosen.residual >= 0)


# --- what is refused --------------------------------------------------------------------------


def test_a_matrix_that_is_no_covariance(choose):
    rows = np.arange(3.0)[:, None]
    K = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.9], [0.1, 0.9, 1.0]])
    assert np.linalg.eigvalsh(K)[0] < 0
    with pytest.raises(NotPositiveDefiniteError, match=r"is no covariance.*variance of -"):
        choose(Precomputed(K, is_mercer=False), rows, 3)
    with pytest.raises(NotPositiveDefiniteError, match="negative or infinite values"):
        choose(Precomputed(-K, is_mercer=False), rows, 3)


@pytest.mark.parametrize("m", [0, -1, 2.0, True, None, "3"])
def test_numbers_of_rows_that_are_none(choose, m):
    for function in (lambda: choose(RBF(), inputs(), m), lambda: random_subset(inputs(), m)):
        with pytest.raises(ValueError, match="m must be a whole number of at least 1, got"):
            function()


def test_bad_arguments(choose):
    for tol in (-1e-3, 1.0, np.nan, True):
        with pytest.raises(ValueError, match="tol must be at least 0 and less than 1, got"):
            choose(RBF(), inputs(), 3, tol=tol)
    with pytest.raises(ValueError, match="n_candidates must be a whole number"):
        sparse_greedy_matrix(RBF(), inputs(), 3, n_candidates=0)
    with pytest.raises(ValueError, match="NaN or infinity"):
        choose(RBF(), np.full((3, 2), np.nan), 2)
    with pytest.raises(ValueError, match="at least one row is wanted"):
        choose(RBF(), np.empty((0, 2)), 2)
    with pytest.raises(ValueError, match=r"kernel must be one of mercer\.kernels.*got an array"):
        choose(inputs(), RBF(), 2)
    with pytest.raises(ValueError, match=r"kernel must be one of mercer\.kernels.*got None"):
        nystrom(None, inputs(), inputs()[:2])
    with pytest.raises(ValueError, match="at most the number of rows, 40, got 41"):
        random_subset(inputs(), 41)
    with pytest.raises(ValueError, match="at least one basis point is wanted"):
        nystrom(RBF(), inputs(), np.empty((0, 2)))
    with pytest.raises(ValueError, match="same number of columns"):
        nystrom(RBF(), inputs(), np.zeros((2, 3)))


def test_inputs_are_only_read(choose):
    X = inputs()
    X.setflags(write=False)
    first, second = choose(RBF(), X, 9), choose(RBF(), X, 9)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("variance", [1e-165, 1e160])
def test_variances_whose_squares_are_no_numbers(variance, recwarn):
    X = np.random.default_rng(0).normal(size=(30, 2))
    wanted = pivoted_cholesky(RBF(), X, 5).indices
    np.testing.assert_array_equal(pivoted_cholesky(variance * RBF(), X, 5).indices, wanted)
    assert not recwarn.list
