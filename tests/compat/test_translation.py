"""What scikit-learn's kernels become, and where their parameters end up."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as skl
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.compat.covariance import covariance_of
from mercer.compat.translation import translate
from mercer.kernels import RBF, Product, Scaled

from .kernels import Looked, Loud, Shifted, trees

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 2))
def test_values_noise_and_sources(data, columns):
    kernel = data.draw(trees(columns))
    A, B = X[:, :columns], Z[:, :columns]
    covariance = covariance_of(kernel, A)
    K = covariance.kernel(A)
    close = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(K + covariance.noise * np.eye(len(A)), kernel(A), **close)
    np.testing.assert_allclose(covariance.kernel(A, B), kernel(A, B), **close)
    np.testing.assert_allclose(covariance.kernel.diag(A) + covariance.noise, kernel.diag(A))
    translation = covariance.translation
    if translation is None:
        return
    assert translation.size == kernel.n_dims
    # theta of the translated kernel follows scikit-learn's, component by component
    for i in range(kernel.n_dims):
        step = np.eye(kernel.n_dims)[i]
        moved = translate(kernel.clone_with_theta(kernel.theta + step), columns)
        expected = np.array(translation.powers) * (np.array(translation.sources) == i)
        if translation.kernel is not None:
            difference = moved.kernel.theta - translation.kernel.theta
            np.testing.assert_allclose(difference, expected, atol=1e-10)
        expected = sum(v.value * np.exp(v.sources.count(i)) for v in translation.noise)
        np.testing.assert_allclose(moved.noise_variance, expected)


@pytest.mark.parametrize(
    "kernel",
    [
        Shifted() + skl.RBF(),
        2.0 * Loud(),
        Looked(np.eye(3)),
        skl.PairwiseKernel(),
        skl.CompoundKernel([skl.RBF()]),
        skl.RBF() * skl.WhiteKernel() + skl.RBF(),
        (skl.RBF() + skl.WhiteKernel()) ** 2,
        skl.ExpSineSquared(),
        skl.ConstantKernel(0.0) * skl.RBF(),
        skl.ConstantKernel(-1.0, "fixed") * skl.RBF() + skl.RBF(),
        skl.RBF([1.0, 2.0, 3.0]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_what_has_no_translation(kernel):
    assert translate(kernel, 2) is None


def test_forms():
    scaled = translate(skl.RBF(2.0) * skl.ConstantKernel(3.0), 2)
    assert scaled.kernel == Scaled(3.0, RBF(2.0))
    assert scaled.sources == (1, 0)
    nothing = translate(skl.ConstantKernel(0.0, "fixed") * skl.RBF(2.0), 2)
    assert type(nothing.kernel) is Product
    np.testing.assert_array_equal(nothing.kernel(X), 0.0)


def test_bounds_that_meet_do_not_hold_a_parameter():
    kernel = skl.RBF(1.0, (1.0, 1.0)) + skl.DotProduct(2.0, (0.0, 5.0))
    translation = translate(kernel, 2)
    assert translation.sources == (0, 1)
    assert translation.powers == (1.0, 2.0)


def test_noise_times_constants():
    inside = skl.WhiteKernel(0.5) + skl.WhiteKernel(0.25, "fixed")
    kernel = skl.ConstantKernel(3.0) * (skl.ConstantKernel(2.0, "fixed") * (skl.RBF() + inside))
    translation = translate(kernel, 2)
    assert translation.noise_variance == 4.5
    assert [part.sources for part in translation.noise] == [(0, 2), (0,)]
    alone = translate(skl.ConstantKernel(3.0) * skl.ConstantKernel(2.0) * skl.WhiteKernel(0.5), 2)
    assert alone.kernel is None
    assert alone.noise[0].sources == (0, 1, 2)
    np.testing.assert_allclose(alone.gradient(np.empty(0), 2.0), 6.0)
