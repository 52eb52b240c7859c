"""Choices by name."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Callable
from mercer.selection import (
    STRATEGIES,
    information_gain,
    kmeans,
    matching_pursuit,
    pivoted_cholesky,
    random_subset,
    select,
    sparse_greedy_matrix,
)

NAMES = ["random", "kmeans", "cholesky", "greedy", "information", "pursuit"]


def problem(n=50):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * [1.0, 10.0]
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_names_stand_for_functions():
    X, y = problem()
    kernel = RBF([1.0, 10.0])
    wanted = {
        "random": X[random_subset(X, 6, 3)],
        "kmeans": kmeans(X, 6, np.std(X, axis=0), rng=3).centres,
        "cholesky": X[pivoted_cholesky(kernel, X, 6).indices],
        "greedy": X[sparse_greedy_matrix(kernel, X, 6, 11, 3).indices],
        "information": X[information_gain(kernel, X, y, 6, 0.1, 11, 3).indices],
        "pursuit": X[matching_pursuit(kernel, X, y, 6, 0.1, 11, 3).indices],
    }
    assert list(STRATEGIES) == NAMES == list(wanted)
    for name in NAMES:
        got = select(name, kernel, X, y, 6, noise=0.1, rng=3, n_candidates=11)
        np.testing.assert_array_equal(got, wanted[name])
    scaled = select("kmeans", kernel, X, None, 6, rng=3, scales=[1.0, 3.0])
    np.testing.assert_array_equal(scaled, kmeans(X, 6, [1.0, 3.0], rng=3).centres)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (20, 1), (20, 20), (20, 99)])
def test_any_number_of_points(name, n, m):
    X, y = problem(n)
    got = select(name, RBF([0.1, 1.0]), X, y, m, noise=0.1, rng=0)
    assert got.shape == (min(n, m), 2)
    if m >= n:
        np.testing.assert_allclose(np.sort(got, axis=0), np.sort(X, axis=0), atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_repeated_rows_and_constant_columns(name):
    X, y = problem(5)
    X[:, 1] = 3.0
    got = select(name, RBF(), np.repeat(X, 4, axis=0), np.repeat(y, 4), 12, noise=0.1, rng=0)
    assert len(got) == (12 if name == "random" else 5)
    np.testing.assert_array_equal(got[:, 1], 3.0)


def test_what_is_needed():
    X, y = problem()
    with pytest.raises(ValueError, match=r"'random', 'kmeans', .* 'pursuit'; got 'foo'"):
        select("foo", RBF(), X, y, 3)
    for name in ("information", "pursuit"):
        for y_or_none, noise in ((None, 0.1), (y, None)):
            with pytest.raises(ValueError, match=f"{name!r} looks at the targets: give y"):
                select(name, RBF(), X, y_or_none, 3, noise)
    for choose in (information_gain, matching_pursuit):
        with pytest.raises(ValueError, match=r"kernel must be one of mercer\.kernels"):
            choose(None, X, y, 3, 0.1)
    with pytest.raises(ValueError, match=r"kernel must be one of mercer\.kernels"):
        select("random", None, X, y, 3)
    with pytest.raises(ValueError, match="m must be a whole number"):
        select("random", RBF(), X, y, 0)
    with pytest.raises(ValueError, match="n_candidates must be a whole number"):
        select("random", RBF(), X, y, 3, n_candidates=0)
    with pytest.raises(ValueError, match="at least one row is wanted"):
        select("random", RBF(), X[:0], y[:0], 3)
    with pytest.raises(ValueError, match="X holds NaN"):
        select("random", RBF(), np.full((3, 2), np.nan), None, 3)


def test_rows_of_any_kind():
    words = ["tree", "trees", "stone", "tones", "free"]
    kernel = Callable(lambda a, b: float(len(set(a) & set(b))))
    for name in set(NAMES) - {"kmeans"}:
        got = select(name, kernel, words, np.arange(5.0), 2, noise=0.1, rng=0)
        assert len(got) == 2 and set(got) <= {*words}
    with pytest.raises(ValueError, match="which must be numbers"):
        select("kmeans", kernel, words, None, 2)
