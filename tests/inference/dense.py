"""Exact Gaussian process regression as the textbook writes it: dense, slow, obvious.

Nothing here is imported from Mercer.
"""

from __future__ import annotations

import numpy as np


def rbf(X, Z, length_scale=1.0, variance=1.0):
    difference = (X[:, None, :] - Z[None, :, :]) / length_scale
    return variance * np.exp(-0.5 * np.sum(difference**2, axis=2))


def log_evidence(Q, Y):
    """Sum over columns of ln N(y; 0, Q)."""
    sign, log_determinant = np.linalg.slogdet(Q)
    assert sign > 0
    total = 0.0
    for y in Y.T:
        total -= 0.5 * (y @ np.linalg.solve(Q, y) + log_determinant + len(y) * np.log(2 * np.pi))
    return total


def restricted_log_evidence(Q, Y, H):
    """The same with H beta added and beta integrated out under a flat prior."""
    total = 0.0
    n, r = H.shape
    information = H.T @ np.linalg.solve(Q, H)
    for y in Y.T:
        beta = np.linalg.solve(information, H.T @ np.linalg.solve(Q, y))
        residual = y - H @ beta
        total -= 0.5 * residual @ np.linalg.solve(Q, residual)
        total -= 0.5 * (np.linalg.slogdet(Q)[1] + np.linalg.slogdet(information)[1])
        total -= 0.5 * (n - r) * np.log(2 * np.pi)
    return total


def predict(K, noise, y, K_cross, K_new):
    """Mean and covariance of the function at new points; K_cross is (new, n)."""
    Q = K + noise
    return (
        K_cross @ np.linalg.solve(Q, y),
        K_new - K_cross @ np.linalg.solve(Q, K_cross.T),
    )
