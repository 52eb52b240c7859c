"""The same numbers as scikit-learn's classifier."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as skl
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Original

from mercer.compat import GaussianProcessClassifier

from .kernels import Loud, Shifted, trees

C, White = skl.ConstantKernel, skl.WhiteKernel

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(60, 2)), rng.normal(size=(9, 2))
latent = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
y = latent > 0
several = np.digitize(latent, [-0.8, 0.5])

KERNELS = {
    "default": None,
    "rbf": C(1.0) * skl.RBF(1.0),
    "ard": C(1.0) * skl.RBF([1.0, 1.0]) + White(0.1),
    "matern": C(1.0) * skl.Matern([1.0, 1.0], nu=1.5),
    "polynomial": C(1.0) * skl.DotProduct(1.0) ** 2,
    "held": C(2.0, "fixed") * skl.RBF([1.0, 2.0], "fixed") + White(0.1, "fixed"),
    "noise alone": White(0.5),
    "pairwise": C(1.0) * skl.PairwiseKernel(metric="laplacian", gamma=0.5),
    "derived": C(1.0) * Shifted(1.0) + Loud(0.1, (0.05, 1.0)),
    "noise times kernel": skl.RBF() * White(0.2) + C(1.0) * skl.RBF(),
}


def _pair(kernel, labels=y, rows=X, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tuple(
            cls(kernel, **settings).fit(rows, labels)
            for cls in (Original, GaussianProcessClassifier)
        )


def _same_predictions(theirs, ours, rows=X_new, rtol=1e-6):
    for a, b in zip(*(m.latent_mean_and_variance(rows) for m in (theirs, ours)), strict=True):
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * max(1.0, np.max(np.abs(a))))
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-3)
    sure = np.abs(ours.latent_mean_and_variance(rows)[0]) > 1e-6
    np.testing.assert_array_equal(ours.predict(rows)[sure], theirs.predict(rows)[sure])


def _is_at_the_mode(model, kernel, rows):
    """Whether scikit-learn's Newton's method has ended where it should."""
    part = model.base_estimator_
    f = kernel(rows) @ (part.y_train_ - part.pi_)
    return np.allclose(expit(f), part.pi_, atol=1e-7)


# --- one theta ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 2))
def test_random_kernels(data, columns):
    kernel = data.draw(trees(columns))
    rows, labels = X[:15, :columns], y[:15]
    theirs, ours = _pair(kernel, labels, rows, optimizer=None)
    assume(_is_at_the_mode(theirs, kernel, rows))
    np.testing.assert_allclose(
        ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-7
    )
    for name in ("pi_", "W_sr_", "L_"):
        a, b = (getattr(m.base_estimator_, name) for m in (theirs, ours))
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5, err_msg=name)
    value, gradient = theirs.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    got, slopes = ours.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    np.testing.assert_allclose(got, value, rtol=1e-7)
    size = 1.0 + float(np.max(np.abs(gradient), initial=0.0))
    np.testing.assert_allclose(slopes, gradient, rtol=1e-5, atol=1e-5 * size)
    _same_predictions(theirs, ours, X_new[:, :columns], rtol=1e-4)


def test_probabilities_are_the_integral():
    model = GaussianProcessClassifier(KERNELS["held"]).fit(X, y)
    mean, var = model.latent_mean_and_variance(X_new)
    for p, m, v in zip(model.predict_proba(X_new)[:, 1], mean, var, strict=True):
        sd = np.sqrt(v)

        def weighed(z, m=m, sd=sd):
            return expit(m + sd * z) * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)

        assert p == pytest.approx(quad(weighed, -12, 12, epsabs=1e-12)[0], abs=1e-8)


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_fits(name):
    theirs, ours = _pair(KERNELS[name])
    evidence = ours.log_marginal_likelihood_value_
    np.testing.assert_allclose(evidence, theirs.log_marginal_likelihood_value_, rtol=1e-6)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=2e-3)
    np.testing.assert_allclose(evidence, ours.log_marginal_likelihood(ours.kernel_.theta))
    assert type(ours.kernel_) is type(theirs.kernel_)
    _same_predictions(theirs, ours, rtol=1e-2)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("name", ["default", "rbf", "derived"])
def test_three_classes(name, multi_class):
    labels = np.array(["low", "middle", "high"])[several]
    theirs, ours = _pair(KERNELS[name], labels, multi_class=multi_class)
    np.testing.assert_array_equal(ours.classes_, ["high", "low", "middle"])
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))
    np.testing.assert_allclose(
        ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-6
    )
    assert type(ours.base_estimator_) is type(theirs.base_estimator_)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=2e-3)
    theta = theirs.kernel_.theta
    for given_theta in (theta, theta[: theta.size // 3]):
        np.testing.assert_allclose(
            ours.log_marginal_likelihood(given_theta),
            theirs.log_marginal_likelihood(given_theta),
            rtol=1e-7,
        )
    if multi_class == "one_vs_rest":
        probabilities = ours.predict_proba(X_new)
        np.testing.assert_allclose(probabilities, theirs.predict_proba(X_new), atol=1e-3)
        np.testing.assert_allclose(np.sum(probabilities, axis=1), 1.0, atol=1e-12)


# --- hard cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [1e2, 1e5, 1e10])
def test_the_mode_is_found_where_scikit_learns_full_steps_go_astray(variance):
    rows = np.random.RandomState(0).randn(120, 2)
    labels = np.logical_xor(rows[:, 0] > 0, rows[:, 1] > 0)
    kernel = C(variance, "fixed") * skl.RBF(1.14, "fixed")
    part = GaussianProcessClassifier(kernel).fit(rows, labels).base_estimator_
    f = kernel(rows) @ (part.y_train_ - part.pi_)
    np.testing.assert_allclose(expit(f), part.pi_, atol=1e-6)


def test_rows_without_curvature():
    rows = np.array([[-1.0], [1.0], [-1.1], [1.1]])
    kernel = C(1e9, "fixed") * skl.DotProduct(0.1, "fixed")
    model = GaussianProcessClassifier(kernel).fit(rows, [0, 1, 0, 1])
    assert np.all(np.isfinite(model.predict_proba([[0.0], [0.5], [30.0]])))
    np.testing.assert_array_equal(model.predict([[-2.0], [3.0]]), [0, 1])


def test_a_kernel_that_is_no_covariance():
    rows = rng.uniform(0, 10, (80, 2))
    kernel = C(1e4, "fixed") * skl.ExpSineSquared(1.0, 1.0, "fixed", "fixed")
    for cls in (Original, GaussianProcessClassifier):
        with pytest.raises(np.linalg.LinAlgError, match="positive"):
            cls(kernel).fit(rows, rows[:, 0] > 5)
    model = GaussianProcessClassifier(skl.RBF()).fit(rows, rows[:, 0] > 5)
    model.base_estimator_.kernel_ = kernel
    with pytest.raises(np.linalg.LinAlgError, match=r"ExpSineSquared.*not returning a positive"):
        model.log_marginal_likelihood([], eval_gradient=True)
