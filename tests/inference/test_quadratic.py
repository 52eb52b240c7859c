"""Theorem 2: two quadratic forms that bound each other's minima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference import quadratic

from . import quadratic_dense as dense

problems = st.fixed_dictionaries(
    {
        "n": st.integers(1, 12),
        "outputs": st.integers(1, 3),
        "seed": st.integers(0, 10**6),
        "length_scale": st.sampled_from([0.1, 1.0, 30.0]),
    }
)
noises = st.sampled_from([1e-6, 0.1, 50.0])


def arbitrary(K, Y, s2, seed):
    """Return an alpha anywhere: at random, at the optimum, and between."""
    rng = np.random.default_rng(seed)
    near = rng.choice([0.0, 1e-6, 0.5, 1.0])
    noise = rng.normal(size=Y.shape) * 10.0 ** rng.uniform(-3, 3)
    return dense.optimum(K, Y, s2) + near * noise


def rounding(K, Y, alpha, a, s2):
    """Return what terms that cancel may leave of 1e-14 of each."""
    sizes = [np.abs(Y), np.abs(K) @ np.abs(alpha), s2 * np.abs(a), np.abs(K) @ np.abs(a)]
    norms = sum(np.sum(np.abs(v) * (np.abs(K) @ np.abs(v))) for v in (alpha, a))
    return 1e-14 * (sum(map(np.sum, sizes)) ** 2 + s2 * norms)


@settings(max_examples=200, deadline=None)
@given(problems, noises, st.integers(0, 10**6))
def test_forms_and_bounds_for_arbitrary_vectors(problem, s2, seed):
    _, Y, K = dense.data(**problem)
    alpha, a = arbitrary(K, Y, s2, seed), arbitrary(K, Y, s2, seed + 1)
    F, KA = K @ alpha, K @ a
    norm = np.sum(alpha * F, axis=0)
    upper = np.sum(quadratic.primal(Y, F, norm, s2))
    star = quadratic.dual(Y, a, KA, s2)
    lower = np.sum(quadratic.lower_bound(Y, star, s2))
    loss = rounding(K, Y, alpha, a, s2)
    assert upper == pytest.approx(dense.L(K, Y, alpha, s2), rel=1e-13, abs=loss)
    wanted = s2 * dense.L_star(K, Y, a, s2)
    assert s2 * np.sum(star) == pytest.approx(wanted, rel=1e-13, abs=loss)
    least = dense.L_min(K, Y, s2)
    assert lower - loss <= least <= upper + loss  # (BKM 80)
    star_min = dense.L_star(K, Y, dense.optimum(K, Y, s2), s2)
    bound = np.sum(quadratic.dual_bound(Y, quadratic.primal(Y, F, norm, s2), s2))
    assert s2 * bound - loss <= s2 * star_min <= s2 * np.sum(star) + loss  # (BKM 81)


@settings(max_examples=200, deadline=None)
@given(problems, noises, st.integers(0, 10**6))
def test_the_excess_is_the_difference_and_never_negative(problem, s2, seed):
    _, Y, K = dense.data(**problem)
    alpha, a = arbitrary(K, Y, s2, seed), arbitrary(K, Y, s2, seed + 1)
    F, KA = K @ alpha, K @ a
    norm = np.sum(alpha * F, axis=0)
    wanted = dense.L(K, Y, alpha, s2) + s2 * dense.L_star(K, Y, a, s2) + 0.5 * np.sum(Y**2)
    loss = rounding(K, Y, alpha, a, s2)
    for known in ({"coefficients": alpha}, {"squared_norm": norm}):
        distance = quadratic.distance(F, a, KA, **known)
        excess = quadratic.excess(Y, F, a, distance, s2)
        assert excess.shape == (Y.shape[1],)
        assert np.all(distance >= 0)
        assert np.all(excess >= 0)
        assert np.sum(excess) == pytest.approx(wanted, rel=1e-13, abs=loss)
        bounds = quadratic.bounds(quadratic.primal(Y, F, norm, s2), excess)
        assert 0 <= bounds.gap <= 2
        assert bounds.lower <= bounds.upper


def test_bounds_meet_at_the_optimum():
    _, Y, K = dense.data()
    s2 = 0.05
    a = dense.optimum(K, Y, s2)
    F = K @ a
    distance = quadratic.distance(F, a, F, coefficients=a)
    upper = quadratic.primal(Y, F, np.sum(a * F, axis=0), s2)
    found = quadratic.bounds(upper, quadratic.excess(Y, F, a, distance, s2))
    assert found.gap < 1e-28  # of the second order in rounding
    assert found.upper == pytest.approx(dense.L_min(K, Y, s2), rel=1e-13)
    lower = quadratic.lower_bound(Y, quadratic.dual(Y, a, F, s2), s2)
    assert np.sum(lower) == pytest.approx(dense.L_min(K, Y, s2), rel=1e-12)


def test_the_gap_is_that_of_the_paper():
    _, Y, K = dense.data()
    s2 = 0.05
    rng = np.random.default_rng(1)
    best = dense.optimum(K, Y, s2)
    alpha, a = (best + 0.05 * rng.normal(size=best.shape) for _ in range(2))
    upper, star = dense.L(K, Y, alpha, s2), dense.L_star(K, Y, a, s2)
    assert upper < 0
    lower = -0.5 * np.sum(Y**2) - s2 * star
    wanted = dense.gap(upper, star, Y, s2)
    assert 0.001 < wanted < 1.9
    assert quadratic.gap(upper, lower) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("upper", "lower", "wanted"),
    [
        (0.0, 0.0, 0.0),
        (-3.0, -3.0, 0.0),
        (-3.0, -3.0 + 1e-16, 0.0),
        (-2.0, -1.0, 0.0),  # exchanged by rounding
        (-1.0, -3.0, 1.0),
        (0.0, -3.0, 2.0),
        (5.0, -3.0, 2.0),  # worse than the function 0
        (np.inf, -3.0, 2.0),
        (np.nan, -3.0, 2.0),
    ],
)
def test_gaps_of_bounds_at_the_ends(upper, lower, wanted):
    assert quadratic.gap(upper, lower) == wanted


def test_no_targets_and_no_function_have_no_gap():
    zero = np.zeros((3, 1))
    value = quadratic.primal(zero, zero, [0.0], 0.1)
    assert quadratic.bounds(value, quadratic.excess(zero, zero, zero, [0.0], 0.1)) == (0, 0, 0)


def test_a_distance_needs_one_of_two():
    zero = np.zeros((3, 1))
    with pytest.raises(ValueError, match="either the coefficients"):
        quadratic.distance(zero, zero, zero)
    with pytest.raises(ValueError, match="either the coefficients"):
        quadratic.distance(zero, zero, zero, coefficients=zero, squared_norm=[0.0])


def test_what_a_mean_leaves_by_rounding_is_nothing():
    Y = np.array([[0.1, 1.0], [0.1, 2.0]])
    rest = np.array([[1.4e-17, -0.5], [0.0, 0.5]])  # 0.1 less a mean of it, and a true remainder
    np.testing.assert_array_equal(quadratic.less_rounding(rest, Y), [[0.0, -0.5], [0.0, 0.5]])
