"""L1-penalised quadratics: optimality conditions, other solvers, and columns that depend."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LassoLars

from mercer.inference import _l1_quadratic
from mercer.inference._l1_quadratic import minimise_l1, minimise_l1_path
from mercer.linalg import _homotopy_twins


def violation(A, y, lam, theta):
    """How far the optimality conditions are from holding, in units of the slopes' rounding."""
    slopes = A.T @ (y - A @ theta)
    lam = np.broadcast_to(lam, theta.shape)
    excess = np.where(theta != 0, np.abs(slopes - lam * np.sign(theta)), np.abs(slopes) - lam)
    scale = np.linalg.norm(A, axis=0) * (np.linalg.norm(y) + np.abs(A @ np.diag(theta)).sum())
    return np.max(np.maximum(excess, 0.0) / np.maximum(scale, 1e-300), initial=0.0)


def objective(A, y, lam, theta):
    return 0.5 * np.sum((y - A @ theta) ** 2) + np.sum(lam * np.abs(theta))


def problem(seed, n, m, correlated=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, m)) + correlated * rng.normal(size=(n, 1))
    return A, A[:, : min(m, 3)].sum(axis=1) + rng.normal(size=n)


@pytest.mark.parametrize("part", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("shape", [(60, 25), (20, 50)])
def test_against_lars(shape, part):
    A, y = problem(0, *shape)
    lam = part * np.abs(A.T @ y).max()
    found = minimise_l1(A.T @ A, A.T @ y, lam)
    lars = LassoLars(alpha=lam / len(y), fit_intercept=False, max_iter=10_000).fit(A, y)
    assert found.is_complete
    np.testing.assert_allclose(found.coef, lars.coef_, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 12),
    m=st.integers(1, 14),
    part=st.sampled_from([2.0, 1.0, 0.3, 0.03, 1e-3]),
    log_scale=st.floats(-6, 6),
    twins=st.integers(0, 4),
    free=st.integers(0, 2),
    whole=st.booleans(),
)
def test_conditions_hold(seed, n, m, part, log_scale, twins, free, whole):
    rng = np.random.default_rng(seed)
    A, y = problem(seed, n, m)
    if whole:  # ties: slopes and columns that are equal, opposite or zero
        A, y = np.round(A), np.round(y)
    A *= 10.0 ** rng.uniform(-abs(log_scale), abs(log_scale), m)
    for j in rng.integers(0, m, twins):
        A = np.column_stack([A, A[:, j] * rng.choice([1.0, -1.0])])
    y *= 10.0**log_scale
    c = A.T @ y
    lam = part * (np.abs(c) + 1e-3 * np.abs(c).max()) * rng.uniform(0.1, 1, len(c))
    lam[:free] = 0.0
    found = minimise_l1(A.T @ A, c, lam)
    assert violation(A, y, lam, found.coef) < 1e-10
    assert found.is_complete
    again = minimise_l1(A.T @ A, c, lam, start=rng.normal(size=len(c)) * (rng.random(len(c)) < 0.5))
    assert violation(A, y, lam, again.coef) < 1e-10
    best = objective(A, y, lam, found.coef)
    assert objective(A, y, lam, again.coef) == pytest.approx(best, rel=1e-9, abs=1e-12 * (y @ y))


def test_without_the_compiled_loop(monkeypatch):
    A, y = problem(6, 40, 30)
    lam = np.full(30, 0.01 * np.abs(A.T @ y).max())
    lam[2] = 0.0
    compiled = minimise_l1(A.T @ A, A.T @ y, lam)
    monkeypatch.setattr(_l1_quadratic, "homotopy", lambda: _homotopy_twins)
    twin = minimise_l1(A.T @ A, A.T @ y, lam)
    np.testing.assert_allclose(twin.coef, compiled.coef, atol=1e-11)
    assert twin.n_steps == compiled.n_steps
    assert minimise_l1(A.T @ A, A.T @ y, lam, start=np.ones(30)).is_complete


def test_columns_that_are_equal_give_one_of_the_optima():
    A, y = problem(1, 30, 6)
    doubled = np.column_stack([A, A, -A])
    lam = 0.05 * np.abs(A.T @ y).max()
    one = minimise_l1(A.T @ A, A.T @ y, lam)
    several, again = (minimise_l1(doubled.T @ doubled, doubled.T @ y, lam) for _ in range(2))
    assert several.is_complete
    assert np.count_nonzero(several.coef) == np.count_nonzero(one.coef)
    assert several.coef.tobytes() == again.coef.tobytes()
    np.testing.assert_allclose(
        several.coef[:6] + several.coef[6:12] - several.coef[12:], one.coef, atol=1e-12
    )


def test_kernel_columns_that_all_but_depend():
    x = np.linspace(0, 1, 200)
    A = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.3**2)  # numerical rank 17
    y = np.sin(9 * x) + 0.1 * np.random.default_rng(0).normal(size=200)
    for part in (0.1, 1e-2, 1e-3, 1e-4):
        lam = part * np.abs(A.T @ y).max()
        found = minimise_l1(A.T @ A, A.T @ y, lam)
        u = y - A @ found.coef
        u *= min(1.0, lam / np.abs(A.T @ u).max())
        gap = objective(A, y, lam, found.coef) - (u @ y - u @ u / 2)
        assert gap < 1e-6 * objective(A, y, lam, found.coef)


def test_free_columns_are_regressed_out():
    A, y = problem(2, 40, 8)
    H = np.column_stack([np.ones(40), np.arange(40.0), np.ones(40)])  # one of them twice
    both = np.column_stack([H, A])
    lam = np.concatenate([np.zeros(3), np.full(8, 5.0)])
    found = minimise_l1(both.T @ both, both.T @ y, lam)
    Q = np.linalg.qr(H[:, :2])[0]
    B, z = A - Q @ (Q.T @ A), y - Q @ (Q.T @ y)
    alone = minimise_l1(B.T @ B, B.T @ z, 5.0)
    np.testing.assert_allclose(found.coef[3:], alone.coef, atol=1e-10)


def test_a_start_saves_breakpoints():
    A, y = problem(3, 200, 60)
    c = A.T @ y
    first = minimise_l1(A.T @ A, c, 0.02 * np.abs(c).max())
    near = minimise_l1(A.T @ A, c, 0.019 * np.abs(c).max(), start=first.coef)
    assert near.n_steps < first.n_steps / 4
    assert minimise_l1(A.T @ A, c, 0.02 * np.abs(c).max(), start=first.coef).n_steps == 0


def test_path():
    A, y = problem(4, 30, 40)
    c = A.T @ y
    lam = np.abs(c).max() * np.random.default_rng(0).uniform(0.5, 1.0, 40)
    multipliers = np.array([3.0, 1.0, 0.3, 0.3, 0.1, 0.01])
    path, _ = minimise_l1_path(A.T @ A, c, lam, multipliers)
    for t, theta in zip(multipliers, path, strict=True):
        np.testing.assert_allclose(theta, minimise_l1(A.T @ A, c, t * lam).coef, atol=1e-10)
    assert not path[0].any()


def test_trivial_problems():
    assert minimise_l1(np.zeros((0, 0)), np.zeros(0), np.zeros(0)).is_complete
    assert minimise_l1(np.zeros((2, 2)), np.zeros(2), np.array([0.0, 1.0])).coef.tolist() == [0, 0]
    assert minimise_l1(np.eye(1) * 4, np.array([10.0]), 2.0).coef.tolist() == [2.0]
    assert minimise_l1(np.eye(1) * 4, np.array([10.0]), 11.0).coef.tolist() == [0.0]


def test_few_steps_are_said():
    A, y = problem(5, 50, 30)
    c = A.T @ y
    found = minimise_l1(A.T @ A, c, 1e-3, max_steps=3)
    assert not found.is_complete and found.n_steps == 3
    assert objective(A, y, 1e-3, found.coef) < 0.5 * y @ y


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        minimise_l1(np.eye(2), np.ones(2), np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="shape"):
        minimise_l1(np.eye(3), np.ones(2), 1.0)
    with pytest.raises(ValueError, match="NaN"):
        minimise_l1(np.eye(2), np.array([np.nan, 1.0]), 1.0)
    with pytest.raises(ValueError, match="descend"):
        minimise_l1_path(np.eye(2), np.ones(2), np.ones(2), np.array([1.0, 2.0]))
