"""Warnings point at the line of the user's that led to them."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPRegressor
from mercer.errors import (
    BoundWarning,
    CalibrationWarning,
    ConvergenceWarning,
    JitterWarning,
    MercerWarning,
    UndeterminedWarning,
)
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

from .data import X, Y

TWICE = np.repeat(np.linspace(0, 1, 15), 2)[:, None]

FITS = {
    ConvergenceWarning: (GPRegressor(max_iter=1), X, Y),
    BoundWarning: (GPRegressor(RBF(Parameter(1.0, bounds=(0.5, 1.1)))), X, 0.01 * X[:, 0]),
    JitterWarning: (
        GPRegressor(RBF(), Gaussian(np.zeros(30)), mean="zero", optimizer=None),
        TWICE,
        np.sin(TWICE[:, 0]),
    ),
    UndeterminedWarning: (GPRegressor(), X, np.ones(40)),
    CalibrationWarning: (GPRegressor(), X, np.column_stack([Y, np.sin(X[:, 0])])),
}
WRAPPERS = {
    "alone": lambda model: model,
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "search": lambda model: GridSearchCV(model, {"verbose": [0]}, cv=2, error_score="raise"),
}


# not where known noise, one a row, would meet a part of the rows
PAIRS = [(c, w) for c in FITS for w in WRAPPERS if (c, w) != (JitterWarning, "search")]


@pytest.mark.parametrize(("category", "wrapper"), PAIRS)
def test_the_users_line_is_blamed(category, wrapper):
    model, inputs, targets = FITS[category]
    model = WRAPPERS[wrapper](model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        model.fit(inputs, targets)
    ours = [w for w in caught if issubclass(w.category, MercerWarning)]
    assert any(w.category is category for w in ours)
    assert {(w.filename, w.lineno) for w in ours} == {(__file__, line)}
