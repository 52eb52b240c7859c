"""Duals on all rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import duals, quadratic
from mercer.inference.duals import Dual, LowRank, RowProblem, refined_dual, residual_dual
from mercer.kernels import RBF
from mercer.selection import pivoted_cholesky

from . import quadratic_dense as dense

S2 = 0.02
KERNEL = RBF(0.8)


def weighted(X, Y, K, seed=3):
    w = np.random.default_rng(seed).uniform(0.5, 3.0, len(X))
    root = np.sqrt(w)
    return RowProblem.of(KERNEL, X, Y, S2, w), root[:, None] * Y, K * np.outer(root, root), w


def fit(problem, V):
    """Return the fitted values and squared norm of the solution in the span of V."""
    c = np.linalg.solve(V.T @ V + problem.noise * np.eye(V.shape[1]), V.T @ problem.Y)
    return V @ c, np.sum(c**2, axis=0)


def test_a_problem_puts_weights_into_rows():
    X, Y, K = dense.data()
    problem, Yw, Kw, w = weighted(X, Y, K)
    A = np.random.default_rng(0).normal(size=Y.shape)
    np.testing.assert_allclose(problem.Y, Yw, rtol=1e-15)
    np.testing.assert_allclose(problem.times(A), Kw @ A, rtol=1e-12, atol=1e-13)
    # a function of weighted rows is the same function
    alpha = np.random.default_rng(1).normal(size=Y.shape)
    np.testing.assert_allclose(
        problem.times(problem.coefficients(alpha)), problem.rows(K @ alpha), rtol=1e-11, atol=1e-12
    )
    np.testing.assert_allclose(problem.rows(Y), np.sqrt(w)[:, None] * Y, rtol=1e-15)
    plain = RowProblem.of(KERNEL, X, Y, S2)
    np.testing.assert_allclose(plain.times(A), K @ A, rtol=1e-12, atol=1e-13)
    assert plain.rows(Y) is Y
    assert plain.coefficients(alpha) is alpha


def test_weights_are_repeated_rows():
    X, Y, K = dense.data(n=12)
    w = np.arange(12) % 3 + 1
    rows = np.repeat(np.arange(12), w)
    problem = RowProblem.of(KERNEL, X, Y, S2, w.astype(float))
    twice = RowProblem.of(KERNEL, X[rows], Y[rows], S2)
    F = K @ np.random.default_rng(0).normal(size=Y.shape)
    one, other = residual_dual(problem, problem.rows(F)), residual_dual(twice, F[rows])
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.lower == pytest.approx(other.lower, rel=1e-12)


def test_the_residual_dual():
    X, Y, K = dense.data()
    problem, Yw, Kw, _ = weighted(X, Y, K)
    F = 0.9 * Yw
    found = residual_dual(problem, F)
    a = (Yw - F) / S2
    np.testing.assert_allclose(found.A, a, rtol=1e-14)
    np.testing.assert_allclose(found.KA, Kw @ a, rtol=1e-11, atol=1e-12)
    assert found.support == len(X)
    assert found.value == pytest.approx(dense.L_star(Kw, Yw, a, S2), rel=1e-11)
    wanted = -0.5 * np.sum(Yw**2) - S2 * dense.L_star(Kw, Yw, a, S2)
    assert found.lower == pytest.approx(wanted, rel=1e-11)


def test_support_counts_rows():
    problem = RowProblem(np.ones((4, 2)), S2, np.copy)
    A = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    assert Dual.of(problem, A, A).support == 2


@pytest.mark.parametrize("m", [0, 1, 15, 40])
def test_low_rank_inverse(m):
    rng = np.random.default_rng(0)
    V, R = rng.normal(size=(40, m)), rng.normal(size=(40, 2))
    wanted = np.linalg.solve(V @ V.T + S2 * np.eye(40), R)
    found = LowRank.of(V, S2)
    np.testing.assert_allclose(found(R), wanted, rtol=1e-9, atol=1e-10)
    again = LowRank(found.W, S2)(R[:, :1])
    np.testing.assert_allclose(again, wanted[:, :1], rtol=1e-9, atol=1e-10)


def test_refining_descends_to_the_minimum():
    X, Y, K = dense.data(n=60)
    problem, Yw, Kw, _ = weighted(X, Y, K)
    V = problem.rows(pivoted_cholesky(KERNEL, X, 8).V)
    F, _ = fit(problem, V)
    start, precondition = residual_dual(problem, F), LowRank.of(V, S2)
    values = [refined_dual(problem, start, precondition, k).value for k in range(6)]
    assert values[0] == start.value
    assert np.all(np.diff(values) < 0)
    end = refined_dual(problem, start, precondition, 120)
    least = dense.L_star(Kw, Yw, dense.optimum(Kw, Yw, S2), S2)
    assert end.value == pytest.approx(least, rel=1e-12)
    assert end.lower == pytest.approx(dense.L_min(Kw, Yw, S2), rel=1e-10)
    np.testing.assert_allclose(end.A, dense.optimum(Kw, Yw, S2), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(end.KA, Kw @ end.A, rtol=1e-9, atol=1e-9)


def test_the_exact_inverse_as_preconditioner_takes_one_step():
    X, Y, K = dense.data()
    problem = RowProblem.of(KERNEL, X, Y, S2)
    inverse = np.linalg.inv(K + S2 * np.eye(len(K)))
    found = refined_dual(problem, residual_dual(problem, 0.0 * Y), lambda R: inverse @ R, 1)
    np.testing.assert_allclose(found.A, dense.optimum(K, Y, S2), rtol=1e-7, atol=1e-8)


def test_each_output_has_its_own_steps():
    X, Y, _ = dense.data()
    both = RowProblem.of(KERNEL, X, Y, S2)
    for p in range(2):
        one = RowProblem.of(KERNEL, X, Y[:, [p]], S2)
        alone = refined_dual(one, residual_dual(one, 0.5 * one.Y), lambda R: R, 4)
        beside = refined_dual(both, residual_dual(both, 0.5 * both.Y), lambda R: R, 4)
        np.testing.assert_allclose(beside.A[:, [p]], alone.A, rtol=1e-10, atol=1e-11)


def test_refining_stops_where_it_is_enough_and_counts_its_products():
    _, Y, K = dense.data()
    products = []

    def times(A):
        products.append(A)
        return K @ A

    problem = RowProblem(Y, S2, times)
    start = residual_dual(problem, 0.5 * Y)
    upper = dense.L_min(K, Y, S2)
    products.clear()
    close = refined_dual(
        problem, start, lambda R: R, 100, lambda d: quadratic.gap(upper, d.lower) < 0.1
    )
    assert 0 < quadratic.gap(upper, close.lower) < 0.1
    assert 1 < len(products) < 100
    products.clear()
    refined_dual(problem, start, lambda R: R, 3)
    assert len(products) == 3


def test_nothing_is_refined_at_the_optimum_and_the_start_is_left_alone():
    X, Y, _ = dense.data(outputs=1)
    zero = RowProblem.of(KERNEL, X, 0.0 * Y, S2)
    still = refined_dual(zero, residual_dual(zero, 0.0 * Y), lambda R: R, 5)
    assert still.value == 0.0
    assert not np.any(still.A)
    problem = RowProblem.of(KERNEL, X, Y, S2)
    start = residual_dual(problem, 0.5 * Y)
    before = start.A.copy(), start.KA.copy()
    best = refined_dual(problem, start, lambda R: -R, 5)  # which is not positive definite
    assert best is start
    refined_dual(problem, start, lambda R: R, 5)
    np.testing.assert_array_equal(start.A, before[0])
    np.testing.assert_array_equal(start.KA, before[1])


def test_the_best_is_kept_where_rounding_is_all_that_is_left():
    _, Y, K = dense.data(length_scale=3.0)
    problem = RowProblem(Y, 1e-6, lambda A: K @ A)
    start = residual_dual(problem, K @ dense.optimum(K, Y, 1e-6))
    values = [refined_dual(problem, start, lambda R: R, k).value for k in range(0, 200, 5)]
    assert np.all(np.diff(values) <= 0)
    assert np.any(np.diff(values) == 0)


def test_one_noise_for_rows_that_differ():
    s2, weights = duals.one_noise(np.array([0.5, 2.0, 2.0]), np.array([1.0, 3.0, 1.0]))
    assert s2 == pytest.approx(1.0)  # 3/(2 + 1/2 + 1/2)
    np.testing.assert_allclose(s2 / weights, [0.5, 2.0 / 3.0, 2.0])
    assert duals.one_noise(np.full(3, 0.5), np.ones(3)) == (0.5, None)
    np.testing.assert_array_equal(duals.one_noise(np.full(2, 0.5), np.array([1.0, 2.0]))[1], [1, 2])
