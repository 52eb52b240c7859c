"""The surface: signatures, attributes, messages, and scikit-learn's habits."""

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
from sklearn.gaussian_process import GaussianProcessRegressor as Original
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import kernels
from mercer.compat import GaussianProcessRegressor
from mercer.posterior import Posterior

KERNEL = 1.0 * skl.RBF(1.0) + skl.WhiteKernel(0.1)

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)


# --- the same names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["__init__", "fit", "predict", "sample_y", "log_marginal_likelihood", "score"]
)
def test_signatures(method):
    ours, theirs = (
        inspect.signature(getattr(cls, method)).parameters.values()
        for cls in (GaussianProcessRegressor, Original)
    )
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


@pytest.mark.parametrize("targets", [y, y[:, None], np.stack([y, -y], 1)], ids=["1", "1d", "2"])
@pytest.mark.parametrize("normalize", [False, True])
def test_attributes(targets, normalize):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    theirs, ours = (
        cls(KERNEL, normalize_y=normalize).fit(frame, targets)
        for cls in (Original, GaussianProcessRegressor)
    )
    names = {name for name in vars(theirs) if name.endswith("_")}
    assert names == {name for name in vars(ours) if name.endswith("_")}
    assert {"X_train_", "y_train_", "kernel_", "L_", "alpha_", "feature_names_in_"} <= names
    for name in [*sorted(names - {"kernel_"}), "_y_train_mean", "_y_train_std"]:
        a, b = getattr(theirs, name), getattr(ours, name)
        assert type(a) is type(b), name
        assert np.shape(a) == np.shape(b), name
        if name != "feature_names_in_":
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(ours.feature_names_in_, ["a", "b", "c"])
    np.testing.assert_array_equal(np.triu(ours.L_, 1), 0.0)


def test_types_of_numbers():
    model = GaussianProcessRegressor(KERNEL, optimizer=None).fit(X, y)
    assert type(model.log_marginal_likelihood_value_) is np.float64
    assert type(model.log_marginal_likelihood(KERNEL.theta)) is np.float64
    assert type(model.log_marginal_likelihood(KERNEL.theta, True)[0]) is np.float64


def test_parameters_are_left_alone():
    kernel, alpha = 1.0 * skl.RBF(1.0), np.array([0.1])
    before = kernel.theta.copy()
    model = GaussianProcessRegressor(kernel, alpha=alpha).fit(X, y)
    np.testing.assert_array_equal(kernel.theta, before)
    assert model.kernel is kernel and model.alpha is alpha


def test_training_rows_are_copied_or_not():
    rows = X.copy()
    assert (
        GaussianProcessRegressor(optimizer=None, copy_X_train=False).fit(rows, y).X_train_ is rows
    )
    model = GaussianProcessRegressor(optimizer=None).fit(rows, y)
    before = model.predict(X_new)
    rows[:] = 0.0
    np.testing.assert_array_equal(model.predict(X_new), before)


def test_moving_the_fitted_kernel():
    # scikit-learn's meaning: predictions use the kernel as it is now, and the old coefficients
    theirs, ours = (
        cls(KERNEL, optimizer=None).fit(X, y) for cls in (Original, GaussianProcessRegressor)
    )
    for model in (theirs, ours):
        value = model.log_marginal_likelihood(KERNEL.theta + 0.3, clone_kernel=True)
        np.testing.assert_array_equal(model.kernel_.theta, KERNEL.theta)
        assert model.log_marginal_likelihood(KERNEL.theta + 0.3, clone_kernel=False) == value
        np.testing.assert_allclose(model.kernel_.theta, KERNEL.theta + 0.3)
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), rtol=1e-8)


def test_the_fitted_process_is_a_posterior(tmp_path):
    model = GaussianProcessRegressor(KERNEL, normalize_y=True).fit(X, 5 + y)
    posterior = model.posterior_
    np.testing.assert_allclose(posterior.mean(X_new)[:, 0], model.predict(X_new))
    noise = model.kernel_.k2.noise_level * np.var(y)
    variances = model.predict(X_new, return_std=True)[1] ** 2
    np.testing.assert_allclose(posterior.var(X_new)[:, 0] + noise, variances)
    assert type(posterior) is Posterior
    np.testing.assert_array_equal(model.predictive_.alpha, posterior.alpha)
    mercer.save(posterior.prune(20)[0], tmp_path / "small.mercer")
    np.testing.assert_allclose(
        mercer.load(tmp_path / "small.mercer").mean(X_new)[:, 0], model.predict(X_new), atol=0.2
    )
    for name in ("posterior_", "predictive_"):
        with pytest.raises(NotFittedError):
            getattr(GaussianProcessRegressor(), name)


# --- what derived classes override ----------------------------------------------------------------


def test_derived_classes_can_replace_the_search():
    class Short(GaussianProcessRegressor):
        def _constrained_optimization(self, obj_func, initial_theta, bounds):
            return initial_theta + 0.5, obj_func(initial_theta + 0.5, eval_gradient=False)

    np.testing.assert_allclose(Short(KERNEL).fit(X, y).kernel_.theta, KERNEL.theta + 0.5)


def test_derived_classes_can_add_a_prior():
    class Penalised(GaussianProcessRegressor):
        def log_marginal_likelihood(self, theta=None, eval_gradient=False, clone_kernel=True):
            found = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
            if theta is None:
                return found
            pull = 1e6 * (theta - 0.2)
            value = 0.5 * 1e6 * np.sum((theta - 0.2) ** 2)
            return (found[0] - value, found[1] - pull) if eval_gradient else found - value

    np.testing.assert_allclose(Penalised(KERNEL).fit(X, y).kernel_.theta, 0.2, atol=1e-3)


# --- habits ---------------------------------------------------------------------------------------


def test_pickling():
    model = GaussianProcessRegressor(KERNEL).fit(X, y)
    text = pickle.dumps(model)
    assert len(text) < 1.5 * model.L_.nbytes + 20_000  # the factor is there once
    again = pickle.loads(text)
    for a, b in zip(
        model.predict(X_new, return_std=True), again.predict(X_new, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.L_, model.L_)
    assert again.kernel_ == model.kernel_


def test_cloning_and_parameters_inside_the_kernel():
    model = GaussianProcessRegressor(KERNEL, alpha=0.2, optimizer=None).fit(X, y)
    copied = clone(model)
    assert not hasattr(copied, "kernel_")
    assert copied.get_params().keys() == Original(KERNEL).get_params().keys()
    copied.set_params(kernel__k2__noise_level=0.7)
    assert copied.kernel.k2.noise_level == 0.7


def test_grid_search_in_a_pipeline():
    grid = {
        "gaussianprocessregressor__kernel": [KERNEL, skl.DotProduct() + skl.WhiteKernel()],
        "gaussianprocessregressor__alpha": [1e-6, 10.0],
    }
    best = [
        GridSearchCV(make_pipeline(StandardScaler(), cls(optimizer=None)), grid, cv=3).fit(X, y)
        for cls in (Original, GaussianProcessRegressor)
    ]
    theirs, ours = best
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-8
    )
    assert ours.best_params_ == theirs.best_params_


def test_threads_may_share_a_fitted_model():
    model = GaussianProcessRegressor(KERNEL).fit(X, y)
    thetas = KERNEL.theta + rng.normal(scale=0.3, size=(24, 3))

    def work(theta):
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        mean, std = model.predict(X_new, return_std=True)
        return np.concatenate([[value], gradient, mean, std, model.sample_y(X_new, 2).ravel()])

    expected = [work(theta) for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, thetas))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_names_of_columns_are_compared():
    model = GaussianProcessRegressor(KERNEL).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_new, columns=list("abd")))


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_types_of_numbers(dtype):
    rows, targets = (5 * X).astype(dtype), (5 * y).astype(dtype)
    theirs, ours = (
        cls(KERNEL, optimizer=None).fit(rows, targets)
        for cls in (Original, GaussianProcessRegressor)
    )
    assert ours.X_train_.dtype == dtype
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), rtol=1e-6, atol=1e-6)


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": kernels.RBF()},
        {"kernel": skl.RBF},
        {"alpha": -1.0},
        {"alpha": "small"},
        {"alpha": np.ones((40, 2))},
        {"optimizer": "adam"},
        {"n_restarts_optimizer": -1},
        {"n_restarts_optimizer": 1.5},
        {"n_targets": 0},
        {"normalize_y": "yes"},
        {"copy_X_train": None},
        {"random_state": "seed"},
    ],
    ids=lambda settings: "-".join(map(str, settings)),
)
def test_bad_parameters(settings):
    name = next(iter(settings))
    with pytest.raises(ValueError, match=name if name != "random_state" else "seed"):
        GaussianProcessRegressor(**settings).fit(X, y)


def test_a_kernel_of_mercers_is_pointed_to_its_place():
    with pytest.raises(ValueError, match=r"mercer\.GPRegressor"):
        GaussianProcessRegressor(kernels.RBF()).predict(X)


def test_wrong_lengths_get_scikit_learns_words():
    with pytest.raises(ValueError, match="Anisotropic kernel must have the same number of dim"):
        GaussianProcessRegressor(skl.RBF([1.0, 2.0])).fit(X, y)


def test_a_matrix_that_cannot_be_factorised():
    repeated = np.ones((5, 1))
    model = GaussianProcessRegressor(skl.DotProduct(), alpha=0.0, optimizer=None)
    with pytest.raises(np.linalg.LinAlgError, match="gradually increasing the 'alpha' parameter"):
        model.fit(repeated, np.arange(5.0))
    model.set_params(alpha=1.0).fit(repeated, np.arange(5.0)).set_params(alpha=0.0)
    assert model.log_marginal_likelihood([0.0]) == -np.inf
    value, gradient = model.log_marginal_likelihood([0.0], eval_gradient=True)
    assert value == -np.inf and np.array_equal(gradient, [0.0])


def test_warnings_come_from_the_users_line():
    kernel = skl.RBF(0.2, (1e-3, 0.3)) + skl.WhiteKernel(0.1)
    with pytest.warns(ConvergenceWarning, match="close to the specified upper bound") as caught:
        GaussianProcessRegressor(kernel).fit(X[:, :1], X[:, 0] + 0.1 * y)
    assert caught[0].filename == __file__
