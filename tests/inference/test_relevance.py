"""Relevance vector machines against dense formulas: evidence, optimum, posterior, histories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma

from mercer import priors
from mercer.inference import _relevance_table
from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.inference.relevance import ALGORITHMS, Relevance, RelevanceProblem, solve
from mercer.kernels import RBF, Tanh

from .relevance_cases import Flat, Gamma, dense_evidence, dense_penalised, gradient, sinc

EVIDENCE = [name for name in ALGORITHMS if name != "variational"]
KERNEL = RBF(1.6)


def problem(n=60, seed=0, noise=0.1, **given):
    X, y = sinc(n, seed, noise)
    settings = {"mean": np.zeros(n), "weights": None, "hyperprior": Flat(), **given}
    return RelevanceProblem(KernelColumns(KERNEL, X), y, **settings)


def functions(given, fit):
    return given.columns.take(fit.indices)


def is_monotone(fit):
    scale = 1e-8 * (1 + np.abs(fit.history).max())
    return np.all(np.diff(fit.history) >= -scale)


# --- evidence and optimum -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", EVIDENCE)
@pytest.mark.parametrize("hyperprior", [Flat(), Gamma(0.1, 0.01)], ids=["flat", "gamma"])
def test_the_evidence_is_that_of_the_dense_formula(algorithm, hyperprior):
    given = problem(mean=np.full(60, 0.2), hyperprior=hyperprior, noise_prior=(2.0, 0.05))
    fit = solve(given, algorithm)
    assert fit.status == "converged"
    Phi = functions(given, fit)
    wanted = dense_evidence(Phi, fit.precisions, fit.noise, given.y, 0.2)
    assert fit.log_evidence == pytest.approx(wanted, abs=1e-7)
    wanted = dense_penalised(Phi, fit.precisions, fit.noise, given.y, 0.2, hyperprior, (2.0, 0.05))
    assert fit.objective == fit.history[-1] == pytest.approx(wanted, abs=1e-6)
    assert is_monotone(fit)


@pytest.mark.parametrize("algorithm", EVIDENCE)
@pytest.mark.parametrize("hyperprior", [Flat(), Gamma(0.1, 0.01)], ids=["flat", "gamma"])
def test_the_gradient_is_zero_and_the_fixed_point_equations_hold(algorithm, hyperprior):
    c, d = 2.0, 0.05
    given = problem(hyperprior=hyperprior, noise_prior=(c, d))
    fit = solve(given, algorithm, tol=1e-3)
    Phi, k = functions(given, fit), len(fit.indices)

    def value(x):
        return dense_penalised(Phi, np.exp(x[:k]), np.exp(x[k]), given.y, 0.0, hyperprior, (c, d))

    at = np.append(np.log(fit.precisions), np.log(fit.noise))
    np.testing.assert_allclose(gradient(value, at), 0.0, atol=2e-4)
    Xi = np.linalg.inv(fit.factor.T @ fit.factor)
    share = 1 - fit.precisions * np.diagonal(Xi)
    assert fit.n_determined == pytest.approx(share.sum(), rel=1e-10)
    a, b = (0.0, 0.0) if isinstance(hyperprior, Flat) else (0.1, 0.01)
    wanted = (share + 2 * a) / (fit.mean**2 + 2 * b)  # (BKM 134 corrected)
    np.testing.assert_allclose(fit.precisions, wanted, rtol=2e-3)
    error = np.sum((given.y - fit.latent) ** 2)
    wanted = (error + 2 * d) / (60 - share.sum() + 2 * c)  # (BKM 135 corrected)
    assert fit.noise == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("hyperprior", [Flat(), priors.GammaPrecision()], ids=["flat", "gamma"])
def test_no_function_outside_gains_at_the_end_and_none_inside_is_superfluous(hyperprior):
    given = problem(hyperprior=hyperprior)
    fit = solve(given, tol=1e-4)
    Phi = given.columns.take(np.arange(60))
    F = Phi[:, fit.indices]
    C = np.linalg.inv(fit.noise * np.eye(60) + (F / fit.precisions) @ F.T)
    S, Q = np.einsum("ij,ik,kj->j", Phi, C, Phi), Phi.T @ C @ given.y
    outside = np.setdiff1d(np.arange(60), fit.indices)
    gains = hyperprior.best_precision(S[outside], Q[outside])[1]
    assert gains.max() < 1e-4
    for j in range(len(fit.indices)):
        best, _ = hyperprior.best_precision(*_without(Phi, fit, j, given.y))
        assert best == pytest.approx(fit.precisions[j], rel=1e-3)


def _without(Phi, fit, j, y):
    others = np.delete(np.arange(len(fit.indices)), j)
    F = Phi[:, fit.indices[others]]
    C = np.linalg.inv(fit.noise * np.eye(len(y)) + (F / fit.precisions[others]) @ F.T)
    phi = Phi[:, fit.indices[j]]
    return phi @ C @ phi, phi @ C @ y


@pytest.mark.parametrize("seed", range(3))
def test_algorithms_reach_the_same_evidence(seed):
    given = problem(50, seed)
    found = {name: solve(given, name) for name in EVIDENCE}
    values = {name: fit.objective for name, fit in found.items()}
    best = max(values.values())
    # Up to local optima, of which the differences are small beside those to any other model.
    assert all(value > best - 1.5 for value in values.values()), values
    for fit in found.values():  # from where another has ended
        again = solve(given, "fast", start=fit)
        assert again.objective >= fit.objective - 1e-6
        assert again.objective > best - 1.5


def test_starts_lead_to_the_same_evidence():
    given = problem(50, 4)
    best = solve(given)
    rng = np.random.default_rng(0)
    for _ in range(4):
        some = np.sort(rng.choice(50, 6, replace=False))
        start = best._replace(indices=some, precisions=rng.uniform(0.1, 10, 6), noise=0.3)
        assert solve(given, start=start).objective > best.objective - 1.0


# --- posterior ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_predictions_are_those_of_the_degenerate_gp(algorithm):
    # (BKM 129, 130), and UV Remark 15: a GP whose covariance is K S^-1 K'.
    given = problem(40)
    fit = solve(given, algorithm)
    X, Z = given.columns.X, np.linspace(-12, 12, 9)[:, None]
    centres = X[fit.indices]
    K, Ks = KERNEL(X, centres), KERNEL(Z, centres)
    prior = (K / fit.precisions) @ K.T + fit.noise * np.eye(40)
    cross = (Ks / fit.precisions) @ K.T
    np.testing.assert_allclose(Ks @ fit.mean, cross @ np.linalg.solve(prior, given.y), atol=1e-7)
    wanted = (Ks / fit.precisions) @ Ks.T - cross @ np.linalg.solve(prior, cross.T)
    half = np.linalg.solve(fit.factor.T, Ks.T)
    np.testing.assert_allclose(half.T @ half, wanted, atol=1e-7)
    np.testing.assert_allclose(fit.latent, K @ fit.mean, atol=1e-10)
    assert np.all(np.diff(fit.indices) > 0)
    assert np.allclose(fit.factor, np.triu(fit.factor))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_weights_are_rows_repeated_and_removed(algorithm):
    X, y = sinc(30)
    weights = np.ones(30)
    weights[[2, 9, 20]] = 2.0
    weights[[5, 11]] = 0.0
    rows = np.repeat(np.arange(30), weights.astype(int))
    ours = RelevanceProblem(KernelColumns(KERNEL, X), y, np.zeros(30), weights, Flat())
    repeated = RelevanceProblem(
        KernelColumns(KERNEL, X[rows], X), y[rows], np.zeros(len(rows)), None, Flat()
    )
    one, two = solve(ours, algorithm), solve(repeated, algorithm)
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-5)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(one.latent[rows], two.latent, atol=1e-5)
    assert one.latent.shape == (30,)


def test_functions_that_stay_and_functions_of_any_kind():
    X, y = sinc(50)
    columns = JoinedColumns(
        [ArrayColumns(np.ones((50, 1))), KernelColumns(KERNEL, X), KernelColumns(Tanh(0.3, 0.1), X)]
    )
    given = RelevanceProblem(columns, y, np.zeros(50), None, Flat(), always=[0])
    for algorithm in ALGORITHMS:
        fit = solve(given, algorithm)
        assert 0 in fit.indices
        assert is_monotone(fit)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_noise_that_is_given_stays(algorithm):
    given = problem(40, noise=0.1)
    given = RelevanceProblem(given.columns, given.y, given.mean, None, Flat(), noise=0.02)
    fit = solve(given, algorithm)
    assert fit.noise == 0.02
    assert is_monotone(fit)


def test_columns_that_are_not_kept_in_memory(monkeypatch):
    given = problem(80)
    whole = solve(given)
    monkeypatch.setattr(_relevance_table, "STORED", 0)
    for weights in (None, np.ones(80)):
        again = RelevanceProblem(given.columns, given.y, given.mean, weights, Flat())
        fit = solve(again)
        assert fit.objective == pytest.approx(whole.objective, abs=1e-6)
        np.testing.assert_array_equal(fit.indices, whole.indices)


def test_functions_that_stay_though_they_are_alike():
    X, y = sinc(30)
    ones = np.ones((30, 1))
    columns = JoinedColumns([ArrayColumns(np.hstack([ones, ones])), KernelColumns(KERNEL, X)])
    given = RelevanceProblem(columns, y, np.zeros(30), None, Flat(), always=[0, 1])
    for algorithm in ALGORITHMS:
        fit = solve(given, algorithm)
        assert {0, 1} <= set(fit.indices)
        start = fit._replace(indices=fit.indices[2:], precisions=fit.precisions[2:])
        assert {0, 1} <= set(solve(given, algorithm, start=start).indices)


@pytest.mark.parametrize("algorithm", EVIDENCE)
@pytest.mark.parametrize(
    "hyperprior",
    [
        priors.Flat(),
        priors.GammaPrecision(),
        priors.GammaPrecision(1.0, 0.1),
        priors.NormalDeviation(1.0),
        priors.LaplacianMixture(),
    ],
    ids=str,
)
def test_hyperpriors_of_the_library(algorithm, hyperprior):
    given = problem(30, hyperprior=hyperprior)
    fit = solve(given, algorithm)
    assert fit.status == "converged"
    assert is_monotone(fit)
    Phi = functions(given, fit)
    wanted = dense_penalised(Phi, fit.precisions, fit.noise, given.y, 0.0, hyperprior)
    assert fit.objective == pytest.approx(wanted, abs=1e-6)


# --- the variational bound ------------------------------------------------------------------------


def test_the_variational_bound_is_below_the_integrated_evidence():
    # One function: the evidence, integrated over s and 1/v by brute force.
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(6, 1))
    y = 1.3 * phi[:, 0] + 0.4 * rng.normal(size=6)
    a, b, c, d = 1.5, 0.7, 2.0, 0.5
    given = RelevanceProblem(
        ArrayColumns(phi), y, np.zeros(6), None, Gamma(a, b), noise_prior=(c, d)
    )
    fit = solve(given, "variational", tol=1e-6)
    s, p = np.meshgrid(np.exp(np.linspace(-8, 4, 400)), np.exp(np.linspace(-5, 6, 400)))
    cell = 12 / 399 * 11 / 399
    ff, fy, yy = phi[:, 0] @ phi[:, 0], phi[:, 0] @ y, y @ y
    logs = 3 * np.log(p / (2 * np.pi)) - 0.5 * np.log1p(p * ff / s)
    logs -= 0.5 * (p * yy - (p * fy) ** 2 / (s + p * ff))
    assert logs[7, 9] == pytest.approx(dense_evidence(phi, s[7, 9:10], 1 / p[7, 9], y))
    density = gamma.pdf(s, a, scale=1 / b) * gamma.pdf(p, c, scale=1 / d) * s * p
    integral = np.log(np.sum(np.exp(logs) * density) * cell)
    assert integral - 0.5 < fit.log_evidence < integral
    assert is_monotone(fit)


def test_the_variational_algorithm_wants_a_gamma_hyperprior():
    class Other(Flat):
        def slope(self, s):
            return -np.log(s)

    with pytest.raises(ValueError, match="takes a flat hyperprior or a Gamma"):
        solve(problem(10, hyperprior=Other()), "variational")


# --- histories ------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 25),
    st.integers(1, 12),
    st.integers(0, 2**31),
    st.sampled_from(ALGORITHMS),
    st.sampled_from([1e-8, 1e-3, 1.0, 1e8]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_histories_never_decrease(n, M, seed, algorithm, scale, twice):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, M)) * 10.0 ** rng.integers(-4, 4, M)
    if twice:
        Phi = np.hstack([Phi, Phi[:, : M // 2], np.zeros((n, 1))])
    y = scale * (Phi[:, 0] / np.abs(Phi[:, 0]).max() + 0.3 * rng.normal(size=n))
    weights = rng.integers(0, 3, n).astype(float)
    weights[0] = 1.0
    given = RelevanceProblem(ArrayColumns(Phi), y, np.zeros(n), weights, Flat())
    fit = solve(given, algorithm)
    assert is_monotone(fit)
    assert len(fit.indices) >= 1
    assert np.all(np.isfinite(fit.mean))
    assert np.all(fit.precisions > 0)
    assert fit.noise > 0
    assert fit.status == "converged"


def test_the_result_is_the_same_each_time():
    one, two = solve(problem()), solve(problem())
    for ours, again in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours, again)
    assert isinstance(one, Relevance)
