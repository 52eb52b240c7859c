"""The search for hyperparameters, where scikit-learn's fails and where it succeeds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as skl
from scipy.optimize import minimize, rosen, rosen_der
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as Original

from mercer.compat import GaussianProcessRegressor
from mercer.compat.covariance import covariance_of
from mercer.compat.search import lbfgs, warn_at_bounds

from .kernels import Shifted

BOX = np.array([[-10.0, 10.0], [-10.0, 10.0]])


def _bowl(theta):
    return float(np.sum((theta - 1.0) ** 2)), 2.0 * (theta - 1.0)


def test_it_finds_a_minimum():
    theta, least = lbfgs(_bowl, np.zeros(2), BOX)
    np.testing.assert_allclose(theta, 1.0, atol=1e-5)
    assert least == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("again", [True, False])
def test_it_turns_back_where_there_is_no_value(again):
    seen = []

    def function(theta):
        seen.append(theta[0])
        if theta[0] > 2.0:
            return np.inf, np.zeros(2)
        value, gradient = _bowl(theta)
        return 1e3 * value, 1e3 * gradient  # the first step goes far

    with warnings.catch_warnings():
        warnings.simplefilter("error" if again else "ignore")
        theta, _ = lbfgs(function, np.array([-8.0, 0.0]), BOX, again=again)
    assert max(seen) > 2.0
    if again:
        np.testing.assert_allclose(theta, 1.0, atol=1e-5)
    else:  # no wall is built
        expected = minimize(function, [-8.0, 0.0], method="L-BFGS-B", jac=True, bounds=BOX).x
        np.testing.assert_array_equal(theta, expected)


@pytest.mark.parametrize("size", [1e3, 1e-9])
def test_rounding_is_not_followed(size):
    n_calls, start = 0, np.array([-1.2, 1.0])

    def function(theta):
        nonlocal n_calls
        n_calls += 1
        # a start that happens to round down, and all about it up: whatever the last digits of
        # theta are, the line search finds nothing better if these errors are large
        error = size * (2.0 + np.sin(1e12 * np.sum(theta))) if np.any(theta != start) else 0.0
        return rosen(theta) + error, rosen_der(theta)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theta, _ = lbfgs(function, start, BOX)
    n_ours, n_calls = n_calls, 0
    plain = minimize(function, start, method="L-BFGS-B", jac=True, bounds=BOX)
    if size > 1.0:
        assert not plain.success
        assert n_ours == n_calls + 4
        np.testing.assert_array_equal(theta, plain.x)
    else:
        np.testing.assert_allclose(theta, 1.0, atol=1e-3)


def test_a_start_without_a_value_is_given_back():
    def function(theta):
        return np.inf, np.zeros(2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theta, least = lbfgs(function, np.zeros(2), BOX)
    np.testing.assert_array_equal(theta, 0.0)
    assert least == np.inf


def test_a_failed_search_is_told_of():
    def wrong(theta):  # no line search can succeed with this gradient
        return float(np.sum(theta**2)), -2.0 * theta

    with pytest.warns(ConvergenceWarning, match="lbfgs failed to converge"):
        lbfgs(wrong, np.full(2, 3.0), BOX)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alpha", [1e-13, 1e-12])
def test_fits_that_never_leave_their_start_in_scikit_learn(alpha):
    rows = np.linspace(0, 1, 30)[:, None]
    targets = np.sin(3 * rows[:, 0])
    kernel = skl.ConstantKernel(1.0) * skl.RBF(0.1, (1e-3, 1e3))
    theirs, ours = (
        cls(kernel, alpha=alpha).fit(rows, targets) for cls in (Original, GaussianProcessRegressor)
    )
    gained = ours.log_marginal_likelihood_value_ - theirs.log_marginal_likelihood(kernel.theta)
    assert gained > 150
    assert ours.log_marginal_likelihood_value_ > theirs.log_marginal_likelihood_value_ - 1.0


def test_kernels_that_may_be_indefinite_are_searched_as_scikit_learn_does():
    # The evidence rises towards matrices that are not positive definite. A search that is led back
    # from them ends beside one, where predictions are in the thousands.
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 10, (300, 2))
    targets = np.sin(rows[:, 0]) + 0.1 * rows[:, 1] + 0.1 * rng.normal(size=300)
    kernel = skl.ConstantKernel() * skl.ExpSineSquared() * skl.RBF() + skl.WhiteKernel()
    means = []
    for cls in (Original, GaussianProcessRegressor):
        model = cls(kernel, random_state=0).fit(rows, targets)
        means.append(model.predict(rows[:50] + 0.1))
    np.testing.assert_allclose(means[1], means[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", [skl.PairwiseKernel(), skl.DotProduct() ** 0.5, Shifted()])
def test_what_is_known_to_be_definite(kernel):
    assert not covariance_of(kernel, np.zeros((3, 2))).is_definite
    assert covariance_of(skl.RBF() ** 2 + skl.WhiteKernel(), np.zeros((3, 2))).is_definite


def test_each_parameter_at_a_bound_is_named_once():
    kernel = skl.RBF([1e-3, 0.5, 1e3], (1e-3, 1e3)) + skl.WhiteKernel(0.1, "fixed")
    kernel = kernel + skl.ConstantKernel(2.0, (2.0, 2.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_at_bounds(kernel)
    texts = [str(w.message) for w in caught]
    assert [text.partition(" is close to")[0].rpartition("dimension ")[2] for text in texts] == [
        "0 of parameter k1__k1__length_scale",
        "2 of parameter k1__k1__length_scale",
        "0 of parameter k2__constant_value",
    ]
    assert "lower bound 0.001. Decreasing" in texts[0]
    assert "upper bound 1000.0. Increasing" in texts[1]
    assert "lower bound 2.0" in texts[2]
