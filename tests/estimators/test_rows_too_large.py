"""Rows to predict whose kernel is too large for floating point."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor, OnlineGPRegressor
from mercer.kernels import RBF, Linear, Polynomial
from mercer.likelihoods import Gaussian

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
    ]
    if isinstance(kernel, Polynomial):  # means too
        calls += [
            lambda: model.predict(NEW),
            lambda: model.predict(NEW, latent=True),
        ]
    for call in calls:
        with pytest.raises(ValueError, match=TOLD):
            call()


def test_labels_are_not_predicted_there():
    model = GPClassifier(Polynomial(3, 1.0), optimizer=None).fit(X, Y > 0)
    calls = [
        model.predict_proba,
        model.predict,
        model.predict_latent,
        lambda new: model.predict_latent(new, return_std=True),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=TOLD):
            call(NEW)
