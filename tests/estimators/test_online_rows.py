"""Single rows that are learned without checks: the same predictions, and the same state."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import OnlineGPClassifier, OnlineGPRegressor
from mercer.errors import MercerWarning
from mercer.estimators.online_rows import ClassRows, NumberRows
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian, Laplace, Poisson
from mercer.registry import encode


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def state(model):
    """Return every byte of a model's arrays, and its tree."""
    found = encode(model)
    return [array.tobytes() for array in found.arrays.values()], found.tree


@pytest.mark.parametrize("likelihood", [Gaussian(0.01), Laplace(0.1), Poisson()], ids=repr)
@pytest.mark.parametrize("weights", [False, True])
def test_numbers(likelihood, weights):
    X, y = rows(22)
    if isinstance(likelihood, Poisson):
        y = np.round(np.exp(y))
    model = OnlineGPRegressor(RBF(1.0), likelihood, max_basis=8).partial_fit(X[:10], y[:10])
    check_numbers(model, X[10:], y[10:], weights)


def test_numbers_in_other_units():
    X, y = rows(60)
    model = OnlineGPRegressor(max_basis=8, normalize_y=True).fit(X[:40], 1000.0 + 30.0 * y[:40])
    check_numbers(model, X[40:], 1000.0 + 30.0 * y[40:], weights=True)


def check_numbers(model, X, y, weights):
    twin = copy.deepcopy(model)
    single = NumberRows(twin, 0.8)
    for i in range(len(y)):
        x, weight = X[i : i + 1], 1.0 if not weights or i % 3 else 0.5
        ends = np.ravel(model.predict_interval(x, coverage=0.8))
        given = [weight] if weights else None
        before = model.learn(x, y[i : i + 1], given)
        values, log_density, learned = single.learn(x, float(y[i]), weight)
        assert learned
        assert_allclose(values[:2], [before.mean[0], before.std[0]], rtol=1e-12)
        assert_allclose(values[2:], ends, rtol=1e-6)
        assert_allclose(log_density, before.log_density[0], rtol=1e-9, atol=1e-12)
        assert_allclose(twin.predict(x), model.predict(x), rtol=0)  # and knows that it changed
    assert state(twin) == state(model)


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"], [0, 1], [False, True]])
def test_classes(classes):
    X, y = rows(40)
    labels = np.array(classes)[np.digitize(y, [0.0, 0.5][: len(classes) - 1])]
    model = OnlineGPClassifier(RBF(1.0), max_basis=8, classes=classes)
    model.partial_fit(X[:10], labels[:10])
    twin = copy.deepcopy(model)
    single = ClassRows(twin)
    for i in range(10, 40):
        x, weight = X[i : i + 1], 1.0 if i % 3 else 2.0
        before = model.learn(x, labels[i : i + 1], sample_weight=[weight])
        proba, log_density, learned = single.learn(x, labels[i].item(), weight)
        assert learned
        assert_allclose(proba, before.proba[0], rtol=1e-12)
        assert_allclose(log_density, before.log_density[0], rtol=1e-12)
    assert state(twin) == state(model)


def test_a_row_that_cannot_be_learned_is_told_of():
    def within(y, f):
        return np.where((np.abs(y - f) <= 1.0) & (y < 100.0), -np.log(2.0), -np.inf)

    likelihood = Custom(
        within,
        knots=lambda y: y[:, None] + [-1.0, 1.0],
        conditional_mean=np.array,
        conditional_var=lambda f: np.full(np.shape(f), 1.0 / 3.0),
        conditional_cdf=lambda y, f: np.clip(0.5 * (y - f + 1.0), 0.0, 1.0),
    )
    model = OnlineGPRegressor(RBF(), likelihood)
    model.partial_fit(np.zeros((5, 1)), np.linspace(-0.5, 0.5, 5))
    before = model.predict([[0.0]])
    with pytest.warns(MercerWarning, match="^the row was skipped: under Custom.*its target has"):
        said = NumberRows(model, 0.95).learn(np.array([[0.0]]), 200.0)
    assert said.log_density == -np.inf and not said.learned
    assert_allclose(model.predict([[0.0]]), before, rtol=0)
