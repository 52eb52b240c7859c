"""Derivatives of Laplace's evidence in the functions of relevance models, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import priors
from mercer.inference._columns import ArrayColumns
from mercer.inference._relevance_adjoint import laplace_adjoints
from mercer.inference.relevance_classes import (
    ClassesProblem,
    MultinomialProblem,
    multinomial,
    solve,
)
from mercer.kernels import RBF
from mercer.likelihoods import Logistic, Probit

from .relevance_cases import gradient
from .relevance_class_cases import circles, sectors

HYPER = priors.GammaPrecision(1.0, 0.3)


def held(fit, k):
    """Return a fit as one of its functions alone, all k of them."""
    return fit._replace(indices=np.arange(k))


def evidence_at(make, fit, Phi, mean):
    """Return the evidence at the fit's precisions, by the engine's own mode of one step."""
    from mercer.inference._relevance_ascent import Penalty
    from mercer.inference._relevance_mode import find_mode
    from mercer.inference._relevance_sites import ClassSites, ScalarSites

    given = make(Phi, mean)
    if isinstance(given, MultinomialProblem):
        sites = ClassSites(given.Y, mean, given.weights)
    else:
        sites = ScalarSites(given.likelihood, given.y, mean, given.weights)
    return find_mode(sites, Penalty(HYPER), Phi, fit.precisions).evidence


def check(make, fit, Phi, mean):
    ours = laplace_adjoints(make(Phi, mean), held(fit, Phi.shape[1]))[1]
    assert ours.shape == Phi.shape
    wanted = gradient(
        lambda x: evidence_at(make, fit, np.asfortranarray(x.reshape(Phi.shape)), mean), Phi.ravel()
    )
    scale = np.max(np.abs(wanted))
    np.testing.assert_allclose(ours.ravel(), wanted, atol=1e-6 * scale)


@pytest.mark.parametrize("likelihood", [Logistic(), Probit()], ids=["logistic", "probit"])
def test_two_classes(likelihood):
    X, y = circles(24)
    weights = np.linspace(0.5, 2.0, 24)
    mean = 0.2 * np.sin(X[:, 0])

    def make(Phi, mean):
        return ClassesProblem(ArrayColumns(Phi), y, mean, weights, HYPER, likelihood)

    whole = RBF(1.0)(X, X)
    fit = solve(make(whole, mean))
    check(make, fit, np.asfortranarray(whole[:, fit.indices]), mean)


def test_several_classes():
    X, c = sectors(24)
    weights = np.linspace(0.5, 2.0, 24)
    mean = 0.2 * np.sin(X[:, [0, 1, 0]])

    def make(Phi, mean):
        return MultinomialProblem(ArrayColumns(Phi), np.eye(3)[c], mean, weights, HYPER)

    whole = RBF(1.0)(X, X)
    fit = multinomial(make(whole, mean))
    check(make, fit, np.asfortranarray(whole[:, fit.indices]), mean)


def test_rows_without_a_weight_have_no_say():
    X, y = circles(30)
    weights = np.ones(30)
    weights[:4] = 0.0
    given = ClassesProblem(ArrayColumns(RBF(1.0)(X, X)), y, np.zeros(30), weights, HYPER)
    ours = laplace_adjoints(given, solve(given))[1]
    assert not np.any(ours[:4])
    assert np.all(np.any(ours[4:], axis=1))


def test_gradient_in_the_width_with_the_best_precisions():
    # The precisions follow the width; to first order the evidence does not see it.
    X, y = circles(60)
    kernel = RBF(1.0)
    fit = solve(ClassesProblem(ArrayColumns(kernel(X, X)), y, np.zeros(60), None, HYPER))
    Z = X[fit.indices]

    def best(theta):
        Phi = ArrayColumns(kernel.with_theta(theta)(X, Z))
        always = range(len(Z))
        given = ClassesProblem(Phi, y, np.zeros(60), None, HYPER, always=always)
        return solve(given, start=held(fit, len(Z)), tol=1e-8)

    given = ClassesProblem(ArrayColumns(kernel(X, Z)), y, np.zeros(60), None, HYPER)
    ours = kernel.pullback(X, Z, laplace_adjoints(given, best(kernel.theta))[1])[0]
    wanted = gradient(lambda theta: best(theta).objective, kernel.theta, 1e-4)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5)
