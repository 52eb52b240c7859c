"""The two quadratic forms as the paper writes them: dense, slow, obvious.

Nothing here is imported from Mercer.
"""

from __future__ import annotations

import numpy as np

from .dense import rbf


def L(K, Y, alpha, s2):
    """(BKM 78), summed over columns."""
    return sum(
        -y @ K @ a + 0.5 * a @ (s2 * K + K.T @ K) @ a for y, a in zip(Y.T, alpha.T, strict=True)
    )


def L_star(K, Y, alpha, s2):
    """(BKM 79), summed over columns."""
    Q = s2 * np.eye(len(K)) + K
    return sum(-y @ a + 0.5 * a @ Q @ a for y, a in zip(Y.T, alpha.T, strict=True))


def optimum(K, Y, s2):
    return np.linalg.solve(K + s2 * np.eye(len(K)), Y)


def L_min(K, Y, s2):
    """(BKM 82)."""
    return -0.5 * np.sum(Y * (K @ optimum(K, Y, s2)))


def gap(primal, dual, Y, s2):
    """(BKM 84)."""
    half = 0.5 * np.sum(Y**2)
    return 2 * (primal + s2 * dual + half) / (-primal + s2 * dual + half)


def data(n=40, d=2, outputs=2, seed=0, length_scale=0.8):
    """Return inputs, targets and the kernel matrix of `RBF(length_scale)`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.sin(2 * X[:, :1] + np.arange(outputs)) + 0.2 * rng.normal(size=(n, outputs))
    return X, Y, rbf(X, X, length_scale)
