"""Pullbacks against central differences, contracted with random cotangents."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    Callable,
    Exponential,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
)
from mercer.params import Parameter

from .cases import CASES, Case, inputs, nodes, shared_letters
from .marks import every

STEP = 1e-5


def slope(function, x):
    """The derivative of a scalar function of an array, by central differences."""
    out = np.empty(x.shape)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += STEP
        down[i] -= STEP
        out[i] = (function(up) - function(down)) / (up[i] - down[i])
    return out


def close(case, actual, expected, scale):
    """`scale`: the size of what was summed, of which differences lose about 1e-10."""
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=case.slope_rtol, atol=1e-8 * (1.0 + scale))


def moves(case: Case) -> bool:
    """Whether the inputs are numbers that can be moved a little."""
    fixed = any(isinstance(node, Precomputed) for node in nodes(case.kernel))
    return case.inputs != "words" and not fixed


@every
def test_pullback(case):
    k = case.kernel
    X, Z = inputs(case, 6, 0), inputs(case, 4, 1)
    G = np.random.default_rng(7).normal(size=(6, 4))
    size = float(np.sum(np.abs(G * k(X, Z))))
    kept = G.copy()
    gradient = k.pullback(X, Z, G, inputs=moves(case))
    np.testing.assert_array_equal(G, kept)
    expected = slope(lambda t: np.sum(G * k.with_theta(t)(X, Z)), k.theta)
    close(case, gradient.theta, expected, size)
    if moves(case):
        close(case, gradient.X, slope(lambda A: np.sum(G * k(A, Z)), X), size)
        close(case, gradient.Z, slope(lambda B: np.sum(G * k(X, B)), Z), size)
    else:
        assert gradient.X is None and gradient.Z is None


@every
def test_pullback_of_one_set_of_rows_reads_the_lower_triangle_alone(case):
    k = case.kernel
    X = inputs(case, 6, 2)
    G = np.random.default_rng(8).normal(size=(6, 6))
    G = G + G.T
    size = float(np.sum(np.abs(G * k(X))))
    lower = np.tril(G) + np.triu(np.full((6, 6), np.nan), 1)
    gradient = k.pullback(X, None, lower, inputs=moves(case))
    assert gradient.Z is None
    expected = slope(lambda t: np.sum(G * k.with_theta(t)(X)), k.theta)
    close(case, gradient.theta, expected, size)
    if moves(case):
        close(case, gradient.X, slope(lambda A: np.sum(G * k(A)), X), size)
    without = k.pullback(X, None, lower, inputs=False)
    assert without.X is None
    np.testing.assert_allclose(without.theta, gradient.theta, rtol=1e-13)


@every
def test_pullback_of_the_diagonal(case):
    k = case.kernel
    X = inputs(case, 6, 3)
    g = np.random.default_rng(9).normal(size=6)
    size = float(np.sum(np.abs(g * k.diag(X))))
    gradient = k.pullback_diag(X, g, inputs=moves(case))
    assert gradient.Z is None
    expected = slope(lambda t: np.sum(g * k.with_theta(t).diag(X)), k.theta)
    close(case, gradient.theta, expected, size)
    if moves(case):
        close(case, gradient.X, slope(lambda A: np.sum(g * k.diag(A)), X), size)
    assert k.pullback_diag(X, g, inputs=False).X is None


@every
def test_the_inner_product_that_tiles_report(case):
    k = case.kernel
    A, B = k.inputs(inputs(case, 5, 4)), k.inputs(inputs(case, 4, 5))
    G = np.random.default_rng(10).normal(size=(5, 4))
    expected = np.sum(G * k._block(A, B))
    np.testing.assert_allclose(k._block_pullback(A, B, G, False).inner, expected, atol=1e-11)
    g = G[:, 0]
    expected = np.sum(g * k._diag(A))
    np.testing.assert_allclose(k._diag_pullback(A, g, False).inner, expected, atol=1e-11)


@pytest.mark.parametrize("d", [1, 3, 4, 7, 37])
@pytest.mark.parametrize("make", [RBF, Exponential, Matern, RationalQuadratic, Linear])
def test_any_number_of_columns(make, d):
    """Loops take columns four at a time, in groups of 32."""
    rng = np.random.default_rng(d)
    scales = rng.uniform(1.0, 2.0, d) * np.sqrt(d)
    k = make(length_scale=scales)
    X, Z = rng.normal(size=(3, d)), rng.normal(size=(2, d))
    G = rng.normal(size=(3, 2))
    gradient = k.pullback(X, Z, G)
    case = Case(k, None)
    close(case, gradient.theta, slope(lambda t: np.sum(G * k.with_theta(t)(X, Z)), k.theta), 1.0)
    close(case, gradient.X, slope(lambda A: np.sum(G * k(A, Z)), X), 1.0)
    close(case, gradient.Z, slope(lambda B: np.sum(G * k(X, B)), Z), 1.0)


def test_parameters_that_are_held_have_no_derivative():
    X = np.random.default_rng(0).normal(size=(5, 2))
    G = np.ones((5, 5))
    held = Parameter([0.7, 1.1], fixed=True)
    whole = 2.0 * RationalQuadratic([0.7, 1.1], 0.8)
    part = 2.0 * RationalQuadratic(held, 0.8)
    full = whole.pullback(X, None, G)
    gradient = part.pullback(X, None, G)
    np.testing.assert_allclose(gradient.theta, full.theta[[0, 3]])
    np.testing.assert_allclose(gradient.X, full.X)


def test_coincident_points_have_finite_derivatives():
    X = np.zeros((4, 2))
    G = np.ones((4, 4))
    for name, case in CASES.items():
        if case.inputs == "plane":
            gradient = case.kernel.pullback(X, None, G)
            assert np.all(np.isfinite(gradient.theta)), name
            assert np.all(np.isfinite(gradient.X)), name


def test_objects_without_numbers_have_no_derivative():
    k = 2.0 * Callable(shared_letters)
    words = ["ab", "bc", "cd"]
    with pytest.raises(ValueError, match=r"not rows of numbers.*inputs=False"):
        k.pullback(words, None, np.ones((3, 3)))
    with pytest.raises(ValueError, match="not rows of numbers"):
        k.pullback_diag(words, np.ones(3))
    assert k.pullback(words, None, np.ones((3, 3)), inputs=False).X is None
