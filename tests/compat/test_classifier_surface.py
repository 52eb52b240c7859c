"""The classifier's surface: signatures, attributes, messages, and scikit-learn's habits."""

from __future__ import annotations

import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process.kernels as skl
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as Original
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import kernels
from mercer.compat import GaussianProcessClassifier
from mercer.posterior import Posterior, Stacked

KERNEL = 1.0 * skl.RBF(1.0)

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
latent = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)
y, several = latent > 0, np.digitize(latent, [-0.5, 0.5])


# --- the same names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        "__init__",
        "fit",
        "predict",
        "predict_proba",
        "log_marginal_likelihood",
        "latent_mean_and_variance",
        "score",
    ],
)
def test_signatures(method):
    if not hasattr(Original, method):
        pytest.skip("newer than this scikit-learn")
    ours, theirs = (
        inspect.signature(getattr(cls, method)).parameters.values()
        for cls in (GaussianProcessClassifier, Original)
    )
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


@pytest.mark.parametrize("labels", [y, several], ids=["2", "3"])
def test_attributes(labels):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    theirs, ours = (cls(KERNEL).fit(frame, labels) for cls in (Original, GaussianProcessClassifier))
    names = {name for name in vars(theirs) if name.endswith("_")}
    assert names == {name for name in vars(ours) if name.endswith("_")}
    assert {"classes_", "n_classes_", "base_estimator_", "feature_names_in_"} <= names
    for name in names - {"base_estimator_"}:
        a, b = getattr(theirs, name), getattr(ours, name)
        assert type(a) is type(b), name
        if name != "log_marginal_likelihood_value_":
            np.testing.assert_array_equal(a, b)
    inside = theirs.base_estimator_, ours.base_estimator_
    if len(ours.classes_) == 2:
        names = {name for name in vars(inside[0]) if name.endswith("_")}
        assert names == {name for name in vars(inside[1]) if name.endswith("_")}
        for name in names - {"kernel_"}:
            a, b = (getattr(m, name) for m in inside)
            assert type(a) is type(b), name
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4, err_msg=name)
        np.testing.assert_array_equal(np.triu(inside[1].L_, 1), 0.0)


def test_parameters_are_left_alone():
    kernel = 1.0 * skl.RBF(1.0)
    before = kernel.theta.copy()
    model = GaussianProcessClassifier(kernel).fit(X, y)
    np.testing.assert_array_equal(kernel.theta, before)
    assert model.kernel is kernel


def test_training_rows_are_copied_or_not():
    rows = X.copy()
    model = GaussianProcessClassifier(copy_X_train=False).fit(rows, y)
    assert model.base_estimator_.X_train_ is rows
    model = GaussianProcessClassifier().fit(rows, y)
    before = model.predict_proba(X_new)
    rows[:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(X_new), before)


def test_moving_the_fitted_kernel():
    theirs, ours = (
        cls(KERNEL, optimizer=None).fit(X, y) for cls in (Original, GaussianProcessClassifier)
    )
    for model in (theirs, ours):
        value = model.log_marginal_likelihood(KERNEL.theta + 0.3, clone_kernel=True)
        np.testing.assert_array_equal(model.kernel_.theta, KERNEL.theta)
        assert model.log_marginal_likelihood(KERNEL.theta + 0.3, clone_kernel=False) == value
        np.testing.assert_allclose(model.kernel_.theta, KERNEL.theta + 0.3)
    for a, b in zip(*(m.latent_mean_and_variance(X_new) for m in (theirs, ours)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_what_changes_nothing_but_the_time():
    plain = GaussianProcessClassifier(KERNEL).fit(X, y)
    other = GaussianProcessClassifier(KERNEL, warm_start=True, max_iter_predict=1).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(X_new), other.predict_proba(X_new))


def test_the_latent_process_is_a_posterior(tmp_path):
    kernel = KERNEL + skl.WhiteKernel(0.2, "fixed")
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    assert type(model.posterior_) is Posterior
    mean, var = model.latent_mean_and_variance(X_new)
    np.testing.assert_allclose(model.posterior_.mean(X_new)[:, 0], mean)
    np.testing.assert_allclose(model.predictive_.var(X_new)[:, 0] + 0.2, var)
    mercer.save(model.posterior_.prune(30)[0], tmp_path / "small.mercer")
    small = mercer.load(tmp_path / "small.mercer")
    np.testing.assert_allclose(small.mean(X_new)[:, 0], mean, atol=0.2)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_several_latent_processes(multi_class):
    model = GaussianProcessClassifier(optimizer=None, multi_class=multi_class).fit(X, several)
    assert type(model.predictive_) is Stacked
    assert model.predictive_.mean(X_new).shape == (6, 3)
    with pytest.raises(AttributeError, match=r"3 classes.*predictive_"):
        _ = model.posterior_
    assert not hasattr(model, "posterior_")


# --- habits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [y, several], ids=["2", "3"])
def test_pickling(labels):
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, labels)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X_new), model.predict_proba(X_new))
    assert again.kernel_ == model.kernel_


def test_cloning_and_parameters_inside_the_kernel():
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
    copied = clone(model)
    assert not hasattr(copied, "base_estimator_")
    assert copied.get_params().keys() == Original(KERNEL).get_params().keys()
    copied.set_params(kernel__k2__length_scale=0.7)
    assert copied.kernel.k2.length_scale == 0.7


def test_grid_search_in_a_pipeline():
    grid = {"gaussianprocessclassifier__kernel": [KERNEL, skl.DotProduct(), 9.0 * skl.Matern()]}
    theirs, ours = (
        GridSearchCV(
            make_pipeline(StandardScaler(), cls(optimizer=None)), grid, cv=3, scoring="neg_log_loss"
        ).fit(X, several)
        for cls in (Original, GaussianProcessClassifier)
    )
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-3
    )
    assert ours.best_params_ == theirs.best_params_


def test_threads_may_share_a_fitted_model():
    model = GaussianProcessClassifier(KERNEL).fit(X, y)
    thetas = KERNEL.theta + rng.normal(scale=0.3, size=(16, 2))

    def work(theta):
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        return np.concatenate([[value], gradient, model.predict_proba(X_new).ravel()])

    expected = [work(theta) for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, thetas))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "labels", [y.astype(int) - 5, np.where(y, "a", "b"), np.where(y, "a", "b").astype(object)]
)
def test_labels_of_any_type(labels):
    theirs, ours = (cls().fit(X, labels) for cls in (Original, GaussianProcessClassifier))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))
    assert ours.predict(X_new).dtype == theirs.predict(X_new).dtype


def test_names_of_columns_are_compared():
    model = GaussianProcessClassifier().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_new, columns=list("abd")))


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": kernels.RBF()},
        {"optimizer": "adam"},
        {"n_restarts_optimizer": -1},
        {"max_iter_predict": 0},
        {"warm_start": "yes"},
        {"copy_X_train": None},
        {"multi_class": "softmax"},
        {"multi_class": 3},
        {"n_jobs": 1.5},
        {"random_state": "seed"},
    ],
    ids=lambda settings: "-".join(map(str, settings)),
)
def test_bad_parameters(settings):
    name = next(iter(settings))
    with pytest.raises(ValueError, match=name if name != "random_state" else "seed"):
        GaussianProcessClassifier(**settings).fit(X, y)


def test_a_kernel_of_mercers_is_pointed_to_its_place():
    with pytest.raises(ValueError, match=r"mercer\.GPClassifier"):
        GaussianProcessClassifier(kernels.RBF()).fit(X, y)


def test_questions_that_have_no_answer():
    model = GaussianProcessClassifier(KERNEL, multi_class="one_vs_one")
    for ask in (model.predict, model.predict_proba, model.latent_mean_and_variance):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(NotFittedError):
        _ = model.predictive_
    with pytest.raises(ValueError, match="only class True is present"):
        model.fit(X, np.full(40, True))
    model.set_params(optimizer=None).fit(X, several)
    with pytest.raises(ValueError, match="one_vs_one multi-class mode does not support"):
        model.predict_proba(X)
    with pytest.raises(NotImplementedError, match="not implemented for multi-class"):
        model.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)
    with pytest.raises(ValueError, match="must be either 2 or 6"):
        model.log_marginal_likelihood(np.zeros(4))
    with pytest.raises(ValueError, match="only be evaluated for theta!=None"):
        model.log_marginal_likelihood(eval_gradient=True)
    with pytest.raises(ValueError, match="all bounds are finite"):
        kernel = skl.RBF(1.0, (1e-3, np.inf))
        GaussianProcessClassifier(kernel, n_restarts_optimizer=1).fit(X, y)


def test_warnings_come_from_the_users_line():
    kernel = skl.RBF(0.2, (1e-3, 0.3))
    with pytest.warns(ConvergenceWarning, match="close to the specified upper bound") as caught:
        GaussianProcessClassifier(kernel).fit(X[:, :1], X[:, 0] > 0)
    assert caught[0].filename == __file__
