"""The quadratic programme in a box against all combinations of sides, KKT, and its own dual."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._box import Box, solve_box
from mercer.inference._interior import InteriorPoints
from mercer.kernels import RBF, Matern

ZONES = [0.0, 0.3]
NOISES = [0.0, 0.2]


def make(n, zone=0.0, noise=0.0, seed=0, kernel=None, d=2, bound=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    K = (1.3 * Matern(0.8, nu=1.5) if kernel is None else kernel)(X)
    y = np.sin(2 * X[:, 0]) + rng.standard_t(3, size=n)
    w = rng.uniform(0.3, 2.0, n)
    return K, Box(y, bound * w, zone, noise / w)


def lower(K):
    """What the solver is given: the other triangle is nobody's business."""
    L = np.asfortranarray(np.tril(K))
    L[np.triu_indices(len(K), 1)] = np.nan
    return L


def loss(box, t):
    """l(t) as the maximum over a grid of a, finer and finer."""
    best = np.zeros(t.shape)
    for i, c in enumerate(box.bound):
        low, high = -c, c
        for _ in range(12):
            a = np.linspace(low, high, 201)
            values = a * t[i] - box.zone * np.abs(a) - 0.5 * box.noise[i] * a**2
            at, step = a[np.argmax(values)], a[1] - a[0]
            low, high = max(-c, at - step), min(c, at + step)
        best[i] = values.max()
    return best


def dual(K, box, alpha):
    return (
        0.5 * alpha @ K @ alpha
        + 0.5 * np.sum(box.noise * alpha**2)
        + box.zone * np.sum(np.abs(alpha))
        - alpha @ box.target
    )


def primal(K, box, alpha):
    return np.sum(box.losses(box.target - K @ alpha)) + 0.5 * alpha @ K @ alpha


def violation(K, box, alpha):
    """By how much the conditions of a minimum of the dual fail, in units of a residual."""
    t = box.target - K @ alpha - box.noise * alpha
    at_top, at_bottom, at_zero = alpha >= box.bound, alpha <= -box.bound, alpha == 0
    out = np.where(alpha > 0, np.abs(t - box.zone), np.abs(t + box.zone))
    out = np.where(at_top, np.maximum(box.zone - t, 0.0), out)
    out = np.where(at_bottom, np.maximum(box.zone + t, 0.0), out)
    return np.max(np.where(at_zero, np.maximum(np.abs(t) - box.zone, 0.0), out))


def by_enumeration(K, box):
    """The best of all feasible solutions with each row on each of its five sides."""
    n, best = len(K), (np.inf, None)
    for side in product((-2, -1, 0, 1, 2), repeat=n):
        side = np.array(side, dtype=float)
        inside = np.abs(side) == 1
        alpha = np.where(np.abs(side) == 2, 0.5 * side * box.bound, 0.0)
        if inside.any():
            M = K[np.ix_(inside, inside)] + np.diag(box.noise[inside])
            right = (box.target - K @ alpha)[inside] - box.zone * side[inside]
            alpha[inside] = np.linalg.solve(M, right)
        if np.all(np.abs(alpha) <= box.bound):
            best = min(best, (dual(K, box, alpha), tuple(alpha)))
    return np.array(best[1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("zone", ZONES)
def test_all_combinations_of_sides(zone, noise, seed):
    K, box = make(4, zone, noise, seed, bound=0.6)
    found = solve_box(lower(K), box)
    np.testing.assert_allclose(found.alpha, by_enumeration(K, box), atol=1e-11)
    np.testing.assert_allclose(found.shift, K @ found.alpha, atol=1e-13)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("zone", ZONES)
def test_a_general_solver_agrees(zone, noise):
    K, box = make(15, zone, noise, bound=0.5)
    n = len(K)

    def value(pq):
        alpha = pq[:n] - pq[n:]
        g = K @ alpha + box.noise * alpha - box.target
        smooth = 0.5 * alpha @ (g - box.target)
        return smooth + zone * np.sum(pq), np.concatenate([g + zone, zone - g])

    limits = [(0.0, c) for c in np.tile(box.bound, 2)]
    options = {"ftol": 1e-15, "maxiter": 1000}
    other = minimize(
        value, np.zeros(2 * n), jac=True, method="SLSQP", bounds=limits, options=options
    )
    found = solve_box(lower(K), box)
    assert dual(K, box, found.alpha) == pytest.approx(other.fun, rel=1e-9)
    np.testing.assert_allclose(found.alpha, other.x[:n] - other.x[n:], atol=1e-5)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("zone", ZONES)
def test_loss_and_gap(zone, noise):
    """The gap is P + D for every alpha in the box, and l is the maximum that it is said to be."""
    K, box = make(12, zone, noise)
    rng = np.random.default_rng(1)
    t = rng.normal(size=12, scale=3.0)
    np.testing.assert_allclose(box.losses(t), loss(box, t), atol=1e-9)
    best = solve_box(lower(K), box)
    for size in (0.0, 0.5, 1.0):
        alpha = box.bound * np.clip(rng.normal(size=12), -1, 1) * size
        gaps = box.gaps(alpha, box.target - K @ alpha)
        assert np.all(gaps >= 0)
        total = primal(K, box, alpha) + dual(K, box, alpha)
        assert np.sum(gaps) == pytest.approx(total, rel=1e-10)
        away = alpha - best.alpha
        assert 0.5 * away @ K @ away <= total * (1 + 1e-9)


@pytest.mark.parametrize("kernel", [RBF(), 4.0 * RBF(3.0), Matern(0.3, nu=0.5)])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("zone", ZONES)
def test_conditions_of_a_minimum(zone, noise, kernel):
    K, box = make(250, zone, noise, kernel=kernel)
    found = solve_box(lower(K), box)
    assert found.relative_gap <= 1e-12 and found.jitter == 0.0
    assert np.all(np.abs(found.alpha) <= box.bound)
    assert violation(K, box, found.alpha) < 1e-9
    free = (np.abs(found.alpha) < box.bound) & ((found.alpha != 0) | (zone == 0))
    np.testing.assert_array_equal(found.inside, free)
    assert found.n_iterations <= 20 and found.n_factorisations <= 45


def test_start_from_the_solution_is_all():
    K, box = make(200, 0.1)
    cold = solve_box(lower(K), box)
    warm = solve_box(lower(K), box, cold.alpha)
    assert (warm.n_iterations, warm.n_factorisations) == (0, 1)
    np.testing.assert_allclose(warm.alpha, cold.alpha, atol=1e-12)
    near = solve_box(lower(1.05 * K), box, cold.alpha)
    np.testing.assert_allclose(near.alpha, solve_box(lower(1.05 * K), box).alpha, atol=1e-10)
    assert near.n_iterations == 0


def test_start_from_anything():
    K, box = make(60, 0.1)
    wanted = solve_box(lower(K), box).alpha
    rng = np.random.default_rng(0)
    for start in (1e9 * rng.normal(size=60), np.zeros(60), -wanted):
        np.testing.assert_allclose(solve_box(lower(K), box, start).alpha, wanted, atol=1e-10)


@pytest.mark.parametrize("zone", ZONES)
def test_interior_points_alone_come_as_near_as_one_likes(zone):
    K, box = make(80, zone, kernel=2.0 * RBF())
    wanted = solve_box(lower(K), box)
    points = InteriorPoints(lower(K), box, None)
    gaps = [
        np.sum(box.gaps(alpha, box.target - K @ alpha))
        for alpha in (points.step() for _ in range(18))
    ]
    assert gaps[-1] < 1e-9 and wanted.gap <= gaps[-1]


def test_singular_matrices():
    """Rows that are the same, with other targets; and a matrix of rank 1."""
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(20, 1)), 3, axis=0)
    K = RBF()(X)
    for zone in ZONES:
        box = Box(rng.normal(size=60), np.full(60, 0.7), zone, np.zeros(60))
        found = solve_box(lower(K), box)
        assert found.relative_gap <= 1e-8 and found.jitter == 0.0
    y = rng.normal(size=31)
    median = solve_box(
        np.asfortranarray(np.full((31, 31), 1e6)), Box(y, np.ones(31), 0.0, np.zeros(31))
    )
    # (BKM 11): of a constant under Laplacian noise the mode is the median
    np.testing.assert_allclose(median.shift, np.median(y), atol=1e-4)


def test_rows_without_weight():
    K, box = make(20, 0.1)
    held = box.bound.copy()
    held[[3, 7]] = 0.0
    rest = np.flatnonzero(held)
    found = solve_box(lower(K), box._replace(bound=held))
    part = Box(box.target[rest], held[rest], 0.1, box.noise[rest])
    np.testing.assert_allclose(
        found.alpha[rest], solve_box(lower(K[np.ix_(rest, rest)]), part).alpha, atol=1e-12
    )
    assert np.all(found.alpha[[3, 7]] == 0) and not found.inside[[3, 7]].any()
    np.testing.assert_allclose(found.shift, K @ found.alpha, atol=1e-13)
    none = solve_box(lower(K), box._replace(bound=np.zeros(20)))
    assert np.all(none.alpha == 0) and none.gap == 0.0


def test_outliers_leave_the_gap_in_its_units():
    """What one row loses is no measure of how well the others are solved for."""
    K, box = make(40, 0.1)
    target = box.target.copy()
    target[5] = 1e9
    found = solve_box(lower(K), box._replace(target=target))
    assert found.gap < 1e-6 and found.alpha[5] == box.bound[5]
    rest = np.flatnonzero(np.arange(40) != 5)
    part = Box((box.target - K[:, 5] * box.bound[5])[rest], box.bound[rest], 0.1, box.noise[rest])
    wanted = solve_box(lower(K[np.ix_(rest, rest)]), part)
    np.testing.assert_allclose(found.alpha[rest], wanted.alpha, atol=1e-9)


def test_indefinite_matrix():
    K, box = make(10)
    with pytest.raises(NotPositiveDefiniteError):
        solve_box(lower(K - 3.0 * np.eye(10)), box)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 12),
    rank=st.integers(1, 12),
    zone=st.sampled_from([0.0, 1e-3, 0.5]),
    noise=st.sampled_from([0.0, 1e-4, 1.0]),
    size=st.sampled_from([1e-6, 1.0, 1e4]),
    bound=st.sampled_from([1e-2, 1.0, 1e2]),
    seed=st.integers(0, 10**6),
)
def test_any_programme(n, rank, zone, noise, size, bound, seed):
    """Matrices of any rank, targets of any size, some of them equal."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, rank))
    y = size * np.round(rng.normal(size=n), 1)
    box = Box(y, bound / size * rng.uniform(0.1, 1.0, n), size * zone, np.full(n, size**2 * noise))
    found = solve_box(lower(size**2 * V @ V.T), box)
    assert found.relative_gap <= 1e-8
    assert np.all(np.abs(found.alpha) <= box.bound)
