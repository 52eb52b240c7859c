"""Dense statements of L1-penalised problems, and small ones to hold solvers to."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def squares(y, f, weights=None):
    w = np.ones(len(y)) if weights is None else weights
    return 0.5 * float(np.sum(w * (y - f) ** 2))


def clarabel_squares(Phi, y, lam, H=None, weights=None):
    """Return the least F for Gaussian noise by an interior-point method."""
    n, m = Phi.shape
    theta = cp.Variable(m)
    root = np.sqrt(np.ones(n) if weights is None else weights)
    f = Phi @ theta
    if H is not None:
        f = f + H @ cp.Variable(H.shape[1])
    lam = np.broadcast_to(lam, (m,))
    loss = 0.5 * cp.sum_squares(cp.multiply(root, y - f))
    problem = cp.Problem(cp.Minimize(loss + lam @ cp.abs(theta)))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    return float(problem.value)


def excess(Phi, u, lam, indices, coef):
    """By how much Phi'u misses its conditions, in units of lam: (at coefficients, elsewhere)."""
    slopes = Phi.T @ u
    lam = np.broadcast_to(lam, slopes.shape)
    at = np.abs(slopes[indices] - lam[indices] * np.sign(coef)) / lam[indices]
    return np.max(at, initial=0.0), np.max(np.abs(slopes) / lam - 1.0, initial=0.0)


def rows(n, seed=0, d=2):
    """Return inputs, targets and an RBF kernel matrix of width 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, d))
    y = np.sin(X[:, 0]) + 0.5 * X[:, -1] + 0.1 * rng.normal(size=n)
    K = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2))
    return X, y, K
