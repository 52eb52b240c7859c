"""The surface: signatures, attributes, messages, and scikit-learn's habits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process.kernels as skl
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor as Original

import mercer
from mercer import kernels
from mercer.compat import GaussianProcessRegressor
from mercer.posterior import Posterior

KERNEL = 1.0 * skl.RBF(1.0) + skl.WhiteKernel(0.1)

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)


# --- the same names -------------------------------------------------------------------------------


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


def test_alpha_is_left_alone():
    alpha = np.array([0.1])
    model = GaussianProcessRegressor(KERNEL, alpha=alpha, optimizer=None).fit(X, y)
    assert model.alpha is alpha and alpha == [0.1]


def test_unfitted_models_check_their_options_too():
    with pytest.raises(ValueError, match=r"mercer\.GPRegressor"):
        GaussianProcessRegressor(kernels.RBF()).predict(X)


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
