"""Kernels that expansions take, whichever prior their coefficients have."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    LaplacianProcessClassifier,
    LaplacianProcessRegressor,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
)
from mercer.kernels import RBF, Callable, Flipped, Tanh

REGRESSORS = [LaplacianProcessRegressor, RelevanceVectorRegressor]
CLASSIFIERS = [LaplacianProcessClassifier, RelevanceVectorClassifier]


def rows(estimator):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    return X, (y > 0 if estimator in CLASSIFIERS else y)


def leaning(a, b):
    """Return a function that is not symmetric."""
    return float(np.exp(-((a[0] - b[0]) ** 2)) * (1.0 + 0.5 * np.tanh(a[0] - 2.0 * b[0])))


@pytest.mark.parametrize("estimator", REGRESSORS + CLASSIFIERS)
def test_one_that_is_said_to_be_symmetric_and_is_not_is_refused(estimator):
    X, y = rows(estimator)
    with pytest.raises(ValueError, match=r"differs from k\(x', x\).*is_mercer=False"):
        estimator(Callable(leaning), optimizer=None).fit(X, y)
    A = np.tril(RBF(1.0)(X)) + 0.5 * np.triu(RBF(1.0)(X), 1)
    with pytest.raises(ValueError, match=r"must be symmetric; .*is_mercer=False"):
        estimator("precomputed").fit(A, y)


def test_relevance_vectors_of_functions_that_are_not_symmetric():
    X, y = rows(RelevanceVectorRegressor)
    kernel = Callable(leaning, is_mercer=False)
    model = RelevanceVectorRegressor(kernel, optimizer=None).fit(X, y)
    Phi = np.array([[leaning(x, z) for z in model.relevance_] for x in X])
    by_hand = Phi @ model.weights_ + model.mean_.value
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-8)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_a_kernel_that_wants_its_anchors_is_given_them(estimator):
    X, y = rows(estimator)
    kernels = Flipped(Tanh(1.0, -1.0)), Flipped(Tanh(1.0, -1.0), X)
    options = {"prior_scale": 0.5} if estimator is LaplacianProcessRegressor else {}
    one, other = (estimator(kernel, optimizer=None, **options).fit(X, y) for kernel in kernels)
    # the anchors are the same rows in another order
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)
