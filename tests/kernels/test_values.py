"""Values against naive loops."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import mercer.kernels
from mercer.kernels import Kernel

from . import reference as ref
from .cases import CASES, inputs, nodes
from .marks import every


def close(actual, expected, rtol):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.max(np.abs(expected)))


def test_every_public_kernel_has_a_case():
    public = {getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    classes = {c for c in public if inspect.isclass(c) and issubclass(c, Kernel)} - {Kernel}
    covered = {type(node) for case in CASES.values() for node in nodes(case.kernel)}
    assert classes - covered == set()


@every
def test_values(case):
    X, Z = inputs(case, 7, 0), inputs(case, 5, 1)
    expected = ref.gram(case.pair, X, X)
    close(case.kernel(X), expected, case.rtol)
    close(case.kernel(X, Z), ref.gram(case.pair, X, Z), case.rtol)
    close(case.kernel.diag(X), np.diagonal(expected), case.rtol)
    close(np.tril(case.kernel.gram_lower(X)), np.tril(expected), case.rtol)


@every
def test_matrices_are_symmetric_to_the_last_bit_and_one_function(case):
    X = inputs(case, 9, 2)
    K = case.kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.tril(case.kernel.gram_lower(X)), np.tril(K))
    close(case.kernel(X, X), K, 1e-13)


@every
def test_one_row_and_no_rows(case):
    X, none = inputs(case, 6, 3), inputs(case, 6, 3)[:0]
    K = case.kernel(X)
    for i in (0, 3):
        close(case.kernel(X[i : i + 1]), K[i : i + 1, i : i + 1], 1e-13)
        close(case.kernel(X[i : i + 1], X), K[i : i + 1], 1e-13)
    assert case.kernel(none).shape == (0, 0)
    assert case.kernel(X, none).shape == (6, 0)
    assert case.kernel.diag(none).shape == (0,)
    assert case.kernel.gram_lower(none).shape == (0, 0)
    assert case.kernel.pullback(none, X, np.empty((0, 6)), inputs=False).theta.shape == (
        case.kernel.theta.size,
    )


@every
def test_gram_lower_fills_the_matrix_it_is_given(case):
    X = inputs(case, 6, 4)
    out = np.full((6, 6), np.nan, order="F")
    assert case.kernel.gram_lower(X, out=out) is out
    np.testing.assert_array_equal(np.tril(out), np.tril(case.kernel(X)))
    for wrong in (np.empty((6, 6)), np.empty((5, 5), order="F")):
        with pytest.raises(ValueError, match="Fortran"):
            case.kernel.gram_lower(X, out=wrong)


@every
def test_rows_can_come_in_any_form(case):
    X = inputs(case, 6, 5)
    K = case.kernel(X)
    if case.inputs == "words":
        np.testing.assert_array_equal(case.kernel(np.array(X)), K)
        return
    for other in (np.asfortranarray(X), X[::-1][::-1], np.hstack([X, X])[:, : X.shape[1]]):
        np.testing.assert_array_equal(case.kernel(other), K)
    if case.inputs in ("codes", "rows"):
        np.testing.assert_array_equal(case.kernel(X.astype(int)), K)
    if case.kernel.is_numeric:
        np.testing.assert_array_equal(case.kernel(X.tolist()), K)
        single = X.astype(np.float32)
        np.testing.assert_array_equal(case.kernel(single), case.kernel(single.astype(float)))


def test_far_from_the_origin_distances_keep_their_digits():
    X = np.array([[0.0], [1.0], [1.5]])
    G = np.ones((3, 3))
    for k in (mercer.kernels.RBF(0.7), mercer.kernels.Periodic(0.7, 1.3)):
        np.testing.assert_allclose(k(X + 2.0**30), k(X), rtol=1e-14)
        far, near = k.pullback(X + 2.0**30, None, G), k.pullback(X, None, G)
        np.testing.assert_allclose(far.theta, near.theta, rtol=1e-13)
        np.testing.assert_allclose(far.X, near.X, rtol=1e-13)


def test_matern_tends_to_its_neighbours():
    X = np.random.default_rng(0).normal(size=(8, 2))
    Matern, RBF = mercer.kernels.Matern, mercer.kernels.RBF
    for nu in (0.5, 1.5, 2.5):
        close(Matern(0.8, nu=nu + 1e-9)(X), Matern(0.8, nu=nu)(X), 1e-7)
    close(Matern(0.8, nu=100.0)(X), RBF(0.8)(X), 1e-2)


def test_arcsine_at_extreme_scales():
    k = mercer.kernels.ArcSine(1.0)
    X = np.array([[1e8, 0.0], [1e8, 0.0], [-1e8, 1e-8], [0.0, 0.0], [1e-300, 0.0]])
    K = k(X)
    assert np.all(np.isfinite(K)) and np.all(np.abs(K) <= 1.0)
    np.testing.assert_allclose(K[0, 1], k.diag(X)[0], rtol=1e-12)
    np.testing.assert_allclose(K[0, 2], -K[0, 1], rtol=1e-7)
    gradient = k.pullback(X, None, np.ones((5, 5)))
    assert np.all(np.isfinite(gradient.X)) and np.all(np.isfinite(gradient.theta))


def test_polynomial_of_degree_1_is_linear():
    X = np.random.default_rng(1).normal(size=(6, 3))
    k, linear = mercer.kernels.Polynomial(1, 0.3), mercer.kernels.Linear(0.3)
    np.testing.assert_array_equal(k(X), linear(X))
    G = np.random.default_rng(2).normal(size=(6, 6))
    G = G + G.T
    for a, b in zip(k.pullback(X, None, G)[:2], linear.pullback(X, None, G)[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_rational_quadratic_tends_to_rbf():
    X = np.random.default_rng(1).normal(size=(6, 3))
    k = mercer.kernels.RationalQuadratic(0.8, alpha=1e9)
    close(k(X), mercer.kernels.RBF(0.8)(X), 1e-7)
