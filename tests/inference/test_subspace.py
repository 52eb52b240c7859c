"""Coefficients confined to a subspace."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import APPROXIMATIONS, sparse
from mercer.inference.duals import RowProblem
from mercer.inference.sparse import SparseProblem
from mercer.inference.subspace import (
    dual_solution,
    natarajan_multiplier,
    principal_components,
    solution,
)
from mercer.kernels import RBF, Linear
from mercer.means import Zero

from . import quadratic_dense as dense

S2 = 0.05
KERNEL = RBF(0.8)


def normal_equations(K, Y, P):
    """(BKM 86) as it is printed."""
    return np.linalg.solve(P.T @ (S2 * K + K.T @ K) @ P, P.T @ K.T @ Y)


@pytest.mark.parametrize("m", [1, 5, 12])
def test_any_subspace(m):
    X, Y, K = dense.data()
    P = np.random.default_rng(2).normal(size=(len(X), m))
    problem = RowProblem.of(KERNEL, X, Y, S2)
    found = solution(problem, P)
    np.testing.assert_allclose(found.beta, normal_equations(K, Y, P), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.coefficients, P @ found.beta, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.fitted, K @ P @ found.beta, rtol=1e-10, atol=1e-12)
    norms = [a @ K @ a for a in found.coefficients.T]
    np.testing.assert_allclose(found.squared_norm, norms, rtol=1e-10)
    assert found.value == pytest.approx(dense.L(K, Y, P @ found.beta, S2), rel=1e-12)
    given = solution(problem, P, K @ P)
    np.testing.assert_allclose(given.fitted, found.fitted, rtol=1e-11, atol=1e-12)


def test_all_of_space_is_the_exact_solution():
    X, Y, K = dense.data()
    problem = RowProblem.of(KERNEL, X, Y, S2)
    found = solution(problem, np.eye(len(X)))
    assert found.value == pytest.approx(dense.L_min(K, Y, S2), rel=1e-12)
    np.testing.assert_allclose(found.fitted, K @ dense.optimum(K, Y, S2), rtol=1e-8, atol=1e-9)
    other = dual_solution(problem, np.eye(len(X)))
    np.testing.assert_allclose(other.A, dense.optimum(K, Y, S2), rtol=1e-9, atol=1e-10)
    assert other.lower == pytest.approx(dense.L_min(K, Y, S2), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_unit_vectors_make_the_mean_of_dtc(weighted):
    X, Y, _ = dense.data()
    rows = np.array([3, 17, 8, 30, 25])
    w = np.random.default_rng(4).uniform(0.5, 2.0, len(X)) if weighted else None
    problem = RowProblem.of(KERNEL, X, Y, S2, w)
    P = np.eye(len(X))[:, rows]
    found = solution(problem, P)
    noise = np.full(len(X), S2)
    kind = APPROXIMATIONS["dtc"]
    made = SparseProblem(KERNEL, X, Y, noise, X[rows], kind, weights=w)
    posterior, _ = sparse.posterior(made, Zero(), np.ones(2))
    np.testing.assert_allclose(found.fitted, problem.rows(posterior.mean(X)), rtol=1e-9, atol=1e-10)
    alpha = found.beta if w is None else found.beta * np.sqrt(w[rows])[:, None]
    np.testing.assert_allclose(alpha, posterior.alpha, rtol=1e-8, atol=1e-9)


def test_the_minimum_of_the_dual_on_a_subspace():
    X, Y, K = dense.data()
    rng = np.random.default_rng(2)
    P = rng.normal(size=(len(X), 6))
    found = dual_solution(RowProblem.of(KERNEL, X, Y, S2), P)
    gamma = np.linalg.solve(P.T @ (K + S2 * np.eye(len(K))) @ P, P.T @ Y)
    np.testing.assert_allclose(found.A, P @ gamma, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.KA, K @ P @ gamma, rtol=1e-10, atol=1e-12)
    assert found.value == pytest.approx(dense.L_star(K, Y, P @ gamma, S2), rel=1e-12)
    assert found.lower < dense.L_min(K, Y, S2)
    for _ in range(5):
        moved = P @ (gamma + 0.01 * rng.normal(size=gamma.shape))
        assert dense.L_star(K, Y, moved, S2) > found.value


def test_columns_that_repeat_and_smooth_kernels_change_nothing():
    X, Y, K = dense.data(length_scale=30.0)  # of numerical rank below 40
    problem = RowProblem.of(RBF(30.0), X, Y, S2)
    P = np.eye(len(X))
    least = dense.L_min(K, Y, S2)
    assert solution(problem, P).value == pytest.approx(least, rel=1e-9)
    twice = np.hstack([P, P])
    assert solution(problem, twice).value == pytest.approx(least, rel=1e-9)
    assert dual_solution(problem, twice).lower == pytest.approx(least, rel=1e-9)
    assert solution(problem, 0.0 * P).value == 0.0
    assert dual_solution(problem, 0.0 * P).value == 0.0


def test_larger_subspaces_are_better_and_bounds_close():
    X, Y, K = dense.data(n=60)
    problem = RowProblem.of(KERNEL, X, Y, S2)
    P, KP = principal_components(KERNEL, X, 60)
    sizes = [1, 5, 20, 40, 60]
    upper = [solution(problem, P[:, :m], KP[:, :m]).value for m in sizes]
    lower = [dual_solution(problem, P[:, :m], KP[:, :m]).lower for m in sizes]
    least = dense.L_min(K, Y, S2)
    assert np.all(np.diff(upper) <= 1e-10)
    assert np.all(np.diff(lower) >= -1e-10)
    assert upper[-1] == pytest.approx(least, rel=1e-11)
    assert lower[-1] == pytest.approx(least, rel=1e-11)


def test_principal_components():
    X, _, K = dense.data()
    w = np.random.default_rng(4).uniform(0.5, 2.0, len(X))
    for weights, M in [(None, K), (w, K * np.sqrt(np.outer(w, w)))]:
        P, KP = principal_components(KERNEL, X, 7, weights)
        np.testing.assert_allclose(P.T @ P, np.eye(7), atol=1e-13)
        np.testing.assert_allclose(KP, M @ P, atol=1e-12)
        wanted = np.linalg.eigvalsh(M)[::-1][:7]
        np.testing.assert_allclose(np.diag(P.T @ KP), wanted, rtol=1e-10)


def test_the_multiplier_is_that_of_the_corollary():
    X, _, K = dense.data(n=15, length_scale=0.3)
    values, U = np.linalg.eigh(S2 * K + K.T @ K)
    A = U @ np.diag(np.sqrt(values)) @ U.T
    A /= np.linalg.norm(A, axis=0)
    wanted = 18 / np.linalg.svd(A)[1][-1] ** 2
    assert natarajan_multiplier(RBF(0.3), X, S2) == pytest.approx(wanted, rel=1e-6)
    # the columns of a diagonal matrix are orthogonal: no choice is better than the greedy one
    assert natarajan_multiplier(RBF(1e-3), X, S2) == pytest.approx(18.0)
    repeated = np.vstack([X, X])
    assert natarajan_multiplier(RBF(0.3), repeated, S2) == np.inf
    assert natarajan_multiplier(Linear(), 0.0 * X, S2) == np.inf


def test_what_cannot_be_used_is_refused():
    X, Y, _ = dense.data(n=5)
    problem = RowProblem.of(KERNEL, X, Y, S2)
    for P in (np.ones(5), np.ones((4, 2)), np.ones((5, 0)), np.full((5, 1), np.nan)):
        with pytest.raises(ValueError, match="P must be finite, with 5 rows"):
            solution(problem, P)
    with pytest.raises(ValueError, match="K P must have the shape"):
        dual_solution(problem, np.ones((5, 2)), np.ones((5, 3)))
    for m in (0, 6, 1.5, True):
        with pytest.raises(ValueError, match="m must be"):
            principal_components(KERNEL, X, m)
    with pytest.raises(ValueError, match="at most 2000 rows; got 2001"):
        natarajan_multiplier(KERNEL, np.zeros((2001, 1)), S2)
    for noise in (0.0, -1.0, np.nan, [0.1, 0.2]):
        with pytest.raises(ValueError, match="positive variance"):
            natarajan_multiplier(KERNEL, X, noise)
