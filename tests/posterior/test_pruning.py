"""Pruning against dense divergences and against every subset tried by hand."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import RBF, Constant
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior, pruning, pruning_greedy
from mercer.posterior.pruning_moments import steady_root

from .kept_points import where


def moments(p, X, naive):
    """Mean and covariance of (g at X, beta), outputs outermost, from the factors alone."""
    m, r, P = p.n_basis, p.n_features, p.n_outputs

    def dense(F):
        if F is None:
            return np.zeros((0, m + r))
        if isinstance(F, Dense):
            return F.M
        return np.hstack([np.linalg.inv(np.tril(F.L)), np.zeros((m, r))])

    As = p.A if p.is_coupled else [p.A] * P
    Bs = p.B if p.is_coupled and p.B is not None else [p.B] * P
    T = np.zeros((len(X) + r, m + r))
    T[: len(X), :m] = naive.rbf(X, p.basis.points)
    T[len(X) :, m:] = np.eye(r)
    size = len(X) + r
    S = np.zeros((P, size, P, size))
    for i, j in itertools.product(range(P), range(P)):
        if i != j and not p.is_coupled:
            continue
        M = dense(Bs[i]).T @ dense(Bs[j]) - dense(As[i]).T @ dense(As[j])
        S[i, :, j] = T @ M @ T.T
        if i == j:
            S[i, : len(X), j, : len(X)] += naive.rbf(X, X)
    return (T @ p.alpha).T.ravel(), S.reshape(P * size, P * size)


def subset_loss(p, X, R, naive):
    """KL(q, p(rest | g_R) q(g_R, beta)) over all the basis values, from the definition."""
    P, r, m = p.n_outputs, p.n_features, len(X)
    mu, S = moments(p, X, naive)
    K = naive.rbf(X, X)
    W = np.linalg.solve(K[np.ix_(R, R)], K[R]).T  # E[g | g_R] = W g_R
    rest = K - W @ K[R]
    keep = [p_ * (m + r) + i for p_ in range(P) for i in (*R, *range(m, m + r))]
    lift = np.zeros((m + r, len(R) + r))
    lift[:m, : len(R)] = W
    lift[m:, len(R) :] = np.eye(r)
    lift = np.kron(np.eye(P), lift)
    added = np.zeros((m + r, m + r))
    added[:m, :m] = rest
    pruned_S = lift @ S[np.ix_(keep, keep)] @ lift.T + np.kron(np.eye(P), added)
    return naive.divergence(mu, S, lift @ mu[keep], pruned_S)


def greedy(p, X, n, naive):
    """The cheapest point removed again and again, every candidate tried."""
    R = list(range(len(X)))
    while len(R) > n:
        losses = [subset_loss(p, X, R[:i] + R[i + 1 :], naive) for i in range(len(R))]
        del R[int(np.argmin(losses))]
    return R, subset_loss(p, X, R, naive)


CASES = {
    "one output": lambda naive, seed: naive.Exact(seed, m=9, spread=2.5),
    "two outputs": lambda naive, seed: naive.Exact(seed, m=8, P=2, scale=[0.2, 5.0], spread=2.5),
    "explicit functions": lambda naive, seed: naive.Exact(
        seed, m=8, P=2, linear=True, spread=2.5, scale=[2.0, 0.3]
    ),
    "coupled": lambda naive, seed: naive.Coupled(seed, m=6, scale=[1.0, 2.0, 0.5]),
}


@pytest.mark.parametrize("pending", [1, 2, 64])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_trying_every_point(name, seed, pending, naive, monkeypatch):
    monkeypatch.setattr(pruning_greedy, "_PENDING", pending)
    case = CASES[name](naive, seed)
    p = case.posterior
    for n in (len(case.X) - 1, 4, 1):
        R, loss = greedy(p, case.X, n, naive)
        pruned, found = p.prune(n)
        assert where(pruned, case) == R
        assert_allclose(found, loss, rtol=1e-6, atol=1e-9)
        # The posterior that comes back is the one that was measured.
        mu, S = moments(p, case.X, naive)
        mu1, S1 = moments(pruned, case.X, naive)
        assert_allclose(naive.divergence(mu, S, mu1, S1), loss, rtol=1e-6, atol=1e-9)


def test_the_loss_is_the_divergence_of_the_predictions_at_the_basis(naive):
    case = naive.Exact(4, m=8, P=2, spread=2.5)
    pruned, loss = case.posterior.prune(5)
    X = case.X
    before, after = case.posterior, pruned
    total = sum(
        naive.divergence(
            before.mean(X)[:, p], before.cov(X)[:, :, p], after.mean(X)[:, p], after.cov(X)[:, :, p]
        )
        for p in range(2)
    )
    assert_allclose(loss, total, rtol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_published_score(seed, naive):
    # 1/2 [q/P - 1 - ln(q/P) + alpha^2/q + q b'S b] with b = Q_i/q - P_i/P_ii over the others.
    case = naive.Exact(seed, m=7, spread=2.5)
    K = naive.rbf(case.X, case.X)
    Q, alpha = np.linalg.inv(K), case.posterior.alpha[:, 0]
    S = K + K @ case.posterior.C @ K
    P = np.linalg.inv(S)
    scores = []
    for i in range(7):
        others = np.delete(np.arange(7), i)
        q, ratio = Q[i, i], Q[i, i] / P[i, i]
        b = Q[i, others] / q - P[i, others] / P[i, i]
        spread = q * b @ S[np.ix_(others, others)] @ b
        scores.append(0.5 * (ratio - 1 - np.log(ratio) + alpha[i] ** 2 / q + spread))
    pruned, loss = case.posterior.prune(6)
    assert where(pruned, case) == sorted(set(range(7)) - {int(np.argmin(scores))})
    assert_allclose(loss, min(scores), rtol=1e-6)


def test_removal_is_3_16(naive):
    case = naive.Exact(1, m=7, spread=2.5)
    p = case.posterior
    pruned, _ = p.prune(6)
    kept = where(pruned, case)
    (i,) = set(range(7)) - set(kept)
    Q, C, alpha = np.linalg.inv(naive.rbf(case.X, case.X)), p.C, p.alpha
    Qs, q, Cs, c = Q[kept, i], Q[i, i], C[kept, i], C[i, i]
    C_hat = C[np.ix_(kept, kept)] + c * np.outer(Qs, Qs) / q**2
    C_hat -= (np.outer(Qs, Cs) + np.outer(Cs, Qs)) / q
    order = np.array([np.flatnonzero((pruned.basis.points == case.X[j]).all(1))[0] for j in kept])
    assert_allclose(pruned.C[np.ix_(order, order)], C_hat, rtol=1e-7, atol=1e-9)
    alpha_hat = alpha[kept] - alpha[i] * Qs[:, None] / q
    assert_allclose(pruned.alpha[order], alpha_hat, rtol=1e-8)
    assert_allclose(pruned.Q[np.ix_(order, order)], Q[np.ix_(kept, kept)] - np.outer(Qs, Qs) / q,
                    rtol=1e-7, atol=1e-9)  # fmt: skip


@pytest.mark.parametrize("n", [8, 9, 1000])
def test_enough_room_is_the_identity(n, naive):
    p = naive.Exact(0, m=8).posterior
    pruned, loss = p.prune(n)
    assert pruned is p
    assert loss == 0.0


@pytest.mark.parametrize("name", CASES)
def test_losses_add_up_and_grow(name, naive):
    p = CASES[name](naive, 6).posterior
    losses = [p.prune(n)[1] for n in range(1, p.n_basis + 1)]
    assert np.all(np.diff(losses) <= 1e-12)
    middle, first = p.prune(4)
    last, second = middle.prune(2)
    direct, whole = p.prune(2)
    assert_allclose(first + second, whole, rtol=1e-9)
    X = np.zeros((1, 2))
    assert_allclose(last.mean(X), direct.mean(X), rtol=1e-8, atol=1e-10)
    assert_allclose(last.var(X), direct.var(X), rtol=1e-8, atol=1e-10)


def test_many_points_with_updates_put_off(naive, monkeypatch):
    # More removals than are put off at once, and more than one fresh start.
    monkeypatch.setattr(pruning_greedy, "_PENDING", 8)
    case = naive.Exact(3, m=60, d=3, noise=0.05, spread=3.0)
    p = case.posterior
    direct, whole = p.prune(10)
    assert direct.n_basis == 10
    total, step = 0.0, p
    for n in (50, 49, 22, 11, 10):
        step, loss = step.prune(n)
        assert step.n_basis == n and loss > 0
        total += loss
    assert where(step, case) == where(direct, case)
    assert_allclose(total, whole, rtol=1e-8)
    mu, S = p.mean(case.X)[:, 0], p.cov(case.X)[:, :, 0]
    mu1, S1 = direct.mean(case.X)[:, 0], direct.cov(case.X)[:, :, 0]
    assert_allclose(naive.divergence(mu, S, mu1, S1), whole, rtol=1e-6)


def test_duplicates_and_near_duplicates_cost_nothing(naive):
    base = naive.Exact(0, m=12, spread=3.0)
    X = np.vstack([base.X, base.X, base.X + 1e-9])
    Y = np.vstack([base.Y, base.Y + 0.1, base.Y - 0.1])
    Q = naive.rbf(X, X) + 0.05 * np.eye(36)
    A = InverseTriangular(np.linalg.cholesky(Q))
    p = Posterior(Basis(RBF(naive.LENGTH), X), np.linalg.solve(Q, Y), A)
    pruned, loss = p.prune(12)
    assert pruned.n_basis == 12
    assert loss < 1e-8
    Xs = base.Xs
    assert_allclose(pruned.mean(Xs), p.mean(Xs), atol=1e-6)
    assert_allclose(pruned.var(Xs), p.var(Xs), atol=1e-6)
    # Room for more is not filled with points that add nothing.
    again, loss = p.prune(30)
    assert again.n_basis == 12 and loss < 1e-8


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-10])
def test_nearly_singular_gram_matrix(noise, naive):
    case = naive.Exact(1, m=60, d=1, noise=noise)
    p = case.posterior
    losses = []
    for n in (40, 12, 8, 5, 2):
        pruned, loss = p.prune(n)
        assert 1 <= pruned.n_basis <= n
        assert np.isfinite(loss)
        assert np.all(np.isfinite(pruned.mean(case.Xs))) and np.all(pruned.var(case.Xs) >= 0)
        losses.append(loss)
    assert np.all(np.diff(losses) >= -1e-6)
    if noise == 1e-2:
        pruned, loss = p.prune(12)
        assert loss < 1e-3
        assert_allclose(pruned.mean(case.Xs), p.mean(case.Xs), atol=1e-3)


# --- nearly noise-free posteriors, in decimals -------------------------------------------------


def test_redundant_points_that_cost_nothing_go_first(naive, monkeypatch):
    # With noise they do not count, and the greedy search begins without them.
    case = naive.Exact(1, m=40, d=1, noise=0.1)
    sizes = []
    eliminate = pruning.eliminate

    def counted(moments, n):
        sizes.append(len(moments.u))
        return eliminate(moments, n)

    monkeypatch.setattr(pruning, "eliminate", counted)
    _, loss = case.posterior.prune(5)
    K = naive.rbf(case.X, case.X)
    assert sizes[0] < np.linalg.matrix_rank(K) and loss < 10


def test_a_posterior_covariance_that_is_singular_is_not_changed_elsewhere():
    S = np.diag([1.0, 0.5, -1e-17, 1e-3])
    R = steady_root(S)
    assert_array_equal(R, np.tril(R))
    assert np.all(np.diagonal(R) > 0)
    assert_allclose(R @ R.T, S, atol=1e-15)
    assert_array_equal(steady_root(np.diag([4.0, 9.0])), np.diag([2.0, 3.0]))
    with pytest.raises(ValueError, match="do not belong"):
        steady_root(np.diag([1.0, -1e-3]))


def test_an_interpolating_posterior_can_be_pruned(naive):
    case = naive.Exact(1, m=6, noise=1e-300, spread=3.0)
    pruned, loss = case.posterior.prune(3)
    assert pruned.n_basis == 3
    assert np.isfinite(loss) and loss > 0
    # What is kept is still interpolated.
    kept = where(pruned, case)
    assert_allclose(pruned.mean(case.X[kept]), case.Y[kept], rtol=1e-6)
    assert_allclose(pruned.var(case.X[kept]), 0.0, atol=1e-6)


def test_a_kernel_that_is_constant(naive):
    X = np.arange(5.0)[:, None]
    Q = 2.0 + 0.1 * np.eye(5)
    A = InverseTriangular(np.linalg.cholesky(Q))
    p = Posterior(Basis(Constant(2.0), X), np.linalg.solve(Q, np.ones((5, 1))), A)
    pruned, loss = p.prune(3)
    assert pruned.n_basis == 1 and loss < 1e-10
    assert_allclose(pruned.mean(X), p.mean(X), rtol=1e-8)
    assert_allclose(pruned.var(X), p.var(X), rtol=1e-6)


def test_pruning_is_silent_and_leaves_the_original_alone(naive):
    case = naive.Exact(2, m=30, d=1, noise=1e-8)
    before = case.posterior.mean(case.Xs), case.posterior.var(case.Xs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case.posterior.prune(4)
    assert_array_equal(case.posterior.mean(case.Xs), before[0])
    assert_array_equal(case.posterior.var(case.Xs), before[1])


@pytest.mark.parametrize("c", [1, 2])
def test_removals_that_are_put_off_leave_the_right_matrices(c):
    rng = np.random.default_rng(c)
    k, steps = 6, 4
    R = rng.standard_normal((k, k + 2))
    K = R @ R.T
    R = rng.standard_normal((k * c, k * c + 2))
    S = R @ R.T  # (point, output) innermost, as in the moments
    Q, P = np.linalg.inv(K), np.linalg.inv(S)
    C = np.stack([Q @ S[p::c, p::c] @ Q - Q for p in range(c)])
    mean = rng.standard_normal((k, c))
    alpha = Q @ mean
    stays = pruning_greedy.remove(Q, C, P, alpha, steps, 1)
    assert len(stays) == k - steps
    rest = np.ix_(stays, stays)
    expected = np.linalg.inv(K[rest])
    assert_allclose(Q[rest], expected, rtol=1e-9)
    assert_allclose(alpha[stays], expected @ mean[stays], rtol=1e-9)
    for p in range(c):
        assert_allclose(
            C[p][rest], expected @ S[p::c, p::c][rest] @ expected - expected, rtol=1e-8, atol=1e-10
        )
    blocks = np.ix_(*2 * [(stays[:, None] * c + np.arange(c)).ravel()])
    assert_allclose(P[blocks], np.linalg.inv(S[blocks]), rtol=1e-8)


def test_spoilt_updates_end_in_a_fresh_start(naive, monkeypatch):
    p = naive.Exact(2, m=9, spread=2.5).posterior
    # A pivot that rounding has made negative stops the removals, and nothing is removed by it.
    Q, C, P = np.diag([1.0, -1.0, 2.0]), np.zeros((1, 3, 3)), np.diag([1.0, 1.0, -2.0])
    stays = pruning_greedy.remove(Q, C, P, np.zeros((3, 1)), 3, 1)
    assert_array_equal(stays, [1, 2])
    # And without any progress the least novel point goes.
    monkeypatch.setattr(pruning, "eliminate", lambda moments, n: np.arange(len(moments.u)))
    pruned, loss = p.prune(4)
    assert pruned.n_basis == 4 and loss > 0


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(2, 15),
    d=st.integers(1, 3),
    P=st.integers(1, 3),
    noise=st.sampled_from([1e-4, 0.1, 10.0]),
    linear=st.booleans(),
    data=st.data(),
)
def test_any_shape(naive, seed, m, d, P, noise, linear, data):
    case = naive.Exact(seed, m=m, d=d, P=P, noise=noise, linear=linear)
    n = data.draw(st.integers(1, m))
    pruned, loss = case.posterior.prune(n)
    assert pruned.n_basis <= n
    assert np.isfinite(loss) and loss >= 0
    assert pruned.prune(n) == (pruned, 0.0)
    # At the points that are kept nothing changes.
    kept = pruned.basis.points
    size = 1 + np.abs(case.Y).max()
    assert_allclose(pruned.mean(kept), case.posterior.mean(kept), atol=1e-5 * size)
    assert_allclose(pruned.var(kept), case.posterior.var(kept), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", None, True])
def test_n_must_be_a_count(n, naive):
    with pytest.raises(ValueError, match="integer of at least 1"):
        naive.Exact(0).posterior.prune(n)


def test_numpy_integers_are_integers(naive):
    assert naive.Exact(0).posterior.prune(np.int64(3))[0].n_basis == 3


# --- degenerate posteriors --------------------------------------------------------------------
