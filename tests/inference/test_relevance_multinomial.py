"""Relevance vector machines for several classes at once, against dense formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from mercer import priors
from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_blocks import best_shared
from mercer.inference.relevance_classes import (
    ClassesProblem,
    MultinomialProblem,
    multinomial,
    posterior,
    solve,
)
from mercer.kernels import RBF
from mercer.likelihoods.class_probabilities import softmax_probabilities
from mercer.means import Constant
from mercer.posterior import Basis

from .relevance_cases import Flat, Gamma, gradient
from .relevance_class_cases import circles, dense_multinomial, sectors

KERNEL = RBF(1.0)


def problem(n=90, classes=3, **given):
    X, c = sectors(n, classes)
    columns = JoinedColumns([KernelColumns(KERNEL, X), ArrayColumns(np.ones((n, 1)))])
    options = {"weights": None, "hyperprior": Flat(), "always": [n], **given}
    options.setdefault("mean", np.zeros((n, classes)))
    return X, c, MultinomialProblem(columns, np.eye(classes)[c], **options)


def newton(Phi, s, Y, weights):
    """Return the mode (k, P) and the curvature, class after class, by plain Newton steps."""
    (n, k), P = Phi.shape, Y.shape[1]
    coef = np.zeros((P, k))
    for _ in range(40):
        pi = softmax(Phi @ coef.T, axis=1)
        H = np.diag(np.tile(s, P))
        for i in range(n):
            W = weights[i] * (np.diag(pi[i]) - np.outer(pi[i], pi[i]))
            H += np.kron(W, np.outer(Phi[i], Phi[i]))
        down = ((weights[:, None] * (Y - pi)).T @ Phi - s * coef).ravel()
        coef = coef + np.linalg.solve(H, down).reshape(P, k)
    return coef.T, H


def test_mode_factor_and_evidence_are_the_dense_ones():
    weights = np.linspace(0.5, 1.5, 40)
    _, _, own = problem(40, weights=weights, hyperprior=priors.GammaPrecision(1.0, 0.3))
    fit = multinomial(own)
    assert fit.status == "converged"
    Phi, s = own.columns.take(fit.indices), fit.precisions
    mode, H = newton(Phi, s, own.Y, weights)
    np.testing.assert_allclose(fit.mean, mode, atol=1e-8)
    np.testing.assert_allclose(np.sum(fit.mean, axis=1), 0.0, atol=1e-10)
    np.testing.assert_allclose(fit.factor.T @ fit.factor, H, atol=1e-7)
    np.testing.assert_allclose(fit.latent, Phi @ fit.mean, atol=1e-10)
    F = fit.latent - np.log(np.sum(np.exp(fit.latent), axis=1, keepdims=True))
    value = np.sum(weights[:, None] * own.Y * F) - 0.5 * s @ np.sum(mode**2, axis=1)
    value += 1.5 * np.sum(np.log(s)) - 0.5 * np.linalg.slogdet(H)[1]
    assert fit.log_evidence == pytest.approx(value, abs=1e-8)
    penalty = np.sum(Gamma(1.0, 0.3).log_hyper(s))
    assert fit.objective == pytest.approx(value + penalty, abs=1e-8)


def test_evidence_of_two_classes_by_a_general_optimiser():
    X, y = circles(40)
    Y = np.column_stack([y < 0, y > 0]).astype(float)
    mean = 0.2 * np.sin(X)
    own = MultinomialProblem(
        KernelColumns(KERNEL, X), Y, mean, None, priors.GammaPrecision(2.0, 1.0)
    )
    fit = multinomial(own)
    Phi = own.columns.take(fit.indices)
    wanted = dense_multinomial(Phi, fit.precisions, Y, mean)
    assert fit.log_evidence == pytest.approx(wanted, abs=1e-4)


def test_two_classes_are_the_logistic_with_half_the_precisions():
    X, y = circles(60)
    y = np.where(np.arange(60) % 7, y, -y)  # so that no precision is at its floor
    Y = np.column_stack([y < 0, y > 0]).astype(float)
    own = MultinomialProblem(KernelColumns(KERNEL, X), Y, np.zeros((60, 2)), None, Flat())
    fit = multinomial(own)
    assert len(fit.indices) > 1
    Phi = ArrayColumns(own.columns.take(fit.indices))
    k = len(fit.indices)
    two = ClassesProblem(Phi, y, np.zeros(60), None, Flat(), always=range(k))
    start = fit._replace(indices=np.arange(k), precisions=0.5 * fit.precisions)
    again = solve(two, start=start)
    assert again.history[0] == pytest.approx(fit.objective, abs=1e-8)
    assert again.objective == pytest.approx(fit.objective, abs=1e-4)
    np.testing.assert_allclose(again.latent, fit.latent[:, 1] - fit.latent[:, 0], atol=1e-2)


@pytest.mark.parametrize(
    "hyperprior", [Flat(), priors.GammaPrecision(1.0, 0.2)], ids=["flat", "gamma"]
)
def test_the_evidence_is_stationary_and_never_falls(hyperprior):
    _, c, own = problem(40, hyperprior=hyperprior)
    Y = np.eye(3)[np.where(np.arange(40) % 7, c, (c + 1) % 3)]  # no precision is at its floor
    own = replace(own, Y=Y)
    fit = multinomial(own)
    assert np.all(np.diff(fit.history) >= 0) and len(fit.indices) > 1
    Phi = own.columns.take(fit.indices)

    def objective(logs):
        s = np.exp(logs)
        mode, H = newton(Phi, s, own.Y, np.ones(40))
        F = Phi @ mode
        F = F - np.log(np.sum(np.exp(F), axis=1, keepdims=True))
        value = np.sum(own.Y * F) - 0.5 * s @ np.sum(mode**2, axis=1)
        value += 1.5 * np.sum(np.log(s)) - 0.5 * np.linalg.slogdet(H)[1]
        return value + np.sum(hyperprior.log_hyper(s))

    slope = gradient(objective, np.log(fit.precisions), 1e-3)
    np.testing.assert_allclose(slope, 0.0, atol=1e-3)


def test_the_order_of_the_classes_does_not_matter():
    _, _, own = problem()
    order = np.array([2, 0, 1])
    one = multinomial(own)
    two = multinomial(
        MultinomialProblem(own.columns, own.Y[:, order], own.mean, None, Flat(), own.always)
    )
    assert one.objective == pytest.approx(two.objective, abs=1e-5)
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_allclose(one.mean[:, order], two.mean, atol=1e-3 * np.max(np.abs(one.mean)))


def test_classes_are_told_apart_and_probabilities_integrate_over_the_weights():
    X, c, own = problem(150, 4)
    fit = multinomial(own)
    assert np.mean(np.argmax(fit.latent, axis=1) == c) > 0.7
    assert len(fit.indices) < 20
    basis = Basis(KERNEL, X[fit.indices[:-1]], Constant())
    process = posterior(fit, basis)
    new = np.array([[0.5, 0.5], [-1.0, 2.0]])
    Phi = np.hstack([KERNEL(new, X[fit.indices[:-1]]), np.ones((2, 1))])
    mean, cov = process.mean(new), process.cov(new)
    np.testing.assert_allclose(mean, Phi @ fit.mean, atol=1e-9)
    k, P = fit.mean.shape
    Xi = np.linalg.inv(fit.factor.T @ fit.factor)
    big = np.kron(np.eye(P), Phi)  # class after class
    wanted = (big @ Xi @ big.T).reshape(P, 2, P, 2)
    at = np.array([wanted[:, i, :, i] for i in range(2)])
    ours = np.array([[process.var(new)[i, p] for p in range(P)] for i in range(2)])
    np.testing.assert_allclose(ours, np.einsum("ipp->ip", at), rtol=1e-6)
    draws = np.random.default_rng(0).multivariate_normal(fit.mean.T.ravel(), Xi, 100_000)
    values = np.einsum("ij,ncj->nic", Phi, draws.reshape(-1, P, k))
    drawn = np.mean(softmax(values, axis=2), axis=0)
    found = softmax_probabilities(mean, at)
    np.testing.assert_allclose(found.values, drawn, atol=1e-2)
    assert cov is not None


def test_weights_are_rows_repeated_and_removed():
    X, c = sectors(40)
    weights = np.ones(40)
    weights[[2, 9]] = 2.0
    weights[[5, 11]] = 0.0
    rows = np.repeat(np.arange(40), weights.astype(int))
    Y = np.eye(3)[c]
    one = multinomial(
        MultinomialProblem(KernelColumns(KERNEL, X), Y, np.zeros((40, 3)), weights, Flat())
    )
    two = multinomial(
        MultinomialProblem(
            KernelColumns(KERNEL, X[rows], X), Y[rows], np.zeros((len(rows), 3)), None, Flat()
        )
    )
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-6)


def test_classes_that_are_far_apart_and_columns_that_repeat():
    X, c = sectors(45)
    X = X + 20.0 * np.array([[0, 0], [1, 0], [0, 1]])[c]
    K = KERNEL(X, X)
    Phi = np.hstack([K, K[:, :5], np.ones((45, 2)), np.zeros((45, 1))])
    own = MultinomialProblem(ArrayColumns(Phi), np.eye(3)[c], np.zeros((45, 3)), None, Flat())
    fit = multinomial(own)
    assert np.all(np.argmax(fit.latent, axis=1) == c)
    assert np.all(np.diff(fit.history) >= 0)
    assert np.all(np.isfinite(fit.factor))


def test_the_precision_that_is_shared():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 2, 2))
    S = A @ A.transpose(0, 2, 1)
    Q = 3.0 * rng.normal(size=(5, 2))
    Q[4] *= 0.01
    for penalty in (Penalty(Flat()), Penalty(Gamma(1.5, 0.4))):
        s, gain = best_shared(S, Q, penalty)
        logs = np.linspace(-20, 20, 20001)
        for j in range(5):
            values = np.array(
                [
                    np.log(x)
                    - 0.5 * np.linalg.slogdet(x * np.eye(2) + S[j])[1]
                    + 0.5 * Q[j] @ np.linalg.solve(x * np.eye(2) + S[j], Q[j])
                    for x in np.exp(logs[::20])
                ]
            ) + penalty.hyperprior.log_hyper(np.exp(logs[::20]))
            top = max(np.max(values), 0.0)
            assert gain[j] == pytest.approx(top, abs=1e-3)
            assert np.isfinite(s[j]) == (top > 0)
