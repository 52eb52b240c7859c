"""Posteriors made from dense textbook formulas, which share no code with what they check."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.kernels import RBF
from mercer.means import Linear
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior

LENGTH = 0.8


def rbf(X, Z):
    """exp(-|x - z|^2 / (2 l^2)), pair by pair."""
    return np.array([[np.exp(-np.sum((x - z) ** 2) / (2 * LENGTH**2)) for z in Z] for x in X])


def regressors(X):
    return np.hstack([np.ones((len(X), 1)), X])


class Exact:
    """A GP with Gaussian noise: what it predicts by the book, and the same as a Posterior.

    The prior covariance is k, plus 4 h(x)'h(x') where `linear` (h the intercept and slopes).
    """

    prior_variance = 4.0

    def __init__(self, seed, m=8, d=2, P=1, noise=0.1, linear=False, scale=None, spread=2.0):
        rng = np.random.default_rng(seed)
        self.X = rng.uniform(-spread, spread, (m, d))
        self.Y = np.sin(self.X.sum(axis=1))[:, None] * (1 + np.arange(P)) + 0.3
        self.Y = self.Y + 0.1 * rng.standard_normal((m, P))
        self.Xs = rng.uniform(-spread, spread, (5, d))
        self.noise, self.linear = noise, linear
        self.scale = np.ones(P) if scale is None else np.asarray(scale)
        self.posterior = self._posterior()

    def k(self, X, Z):
        K = rbf(X, Z)
        return K + self.prior_variance * regressors(X) @ regressors(Z).T if self.linear else K

    def mean(self, X):
        Q = self.k(self.X, self.X) + self.noise * np.eye(len(self.X))
        return self.k(X, self.X) @ np.linalg.solve(Q, self.Y) * self.scale

    def cov(self, X):
        Q = self.k(self.X, self.X) + self.noise * np.eye(len(self.X))
        S = self.k(X, X) - self.k(X, self.X) @ np.linalg.solve(Q, self.k(self.X, X))
        return S[:, :, None] * self.scale**2

    def _posterior(self):
        m = len(self.X)
        Q = rbf(self.X, self.X) + self.noise * np.eye(m)
        A = InverseTriangular(np.linalg.cholesky(Q))
        if not self.linear:
            alpha = np.linalg.solve(Q, self.Y)
            return Posterior(Basis(RBF(LENGTH), self.X), alpha, A, scale=self.scale)
        H = regressors(self.X)
        precision = np.eye(H.shape[1]) / self.prior_variance + H.T @ np.linalg.solve(Q, H)
        beta = np.linalg.solve(precision, H.T @ np.linalg.solve(Q, self.Y))
        alpha = np.vstack([np.linalg.solve(Q, self.Y - H @ beta), beta])
        root = np.linalg.cholesky(np.linalg.inv(precision))
        B = Dense(root.T @ np.hstack([-np.linalg.solve(Q, H).T, np.eye(H.shape[1])]))
        basis = Basis(RBF(LENGTH), self.X, Linear(estimate="integrate"))
        return Posterior(basis, alpha, A, B, scale=self.scale)


class Coupled:
    """P functions, independent in the prior, seen with noise that is correlated between them."""

    def __init__(self, seed, m=6, d=2, P=3, scale=None):
        rng = np.random.default_rng(seed)
        self.X = rng.uniform(-2, 2, (m, d))
        self.Xs = rng.uniform(-2, 2, (4, d))
        self.Y = rng.standard_normal((m, P))
        R = rng.standard_normal((P, P))
        self.E = R @ R.T / P + 0.05 * np.eye(P)
        self.P, self.scale = P, np.ones(P) if scale is None else np.asarray(scale)
        J = self.joint(self.X)
        root = np.linalg.cholesky(J)
        A = [Dense(np.linalg.inv(root)[:, p * m : (p + 1) * m]) for p in range(P)]
        alpha = np.linalg.solve(J, self.Y.T.ravel()).reshape(P, m).T
        self.posterior = Posterior(Basis(RBF(LENGTH), self.X), alpha, A, scale=self.scale)

    def joint(self, X):
        return np.kron(np.eye(self.P), rbf(X, X)) + np.kron(self.E, np.eye(len(X)))

    def mean(self, X):
        k = np.kron(np.eye(self.P), rbf(X, self.X))
        f = k @ np.linalg.solve(self.joint(self.X), self.Y.T.ravel())
        return f.reshape(self.P, len(X)).T * self.scale

    def cov(self, X):
        """(n, P, n, P)."""
        k = np.kron(np.eye(self.P), rbf(X, self.X))
        S = np.kron(np.eye(self.P), rbf(X, X)) - k @ np.linalg.solve(self.joint(self.X), k.T)
        S = S.reshape(self.P, len(X), self.P, len(X)).transpose(1, 0, 3, 2)
        return S * self.scale[:, None, None] * self.scale


class Degenerate:
    """f = phi(x)'v, v ~ N(alpha, M'M): a linear model in kernel sections (and a line)."""

    def __init__(self, seed, m=6, d=1, P=2, linear=False, scale=None):
        rng = np.random.default_rng(seed)
        self.X = np.sort(rng.uniform(-3, 3, (m, d)), axis=0)
        self.Xs = rng.uniform(-3, 3, (5, d))
        self.linear = linear
        size = m + (1 + d if linear else 0)
        self.alpha = rng.standard_normal((size, P))
        self.M = 0.4 * rng.standard_normal((size + 1, size))
        self.scale = np.ones(P) if scale is None else np.asarray(scale)
        features = Linear(estimate="integrate") if linear else None
        self.posterior = Posterior(
            Basis(RBF(LENGTH), self.X, features),
            self.alpha,
            B=Dense(self.M),
            weight=0,
            scale=self.scale,
        )

    def phi(self, X):
        K = rbf(X, self.X)
        return np.hstack([K, regressors(X)]) if self.linear else K

    def mean(self, X):
        return self.phi(X) @ self.alpha * self.scale

    def cov(self, X):
        S = self.phi(X) @ self.M.T @ self.M @ self.phi(X).T
        return S[:, :, None] * self.scale**2


def divergence(mu0, S0, mu1, S1):
    """KL(N(mu0, S0), N(mu1, S1)) by the textbook."""
    difference = mu1 - mu0
    return 0.5 * (
        np.trace(np.linalg.solve(S1, S0))
        + difference @ np.linalg.solve(S1, difference)
        - len(mu0)
        + np.linalg.slogdet(S1)[1]
        - np.linalg.slogdet(S0)[1]
    )


@pytest.fixture(scope="session")
def naive():
    return SimpleNamespace(
        LENGTH=LENGTH,
        Coupled=Coupled,
        Degenerate=Degenerate,
        Exact=Exact,
        divergence=divergence,
        rbf=rbf,
        regressors=regressors,
    )
