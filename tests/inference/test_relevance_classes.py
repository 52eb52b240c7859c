"""Relevance vector machines for labels against dense formulas: evidence, mode, posterior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import priors
from mercer.errors import ConvergenceWarning
from mercer.inference import _relevance_table
from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.inference.relevance import Relevance
from mercer.inference.relevance_classes import (
    ALGORITHMS,
    ClassesProblem,
    posterior,
    solve,
)
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Logistic, Poisson, Probit
from mercer.means import Constant
from mercer.posterior import Basis

from .relevance_cases import Flat, Gamma, gradient
from .relevance_class_cases import circles, dense_laplace, log_density

KERNEL = RBF(0.8)
GAMMA = priors.GammaPrecision(1.0, 0.2)
LINKS = {"logistic": Logistic(), "probit": Probit()}


def problem(n=80, seed=0, **given):
    """Kernel sections and a bias that stays."""
    X, y = circles(n, seed)
    columns = JoinedColumns([KernelColumns(KERNEL, X), ArrayColumns(np.ones((n, 1)))])
    options = {"mean": np.zeros(n), "weights": None, "hyperprior": Flat(), "always": [n], **given}
    return ClassesProblem(columns, y, **options)


def functions(given, fit):
    return given.columns.take(fit.indices)


def is_monotone(fit):
    return np.all(np.diff(fit.history) >= 0)


# --- the evidence and the mode --------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_evidence_is_the_dense_one(link):
    weights = np.linspace(0.5, 1.5, 50)
    mean = 0.3 * np.cos(np.arange(50.0))
    own = problem(
        50,
        likelihood=LINKS[link],
        weights=weights,
        mean=mean,
        hyperprior=priors.GammaPrecision(1, 0.5),
    )
    fit = solve(own)
    Phi = functions(own, fit)
    wanted = dense_laplace(Phi, fit.precisions, own.y, mean, weights, link)
    assert fit.log_evidence == pytest.approx(wanted, abs=1e-4)
    penalty = np.sum(Gamma(1, 0.5).log_hyper(fit.precisions))
    assert fit.objective == pytest.approx(fit.log_evidence + penalty, abs=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("link", LINKS)
def test_the_gradient_is_zero_at_the_mode(algorithm, link):
    own = problem(60, likelihood=LINKS[link])
    fit = solve(own, algorithm)
    Phi, s = functions(own, fit), fit.precisions

    def loss(theta):
        return 0.5 * s @ theta**2 - np.sum(log_density(own.y, Phi @ theta, link))

    g = LINKS[link].derivatives(own.y, fit.latent)[0]
    np.testing.assert_allclose(Phi.T @ g, s * fit.mean, atol=1e-8)  # (BKM 137)
    np.testing.assert_allclose(gradient(loss, fit.mean, 1e-4), 0.0, atol=1e-5)
    np.testing.assert_allclose(fit.latent, Phi @ fit.mean, atol=1e-10)
    # The factor is that of (BKM 138).
    W = -LINKS[link].derivatives(own.y, fit.latent)[1]
    H = Phi.T @ (W[:, None] * Phi) + np.diag(s)
    np.testing.assert_allclose(fit.factor.T @ fit.factor, H, rtol=1e-8, atol=1e-8)
    assert np.allclose(fit.factor, np.triu(fit.factor))
    assert np.all(np.diff(fit.indices) > 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("hyperprior", [Flat(), GAMMA], ids=["flat", "gamma"])
def test_the_evidence_is_stationary_in_the_precisions(algorithm, hyperprior):
    own = problem(50, hyperprior=hyperprior)
    fit = solve(own, algorithm)
    assert fit.status == "converged"
    assert is_monotone(fit)
    Phi = functions(own, fit)

    def objective(logs):
        s = np.exp(logs)
        return dense_value(Phi, s, own.y) + np.sum(hyperprior.log_hyper(s))

    assert objective(np.log(fit.precisions)) == pytest.approx(fit.objective, abs=1e-8)
    slope = gradient(objective, np.log(fit.precisions), 1e-3)
    np.testing.assert_allclose(slope, 0.0, atol=1e-3)


def test_no_function_outside_gains():
    # One that is added, with its best precision, is no use, nor is any left out.
    own = problem(40)
    fit = solve(own)
    for i in np.setdiff1d(np.arange(41), fit.indices)[::4]:
        Phi = own.columns.take(np.append(fit.indices, i))
        best = max(
            dense_value(Phi, np.append(fit.precisions, s), own.y) for s in 10.0 ** np.arange(-3, 5)
        )
        assert best < fit.log_evidence + 0.05
    for j in range(len(fit.indices) - 1):
        kept = np.delete(np.arange(len(fit.indices)), j)
        Phi = own.columns.take(fit.indices[kept])
        assert dense_value(Phi, fit.precisions[kept], own.y) < fit.log_evidence


def dense_value(Phi, s, y):
    """Laplace's evidence by plain Newton steps, which here converge."""
    theta = np.zeros(len(s))
    for _ in range(30):
        p = 1 / (1 + np.exp(-Phi @ theta))
        H = Phi.T @ ((p * (1 - p))[:, None] * Phi) + np.diag(s)
        theta = theta + np.linalg.solve(H, Phi.T @ ((y > 0) - p) - s * theta)
    fit = np.sum(log_density(y, Phi @ theta, "logistic")) - 0.5 * s @ theta**2
    return fit + 0.5 * np.sum(np.log(s)) - 0.5 * np.linalg.slogdet(H)[1]


def test_algorithms_reach_about_the_same_evidence():
    own = problem(60)
    found = [solve(own, algorithm).objective for algorithm in ALGORITHMS]
    assert max(found) - min(found) < 2.0


@pytest.mark.parametrize(
    "hyperprior",
    [priors.Flat(), priors.GammaPrecision(), priors.NormalDeviation(1.0)],
    ids=str,
)
def test_hyperpriors_of_the_library(hyperprior):
    own = problem(40, hyperprior=hyperprior)
    fit = solve(own)
    assert fit.status == "converged"
    assert is_monotone(fit)
    wanted = dense_value(functions(own, fit), fit.precisions, own.y)
    assert fit.log_evidence == pytest.approx(wanted, abs=1e-7)


# --- what is asked of it --------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_weights_are_rows_repeated_and_removed(algorithm):
    X, y = circles(40)
    weights = np.ones(40)
    weights[[2, 9, 20]] = 2.0
    weights[[5, 11]] = 0.0
    rows = np.repeat(np.arange(40), weights.astype(int))
    ours = ClassesProblem(KernelColumns(KERNEL, X), y, np.zeros(40), weights, Flat())
    repeated = ClassesProblem(
        KernelColumns(KERNEL, X[rows], X), y[rows], np.zeros(len(rows)), None, Flat()
    )
    one, two = solve(ours, algorithm), solve(repeated, algorithm)
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-6)
    np.testing.assert_allclose(one.latent[rows], two.latent, atol=1e-4)
    assert one.latent.shape == (40,)


def test_weights_of_a_class_move_the_boundary():
    _, y = circles(120)
    rare = solve(problem(120, weights=np.where(y > 0, 1.0, 5.0)))
    plain = solve(problem(120))
    assert np.mean(rare.latent > 0) < np.mean(plain.latent > 0)


def test_functions_of_any_kind_that_come_and_stay():
    X, y = circles(50)
    columns = JoinedColumns(
        [KernelColumns(KERNEL, X), KernelColumns(Tanh(0.3, 0.1), X), ArrayColumns(np.ones((50, 2)))]
    )
    own = ClassesProblem(columns, y, np.zeros(50), None, Flat(), always=[100, 101])
    for algorithm in ALGORITHMS:
        fit = solve(own, algorithm)
        assert {100, 101} <= set(fit.indices)
        assert is_monotone(fit)


def test_counts_come_for_free():
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 3, 60)[:, None]
    y = rng.poisson(np.exp(1.0 + np.sin(2 * X[:, 0]))).astype(float)
    columns = JoinedColumns([KernelColumns(RBF(0.7), X), ArrayColumns(np.ones((60, 1)))])
    fit = solve(ClassesProblem(columns, y, np.zeros(60), None, Flat(), Poisson(), [60]))
    assert np.corrcoef(fit.latent, np.sin(2 * X[:, 0]))[0, 1] > 0.9
    assert len(fit.indices) < 12


def test_a_start_is_gone_on_from():
    own = problem(60)
    with pytest.warns(ConvergenceWarning, match="still increasing"):
        first = solve(own, max_iter=3)
    assert first.status == "stopped"
    assert first.n_iterations <= 4
    whole = solve(own, start=first)
    assert whole.history[0] == pytest.approx(first.objective, abs=1e-6)
    assert whole.objective >= first.objective - 1e-9
    again = solve(own, start=whole)
    np.testing.assert_array_equal(again.indices, whole.indices)
    assert again.objective == pytest.approx(whole.objective, abs=0.05)


def test_columns_that_are_not_kept_in_memory(monkeypatch):
    own = problem(60)
    whole = solve(own)
    monkeypatch.setattr(_relevance_table, "STORED", 0)
    fit = solve(own)
    assert fit.objective == pytest.approx(whole.objective, abs=1e-6)
    np.testing.assert_array_equal(fit.indices, whole.indices)


@pytest.mark.parametrize("stored", [0, 2**29])
def test_functions_that_are_next_to_nothing_are_0(monkeypatch, stored):
    monkeypatch.setattr(_relevance_table, "STORED", stored)
    table = _relevance_table.Table(ArrayColumns(np.array([[1.0, 1e-145], [2.0, 1e-145]])), None)
    G, P = table.weigh_and_multiply(np.full(2, 0.25), np.array([0]), np.ones(2))
    np.testing.assert_array_equal(table.D, [1.25, 0.0])
    np.testing.assert_allclose(G, [[1.25, 7.5e-146]])
    np.testing.assert_allclose(P, [3.0, 2e-145])


def test_the_result_is_the_same_each_time():
    one, two = solve(problem()), solve(problem())
    for ours, again in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours, again)
    assert isinstance(one, Relevance)
    assert one.noise == 0.0


# --- predictions ----------------------------------------------------------------------------------


def test_probabilities_integrate_over_the_weights():
    own = problem(60)
    fit = solve(own)
    X, _ = circles(60)
    basis = Basis(KERNEL, X[fit.indices[:-1]], Constant())
    process = posterior(fit, basis)
    new = np.array([[0.0, 0.0], [1.0, -0.4], [3.0, 3.0]])
    Phi = np.hstack([KERNEL(new, X[fit.indices[:-1]]), np.ones((3, 1))])
    Xi = np.linalg.inv(fit.factor.T @ fit.factor)
    mean, var = process.mean(new)[:, 0], process.var(new)[:, 0]
    np.testing.assert_allclose(mean, Phi @ fit.mean, atol=1e-10)
    np.testing.assert_allclose(var, np.einsum("ij,jk,ik->i", Phi, Xi, Phi), rtol=1e-8)
    rng = np.random.default_rng(0)
    weights = rng.multivariate_normal(fit.mean, Xi, 200_000)
    drawn = np.mean(1 / (1 + np.exp(-weights @ Phi.T)), axis=0)
    ours = np.exp(Logistic().log_predictive(np.ones(3), mean, var))
    np.testing.assert_allclose(ours, drawn, atol=5e-3)
    assert np.all(np.abs(ours - 0.5) < np.abs(1 / (1 + np.exp(-mean)) - 0.5))


# --- histories ------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 25),
    st.integers(1, 10),
    st.integers(0, 2**31),
    st.sampled_from(ALGORITHMS),
    st.booleans(),
)
def test_histories_never_decrease(n, M, seed, algorithm, twice):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, M)) * 10.0 ** rng.integers(-4, 4, M)
    if twice:
        Phi = np.hstack([Phi, Phi[:, : M // 2], np.zeros((n, 1))])
    y = np.where(Phi[:, 0] / np.abs(Phi[:, 0]).max() + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weights = rng.integers(0, 3, n).astype(float)
    weights[:2] = 1.0
    own = ClassesProblem(ArrayColumns(Phi), y, np.zeros(n), weights, Flat())
    fit = solve(own, algorithm)
    assert is_monotone(fit)
    assert len(fit.indices) >= 1
    assert np.all(np.isfinite(fit.mean))
    assert np.all(np.isfinite(fit.factor))
    assert np.all(fit.precisions > 0)
    assert fit.status == "converged"
    assert np.linalg.norm(
        functions(own, fit).T @ (weights * Logistic().derivatives(y, fit.latent)[0])
        - fit.precisions * fit.mean
    ) <= 1e-6 * (1 + np.linalg.norm(fit.precisions * fit.mean))
