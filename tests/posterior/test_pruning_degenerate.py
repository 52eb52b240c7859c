"""Pruning of degenerate posteriors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import RBF
from mercer.means import Constant
from mercer.posterior import Basis, Dense, Posterior
from mercer.posterior.factors import InverseTriangular

from .kept_points import where


def where_in(points, X):
    """Return the numbers of points among the rows of X."""
    return [int(np.flatnonzero(np.all(point == X, axis=1))[0]) for point in points]


def linear_loss(case, R, naive):
    """The loss from its definition: least squares, two Gaussians, the textbook divergence."""
    S = case.M.T @ case.M
    E = np.linalg.cholesky(np.linalg.inv(S)).T  # rows that would have left this covariance
    m, size = len(case.X), len(E)
    kept = [*R, *range(m, size)]
    T = np.linalg.lstsq(E[:, kept], E, rcond=None)[0]
    S1 = T @ S @ T.T
    total = 0.0
    for alpha in case.alpha.T:
        total += naive.divergence(
            E @ alpha,
            E @ S @ E.T + np.eye(size),
            E[:, kept] @ T @ alpha,
            E[:, kept] @ S1 @ E[:, kept].T + np.eye(size),
        )
    return total


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("linear", [False, True])
def test_degenerate(seed, linear, naive):
    case = naive.Degenerate(seed, m=7, linear=linear, scale=[0.5, 2.0])
    S = case.M.T @ case.M
    E = np.linalg.cholesky(np.linalg.inv(S)).T
    R = list(range(7))
    for n in range(6, 0, -1):
        pruned, loss = case.posterior.prune(n)
        candidates = [R[:i] + R[i + 1 :] for i in range(len(R))]
        losses = [linear_loss(case, each, naive) for each in candidates]
        R = where(pruned, case)
        assert R in candidates
        assert_allclose(losses[candidates.index(R)], min(losses), rtol=1e-6, atol=1e-9)
        assert_allclose(loss, min(losses), rtol=1e-6, atol=1e-9)
        assert pruned.weight == 0 and pruned.n_features == case.posterior.n_features
        columns = E[:, [*R, *range(7, len(E))]]
        after = columns @ pruned.B.gram() @ columns.T + np.eye(len(E))
        total = sum(
            naive.divergence(
                E @ alpha, E @ S @ E.T + np.eye(len(E)), columns @ pruned.alpha[:, p], after
            )
            for p, alpha in enumerate(case.alpha.T)
        )
        assert_allclose(total, loss, rtol=1e-6, atol=1e-9)


def test_the_loss_is_that_of_the_rows_that_were_learned_from(naive):
    # Beside a constant the last section but one can go without a trace at the basis points, and
    # the function moves everywhere else.
    rng = np.random.default_rng(0)
    x, points = np.linspace(-3, 3, 60)[:, None], np.array([[-2.0], [-0.7], [0.8], [2.1]])
    basis = Basis(RBF(naive.LENGTH), points, Constant(estimate="integrate"))
    A, noise = basis.phi(x), 0.04
    y = np.sin(2 * x[:, 0]) + np.sqrt(noise) * rng.standard_normal(60)
    alpha = np.linalg.lstsq(A, y, rcond=None)[0]
    B = InverseTriangular(np.linalg.cholesky(A.T @ A / noise))
    whole = Posterior(basis, alpha[:, None], B=B, weight=0)
    for n in (3, 2, 1):
        pruned, loss = whole.prune(n)
        assert np.max(np.abs(pruned.mean(x) - whole.mean(x))) > 0.05
        wanted = naive.divergence(
            whole.mean(x)[:, 0],
            whole.cov(x)[:, :, 0] + noise * np.eye(60),
            pruned.mean(x)[:, 0],
            pruned.cov(x)[:, :, 0] + noise * np.eye(60),
        )
        assert_allclose(loss, wanted, rtol=1e-8)
        # and what is kept predicts the rows as their own least squares do
        kept = pruned.basis.phi(x)
        again = np.linalg.lstsq(kept, y, rcond=None)[0]
        assert_allclose(pruned.alpha[:, 0], again, rtol=1e-8)


def test_degenerate_coupled_outputs(naive):
    rng = np.random.default_rng(0)
    X = np.array([[-2.0], [-0.9], [0.1], [1.2], [2.4]])
    B = [Dense(rng.standard_normal((4, 5))) for _ in range(2)]
    p = Posterior(
        Basis(RBF(naive.LENGTH), X), rng.standard_normal((5, 2)), B=B, weight=0, scale=[1.0, 3.0]
    )

    mean = sum(F.gram() for F in B) / 2.0
    E = np.linalg.cholesky(np.linalg.inv(mean)).T

    def observed(q):
        rows = E[:, where_in(q.basis.points, X)]
        roots = np.concatenate([rows @ F.M.T for F in q.B])
        return (rows @ q.alpha).T.ravel(), roots @ roots.T + np.eye(10)

    losses = []
    for n in (4, 3, 2, 1):
        pruned, loss = p.prune(n)
        assert pruned.is_coupled
        assert_allclose(naive.divergence(*observed(p), *observed(pruned)), loss, rtol=1e-7)
        losses.append(loss)
    assert np.all(np.diff(losses) > 0)


def test_degenerate_losses_are_additive_on_the_same_points(naive):
    # The first projection leaves less than the precision of the original to measure by, so only
    # monotonicity and the identity are promised between calls.
    case = naive.Degenerate(3, m=6)
    losses = [case.posterior.prune(n)[1] for n in range(1, 7)]
    assert np.all(np.diff(losses) < 0) and losses[-1] == 0.0


def test_degenerate_duplicates_and_no_covariance(naive):
    X = np.repeat(np.array([[0.0], [1.0], [2.5]]), 2, axis=0)
    p = Posterior(Basis(RBF(1.0), X), np.arange(6.0)[:, None], weight=0)
    pruned, loss = p.prune(3, noise=0.1)
    assert pruned.n_basis == 3 and loss < 1e-12
    assert_allclose(pruned.mean(X + 0.3), p.mean(X + 0.3), rtol=1e-10)
    assert pruned.B is None
    assert np.all(pruned.var(X) == 0)


@pytest.mark.parametrize("noise", [None, 0.0, -1.0, np.nan, np.inf])
def test_coefficients_without_a_covariance_need_noise(noise):
    bare = Posterior(Basis(RBF(1.0), np.arange(3.0)[:, None]), np.ones((3, 1)), weight=0)
    with pytest.raises(ValueError, match="noise"):
        bare.prune(2, noise=noise)
