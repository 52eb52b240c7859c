"""Derivatives of the evidence of relevance models in their functions, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.inference._relevance_adjoint import adjoints
from mercer.inference.relevance import RelevanceProblem, robust, solve
from mercer.kernels import RBF

from .relevance_cases import Flat, dense_evidence, gradient, sinc


def regression(weights=None, noise=None):
    X, y = sinc(30)
    columns = JoinedColumns([KernelColumns(RBF(1.6), X), ArrayColumns(np.ones((30, 1)))])
    mean = 0.1 * np.cos(X[:, 0])
    return X, RelevanceProblem(columns, y, mean, weights, Flat(), noise=noise, always=[30])


def evidence(Phi, fit, given, mean=None):
    """(BKM 127) with the likelihood of each row to the power of its weight."""
    w = np.ones(len(Phi)) if given.weights is None else given.weights
    v = np.broadcast_to(fit.noise, w.shape)
    some = w > 0
    mean = given.mean if mean is None else mean
    plain = dense_evidence(Phi[some], fit.precisions, v[some] / w[some], given.y[some], mean[some])
    return (
        plain
        - 0.5 * np.sum(w[some] * np.log(2 * np.pi * v[some]))
        + 0.5 * np.sum(np.log(2 * np.pi * v[some] / w[some]))
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("heavy", [False, True])
def test_regression(weighted, heavy):
    weights = None
    if weighted:
        weights = np.linspace(0.5, 2.0, 30)
        weights[4] = 0.0
    _, given = regression(weights)
    fit = robust(given).fit if heavy else solve(given)
    Phi = given.columns.take(fit.indices)
    ours = adjoints(given, fit)
    if not heavy:
        assert evidence(Phi, fit, given) == pytest.approx(fit.log_evidence, abs=1e-8)
    shape = Phi.shape
    wanted = gradient(lambda x: evidence(x.reshape(shape), fit, given), Phi.ravel())
    scale = np.max(np.abs(wanted))
    np.testing.assert_allclose(ours.columns.ravel(), wanted, atol=1e-6 * scale)
    wanted = gradient(lambda m: evidence(Phi, fit, given, m), given.mean)
    np.testing.assert_allclose(ours.mean, wanted, atol=1e-6 * np.max(np.abs(wanted)))


def test_gradient_in_the_width_with_the_best_precisions():
    # Precisions and noise follow the width; to first order the evidence does not see it.
    X, given = regression()
    fit = solve(given, tol=1e-6)
    sections = fit.indices[fit.indices < 30]
    own = adjoints(given, fit).columns[:, fit.indices < 30]
    ours = RBF(1.6).pullback(X, X[sections], own)[0]

    def best(theta):
        kernel = RBF(1.6).with_theta(theta)
        Phi = np.hstack([kernel(X, X[sections]), np.ones((30, 1))])
        k = Phi.shape[1]
        start = fit._replace(indices=np.arange(k))
        problem = RelevanceProblem(
            ArrayColumns(Phi), given.y, given.mean, None, Flat(), always=range(k)
        )
        return solve(problem, "fixed_point", tol=1e-9, start=start).log_evidence

    wanted = gradient(best, RBF(1.6).theta, 1e-3)
    np.testing.assert_allclose(ours, wanted, rtol=1e-3)
