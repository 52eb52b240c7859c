"""The problems that tests of the low-rank engine share, and its matrix written out."""

from __future__ import annotations

import numpy as np

from mercer.inference.low_rank import LowRankProblem
from mercer.kernels import Matern

from .latent import make, with_gram

ROUGH = 1.7 * Matern([0.8, 1.5], nu=1.5)


def with_points(p, points):
    return LowRankProblem(
        p.kernel, p.X, p.y, p.likelihood, p.mean, p.weights, p.jitter, points=points
    )


def case(kind, n=30, m=7, **options):
    """A problem, and basis points of which some are rows and others not."""
    p = make(kind, n, kernel=ROUGH, **options)
    points = np.vstack([p.X[: m - 2], p.X[-2:] + 0.3])
    return with_points(p, points)


def dense_gram(p):
    """K~ = K_nm K_mm^-1 K_mn, as (BKM 73) has it."""
    U = np.linalg.solve(p.kernel(p.points), p.kernel(p.points, p.X))
    return U.T @ p.kernel(p.points) @ U


def as_dense(p):
    """The problem of Laplace's method that has K~ for its Gram matrix."""
    return with_gram(p, dense_gram(p))
