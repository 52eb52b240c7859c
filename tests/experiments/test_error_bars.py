"""Kernels for the variance at one point, against bounds that are computed densely."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.experiments.error_bars import kernels_for_variance
from mercer.kernels import RBF


def distance(K, k, primal, dual, noise):
    """2 (a - b)/(a + b) of the bounds on k'(K + s2)^-1 k by two bases, by plain linear algebra."""
    A = K[:, primal]
    beta = np.linalg.lstsq(A.T @ A + noise * K[np.ix_(primal, primal)], A.T @ k, rcond=None)[0]
    f = A @ beta
    L = -k @ f + 0.5 * (noise * beta @ K[np.ix_(primal, primal)] @ beta + f @ f)
    Q = K[np.ix_(dual, dual)] + noise * np.eye(len(dual))
    below = k[dual] @ np.linalg.solve(Q, k[dual])
    above = (k @ k + 2 * L) / noise
    return 2 * (above - below) / (above + below)


@pytest.mark.parametrize("tol", [0.2, 0.025])
def test_the_bounds_are_near_where_it_says_so_and_not_before(tol, monkeypatch):
    from mercer.experiments import error_bars

    rng = np.random.default_rng(0)
    X, x, noise = rng.normal(size=(80, 2)), np.array([0.3, -0.2]), 0.05
    kept = []

    class Watched(error_bars.Greedy):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            kept.append(self)

    monkeypatch.setattr(error_bars, "Greedy", Watched)
    kernel = RBF(0.7)
    size = kernels_for_variance(kernel, X, x, noise, tol, 80)
    (path,) = kept
    K, k = kernel(X), kernel(X, x[None])[:, 0]
    primal, dual = path.state.indices, path.state.subset
    assert 1 < size < 40
    assert distance(K, k, primal[:size], dual[:size], noise) <= tol * (1 + 1e-9)
    assert distance(K, k, primal[: size - 1], dual[: size - 1], noise) > tol


def test_it_ends_where_it_must():
    X = np.random.default_rng(1).normal(size=(60, 3))
    assert kernels_for_variance(RBF(0.3), X, X[0] + 0.1, 1e-3, 1e-12, 5) == 5
