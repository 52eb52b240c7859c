"""Held-out rows of folds: against models that are fitted without them, written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer.inference._columns import KernelColumns
from mercer.inference._expansion_choice import folds_of, held_out
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._residual_noise import Noise
from mercer.inference.laplacian import path
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.priors import Laplacian, WeightDecay

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (50, 1))
Y = 0.5 + np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(50)
KERNEL, H = RBF(0.8), np.ones((50, 1))


def test_folds_keep_rows_of_a_kind_together():
    kinds = np.repeat(np.arange(20), 3)
    folds = folds_of(kinds, 5, np.random.default_rng(0))
    assert all(len(set(folds[kinds == kind])) == 1 for kind in range(20))
    np.testing.assert_array_equal(np.bincount(folds), [12] * 5)
    assert np.max(folds_of(np.arange(3), 5, np.random.default_rng(0))) == 2
    assert not np.any(folds_of(np.zeros(4, dtype=int), 5, np.random.default_rng(0)))


def test_folds_have_their_share_of_each_label_whatever_its_name():
    labels = np.array([0] * 40 + [1] * 10 + [2] * 5)
    folds = folds_of(np.arange(55), 5, np.random.default_rng(0), labels)
    counts = np.array([np.bincount(folds[labels == c], minlength=5) for c in range(3)])
    np.testing.assert_array_equal(counts, np.repeat([[8], [2], [1]], 5, axis=1))
    renamed = folds_of(np.arange(55), 5, np.random.default_rng(0), 2 - labels)
    np.testing.assert_array_equal(folds, renamed)


@pytest.mark.parametrize("known", [None, 0.05])
def test_held_out_densities_are_those_of_the_rest_alone(known):
    w = np.linspace(0.5, 2.0, 50)
    spec = Gaussian(known)
    noise = Noise(spec, 1.0)
    now = noise.begun()
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), now, Y, None, H, w)
    test, rest = np.arange(10), np.arange(10, 50)
    train = problem.rows(rest)
    lams = np.array([2.0, 0.3])
    solutions = path(train, lams, tol=1e-9)
    found = held_out(problem, test, train, solutions, lams, NoiseModel(noise, now))
    for q, solution in enumerate(solutions):
        A = np.hstack([KERNEL(X, X[solution.indices]), H])
        coef = np.concatenate([solution.coef, solution.beta])
        residual, k = (Y - A @ coef)[rest], A.shape[1]
        v = known or w[rest] @ residual**2 / (np.sum(w[rest]) - k)
        cov = v * np.linalg.inv(A[rest].T @ (w[rest][:, None] * A[rest]))
        std = np.sqrt(v + np.einsum("ij,jk,ik->i", A[test], cov, A[test]))
        np.testing.assert_allclose(found.mean[q], A[test] @ coef, rtol=1e-8)
        wanted = norm.logpdf(Y[test], A[test] @ coef, std)
        np.testing.assert_allclose(found.logs[q], wanted, rtol=1e-6)
        assert found.active[q] == len(solution.indices)


def test_a_given_prior_scale_makes_noise_of_a_penalty():
    noise = Noise(Gaussian(), 1.0)
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), noise.begun(), Y, None, H)
    model = NoiseModel(noise, noise.begun(), Laplacian, 0.5)
    solution = path(problem, [0.2])[0]
    assert model.of(problem, solution, 0.2) == Gaussian(0.1)
    assert model.scale(Gaussian(0.1), 0.2) == 0.5
    decay = NoiseModel(noise, Gaussian(0.4), WeightDecay, 0.5)
    # unit/s^2 = lam^2/unit of the loss that is minimised
    assert decay.of(problem, solution, 0.2).noise / 0.25 == pytest.approx(0.04 / 0.4)
    free = NoiseModel(noise, Gaussian(0.4), WeightDecay)
    assert 0.1 / free.scale(Gaussian(0.1), 0.2) ** 2 == pytest.approx(0.04 / 0.4)


def test_as_many_coefficients_as_rows_leave_no_noise_to_tell():
    noise = Noise(Gaussian(), 1.0)
    problem = ExpansionProblem.of(KernelColumns(RBF(0.01), X[:5]), noise.begun(), Y[:5])
    solution = path(problem, [1e-6])[0]
    assert len(solution.indices) == 5
    assert NoiseModel(noise, noise.begun()).of(problem, solution, 1e-6) is None
