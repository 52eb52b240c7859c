"""Problems for relevance vector machines, hyperpriors from their formulas, and dense oracles."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal


class Flat:
    """ln s is as likely anywhere."""

    def log_hyper(self, s):
        return np.zeros(np.shape(s))

    def slope(self, s):
        return np.zeros(np.shape(s))

    def best_precision(self, S, Q):
        S, Q = np.asarray(S, dtype=float), np.asarray(Q, dtype=float)
        there = Q**2 > S
        r = np.where(there, Q**2 / S, 2.0)
        return (
            np.where(there, S / (r - 1), np.inf),
            np.where(there, 0.5 * (r - 1 - np.log(r)), 0.0),
        )


class Gamma:
    """ln s has the density of a Gamma variable's logarithm, relative to its peak."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def log_hyper(self, s):
        s = np.asarray(s, dtype=float)
        return self.a * np.log(s * self.b / self.a) - self.b * s + self.a

    def slope(self, s):
        return self.a - self.b * np.asarray(s, dtype=float)

    def best_precision(self, S, Q):
        out = [self._one(*each) for each in zip(np.ravel(S), np.ravel(Q), strict=True)]
        s, gain = np.array(out).T
        return s, gain

    def _one(self, S, Q):
        def loss(t):
            s = np.exp(t)
            return -(0.5 * (t - np.log(s + S) + Q**2 / (s + S)) + self.log_hyper(s))

        grid = np.linspace(-30, 30, 121)
        near = grid[np.argmin([loss(t) for t in grid])]
        best = minimize_scalar(loss, bounds=(near - 1, near + 1), options={"xatol": 1e-10})
        return (np.exp(best.x), -best.fun) if best.fun < 0 else (np.inf, 0.0)


def sinc(n=60, seed=0, noise=0.1):
    """Return inputs and targets of Tipping's example."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n, 1))
    return X, np.sinc(X[:, 0] / np.pi) + noise * rng.standard_normal(n)


def dense_evidence(Phi, s, v, y, mean=0.0):
    """ln N(y; m, V + Phi S^-1 Phi') (BKM 127), V = v I or diag(v)."""
    n = len(y)
    C = np.diag(np.broadcast_to(v, n)) + (Phi / s) @ Phi.T
    return multivariate_normal.logpdf(y, np.broadcast_to(mean, n), C)


def dense_penalised(Phi, s, v, y, mean, hyperprior, noise_prior=(0.0, 0.0)):
    """(BKM 132): with the log densities of ln s and ln 1/v."""
    c, d = noise_prior
    penalty = np.sum(hyperprior.log_hyper(s)) - c * np.log(v) - d / v
    return dense_evidence(Phi, s, v, y, mean) + penalty


def gradient(f, x, step=1e-5):
    """Central differences."""
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])
