"""What the tests of greedy regression share: dense algebra of (BKM 78) to (BKM 86), and data."""

from __future__ import annotations

import numpy as np


def data(n=120, d=2, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    F = np.stack([np.sin((2.0 + p) * X[:, 0]) + X[:, -1] ** 2 for p in range(outputs)], axis=1)
    Y = F + 0.3 * rng.normal(size=F.shape)
    return X, Y - Y.mean(axis=0)


def near_duplicates(n=700, seed=0, apart=1e-4):
    """Rows of which many are all but equal, and others are not."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 4, 3))
    X = centres[rng.integers(len(centres), size=n)] + apart * rng.normal(size=(n, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def primal(K, y, s2, alpha):
    """L (BKM 78)."""
    f = K @ alpha
    return -y @ f + 0.5 * (s2 * alpha @ f + f @ f)


def least(K, Y, s2):
    """The minimum of L, summed over outputs (BKM 82)."""
    return -0.5 * np.sum(Y * (K @ np.linalg.solve(K + s2 * np.eye(len(K)), Y)))


def on_basis(K, Y, s2, rows):
    """Coefficients (BKM 86) of unit vectors, by normal equations."""
    A = s2 * K[np.ix_(rows, rows)] + K[rows] @ K[:, rows]
    return np.linalg.solve(A, K[rows] @ Y)


def fitted_by_qr(K, Y, s2, rows):
    """Fitted values of the same by a dense factor of [K_I; s L'], singular values cut off."""
    values, vectors = np.linalg.eigh(K[np.ix_(rows, rows)])
    kept = values > 1e-15 * values[-1]
    half = vectors[:, kept] / np.sqrt(values[kept])
    V = K[:, rows] @ half
    top = np.vstack([V, np.sqrt(s2) * np.eye(V.shape[1])])
    Q = np.linalg.qr(top)[0]
    return Q[: len(K)] @ (Q[: len(K)].T @ Y)
