"""What holds of both classes: scikit-learn's surface, habits and messages."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process as sk
import sklearn.gaussian_process.kernels as skl
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import compat, kernels

from .kernels import Looked, Loud, trees

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)


class Pair(NamedTuple):
    """scikit-learn's class and Mercer's, what to fit, and what to ask."""

    theirs: Any
    ours: Any
    kernel: Any
    y: Any
    methods: tuple[str, ...]
    bad: tuple[dict[str, Any], ...]
    scoring: str
    atol: float

    def fitted(self, rows=X, targets=None, **options):
        """Return both models, fitted."""
        options = {"kernel": self.kernel, "optimizer": None} | options
        targets = self.y if targets is None else targets
        return tuple(cls(**options).fit(rows, targets) for cls in (self.theirs, self.ours))

    def answers(self, model, rows=X_new):
        """Return what a model predicts, flat."""
        if hasattr(model, "predict_proba"):
            parts = model.predict_proba(rows), *model.latent_mean_and_variance(rows)
        else:
            parts = model.predict(rows, return_std=True)
        return np.concatenate([np.ravel(part) for part in parts])


PAIRS = [
    Pair(
        sk.GaussianProcessRegressor,
        compat.GaussianProcessRegressor,
        1.0 * skl.RBF(1.0) + skl.WhiteKernel(0.1),
        y,
        ("sample_y",),
        (
            {"kernel": skl.RBF},
            {"alpha": -1.0},
            {"alpha": "small"},
            {"alpha": np.ones((40, 2))},
            {"n_targets": 0},
            {"normalize_y": "yes"},
        ),
        "r2",
        1e-8,
    ),
    Pair(
        sk.GaussianProcessClassifier,
        compat.GaussianProcessClassifier,
        1.0 * skl.RBF(1.0),
        y > 0,
        ("predict_proba", "latent_mean_and_variance"),
        (
            {"max_iter_predict": 0},
            {"warm_start": "yes"},
            {"multi_class": "softmax"},
            {"multi_class": 3},
            {"n_jobs": 1.5},
        ),
        "neg_log_loss",
        1e-3,  # scikit-learn integrates the logistic function by five error functions
    ),
]
both = pytest.mark.parametrize("pair", PAIRS, ids=["regressor", "classifier"])


# --- the same names and meaning -------------------------------------------------------------------


@both
def test_signatures(pair):
    shared = "__init__", "fit", "predict", "log_marginal_likelihood", "score"
    for method in (*shared, *pair.methods):
        if method == "latent_mean_and_variance" and not hasattr(pair.theirs, method):
            continue  # newer than this scikit-learn
        ours, theirs = (
            [
                (p.name, p.kind, p.default)
                for p in inspect.signature(getattr(cls, method)).parameters.values()
            ]
            for cls in (pair.ours, pair.theirs)
        )
        assert ours == theirs, method


@both
def test_parameters_are_left_alone(pair):
    before = pair.kernel.theta.copy()
    model = pair.ours(pair.kernel).fit(X, pair.y)
    np.testing.assert_array_equal(pair.kernel.theta, before)
    assert model.kernel is pair.kernel


@both
def test_training_rows_are_copied_or_not(pair):
    rows = X.copy()
    model = pair.ours(optimizer=None, copy_X_train=False).fit(rows, pair.y)
    assert getattr(model, "base_estimator_", model).X_train_ is rows
    model = pair.ours(optimizer=None).fit(rows, pair.y)
    before = pair.answers(model)
    rows[:] = 0.0
    np.testing.assert_array_equal(pair.answers(model), before)


@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")
@both
def test_moving_the_fitted_kernel(pair):
    # scikit-learn's meaning: predictions use the kernel as it is now, and the old coefficients
    models, theta = pair.fitted(), pair.kernel.theta
    for model in models:
        value = model.log_marginal_likelihood(theta + 0.3, clone_kernel=True)
        np.testing.assert_array_equal(model.kernel_.theta, theta)
        assert model.log_marginal_likelihood(theta + 0.3, clone_kernel=False) == value
        np.testing.assert_allclose(model.kernel_.theta, theta + 0.3)
    theirs, ours = (pair.answers(model) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=pair.atol)


@both
def test_kernels_of_users_own_are_called_as_they_are(pair):
    # with one argument it has noise, with two it has none, and row numbers stay whole
    kernel = Looked(np.cov(rng.normal(size=(50, 200)))) + Loud(0.1)
    models = pair.fitted(np.arange(40)[:, None], kernel=kernel)
    theirs, ours = (pair.answers(model, np.arange(35, 50)[:, None]) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=pair.atol)


# --- the evidence ---------------------------------------------------------------------------------


@both
@settings(max_examples=35, deadline=None)
@given(data=st.data())
def test_gradients_are_those_of_the_value(pair, data):
    kernel = data.draw(trees(1))
    options = {"alpha": 0.3} if pair is PAIRS[0] else {}
    model = pair.ours(kernel, optimizer=None, **options).fit(X[:12, :1], pair.y[:12])
    assume(np.linalg.cond(getattr(model, "base_estimator_", model).L_) < 1e3)
    theta, step = kernel.theta, 1e-5
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    for i, slope in enumerate(gradient):
        ends = [theta + sign * step * np.eye(theta.size)[i] for sign in (1, -1)]
        up, down = (model.log_marginal_likelihood(end) for end in ends)
        size = 1.0 + abs(value)
        assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-6 * size)


@both
def test_no_array_of_derivatives_is_built(pair):
    n, d = 500, 12
    rows = rng.normal(size=(n, d))
    kernel = skl.ConstantKernel(1.0) * skl.RBF(np.ones(d)) + skl.WhiteKernel(0.1)
    targets = rows[:, 0] if pair is PAIRS[0] else rows[:, 0] > 0
    model = pair.ours(kernel, optimizer=None).fit(rows, targets)
    tracemalloc.start()
    try:
        model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # an n x n x p array alone would be fourteen such matrices
    assert most < (4 if pair is PAIRS[0] else 6) * 8 * n**2


@both
def test_restarts_begin_where_scikit_learns_do(pair):
    begun = []
    for cls in (pair.theirs, pair.ours):
        seen = []

        def optimizer(function, start, bounds, seen=seen):
            # the classifier's are exponentials of thetas, and may be far beyond the bounds
            near = np.minimum(start, 5.0)
            seen.append((np.array(start), bounds, *function(near), function(near, False)))
            return near, seen[-1][-1]

        options = {"optimizer": optimizer, "n_restarts_optimizer": 3, "random_state": 5}
        cls(skl.ConstantKernel(1.0) * skl.RBF(np.ones(3), (0.1, 10.0)), **options).fit(X, pair.y)
        begun.append(seen)
    assert len(begun[0]) == 4
    for theirs, ours in zip(*begun, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        for a, b in zip(theirs[2:], ours[2:], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-8)


# --- habits ---------------------------------------------------------------------------------------


@both
def test_pickling(pair):
    model = pair.fitted()[1]
    text = pickle.dumps(model)
    factor = getattr(model, "base_estimator_", model).L_
    assert len(text) < 1.5 * factor.nbytes + 20_000  # it is there once
    again = pickle.loads(text)
    np.testing.assert_array_equal(pair.answers(again), pair.answers(model))
    assert again.kernel_ == model.kernel_


@both
def test_cloning_and_parameters_inside_the_kernel(pair):
    copied = clone(pair.fitted()[1])
    assert not hasattr(copied, "kernel_")
    assert copied.get_params().keys() == pair.theirs(pair.kernel).get_params().keys()
    name = next(name for name in copied.get_params() if name.endswith("__length_scale"))
    copied.set_params(**{name: 0.7})
    assert copied.get_params()[name] == 0.7


@both
def test_grid_search_in_a_pipeline(pair):
    name = pair.ours.__name__.lower()
    grid = {f"{name}__kernel": [pair.kernel, skl.DotProduct() + skl.WhiteKernel(), None]}
    theirs, ours = (
        GridSearchCV(
            make_pipeline(StandardScaler(), cls(optimizer=None)), grid, cv=3, scoring=pair.scoring
        ).fit(X, pair.y)
        for cls in (pair.theirs, pair.ours)
    )
    expected = theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], expected, atol=pair.atol)
    assert ours.best_params_ == theirs.best_params_


@both
def test_threads_may_share_a_fitted_model(pair):
    model = pair.fitted()[1]
    thetas = pair.kernel.theta + rng.normal(scale=0.3, size=(16, pair.kernel.n_dims))

    def work(theta):
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        return np.concatenate([[value], gradient, pair.answers(model)])

    expected = [work(theta) for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, thetas))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@both
def test_names_of_columns_are_compared(pair):
    model = pair.ours().fit(pd.DataFrame(X, columns=list("abc")), pair.y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_new, columns=list("abd")))


# --- messages -------------------------------------------------------------------------------------


@both
def test_bad_parameters(pair):
    shared = (
        {"kernel": "rbf"},
        {"optimizer": "adam"},
        {"n_restarts_optimizer": -1},
        {"n_restarts_optimizer": 1.5},
        {"copy_X_train": None},
        {"random_state": "seed"},
    )
    for options in (*shared, *pair.bad):
        name = next(iter(options))
        with pytest.raises(ValueError, match=name if name != "random_state" else "seed"):
            pair.ours(**options).fit(X, pair.y)
    own = pair.ours.__name__.replace("GaussianProcess", "GP")
    with pytest.raises(ValueError, match=rf"goes into mercer\.{own}\)"):
        pair.ours(kernels.RBF()).fit(X, pair.y)


@both
def test_warnings_come_from_the_users_line(pair):
    kernel = skl.RBF(0.2, (1e-3, 0.3)) + skl.WhiteKernel(0.1, "fixed")
    with pytest.warns(ConvergenceWarning, match="close to the specified upper bound") as caught:
        pair.ours(kernel).fit(X[:, :1], X[:, 0] if pair is PAIRS[0] else X[:, 0] > 0)
    assert caught[0].filename == __file__
