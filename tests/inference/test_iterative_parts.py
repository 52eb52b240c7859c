"""What the iterative engine is made of, each part against dense matrices."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._conjugate import descend, gaps
from mercer.inference._iterative_mean import estimate, first_estimate
from mercer.inference._lanczos import log_quadrature
from mercer.inference._low_rank_adjoint import pull_low_rank, pull_nystrom
from mercer.inference._preconditioner import EXACT, Preconditioner, choose_pivots
from mercer.inference._products import RecomputedProducts, StoredProducts
from mercer.kernels import RBF, Callable, Linear, Precomputed

from . import dense, quadratic_dense

LENGTHS, VARIANCE = np.array([0.5, 0.7]), 1.4
KERNEL = VARIANCE * RBF(LENGTHS)


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1.0 / np.sqrt(rng.uniform(0.02, 0.2, n))


def gram(X, root):
    return root[:, None] * dense.rbf(X, X, LENGTHS, VARIANCE) * root


def pivots(X, root, most, kernel=KERNEL):
    return choose_pivots(kernel, X, root, most, np.random.default_rng(0))


# --- products ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [StoredProducts, RecomputedProducts])
@pytest.mark.parametrize("n", [1, 150, 1030])  # within a block, and beyond one
def test_products(kind, n):
    X, root = rows(n)
    A = np.random.default_rng(1).normal(size=(n, 3))
    expected = gram(X, root) @ A
    found = kind(KERNEL, X, root).times(A)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_products_with_a_kernel_that_is_made_in_one_piece():
    X, root = rows(40)
    kernel = Callable(lambda a, b: float(np.exp(-np.sum((a - b) ** 2))))
    A = np.random.default_rng(1).normal(size=(40, 2))
    both = [kind(kernel, X, root).times(A) for kind in (StoredProducts, RecomputedProducts)]
    np.testing.assert_allclose(*both, rtol=1e-12)


# --- preconditioner ---------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 30, 500])
def test_the_preconditioner_is_what_its_pivots_explain(most):
    X, root = rows()
    chosen = pivots(X, root, most)
    assert len(np.unique(chosen)) == len(chosen) <= min(most, len(X))
    K = gram(X, root)
    C = K[:, chosen]
    P = C @ np.linalg.solve(K[np.ix_(chosen, chosen)], C.T) + np.eye(len(X))
    pre = Preconditioner(KERNEL, X, root, chosen)
    B = np.random.default_rng(1).normal(size=(len(X), 4))
    tight = dict(rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pre.solve(B), np.linalg.solve(P, B), **tight)
    assert pre.log_determinant() == pytest.approx(np.linalg.slogdet(P)[1], rel=1e-8)
    assert pre.inverse_trace() == pytest.approx(np.trace(np.linalg.inv(P)), rel=1e-8)
    squares = np.einsum("ij,ij->j", B, np.linalg.solve(P, B))
    np.testing.assert_allclose(pre.squares(B), squares, rtol=1e-6)
    F = pre.root_of_inverse()
    np.testing.assert_allclose(np.eye(len(X)) - F @ F.T, np.linalg.inv(P), **tight)
    assert pre.left == pytest.approx(np.trace(K + np.eye(len(X)) - P), rel=1e-6, abs=1e-6)
    V = pre.colour(np.eye(len(chosen)), np.zeros((len(X), len(chosen))))
    np.testing.assert_allclose(V @ V.T + np.eye(len(X)), P, rtol=1e-8, atol=1e-8)


def test_pivots_end_where_nothing_is_left():
    X, root = rows(300)
    chosen = pivots(np.round(X), root, 300)  # a few places, many times
    assert len(chosen) == len(np.unique(np.round(X), axis=0))
    pre = Preconditioner(KERNEL, np.round(X), root, chosen)
    assert pre.left <= EXACT


def test_blocks_of_pivots_do_as_well_as_the_largest_one_at_a_time():
    X, root = rows(600)
    K = gram(X, root)
    S, greedy = K.copy(), []
    for _ in range(150):
        i = int(np.argmax(np.diagonal(S)))
        greedy.append(i)
        S = S - np.outer(S[:, i], S[i]) / S[i, i]
    left = Preconditioner(KERNEL, X, root, pivots(X, root, 150)).left
    assert left < 2.0 * np.trace(S)


def test_pivots_of_a_kernel_with_other_parameters_may_be_redundant():
    X, root = rows()
    chosen = pivots(X, root, 150)
    wide = VARIANCE * RBF(100.0)
    pre = Preconditioner(wide, X, root, chosen)
    B = np.random.default_rng(1).normal(size=(len(X), 2))
    assert np.all(np.einsum("ij,ij->j", B, pre.solve(B)) > 0)


def test_no_covariance_is_refused():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    kernel = Precomputed(K, is_mercer=True)
    with pytest.raises(NotPositiveDefiniteError, match="no covariance"):
        pivots(np.arange(2.0)[:, None], np.ones(2), 2, kernel)
    kernel = Precomputed(-np.eye(2), is_mercer=True)
    with pytest.raises(NotPositiveDefiniteError, match="negative"):
        pivots(np.arange(2.0)[:, None], np.ones(2), 2, kernel)


def test_a_kernel_that_is_zero_has_no_pivots():
    X, root = np.zeros((5, 2)), np.ones(5)
    chosen = pivots(X, root, 5, 1.0 * Linear())
    assert chosen.size == 0
    pre = Preconditioner(1.0 * Linear(), X, root, chosen)
    assert pre.log_determinant() == 0.0
    assert pre.inverse_trace() == 5.0
    np.testing.assert_array_equal(pre.solve(np.ones((5, 1))), np.ones((5, 1)))


# --- conjugate gradients ----------------------------------------------------------------------


def descent(K, B, steps=1000, tol=1e-24, precondition=None, keep=False, times=None):
    class Dense:
        def times(self, A):
            return K @ A if times is None else times(A)

    def enough(B, A, R, rho, columns):
        return gaps(B, A, R) <= tol

    same = lambda B: B.copy()  # noqa: E731
    return descend(Dense(), precondition or same, B, enough, steps, keep)


@pytest.mark.parametrize("preconditioned", [True, False])
def test_conjugate_gradients_solve(preconditioned):
    X, root = rows()
    K = gram(X, root)
    B = np.random.default_rng(1).normal(size=(len(X), 5)) * [1, 1e3, 1e-6, 0, 1]
    pre = Preconditioner(KERNEL, X, root, pivots(X, root, 40))
    found = descent(K, B, precondition=pre.solve if preconditioned else None)
    expected = np.linalg.solve(K + np.eye(len(X)), B)
    assert found.status == "converged"
    size = np.max(np.abs(expected), axis=0)
    assert np.all(np.max(np.abs(found.A - expected), axis=0) <= 1e-10 * size)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12), st.floats(0.1, 100.0))
def test_the_gap_of_each_step_is_that_of_the_paper(seed, steps, signal):
    """With the same coefficients on both sides, and noise of variance 1 (BKM 78, 79, 84)."""
    _, Y, K = quadratic_dense.data(n=20, outputs=2, seed=seed)
    K = signal * K
    found = descent(K, Y, steps)
    each = gaps(Y, found.A, found.R)
    for p in range(2):
        y, a = Y[:, p : p + 1], found.A[:, p : p + 1]
        primal, dual = quadratic_dense.L(K, y, a, 1.0), quadratic_dense.L_star(K, y, a, 1.0)
        if primal < 0:
            expected = quadratic_dense.gap(primal, dual, y, 1.0)
            assert each[p] == pytest.approx(expected, rel=1e-6, abs=1e-12)
        lower = -0.5 * float(np.sum(y**2)) - dual
        assert lower <= quadratic_dense.L_min(K, y, 1.0) * (1 - 1e-12) <= primal + 1e-9


def test_too_few_steps_are_told():
    X, root = rows()
    found = descent(gram(X, root), np.ones((len(X), 1)), steps=2)
    assert found.status == "stopped"
    assert found.iterations == 2


def test_an_interrupt_keeps_the_iterate_and_what_it_lacks():
    X, root = rows()
    K, B, calls = gram(X, root), np.ones((len(X), 2)), []

    def times(A):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return K @ A

    found = descent(K, B, keep=True, times=times)
    assert found.status == "interrupted"
    five = descent(K, B, steps=5)
    np.testing.assert_array_equal(found.A, five.A)
    np.testing.assert_allclose(found.R, B - K @ found.A - found.A, rtol=1e-9, atol=1e-9)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        descent(K, B, times=times)


def test_an_interrupt_between_any_two_lines():
    """What is kept is of use: an iterate with its residual, and coefficients of whole steps."""
    X, root = rows(30)
    K, B = gram(X, root), np.random.default_rng(1).normal(size=(30, 2))
    full = descent(K, B, steps=3)
    calls, lines = [], 0
    before = sys.gettrace()

    def local(frame, event, arg):
        nonlocal lines
        if event == "line" and len(calls) == 3:  # within the third step
            lines += 1
            if lines == at:
                raise KeyboardInterrupt
        return local

    def trace(frame, event, arg):
        return local if frame.f_code is descend.__code__ else None

    def times(A):
        calls.append(1)
        return K @ A

    at, tried = 1, 0
    while True:
        calls.clear()
        lines = 0
        sys.settrace(trace)
        try:
            found = descent(K, B, keep=True, times=times)
        finally:
            sys.settrace(before)
        if found.status != "interrupted":
            break
        np.testing.assert_allclose(found.R, B - K @ found.A - found.A, atol=1e-9)
        for kept, whole in zip(found.coefficients, full.coefficients, strict=True):
            assert 2 <= len(kept) <= 3
            assert kept == whole[: len(kept)]
            assert np.isfinite(log_quadrature(kept)).all()
        at, tried = at + 1, tried + 1
    assert tried > 15


def test_quadrature_of_the_logarithm():
    X, root = rows(60)
    K, z = gram(X, root), np.random.default_rng(1).normal(size=(60, 1))
    pre = Preconditioner(KERNEL, X, root, pivots(X, root, 10))
    found = descent(K, z, precondition=pre.solve)
    V = pre.V
    P = V @ V.T + np.eye(60)
    values, E = np.linalg.eigh(P)
    half = E @ np.diag(values**-0.5) @ E.T
    inner, U = np.linalg.eigh(half @ (K + np.eye(60)) @ half)
    u = U.T @ (half @ z[:, 0])
    expected = float(u**2 @ np.log(inner) / (u @ u))
    value, above = log_quadrature(found.coefficients[0])
    assert value == pytest.approx(expected, rel=1e-9)
    assert 0 <= above < 1e-9
    for steps in range(1, 8):  # the value is below that of few steps, by no more than they tell
        few = descent(K, z, steps, precondition=pre.solve)
        value, above = log_quadrature(few.coefficients[0])
        assert value - above <= expected + 1e-12 and expected <= value + 1e-12
        assert above > 0


# --- the mean ---------------------------------------------------------------------------------


def test_least_squares_are_right_to_the_second_order():
    X, root = rows(60)
    rng = np.random.default_rng(1)
    Q = gram(X, root) + np.eye(60)
    H, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    S, A = np.linalg.solve(Q, H), np.linalg.solve(Q, Y)
    exact = np.linalg.solve(H.T @ S, H.T @ A)
    wrong = []
    for size in (1e-3, 1e-4):
        noise = np.random.default_rng(2)
        S2, A2 = S + size * noise.normal(size=S.shape), A + size * noise.normal(size=A.shape)
        found = estimate(Y, H, A2, S2, Y - Q @ A2, H - Q @ S2)
        wrong.append(np.max(np.abs(found.beta - exact)))
    assert wrong[1] < 0.03 * wrong[0]
    inverse = np.linalg.inv(H.T @ S)
    found = estimate(Y, H, A, S, Y - Q @ A, H - Q @ S)
    np.testing.assert_allclose(found.E @ found.E.T, inverse, rtol=1e-8, atol=1e-12)
    assert found.log_determinant == pytest.approx(-np.linalg.slogdet(inverse)[1], rel=1e-10)
    near = first_estimate(Y, H, lambda B: np.linalg.solve(Q, B))
    np.testing.assert_allclose(near, exact, rtol=1e-8)


# --- adjoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [40, 1030])
def test_low_rank_adjoints(n):
    X, _ = rows(n)
    rng = np.random.default_rng(1)
    a, b, d = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.normal(size=n)
    G = a @ b.T + b @ a.T
    expected = KERNEL.pullback(X, None, G + np.diag(d), inputs=False).theta
    found = pull_low_rank(KERNEL, X, np.hstack([a, b]), np.hstack([b, a]), d)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_nystrom_adjoint_by_differences():
    X, root = rows(60)
    chosen = pivots(X, root, 12)
    W = 0.1 * np.random.default_rng(1).normal(size=(60, 3))

    def value(theta):
        """ln det P - w'P w, whose derivative is <P^-1 - W W', dP>."""
        kernel = KERNEL.with_theta(theta)
        C, Kmm = kernel(X, X[chosen]), kernel(X[chosen])
        P = root[:, None] * (C @ np.linalg.solve(Kmm, C.T)) * root + np.eye(60)
        return np.linalg.slogdet(P)[1] - np.sum(W * (P @ W))

    found = pull_nystrom(Preconditioner(KERNEL, X, root, chosen), W)
    for i, step in enumerate(1e-5 * np.eye(KERNEL.theta.size)):
        moved = (value(KERNEL.theta + step) - value(KERNEL.theta - step)) / 2e-5
        assert found[i] == pytest.approx(moved, rel=1e-6, abs=1e-6)
