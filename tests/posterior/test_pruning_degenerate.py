"""Pruning of degenerate posteriors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import RBF
from mercer.posterior import Basis, Dense, Posterior

from .kept_points import where


def linear_loss(case, R, noise, naive):
    """The loss from its definition: least squares, two Gaussians, the textbook divergence."""
    Phi = case.phi(case.X)
    m = len(case.X)
    kept = [*R, *range(m, Phi.shape[1])]
    T = np.linalg.lstsq(Phi[:, kept], Phi, rcond=None)[0]
    S, S1 = case.M.T @ case.M, (T @ case.M.T) @ (T @ case.M.T).T
    total = 0.0
    for p, s in enumerate(case.scale):
        total += naive.divergence(
            s * Phi @ case.alpha[:, p],
            s**2 * Phi @ S @ Phi.T + noise * np.eye(m),
            s * Phi[:, kept] @ T @ case.alpha[:, p],
            s**2 * Phi[:, kept] @ S1 @ Phi[:, kept].T + noise * np.eye(m),
        )
    return total


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("linear", [False, True])
def test_degenerate(seed, linear, naive):
    case = naive.Degenerate(seed, m=7, linear=linear, scale=[0.5, 2.0])
    noise = 0.3
    R = list(range(7))
    for n in range(6, 0, -1):
        pruned, loss = case.posterior.prune(n, noise=noise)
        candidates = [R[:i] + R[i + 1 :] for i in range(len(R))]
        losses = [linear_loss(case, S, noise, naive) for S in candidates]
        R = where(pruned, case)
        # With a line beside seven sections the first two removals change nothing at the points.
        assert R in candidates
        assert_allclose(losses[candidates.index(R)], min(losses), rtol=1e-6, atol=1e-9)
        assert_allclose(loss, min(losses), rtol=1e-6, atol=1e-9)
        assert pruned.weight == 0 and pruned.n_features == case.posterior.n_features
        total = sum(
            naive.divergence(
                case.posterior.mean(case.X)[:, p],
                case.posterior.cov(case.X)[:, :, p] + noise * np.eye(7),
                pruned.mean(case.X)[:, p],
                pruned.cov(case.X)[:, :, p] + noise * np.eye(7),
            )
            for p in range(2)
        )
        assert_allclose(total, loss, rtol=1e-6, atol=1e-9)


def test_degenerate_coupled_outputs(naive):
    rng = np.random.default_rng(0)
    X = np.array([[-2.0], [-0.9], [0.1], [1.2], [2.4]])
    B = [Dense(rng.standard_normal((4, 5))) for _ in range(2)]
    p = Posterior(
        Basis(RBF(naive.LENGTH), X), rng.standard_normal((5, 2)), B=B, weight=0, scale=[1.0, 3.0]
    )

    def observed(q):
        S = q.cov(X).reshape(10, 10) + 0.2 * np.eye(10)
        return q.mean(X).ravel(), S

    losses = []
    for n in (4, 3, 2, 1):
        pruned, loss = p.prune(n, noise=0.2)
        assert pruned.is_coupled
        assert_allclose(naive.divergence(*observed(p), *observed(pruned)), loss, rtol=1e-7)
        losses.append(loss)
    assert np.all(np.diff(losses) > 0)


def test_degenerate_losses_are_additive_on_the_same_points(naive):
    # The first projection leaves less than the basis points of the original to measure at, so
    # only monotonicity and the identity are promised between calls.
    case = naive.Degenerate(3, m=6)
    losses = [case.posterior.prune(n, noise=0.5)[1] for n in range(1, 7)]
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
def test_degenerate_needs_noise(noise, naive):
    with pytest.raises(ValueError, match="noise"):
        naive.Degenerate(0).posterior.prune(2, noise=noise)
