"""scikit-learn's own checks, frames, pipelines and searches."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPRegressor
from mercer.estimators.process import FittedProcess
from mercer.kernels import RBF, Matern

from .data import make, quiet_fit


def test_frames_and_feature_names():
    X, y = make()
    names = ["height", "width", "age"]
    reference = GPRegressor().fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = GPRegressor().fit(frame, y)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict(frame), reference.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=["width", "height", "age"]))


def test_pipelines_and_searches():
    X, y = make(60)
    pipeline = make_pipeline(StandardScaler(), GPRegressor(max_iter=20))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    search = GridSearchCV(
        GPRegressor(optimizer=None), {"kernel": [RBF(1.0), Matern(1.0), RBF(0.01)]}, cv=3
    ).fit(X, y)
    assert search.best_params_["kernel"] != RBF(0.01)


def test_fit_changes_no_parameter_and_predict_changes_nothing():
    X, y = make()
    model = GPRegressor(1.0 * RBF())
    before = {k: v for k, v in vars(model).items()}
    quiet_fit(model, X, y)
    assert all(vars(model)[k] is v for k, v in before.items())
    state = pickle.dumps(model)
    model.predict(X, return_std=True)
    model.sample_y(X[:3])
    assert pickle.dumps(model) == state


def test_inputs_are_copied_not_aliased():
    X, y = make()
    model = GPRegressor(optimizer=None).fit(X, y)
    before = model.predict(X[:3].copy())
    at = X[:3].copy()
    X[:], y[:] = 0.0, 0.0
    np.testing.assert_array_equal(model.predict(at), before)


def test_tags_of_an_estimator_without_a_kernel_among_its_parameters():
    class Own(FittedProcess, BaseEstimator):
        pass

    assert not Own().__sklearn_tags__().input_tags.pairwise
