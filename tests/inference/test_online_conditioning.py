"""On-line learning where matrices are all but singular: next to no noise, contradictions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import _online_rows
from mercer.inference._online_moments import refresh
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace, Probit
from mercer.linalg import _recursion_twins


def inverse_error(process):
    A, m = process.arrays, process.arrays.m
    return np.max(np.abs(A.Q[:m, :m] @ A.K[:m, :m] - np.eye(m)))


@pytest.mark.parametrize("places", [5, 20])
@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("max_basis", [3, 25])
def test_labels_that_contradict_each_other(max_basis, noise, places):
    rng = np.random.default_rng(0)
    P = rng.uniform(0, 5, (places, 2))
    X, y = P[rng.integers(0, places, 1500)], np.where(rng.random(1500) < 0.5, 1.0, -1.0)
    process = OnlineProcess(1.0 * RBF(1.0), Probit(noise), max_basis=max_basis)
    before = process.learn(X, y[:, None])
    mean, var = process.posterior().mean_and_var(P)
    assert np.all(np.isfinite(before.log_density))
    assert np.max(np.abs(mean)) < 1.0
    assert np.all(var >= 0)
    assert process.projection_loss < 1e4
    m = process.arrays.m
    assert np.linalg.eigvalsh(process.arrays.S[0, :m, :m])[0] > -1e-15


@pytest.mark.parametrize(
    "likelihood, compiled",
    [(Gaussian(1e-300), True), (Gaussian(1e-300), False), (Laplace(1e-100), True)],
    ids=["compiled", "twin", "laplace"],
)
def test_without_noise_what_is_left_is_a_covariance(likelihood, compiled, monkeypatch):
    """A row seen again and again would leave 1e-12 of what is left, each time."""
    if not compiled:
        monkeypatch.setattr(_online_rows, "recursion", lambda: _recursion_twins)
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((50, 1)), rng.uniform(-3, 3, (300, 1)), np.zeros((50, 1))])
    process = OnlineProcess(RBF(1.0), likelihood, max_basis=40)
    process.learn(X, np.sin(X))
    m = process.n_basis
    S = process.arrays.S[0, :m, :m]
    sd = np.sqrt(np.diag(S))
    assert np.linalg.eigvalsh(S / np.outer(sd, sd))[0] > 1e-3
    np.testing.assert_allclose(process.posterior().mean(X), np.sin(X), atol=0.01)


@pytest.mark.parametrize("noise", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("length", [0.5, 1.0])
def test_the_inverse_of_the_gram_matrix_is_one(length, noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (1500, 2))
    process = OnlineProcess(RBF(length), Gaussian(noise), max_basis=100)
    process.learn(X, np.sin(X[:, :1]) + np.sqrt(noise) * rng.normal(size=(1500, 1)))
    assert inverse_error(process) < 1e-6
    refresh(process.arrays)
    assert inverse_error(process) < 1e-8
