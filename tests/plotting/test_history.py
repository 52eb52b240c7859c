"""The history of a search, evaluation by evaluation."""

from __future__ import annotations

import copy
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from mercer import (
    GPClassifier,
    GPRegressor,
    LaplacianProcessRegressor,
    OnlineGPRegressor,
    RelevanceVectorRegressor,
    TransductiveGPClassifier,
    load,
    save,
)
from mercer.errors import ConvergenceWarning
from mercer.kernels import RBF
from mercer.plotting import plot_history

from . import look
from .rows import fresh


def test_history(one, ax):
    model, _, _ = one
    assert plot_history(model, ax=ax) is ax
    values = model.history_["value"]
    number, best = look.line(ax, "best so far")
    np.testing.assert_array_equal(number, np.arange(1, len(values) + 1))
    np.testing.assert_allclose(best, np.maximum.accumulate(values))
    seen = look.points(ax, "evaluations")
    np.testing.assert_allclose(seen[:, 1], values[seen[:, 0].astype(int) - 1])
    low, high = ax.get_ylim()
    assert low < values[0] <= values.max() < high
    assert ax.get_ylabel() == "log evidence and hyperpriors"


def test_steps_that_fell_far_are_marked(one, ax):
    model = copy.copy(one[0])
    model.history_ = {"value": np.array([-10.0, -1e9, -5.0, np.nan, -4.0])}
    plot_history(model, ax=ax)
    far = look.points(ax, "evaluations further down")
    np.testing.assert_array_equal(far[:, 0], [2, 4])
    assert ax.get_ylim()[0] > -20
    np.testing.assert_allclose(look.line(ax, "best so far")[1], [-10, -10, -5, -5, -4])


def test_history_of_leave_one_out(ax):
    X, y = fresh(1)
    plot_history(GPRegressor(objective="loo").fit(X, y), ax=ax)
    assert ax.get_ylabel() == "leave-one-out log density"


def test_history_of_a_search_by_held_out_rows(ax):
    X, y = fresh(1)
    model = LaplacianProcessRegressor(RBF(1.0), max_iter=5, n_folds=2, n_penalties=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plot_history(model.fit(X, y), ax=ax)
    assert ax.get_ylabel() == "mean log density of held-out rows"
    # the certificate is of the coefficients, not of the search
    assert model.status_ == "certified"
    assert ax.get_title(loc="left") == f"best {max(model.history_['value']):.6g}, stopped"


def test_a_search_of_kernels_that_was_stopped_is_not_said_to_have_converged(ax, tmp_path):
    X, y = fresh(1)
    model = RelevanceVectorRegressor(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="search for hyperparameters stopped early"):
        model.fit(X, y)
    assert model.status_ == "converged"
    save(model, tmp_path / "m.mercer")
    plot_history(load(tmp_path / "m.mercer"), ax=ax)
    assert ax.get_title(loc="left").endswith(", stopped")
    assert ax.get_ylabel() == "penalised log evidence and hyperpriors"


def test_a_search_of_kernels_that_has_converged(ax):
    X, y = fresh(1)
    plot_history(RelevanceVectorRegressor().fit(X, y), ax=ax)
    assert ax.get_title(loc="left").endswith(", converged")


def test_history_of_a_search_for_labels(ax):
    X, y = fresh(1)
    labels = np.where(np.arange(len(y)) % 4, -1, y > 0)
    model = TransductiveGPClassifier(RBF(1.0), optimizer=None).fit(X, labels)
    assert model.status_ == "fixed"
    plot_history(model, ax=ax)
    assert ax.get_ylabel() == "negative description length at each temperature"
    assert ax.get_title(loc="left").endswith(", converged")


def test_history_of_function_and_hyperparameters(one, ax):
    model = copy.copy(one[0]).set_params(objective="joint")
    plot_history(model, ax=ax)
    assert ax.get_ylabel() == "log density of function and hyperparameters"


def test_history_of_each_class(classes, ax):
    model, _ = classes
    plot_history(model, ax=ax)
    assert look.labels(ax) == [f"best so far, {label}" for label in "abc"]
    best = 0.0
    for label, history in zip("abc", model.history_, strict=True):
        number, values = look.line(ax, f"best so far, {label}")
        np.testing.assert_array_equal(number, np.arange(1, len(history["value"]) + 1))
        np.testing.assert_allclose(values, np.maximum.accumulate(history["value"]))
        best += max(history["value"])
    assert ax.get_title(loc="left") == f"best {best:.6g}, {model.status_}"


def test_no_history():
    X, y = fresh(1)
    none = GPClassifier(RBF(1.0), multi_class="one_vs_rest", optimizer=None)
    with pytest.raises(ValueError, match="has no history"):
        plot_history(none.fit(X, np.digitize(y, [-0.5, 0.5])))
    with pytest.raises(ValueError, match="has no history"):
        plot_history(GPRegressor(RBF(1.0), optimizer=None).fit(X, y))
    for other in (BayesianRidge(), OnlineGPRegressor()):  # the latter has searched
        with pytest.raises(ValueError, match=r"^this .* has no history: it does not keep"):
            plot_history(other.fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        plot_history(GPRegressor())
    assert plt.get_fignums() == []
