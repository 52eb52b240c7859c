"""Fits whose columns or targets are given in other units."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import GPRegressor
from mercer.kernels import RBF, Linear, Polynomial

RNG = np.random.default_rng(0)
T, P = np.linspace(0, 100, 80), RNG.standard_normal(80)
Y = 3.0 * np.sin(T / 15.0) + 3.0 * P + 0.1 * RNG.standard_normal(80)
LINE = np.linspace(0, 1, 60)[:, None]
PARABOLA = 2.0 + LINE[:, 0] - 3.0 * LINE[:, 0] ** 2 + 0.05 * RNG.standard_normal(60)


@pytest.mark.parametrize("s", [1e-8, 1e-4, 1e3, 1e6])
def test_a_linear_term_is_found_in_any_units(s):
    model = GPRegressor(1.0 * RBF(20.0).on(0) + 1.0 * Linear().on(1))
    model.fit(np.column_stack([T, s * P]), Y)
    assert model.log_marginal_likelihood_value_ > 43.0
    slope = np.sqrt(model.kernel_.kernels[1].variance) * s
    assert slope == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize("s", [1e-4, 1e5])
def test_a_polynomial_is_found_in_any_units(s):
    usual = GPRegressor(1.0 * Polynomial(2)).fit(LINE, PARABOLA)
    model = GPRegressor(1.0 * Polynomial(2)).fit(s * LINE, PARABOLA)
    assert model.jitter_ == 0.0
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        usual.log_marginal_likelihood_value_, abs=1e-2
    )
    np.testing.assert_allclose(model.predict(s * LINE), usual.predict(LINE), atol=1e-3)


WAVES = np.linspace(0, 20, 120)[:, None]
SUM = np.sin(WAVES[:, 0] / 3.0) + 0.1 * np.sin(4.0 * WAVES[:, 0]) + 0.01 * RNG.standard_normal(120)
BOTH = np.column_stack([T, P])
FORMS = {
    "two terms": (lambda c: 1.0 * RBF(6.0 * c) + 1.0 * RBF(0.5 * c), WAVES, SUM),
    "product": (lambda c: 1.0 * RBF(6.0 * c) * Linear(), WAVES, WAVES[:, 0] * SUM),
    "factors": (lambda c: (1.0 * RBF(6.0 * c)) * (1.0 * RBF(0.5 * c)), WAVES, SUM),
    "linear": (lambda c: 1.0 * RBF(20.0 * c).on(0) + 1.0 * Linear().on(1), BOTH, Y / np.std(Y)),
    "polynomial": (lambda c: 1.0 * Polynomial(2), LINE, PARABOLA),
}


def evidence(form, X, y, s=1.0, c=1.0):
    """Return the log evidence in the units of y."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of a bound that nobody gave above all
        model = GPRegressor(form(c)).fit(c * X, s * y)
    return model.log_marginal_likelihood_value_ + len(y) * np.log(s)


@pytest.mark.parametrize(("s", "c"), [(1e3, 1.0), (1e-3, 1.0), (1.0, 1e3), (1.0, 1e-3)])
@pytest.mark.parametrize("case", FORMS.values(), ids=FORMS)
def test_the_evidence_is_the_same_in_any_units(case, s, c):
    assert evidence(*case, s, c) == pytest.approx(evidence(*case), abs=0.05)


def test_without_a_search_the_kernel_stays_as_it_was_given():
    model = GPRegressor(1.0 * RBF(6.0), optimizer=None).fit(WAVES, 1e3 * SUM)
    assert model.kernel_ == 1.0 * RBF(6.0)


@pytest.mark.parametrize("inference", ["auto", "laplace"])
def test_a_warm_start_goes_on_from_where_the_last_fit_ended(inference):
    """The bounds hold it, be it far from what the new targets suggest."""
    model = GPRegressor(1.0 * RBF(6.0), warm_start=True, inference=inference)
    model.fit(WAVES, 1e3 * SUM)
    last = model.kernel_
    model.set_params(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(WAVES, 1e-3 * SUM)
    assert model.history_["theta"][0, 0] == pytest.approx(last.theta[0])


def test_columns_and_targets_near_the_least_double():
    X = RNG.normal(size=(12, 2))
    y = 1e-5 * np.sin(X[:, 0])
    y += 1e-6 * RNG.normal(size=12)
    usual, model = GPRegressor().fit(X, y), GPRegressor().fit(1e-300 * X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        usual.log_marginal_likelihood_value_, abs=1e-3
    )
    # as closely as the search converges
    scales = [m.kernel_.kernel.length_scale for m in (usual, model)]
    np.testing.assert_allclose(scales[1], 1e-300 * scales[0], rtol=1e-2)
    np.testing.assert_allclose(model.predict(1e-300 * X), usual.predict(X), rtol=1e-3)
