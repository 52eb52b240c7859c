"""Odd data: few rows, many columns, constants, repetitions, any units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import GPRegressor
from mercer.kernels import RBF

from .data import quiet_fit

CASES = {
    "one row": (np.zeros((1, 2)), np.array([3.0])),
    "two equal rows": (np.ones((2, 1)), np.array([1.0, 2.0])),
    "one column": (np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 9) ** 2),
    "constant column": (np.column_stack([np.linspace(0, 1, 9), np.ones(9)]), np.arange(9.0)),
    "constant targets": (np.linspace(0, 1, 9)[:, None], np.full(9, 5.0)),
    "targets all zero": (np.linspace(0, 1, 9)[:, None], np.zeros(9)),
    "all rows equal": (np.ones((9, 2)), np.arange(9.0)),
    "duplicates that disagree": (np.repeat(np.eye(3), 3, axis=0), np.arange(9.0)),
    "tiny": (1e-8 * np.linspace(0, 1, 9)[:, None], 1e-8 * np.linspace(0, 1, 9) ** 2),
    "huge": (1e8 * np.linspace(0, 1, 9)[:, None], 1e8 * np.linspace(0, 1, 9) ** 2),
    "far from the origin": (1e9 + np.linspace(0, 1, 9)[:, None], 1e6 + np.linspace(0, 1, 9)),
    "huge targets, tiny spread": (np.linspace(0, 1, 9)[:, None], 1e8 + np.linspace(0, 1e-6, 9)),
    "an outlier": (np.linspace(0, 1, 9)[:, None], np.append(np.zeros(8), 1e12)),
    "booleans": (np.eye(4, dtype=bool), np.arange(4)),
    "single precision": (np.eye(4, dtype=np.float32), np.arange(4, dtype=np.float32)),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_data_give_finite_predictions(case):
    X, y = CASES[case]
    model = quiet_fit(GPRegressor(), X, y)
    inside = model.predict(X, return_std=True)
    outside = model.predict(X.astype(float) + 10.0, return_std=True)
    for mean, std in (inside, outside):
        assert np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(std >= 0)
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert np.all(np.isfinite(model.sample_y(X, 2)))


def test_constant_targets_are_predicted():
    model = quiet_fit(GPRegressor(), *CASES["constant targets"])
    np.testing.assert_allclose(model.predict([[0.3], [5.0]]), 5.0, atol=1e-6)


def test_ten_thousand_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 10_000))
    y = X[:, :50].sum(axis=1)
    model = quiet_fit(GPRegressor(1.0 * RBF(100.0)), X, y)
    assert np.all(np.isfinite(model.predict(X)))
    short = quiet_fit(GPRegressor(max_iter=2), X, y)
    assert np.all(np.isfinite(short.predict(X[:3], return_std=True)))


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 3),
    exponent=st.integers(-9, 9),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=40, deadline=None)
def test_any_small_table_can_be_fitted(n, d, exponent, repeats, seed):
    rng = np.random.default_rng(seed)
    X = np.repeat(np.round(rng.normal(size=(n, d)), 1), repeats, axis=0) * 10.0**exponent
    y = rng.normal(size=n * repeats) * 10.0**-exponent
    model = quiet_fit(GPRegressor(max_iter=20), X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(std >= 0)


@pytest.mark.parametrize("unit", [1e-165, 1e160])
def test_columns_in_any_unit_that_doubles_hold(unit):
    X = np.linspace(0.0, 6.0, 30)[:, None]
    y = np.sin(X[:, 0])
    expected = quiet_fit(GPRegressor(), X, y).predict(X)
    np.testing.assert_allclose(
        quiet_fit(GPRegressor(), unit * X, y).predict(unit * X), expected, atol=1e-4
    )
