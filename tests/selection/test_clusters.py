"""k-means against loops over rows and centres."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.selection import clusters as module
from mercer.selection import kmeans


def inputs(n=60, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def distances(X, centres):
    return np.array([[np.sum((x - c) ** 2) for c in centres] for x in X])


def lloyd(X, centres, iterations, weights=None):
    """Each centre to the mean of its rows, in so many words; no cluster may become empty."""
    w = np.ones(len(X)) if weights is None else weights
    for _ in range(iterations):
        own = np.argmin(distances(X, centres), axis=1)
        centres = np.array([np.average(X[own == j], axis=0, weights=w[own == j])
                            for j in range(len(centres))])  # fmt: skip
    return centres, np.argmin(distances(X, centres), axis=1)


def loss(X, clusters):
    return np.sum((X - clusters.centres[clusters.assignment]) ** 2)


# --- the algorithm ----------------------------------------------------------------------------


@pytest.mark.parametrize("iterations", [1, 3, 10])
@pytest.mark.parametrize(("m", "d"), [(1, 2), (5, 1), (8, 3)])
def test_iterations_are_those_of_lloyd(iterations, m, d):
    X = inputs(d=d)
    start = kmeans(X, m, iterations=0, rng=3)
    got = kmeans(X, m, iterations=iterations, rng=3)
    centres, own = lloyd(X, start.centres, iterations)
    np.testing.assert_allclose(got.centres, centres, atol=1e-12)
    assert got.assignment.tolist() == own.tolist() and got.assignment.dtype == np.intp


def test_without_iterations_centres_are_rows():
    X = inputs()
    got = kmeans(X, 12, iterations=0, rng=0)
    away = distances(X, got.centres)
    np.testing.assert_allclose(np.min(away, axis=0), 0.0, atol=1e-28)
    assert len(set(np.argmin(away, axis=0))) == 12
    assert got.assignment.tolist() == np.argmin(away, axis=1).tolist()


def test_rows_are_drawn_by_their_squared_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    often = np.zeros((3, 3))
    for seed in range(1500):
        first, second = kmeans(X, 2, iterations=0, rng=seed).centres[:, 0].round().astype(int)
        often[[0, 1, None, 2][first], [0, 1, None, 2][second]] += 1
    wanted = np.array([[0, 0.1, 0.9], [0.2, 0, 0.8], [9 / 13, 4 / 13, 0]]) / 3
    assert np.all(np.abs(often / 1500 - wanted) < 5 * np.sqrt(wanted / 1500) + 1e-12)


def test_iterations_reduce_the_loss_and_end():
    X = inputs(300)
    losses = [loss(X, kmeans(X, 20, iterations=i, rng=1)) for i in (0, 1, 2, 5)]
    assert np.all(np.diff(losses) < 0)
    many, more = (kmeans(X, 20, iterations=i, rng=1) for i in (200, 100_000_000))
    np.testing.assert_array_equal(many.centres, more.centres)


def test_separate_crowds_are_found():
    middles = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    X = np.repeat(middles, 25, axis=0) + inputs(100)
    got = kmeans(X, 4, rng=0)
    assert sorted(np.bincount(got.assignment)) == [25] * 4
    assert np.max(np.min(distances(middles, got.centres), axis=1)) < 1.0


def test_the_seed_decides():
    X = inputs()
    one, two, three = (kmeans(X, 7, rng=s) for s in (1, 1, np.random.default_rng(1)))
    np.testing.assert_array_equal(one.centres, two.centres)
    np.testing.assert_array_equal(one.centres, three.centres)
    assert not np.array_equal(one.centres, kmeans(X, 7, rng=2).centres)


def test_any_blocks_give_the_same(monkeypatch):
    X = inputs(500)
    whole = kmeans(X, 9, rng=0)
    monkeypatch.setattr(module, "_ENTRIES", 100)
    monkeypatch.setattr(module, "_ROWS", 7)
    cut = kmeans(X, 9, rng=0)
    np.testing.assert_allclose(cut.centres, whole.centres, atol=1e-12)
    np.testing.assert_array_equal(cut.assignment, whole.assignment)


# --- scales and weights -----------------------------------------------------------------------


@pytest.mark.parametrize("scales", [0.3, [0.1, 20.0]])
def test_scales_divide_the_columns(scales):
    X = inputs()
    got, wanted = kmeans(X, 6, scales, rng=0), kmeans(X / scales, 6, rng=0)
    np.testing.assert_allclose(got.centres, wanted.centres * scales, atol=1e-12)
    assert got.assignment.tolist() == wanted.assignment.tolist()


def test_a_column_of_a_large_scale_does_not_count():
    X = np.array([[0.0, 0.0], [0.1, 9.0], [5.0, 0.0], [5.1, 9.0]])
    own = kmeans(X, 2, [1.0, 1e6], rng=0).assignment
    assert own[0] == own[1] != own[2] == own[3]


@pytest.mark.parametrize("size", [1e-200, 1e-12, 1e12, 1e200])
def test_inputs_of_any_size(size):
    X = inputs()
    got, wanted = kmeans(size * X, 6, rng=0), kmeans(X, 6, rng=0)
    np.testing.assert_allclose(got.centres / size, wanted.centres, rtol=1e-9)


def test_inputs_far_from_the_origin():
    X = inputs()
    got, wanted = kmeans(1e7 + X, 6, rng=0), kmeans(X, 6, rng=0)
    np.testing.assert_allclose(got.centres - 1e7, wanted.centres, atol=1e-7)


def test_weights_count_rows():
    X, w = inputs(), np.random.default_rng(1).integers(1, 4, 60).astype(float)
    np.testing.assert_allclose(
        kmeans(X, 1, weights=w, rng=0).centres, np.average(X, axis=0, weights=w)[None], atol=1e-12
    )
    start = kmeans(X, 5, iterations=0, weights=w, rng=0).centres
    got = kmeans(X, 5, iterations=4, weights=w, rng=0)
    np.testing.assert_allclose(got.centres, lloyd(X, start, 4, w)[0], atol=1e-12)
    # by the same start, what comes of rows that are repeated
    repeated = np.repeat(X, w.astype(int), axis=0)
    np.testing.assert_allclose(got.centres, lloyd(repeated, start, 4)[0], atol=1e-12)


def test_rows_without_weight():
    X = np.vstack([inputs(30), 100.0 + inputs(30)])
    w = np.repeat([1.0, 0.0], 30)
    got = kmeans(X, 4, weights=w, rng=0)
    assert got.centres.shape == (4, 2) and np.max(got.centres) < 10
    assert got.assignment.tolist() == np.argmin(distances(X, got.centres), axis=1).tolist()


# --- odd rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [12, 13, 1000])
def test_as_many_clusters_as_rows(m):
    X = inputs(12)
    got = kmeans(X, m, rng=0)
    assert sorted(got.assignment) == list(range(12))
    np.testing.assert_allclose(got.centres[got.assignment], X, atol=1e-14)


def test_rows_that_repeat_are_one_centre():
    X = np.repeat(inputs(6), 5, axis=0)
    got = kmeans(X, 20, rng=0)
    assert got.centres.shape == (6, 2)
    np.testing.assert_allclose(got.centres[got.assignment], X, atol=1e-14)


@pytest.mark.parametrize("X", [[[3.0, -1.0]], [[3.0, -1.0]] * 9, [[3.0]]], ids=len)
def test_one_row(X):
    got = kmeans(X, 4, rng=0)
    np.testing.assert_array_equal(got.centres, X[:1])
    assert got.assignment.tolist() == [0] * len(X)


def test_a_constant_column():
    X = np.column_stack([inputs(d=1), np.full(60, 7.0)])
    got = kmeans(X, 5, rng=0)
    np.testing.assert_array_equal(got.centres[:, 1], 7.0)
    np.testing.assert_allclose(got.centres[:, :1], kmeans(X[:, :1], 5, rng=0).centres, atol=1e-13)


def test_a_centre_without_rows_moves_to_the_farthest():
    A = np.array([[0.0], [1.0], [2.0], [9.0], [9.0]])
    centres, w = np.array([[1.0], [50.0], [60.0], [1.0]]), np.ones(5)
    now = module._assign(A, centres, w)
    assert now.sizes.tolist() == [5, 0, 0, 0]
    moved = module._moved(A, centres, w, now)
    assert moved[:, 0].tolist() == [4.2, 9.0, 0.0, 2.0]  # no two in the same place
    moved, own = module._filled(A, centres, w, now)
    assert sorted(set(own)) == [0, 1, 2, 3] and moved[own[3], 0] == 9.0
    # there are but four places: one of the centres has to go
    more, own = module._filled(A, np.vstack([centres, [[70.0]]]), w, now)
    assert len(more) == 4 and sorted(set(own)) == [0, 1, 2, 3]


@given(
    n=st.integers(1, 40),
    m=st.integers(1, 45),
    seed=st.integers(0, 10_000),
    kinds=st.integers(1, 60),
    iterations=st.integers(0, 12),
    weighted=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_rows(n, m, seed, kinds, iterations, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(kinds, 2)).round(1)[rng.integers(0, kinds, n)]
    w = rng.integers(1, 4, n) if weighted else None
    got = kmeans(X, m, iterations=iterations, weights=w, rng=seed)
    different = len(np.unique(X, axis=0))
    assert len(got.centres) == min(m, different)
    assert np.all(np.bincount(got.assignment, minlength=len(got.centres)) > 0)
    away = distances(X, got.centres)
    np.testing.assert_allclose(away[np.arange(n), got.assignment], away.min(axis=1), atol=1e-12)


# --- blocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1, 7, 25, 60, 1000])
def test_no_block_is_larger_than_allowed(largest):
    X = np.vstack([inputs(150), 30.0 + inputs(20)])
    free, got = kmeans(X, 4, rng=0), kmeans(X, 4, largest=largest, rng=0)
    sizes = np.bincount(got.assignment, minlength=len(got.centres))
    assert np.max(sizes) <= largest and np.min(sizes) >= 1
    before = np.bincount(free.assignment)
    assert len(sizes) == np.sum(-(-before // largest))  # as few as will do
    for j in range(len(sizes)):
        rows = got.assignment == j
        assert len(set(free.assignment[rows])) == 1
        whole = free.assignment[rows][0]
        if before[whole] > largest:
            np.testing.assert_allclose(got.centres[j], X[rows].mean(axis=0), atol=1e-12)
            assert sizes[j] >= before[whole] // -(-before[whole] // largest) - 1
        else:
            np.testing.assert_array_equal(got.centres[j], free.centres[whole])


def test_blocks_are_cut_across_the_longest_direction():
    X = np.column_stack([np.arange(40.0) % 4 * 0.1, np.arange(40.0)])
    got = kmeans(X, 1, largest=20, rng=0)
    assert got.assignment.tolist() == [0] * 20 + [1] * 20


def test_copies_of_a_row_are_cut_too():
    got = kmeans(np.ones((10, 2)), 3, largest=4, rng=0)
    assert sorted(np.bincount(got.assignment)) == [3, 3, 4]
    np.testing.assert_array_equal(got.centres, np.ones((3, 2)))


# --- size, and what is refused ----------------------------------------------------------------


def test_no_matrix_of_distances_is_made():
    X = inputs(40_000, 3)
    tracemalloc.start()
    kmeans(X, 300, iterations=1, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.35 * 8 * 40_000 * 300


def test_inputs_are_only_read():
    X, w = inputs(), np.ones(60)
    X.setflags(write=False)
    w.setflags(write=False)
    kmeans(X, 5, weights=w, largest=6, rng=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 0}, "m must be a whole number of at least 1, got 0"),
        ({"m": 2.0}, "m must be a whole number"),
        ({"iterations": -1}, "iterations must be a whole number"),
        ({"iterations": 1.5}, "iterations must be a whole number"),
        ({"largest": 0}, "largest must be a whole number"),
        ({"scales": 0.0}, "scales must be a positive number, or 2 of them"),
        ({"scales": [1.0, 2.0, 3.0]}, "scales must be a positive number, or 2 of them"),
        ({"scales": [1.0, np.nan]}, "scales must be a positive number, or 2 of them"),
        ({"weights": np.ones(3)}, "weights must be 60 numbers of at least 0"),
        ({"weights": np.zeros(60)}, "not all 0"),
        ({"weights": -np.ones(60)}, "weights must be 60 numbers of at least 0"),
        ({"X": np.zeros(5)}, "at least one of each, got shape"),
        ({"X": np.zeros((0, 2))}, "at least one of each, got shape"),
        ({"X": np.full((4, 2), np.inf)}, "X holds NaN or infinity"),
        ({"X": [["a"], ["b"]]}, "X must be an array of numbers"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        kmeans(**{"X": inputs(), "m": 3, "rng": 0} | change)
