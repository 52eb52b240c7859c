"""What Laplace's method is held to, by the textbook."""

from __future__ import annotations

import numpy as np

from mercer.inference import laplace

from .latent import LIKELIHOODS

KINDS = list(LIKELIHOODS)


def dense_parts(p, f):
    """g, W, K, Sigma and R at latent values f, by the textbook."""
    g, second, _ = p.derivatives(f)
    K = p.kernel(p.X)
    W = -second
    Sigma = np.linalg.inv(np.eye(p.n) + K * W) @ K
    R = W[:, None] * np.linalg.inv(np.eye(p.n) + K * W)
    return g, W, K, Sigma, R


def value_of(p):
    return laplace.solve(p).log_evidence
