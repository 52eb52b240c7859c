"""Error bars of expansions, against expansions of the log posterior by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_posterior import (
    Spread,
    curvature,
    expansion_posterior,
    spread_of,
)
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_spread import pieces_of, posterior_spread, ridge_of
from mercer.inference.laplacian import solve
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Logistic, Probit
from mercer.means import Constant
from mercer.posterior import Basis
from mercer.priors import Laplacian, WeightDecay

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 1))
H = np.ones((60, 1))
Y = 0.5 + np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(60)
LABELS = np.where(Y > 0.6, 1.0, -1.0)
WEIGHTS = RNG.uniform(0.5, 2.0, 60)
KERNEL = RBF(0.8)


def hessian(function, x, step=1e-4):
    """Second derivatives by differences of differences."""
    k = len(x)
    out = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            a, b = np.eye(k)[i] * step, np.eye(k)[j] * step
            rise = function(x + a + b) - function(x + a - b)
            fall = function(x - a + b) - function(x - a - b)
            out[i, j] = (rise - fall) / (4.0 * step**2)
    return out


@pytest.mark.parametrize(
    ("noise", "y"),
    [(Gaussian(0.04), Y), (Logistic(), LABELS), (Huber(0.3, 1.2), Y)],
    ids=lambda v: type(v).__name__,
)
def test_the_covariance_is_that_of_a_laplace_expansion_on_the_active_set(noise, y):
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), noise, y, None, H, WEIGHTS)
    solution = solve(problem, Laplacian, 1.5, tol=1e-9)
    k = len(solution.indices)
    assert 2 <= k < 20
    spread = posterior_spread(problem, solution, noise, None)
    A = np.hstack([KERNEL(X, X[solution.indices]), H])
    sign = np.append(np.sign(solution.coef), 0.0)
    scale = problem.loss.unit / 1.5

    def minus_log_posterior(x):
        return -WEIGHTS @ noise.log_density(y, A @ x) + sign @ x / scale

    x = np.concatenate([solution.coef, solution.beta])
    wanted = np.linalg.inv(hessian(minus_log_posterior, x))
    got = spread.covariance()
    np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4 * np.max(np.abs(wanted)))
    np.testing.assert_allclose(spread.var(A), np.einsum("ij,jk,ik->i", A, got, A), rtol=1e-8)
    # the mode is stationary on the active set, so that (BKM 110) is centred there
    step = 1e-5
    slopes = [
        (minus_log_posterior(x + step * e) - minus_log_posterior(x - step * e)) / (2 * step)
        for e in np.eye(k + 1)
    ]
    assert np.max(np.abs(slopes)) < 1e-3 * np.sum(WEIGHTS)


def test_gaussian_noise_has_the_corrected_equations_of_the_paper():
    v, s = 0.04, 0.5
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), Gaussian(v), Y)
    solution = solve(problem, Laplacian, v / s, tol=1e-10)
    K = KERNEL(X, X[solution.indices])
    sign = np.sign(solution.coef)
    inverse = np.linalg.inv(K.T @ K)
    # (BKM 111) with the sign and the factor that it lacks
    np.testing.assert_allclose(solution.coef, inverse @ (K.T @ Y - v / s * sign), rtol=1e-6)
    spread = posterior_spread(problem, solution, Gaussian(v), None)
    np.testing.assert_allclose(spread.covariance(), v * inverse, rtol=1e-6)


def test_weight_decay_adds_its_own_curvature():
    v, s = 0.04, 0.7
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), Gaussian(v), Y, None, H)
    solution = solve(problem, WeightDecay, v / s, tol=1e-9)
    ridge = ridge_of(WeightDecay, s, len(solution.indices), 1)
    spread = posterior_spread(problem, solution, Gaussian(v), ridge)
    A = np.hstack([KERNEL(X), H])
    precision = A.T @ A / v + np.diag(np.append(np.full(60, 2.0 / s**2), 0.0))
    new = np.hstack([KERNEL(X[:5] + 0.1, X), np.ones((5, 1))])
    wanted = np.einsum("ij,ij->i", new, np.linalg.solve(precision, new.T).T)
    np.testing.assert_allclose(spread.var(new), wanted, rtol=1e-6)


def test_noise_with_kinks_has_its_fisher_information():
    f = np.zeros(4)
    np.testing.assert_allclose(curvature(Laplace(0.5), f + 1, f), 4.0)
    np.testing.assert_allclose(curvature(EpsilonInsensitive(0.3, 0.5), f, f), 1 / (0.5 * 0.8))
    np.testing.assert_allclose(curvature(Huber(0.5, 1.0), np.array([0.1, 2.0]), f[:2]), [4.0, 0.0])
    assert np.all(curvature(Probit(), np.ones(4), f) > 0)


def test_a_function_that_outliers_alone_see_has_the_fisher_information():
    Phi = np.zeros((20, 2))
    Phi[:18, 0], Phi[18:, 1] = 1.0, 1.0
    y = np.concatenate([np.linspace(-0.1, 0.1, 18), [50.0, -50.0]])
    noise = Huber(1.0, 1.0)
    problem = ExpansionProblem.of(ArrayColumns(Phi), noise, y)
    solution = solve(problem, Laplacian, 1e-4)._replace(
        indices=np.arange(2), coef=np.zeros(2), latent=np.zeros(20)
    )
    var = posterior_spread(problem, solution, noise, None).var(np.eye(2))
    fisher = float(noise.fisher(0.0))
    np.testing.assert_allclose(var, [1 / (18 * fisher), 1 / (2 * fisher)])


def test_blocks_of_rows_give_what_all_rows_give(monkeypatch):
    problem = ExpansionProblem.of(KernelColumns(KERNEL, X), Gaussian(0.04), Y, None, H)
    indices = np.array([3, 10, 40])
    monkeypatch.setattr("mercer.inference._expansion_spread._BLOCK_BYTES", 1)
    blocks = list(pieces_of(problem, indices)())
    assert len(blocks) == 15
    whole = np.hstack([KERNEL(X, X[indices]), H])
    np.testing.assert_allclose(np.vstack([Phi for _, Phi in blocks]), whole, rtol=1e-12)
    w = np.full(60, 25.0)
    small = spread_of(((Phi, w[rows]) for rows, Phi in blocks), 4)
    np.testing.assert_allclose(small.covariance(), np.linalg.inv(25.0 * whole.T @ whole), rtol=1e-8)


@pytest.mark.parametrize(
    "Phi",
    [
        np.hstack([H, H, X]),  # twice the same function
        np.zeros((60, 2)),
        np.ones((1, 3)),  # fewer rows than functions
        np.hstack([X, 1e-200 * np.cos(X)]),
    ],
)
def test_singular_cases_have_finite_variances(Phi):
    spread = spread_of([(Phi, np.ones(len(Phi)))], Phi.shape[1])
    var = spread.var(np.vstack([Phi, 3.0 * Phi[:1]]))
    assert np.all(np.isfinite(var)) and np.all(var >= 0)
    assert spread.rank == np.linalg.matrix_rank(Phi / np.maximum(np.abs(Phi).max(0), 1e-300))
    # leverages add up to the rank
    assert np.sum(var[:-1]) == pytest.approx(spread.rank, abs=1e-8)


def test_no_function_has_no_spread():
    none = spread_of([], 0)
    assert none == Spread(None, 0) and none.covariance().shape == (0, 0)
    np.testing.assert_array_equal(none.var(np.empty((3, 0))), np.zeros(3))


@pytest.mark.parametrize("twice", [False, True])
def test_the_posterior_is_in_units_of_its_output(twice):
    Phi = np.hstack([KERNEL(X, X[[5]]), KERNEL(X, X[[5 if twice else 30]]), H])
    spread = spread_of([(Phi, np.full(60, 25.0))], 3)
    basis = Basis(KERNEL, X[[5, 5 if twice else 30]], Constant())
    coef = np.array([1.0, -2.0, 0.5])
    plain = expansion_posterior(basis, coef, spread)
    np.testing.assert_allclose(plain.mean(X)[:, 0], Phi @ coef, rtol=1e-12)
    np.testing.assert_allclose(plain.var(X)[:, 0], spread.var(Phi), rtol=1e-9)
    other = expansion_posterior(basis, coef, spread, 4.0, None, 8.0)
    assert other.scale == [8.0]
    np.testing.assert_allclose(other.mean(X), 2.0 * plain.mean(X), rtol=1e-12)
    np.testing.assert_allclose(other.var(X), 4.0 * plain.var(X), rtol=1e-9)
