"""Problems of several classes, and the softmax's matrices as the textbook writes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import softmax as probabilities

from mercer.inference import softmax
from mercer.inference.softmax import SoftmaxProblem
from mercer.kernels import RBF, Precomputed


def make(n=20, C=3, seed=0, kernel=None, weights=False, mean=False, soft=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    scores = 2.0 * np.stack([np.sin(X[:, 0] + 2 * c) + X[:, 1] * (c % 2) for c in range(C)], axis=1)
    Y = np.eye(C)[np.argmax(scores + rng.gumbel(size=(n, C)), axis=1)]
    if soft:
        Y = rng.dirichlet(np.ones(C), n)
    m = 0.5 * rng.normal(size=(n, C)) if mean else np.zeros((n, C))
    w = rng.uniform(0.3, 2.5, n) if weights else None
    return SoftmaxProblem(1.7 * RBF([0.8, 1.5]) if kernel is None else kernel, X, Y, m, w)


def dense_parts(p, F):
    """K, W and M of order nC, row by row within a class, by the textbook."""
    n, C = p.Y.shape
    K = np.kron(np.eye(C), p.kernel(p.X))
    pi = probabilities(F, axis=1)
    w = np.ones(n) if p.weights is None else p.weights
    W = np.zeros((C, n, C, n))
    for i in range(n):
        W[:, i, :, i] = w[i] * (np.diag(pi[i]) - np.outer(pi[i], pi[i]))
    W = W.reshape(n * C, n * C)
    return K, W, W @ np.linalg.inv(np.eye(n * C) + K @ W)


def value_of(p):
    return softmax.solve(p).log_evidence


def with_gram(p, K):
    return replace(
        p, kernel=Precomputed(K, is_mercer=False), X=np.arange(len(K), dtype=float)[:, None]
    )
