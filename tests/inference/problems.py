"""The problems that the tests of exact inference share."""

from __future__ import annotations

import numpy as np

from mercer.inference.exact import ExactProblem
from mercer.kernels import RBF


def make(n=30, d=2, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(n, outputs)) + 2.0
    return X, Y, rng.uniform(0.05, 0.4, n)


def problem(H=None, integrate=False, **kwargs):
    X, Y, noise = make(**kwargs)
    return ExactProblem(1.7 * RBF([0.8, 1.5]), X, Y, noise, H, integrate)


def adjoint_by_differences(function, p, step=1e-5):
    """dL/dQ by moving each pair of entries of the noise covariance."""
    n = len(p.Y)
    base = np.diag(p.noise)
    G = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            E = np.zeros((n, n))
            E[i, j] = E[j, i] = step
            moved = [
                function(ExactProblem(p.kernel, p.X, p.Y, base + s * E, p.H, p.integrate))
                for s in (1, -1)
            ]
            G[i, j] = (moved[0] - moved[1]) / (2 * step) / (1 if i == j else 2)
    return G
