"""Rows to predict whose kernel is too large for floating point."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import (
    GPClassifier,
    GPRegressor,
    OnlineGPClassifier,
    OnlineGPRegressor,
    TransductiveGPClassifier,
)
from mercer.errors import BoundWarning
from mercer.kernels import RBF, Linear, Polynomial
from mercer.likelihoods import Gaussian
from mercer.likelihoods.class_probabilities import softmax_probabilities

X = np.random.default_rng(0).normal(size=(30, 2))
Y = X[:, 0] + 0.1 * X[:, 1] ** 2
NEW = np.array([[0.1, 0.2], [1e200, 0.3], [0.5, -1e250]])
TOLD = r"too large for floating point at row 1 of X \(counted from 0\), and at 1 more"


@pytest.mark.parametrize("kernel", [Polynomial(3, 1.0), Linear(1.0) + RBF(1.0)], ids=repr)
@pytest.mark.parametrize("kind", [GPRegressor, OnlineGPRegressor])
def test_numbers_are_not_predicted_there(kind, kernel):
    model = kind(kernel, Gaussian(0.1), mean="zero", optimizer=None).fit(X, Y)
    calls = [
        lambda: model.predict(NEW, return_std=True),
        lambda: model.predict_interval(NEW),
        lambda: model.log_predictive_density(NEW, np.zeros(3)),
        lambda: model.predict(NEW, return_cov=True),
        lambda: model.predict_gradient(NEW),
        lambda: model.sample_y(NEW),
    ]
    if isinstance(kernel, Polynomial):  # means too
        calls += [
            lambda: model.predict(NEW),
            lambda: model.predict(NEW, latent=True),
        ]
    for call in calls:
        with pytest.raises(ValueError, match=TOLD):
            call()


@pytest.mark.parametrize("kernel", [Polynomial(3, 1.0), Linear(1.0) + RBF(1.0)], ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [GPClassifier, TransductiveGPClassifier, OnlineGPClassifier])
def test_labels_are_not_predicted_there(kind, classes, kernel):
    labels = np.digitize(Y, [0.0] if classes == 2 else [-0.5, 0.5])
    if kind is TransductiveGPClassifier:
        labels[:3] = -1
    options = {} if kind is TransductiveGPClassifier else {"optimizer": None}
    with warnings.catch_warnings(action="ignore", category=BoundWarning):
        model = kind(kernel, **options).fit(X, labels)
    calls = [
        model.predict_proba,
        model.predict,
        lambda new: model.predict_latent(new, return_std=True),
        lambda new: model.predict_latent(new, return_cov=True),
        model.sample_y,
    ]
    if isinstance(kernel, Polynomial):  # means too
        calls += [model.predict_latent]
    for call in calls:
        with pytest.raises(ValueError, match=TOLD):
            call(NEW)


@pytest.mark.parametrize("kernel", [Polynomial(3, 1.0), Linear(1.0) + RBF(1.0)], ids=repr)
@pytest.mark.parametrize("size", [1e10, 1e20, 1e30, 1e45])
def test_a_softmax_of_large_values_is_one_of_their_order(kernel, size):
    labels = np.digitize(Y, [-0.5, 0.5])
    model = GPClassifier(kernel, optimizer=None).fit(X, labels)
    proba = model.predict_proba([[size, -size], [0.1, 0.2], [-size, 0.0]])
    assert np.all((proba >= 0.0) & (proba <= 1.0))
    np.testing.assert_allclose(np.sum(proba, axis=1), 1.0, atol=1e-6)


def test_samples_of_given_matrices_are_drawn():
    """These have the columns of the joint covariance, and not those of predictions."""
    model = GPRegressor("precomputed", Gaussian(0.1), mean="zero", optimizer=None)
    model.fit(RBF(1.0)(X), Y)
    new = X[:3] + 0.1
    given = np.column_stack([RBF(1.0)(new, X), RBF(1.0)(new)])
    assert model.sample_y(given, 5).shape == (3, 5)


@pytest.mark.parametrize("far", [1e29, 1e32, 1e37, 1e300])
def test_a_class_far_below_leaves_the_others_as_they_are(far):
    found = softmax_probabilities(np.array([[0.0, 2.0, -far]]), np.eye(3)[None]).values
    two = softmax_probabilities(np.array([[0.0, 2.0]]), np.eye(2)[None]).values
    np.testing.assert_allclose(found[0, :2], two[0], atol=1e-3)
