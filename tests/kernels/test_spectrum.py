"""Eigensystems of kernels, against the closed forms that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial.hermite import hermval
from numpy.polynomial.legendre import leggauss
from scipy.optimize import brentq
from scipy.stats import norm

from mercer.kernels import RBF, Callable, Exponential, Linear, Matern, Periodic, eigensystem


def gaussian_rule(std, n=400):
    """Return the trapezoidal rule, which is exact to rounding for what is smooth and vanishes."""
    nodes = np.linspace(-9 * std, 9 * std, n)
    return nodes[:, None], norm.pdf(nodes, scale=std) * (nodes[1] - nodes[0])


def uniform_rule(low, high, n):
    nodes, weights = leggauss(n)
    return (0.5 * (low + high) + 0.5 * (high - low) * nodes)[:, None], 0.5 * weights


def up_to_sign(found, wanted):
    return found * np.sign(np.sum(found * wanted, axis=0))


@pytest.mark.parametrize(("std", "length"), [(1.0, 1.0), (0.7, 1.3), (2.0, 0.8)])
def test_rbf_on_a_normal_distribution(std, length):
    """Zhu, Williams, Rohwer and Morciniec (1998); Rasmussen and Williams, section 4.3.1."""
    a, b = 1 / (4 * std**2), 1 / (2 * length**2)
    c = np.sqrt(a**2 + 2 * a * b)
    A = a + b + c
    k = np.arange(8)
    values, functions = eigensystem(RBF(length), *gaussian_rule(std), n=8)
    # 1e-10 of the largest: what eigenvalues of a symmetric matrix are good to
    np.testing.assert_allclose(values, np.sqrt(2 * a / A) * (b / A) ** k, rtol=1e-10, atol=1e-13)

    x = np.linspace(-2 * std, 2 * std, 41)
    wanted = np.stack(
        [
            (c / a) ** 0.25
            / math.sqrt(2.0**i * math.factorial(i))
            * np.exp(-(c - a) * x**2)
            * hermval(np.sqrt(2 * c) * x, np.eye(8)[i])
            for i in k
        ],
        axis=1,
    )
    found = up_to_sign(functions(x[:, None]), wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def exponential_frequencies(a, c, n):
    """Return the first n roots of (c - w tan wa)(w + c tan wa) = 0, in order."""
    roots = []
    for i in range(n):
        low, high = i * np.pi / (2 * a) + 1e-9, (i + 1) * np.pi / (2 * a) - 1e-9
        if i % 2 == 0:
            roots.append(brentq(lambda w: c * np.cos(w * a) - w * np.sin(w * a), low, high))
        else:
            roots.append(brentq(lambda w: w * np.cos(w * a) + c * np.sin(w * a), low, high))
    return np.array(roots)


@pytest.mark.parametrize(("a", "length"), [(1.0, 1.0), (2.5, 0.6)])
def test_exponential_on_an_interval(a, length):
    """Ghanem and Spanos, Stochastic Finite Elements, section 2.3.3; the measure is uniform."""
    c = 1 / length
    w = exponential_frequencies(a, c, 6)
    values, functions = eigensystem(Exponential(length), *uniform_rule(-a, a, 600), n=6)
    # the kernel has a kink: the rule's error falls with the square of its step
    np.testing.assert_allclose(values, 2 * c / (w**2 + c**2) / (2 * a), rtol=2e-4)
    x = np.linspace(-a, a, 31)
    wanted = np.stack(
        [
            np.cos(f * x) / np.sqrt(0.5 + np.sin(2 * f * a) / (4 * f * a))
            if i % 2 == 0
            else np.sin(f * x) / np.sqrt(0.5 - np.sin(2 * f * a) / (4 * f * a))
            for i, f in enumerate(w)
        ],
        axis=1,
    )
    np.testing.assert_allclose(up_to_sign(functions(x[:, None]), wanted), wanted, atol=2e-3)


def brownian(A, B):
    return np.minimum(A, B.T)


def test_brownian_motion():
    """min(x, x') on [0, 1]: lambda_i = 1/((i - 1/2) pi)^2 and sqrt(2) sin((i - 1/2) pi x)."""
    kernel = Callable(brownian, vectorised=True)
    values, functions = eigensystem(kernel, *uniform_rule(0.0, 1.0, 400), n=5)
    w = (np.arange(1, 6) - 0.5) * np.pi
    np.testing.assert_allclose(values, 1 / w**2, rtol=3e-4)
    x = np.linspace(0, 1, 21)[:, None]
    wanted = np.sqrt(2) * np.sin(w * x)
    np.testing.assert_allclose(up_to_sign(functions(x), wanted), wanted, atol=2e-3)


def test_the_error_at_a_kink_falls_with_the_square():
    w = 0.5 * np.pi
    errors = [
        abs(eigensystem(Callable(brownian, vectorised=True), *uniform_rule(0, 1, m), n=1)[0][0])
        - 1 / w**2
        for m in (50, 100, 200)
    ]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=0.05)


def test_periodic_has_pairs():
    values, _ = eigensystem(Periodic(1.0, periodicity=2.0), *uniform_rule(-1.0, 1.0, 80), n=7)
    np.testing.assert_allclose(values[1::2], values[2::2], rtol=1e-10)


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(1.0, nu=1.5), 2.0 * RBF(1.0) + Linear(0.3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_orthonormal_and_complete(kernel, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    weights = rng.uniform(0.1, 1.0, 30) if weighted else None
    w = np.full(30, 1 / 30) if weights is None else weights
    values, functions = eigensystem(kernel, X, weights, n=30)
    assert np.all(np.diff(values) <= 0)
    assert np.sum(values) == pytest.approx(np.sum(w * kernel.diag(X)))  # the trace
    phi = functions.at_nodes
    np.testing.assert_allclose(phi.T @ (w[:, None] * phi), np.eye(30), atol=1e-10)
    np.testing.assert_allclose((phi * values) @ phi.T, kernel(X), atol=1e-10)  # Mercer
    # at the nodes the extension is the eigenvector itself
    large = values > 1e-6 * values[0]
    np.testing.assert_allclose(functions(X)[:, large], phi[:, large], atol=1e-7)


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 1))
    times = rng.integers(0, 4, 12)
    weighted = eigensystem(RBF(0.7), X, times / times.sum(), n=4)
    repeated = eigensystem(RBF(0.7), np.repeat(X, times, axis=0), n=4)
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-10)
    new = rng.normal(size=(5, 1))
    np.testing.assert_allclose(
        up_to_sign(weighted.functions(new), repeated.functions(new)),
        repeated.functions(new),
        atol=1e-9,
    )


def test_what_is_rounding_is_zero_and_has_no_function():
    values, functions = eigensystem(Linear(), np.linspace(1, 2, 20)[:, None], n=3)
    assert values[0] > 0
    assert np.all(values[1:] == 0)
    at = functions(np.array([[1.5], [3.0]]))
    assert np.all(np.isfinite(at[:, 0]))
    assert np.all(np.isnan(at[:, 1:]))


def test_the_sign_is_settled():
    X = np.linspace(-3, 3, 50)[:, None]
    _, functions = eigensystem(RBF(1.0), X, n=6)
    phi = functions.at_nodes
    first = np.argmax(np.abs(phi) >= 0.5 * np.abs(phi).max(axis=0), axis=0)
    assert np.all(phi[first, np.arange(6)] > 0)


def test_objects():
    def shared(a, b):
        return len(set(a) & set(b))

    values, functions = eigensystem(Callable(shared), ["cat", "act", "dog"], n=2)
    np.testing.assert_allclose(values, [2.0, 1.0])
    assert functions(["cat", "cow"]).shape == (2, 2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n": 0}, "from 1 to 4"),
        ({"n": 5}, "from 1 to 4"),
        ({"n": 2.0}, "whole number"),
        ({"n": True}, "whole number"),
        ({"weights": [1.0, 2.0], "n": 1}, "weights must be 4"),
        ({"weights": [1.0, -1.0, 1.0, 1.0], "n": 1}, "none negative"),
        ({"weights": [0.0] * 4, "n": 1}, "not all 0"),
        ({"weights": [np.nan, 1, 1, 1], "n": 1}, "finite"),
        ({"weights": [0.0, 1.0, 1.0, 0.0], "n": 3}, "from 1 to 2"),
    ],
)
def test_bad_input(options, text):
    with pytest.raises(ValueError, match=text):
        eigensystem(RBF(1.0), np.arange(4.0)[:, None], **options)
