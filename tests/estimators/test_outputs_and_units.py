"""Several outputs, and the units of inputs and targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor
from mercer.errors import CalibrationWarning
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y, fixed


def test_outputs_are_independent_and_share_the_kernel():
    two = np.column_stack([Y, 5.0 * np.cos(X[:, 1])])
    both = fixed().fit(X, two)
    for p in range(2):
        one = fixed().fit(X, two[:, p])
        for a, b in zip(
            both.predict(X_NEW, return_std=True), one.predict(X_NEW, return_std=True), strict=True
        ):
            np.testing.assert_allclose(a[:, p], b, rtol=1e-9)
    separate = [fixed().fit(X, two[:, p]).log_marginal_likelihood_value_ for p in range(2)]
    assert both.log_marginal_likelihood_value_ == pytest.approx(sum(separate), rel=1e-10)
    assert both.predict(X_NEW, return_cov=True)[1].shape == (7, 7, 2)
    assert both.sample_y(X_NEW, 3).shape == (7, 2, 3)
    assert both.loo().mean.shape == (40, 2)
    assert both.predict_gradient(X_NEW).std.shape == (7, 3, 2)


def test_default_kernel_treats_outputs_of_different_units_alike():
    two = np.column_stack([Y, np.sin(X[:, 0])])
    with pytest.warns(CalibrationWarning):  # the second has no noise
        small = GPRegressor().fit(X, two * [1.0, 1e-6])
        large = GPRegressor().fit(X, two * [1.0, 1e6])
    np.testing.assert_allclose(
        small.predict(X_NEW)[:, 1] * 1e12, large.predict(X_NEW)[:, 1], rtol=1e-5
    )


def test_given_noise_is_in_the_units_of_the_targets_for_several_outputs_too():
    two = np.column_stack([100.0 * Y, 50.0 * Y])
    with pytest.warns(CalibrationWarning):  # that of the first is twice as large
        model = GPRegressor(None, Gaussian(np.full(40, 25.0))).fit(X, two)
    _, std = model.predict(X_NEW, return_std=True)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(std**2 - latent**2, 25.0, rtol=1e-6)


@pytest.mark.parametrize("scale_x", [1e-8, 1e8])
@pytest.mark.parametrize("scale_y", [1e-8, 1e8])
def test_default_model_does_not_depend_on_units(scale_x, scale_y):
    plain = GPRegressor().fit(X, Y)
    scaled = GPRegressor().fit(X * scale_x, Y * scale_y)
    for a, b in zip(
        plain.predict(X_NEW, return_std=True),
        scaled.predict(X_NEW * scale_x, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(b, a * scale_y, rtol=1e-4)
    np.testing.assert_allclose(
        scaled.kernel_.kernel.length_scale, plain.kernel_.kernel.length_scale * scale_x, rtol=1e-3
    )
    np.testing.assert_allclose(
        scaled.log_marginal_likelihood_value_,
        plain.log_marginal_likelihood_value_ - 40 * np.log(scale_y),
        rtol=1e-6,
    )


def test_normalised_targets_as_in_scikit_learn():
    y = 100.0 + 7.0 * Y
    peer = GaussianProcessRegressor(
        sk.RBF() + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None, normalize_y=True
    ).fit(X, y)
    model = GPRegressor(RBF(), Gaussian(0.2), mean="zero", optimizer=None, normalize_y=True)
    model.fit(X, y)
    for a, b in zip(
        model.predict(X_NEW, return_std=True), peer.predict(X_NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8)


def noises(*levels, n=150):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(n, 1))
    return x, np.sin(2 * x) + rng.normal(size=(n, len(levels))) * levels


def test_outputs_whose_noises_differ_are_pointed_out():
    x, y = noises(0.5, 0.1)
    text = r"over-confident: output 0 .*under-confident: output 1 .*for y in np.asarray\(Y\)\.T\]"
    with pytest.warns(CalibrationWarning, match=text) as caught:
        model = GPRegressor().fit(x, y)
    assert len(caught) == 1
    low, high = model.predict_interval(x)
    inside = np.mean((low <= y) & (y <= high), axis=0)
    assert inside[0] < 0.9 and inside[1] == 1.0


def test_outputs_whose_noises_are_alike_are_not():
    GPRegressor().fit(*noises(0.3, 0.3))
    GPRegressor().fit(*noises(0.3, 0.3, 0.3, n=12))
    GPRegressor(optimizer=None).fit(*noises(0.5, 0.05))  # kept as given


def test_a_fit_to_each_output_is_what_the_warning_says():
    x, Y = noises(0.5, 0.1)
    model = GPRegressor()
    models = [clone(model).fit(x, y) for y in Y.T]
    noise = [np.sqrt(part.likelihood_.noise) for part in models]
    np.testing.assert_allclose(noise, [0.5, 0.1], rtol=0.15)
    assert all(part.predict(x, return_std=True)[1].shape == (150,) for part in models)
