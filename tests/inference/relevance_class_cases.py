"""Problems of labels for relevance vector machines, and dense oracles of Laplace's evidence."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit, log_ndtr, logsumexp


def circles(n=80, seed=0, d=2):
    """Return inputs and labels -1, 1 of a ring around a blob that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=n) > np.sqrt(d) - 0.2, 1.0, -1.0)
    return X, y


def sectors(n=90, classes=3, seed=0):
    """Return inputs and labels 0, 1, ... of overlapping sectors of the plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, np.floor((angle % (2 * np.pi)) / (2 * np.pi) * classes).astype(int) % classes


def log_density(y, t, link):
    """ln p(y | t) of labels -1 and 1."""
    return log_expit(y * t) if link == "logistic" else log_ndtr(y * t)


def dense_laplace(Phi, s, y, mean=0.0, weights=1.0, link="logistic"):
    """Return Laplace's log evidence by a general optimiser and second differences.

    ln p(y | theta) p(theta) at the mode, plus ln sqrt(det(2 pi H^-1)), in this form.
    """
    k = Phi.shape[1]

    def loss(theta):
        t = mean + Phi @ theta
        prior = 0.5 * s @ theta**2 - 0.5 * np.sum(np.log(s / (2 * np.pi)))
        return prior - np.sum(weights * log_density(y, t, link))

    return _laplace(loss, k)


def dense_multinomial(Phi, s, Y, mean=0.0, weights=1.0):
    """Return the same for a softmax of P classes, all kP coefficients with their priors."""
    k, P = Phi.shape[1], Y.shape[1]
    weights = np.broadcast_to(weights, len(Y))

    def loss(theta):
        coef = theta.reshape(k, P)
        F = mean + Phi @ coef
        rows = np.sum(Y * (F - logsumexp(F, axis=1, keepdims=True)), axis=1)
        prior = 0.5 * s @ np.sum(coef**2, axis=1) - 0.5 * P * np.sum(np.log(s / (2 * np.pi)))
        return prior - weights @ rows

    return _laplace(loss, k * P)


def _laplace(loss, size):
    found = minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    x = found.x
    step = 1e-3
    eye = step * np.eye(size)
    for _ in range(2):  # Newton's steps on differences, to where BFGS cannot see
        H = np.empty((size, size))
        for i in range(size):
            for j in range(i, size):
                H[i, j] = H[j, i] = (
                    loss(x + eye[i] + eye[j])
                    - loss(x + eye[i] - eye[j])
                    - loss(x - eye[i] + eye[j])
                    + loss(x - eye[i] - eye[j])
                ) / (4 * step**2)
        g = np.array([(loss(x + e) - loss(x - e)) / (2 * step) for e in eye])
        x = x - np.linalg.solve(H, g)
    return -loss(x) + 0.5 * size * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(H)[1]
