"""Every refusal says what was given and what is wanted."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    ArcSine,
    Categorical,
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Tanh,
)
from mercer.params import Parameter

X = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"X must have rows and columns, got shape \(3,\); use X.reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), r"rows and columns, got shape \(2, 2, 2\)"),
        (3.0, "rows and columns"),
        (np.array([[np.nan]]), "X holds NaN or infinity"),
        (np.array([[np.inf]]), "X holds NaN or infinity"),
        ([["a", "b"]], "X must be an array of numbers"),
        ([[1.0], [1.0, 2.0]], "X must be an array of numbers"),
        (None, "X must"),
        ([[1j]], "X must be an array of numbers"),
    ],
)
def test_inputs(bad, message):
    k = 2.0 * RBF() + Linear()
    for call in (
        lambda: k(bad),
        lambda: k.diag(bad),
        lambda: k.gram_lower(bad),
        lambda: k.pullback(bad, None, np.ones((3, 3))),
        lambda: k.pullback_diag(bad, np.ones(3)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    if bad is not None:
        with pytest.raises(ValueError, match=message.replace("X", "Z", 1)):
            k(np.zeros((1, 2)), bad)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="same number of columns, got 2 and 3"):
        RBF()(X, np.zeros((3, 3)))
    for make in (RBF, Matern, RationalQuadratic):
        with pytest.raises(ValueError, match=r"3 values of length_scale, but the inputs have 2"):
            make([1.0, 2.0, 3.0])(X)
    for make in (Linear, Tanh, ArcSine, Polynomial):
        with pytest.raises(ValueError, match=r"3 values of length_scale, but the inputs have 2"):
            make(length_scale=[1.0, 2.0, 3.0])(X)
    with pytest.raises(ValueError, match="3 values of periodicity, but the inputs have 2"):
        Periodic(1.0, [1.0, 2.0, 3.0])(X)
    with pytest.raises(ValueError, match="3 values of correlation, but the inputs have 2"):
        Categorical([0.1, 0.2, 0.3])(X)
    for G in (np.ones((3, 2)), np.ones(3), 1.0):
        with pytest.raises(ValueError, match=r"G must have shape \(3, 3\)"):
            RBF().pullback(X, None, G)
    with pytest.raises(ValueError, match=r"g must have shape \(3,\)"):
        RBF().pullback_diag(X, np.ones(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "length_scale must be positive, got 0.0"),
        (lambda: RBF(-1.0), "length_scale must be positive"),
        (lambda: RBF([1.0, -1.0]), "length_scale must be positive"),
        (lambda: RBF([[1.0]]), "must be a finite number or a vector"),
        (lambda: RBF(np.nan), "must be a finite number"),
        (lambda: RBF([]), "must be a finite number"),
        (lambda: RBF("a"), "must be a finite number or a vector of them, got 'a'"),
        (lambda: RBF(None), "must be a finite number or a vector of them, got None"),
        (lambda: RBF(Parameter(1.0, bounds=(0.0, 1.0))), "lower bound of length_scale"),
        (lambda: Matern(nu=0.0), "nu must be a positive number"),
        (lambda: Matern(nu=np.inf), "use RBF for infinity"),
        (lambda: RationalQuadratic(alpha=0.0), "alpha must be positive"),
        (lambda: RationalQuadratic(alpha=[1.0, 2.0]), "alpha must be one number"),
        (lambda: Periodic(periodicity=-1.0), "periodicity must be positive"),
        (lambda: Constant(-1.0), "variance must be at least 0"),
        (lambda: Linear(-0.1), "offset must be at least 0"),
        (lambda: Linear(length_scale=0.0), "length_scale must be positive"),
        (lambda: Polynomial(0), "degree must be a whole number from 1, got 0"),
        (lambda: Polynomial(2.0), "degree must be a whole number from 1, got 2.0"),
        (lambda: Polynomial(True), "degree must be a whole number from 1, got True"),
        (lambda: Polynomial(2, -1.0), "offset must be at least 0"),
        (lambda: Tanh(0.0), "scale must be positive"),
        (lambda: Tanh(1.0, [1.0, 2.0]), "offset must be one number"),
        (lambda: Tanh(1.0, np.inf), "must be a finite number"),
        (lambda: ArcSine(-1.0), "scale must be positive"),
        (lambda: Categorical(-0.1), "correlation must be at least 0"),
        (lambda: Categorical(1.1), "correlation must be at most 1"),
        (lambda: Categorical(Parameter(0.5, bounds=(0.1, 1.0))), "must be below 1"),
    ],
)
def test_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Misshapen(Linear):
    """Whose blocks are spoilt by a function."""

    spoil = staticmethod(lambda K: K)

    def _block(self, A, B):
        return type(self).spoil(super()._block(A, B))


@pytest.mark.parametrize(
    ("spoil", "shape"),
    [
        (lambda K: K[:, :1], r"\(5, 1\)"),
        (lambda K: np.hstack([K, K]), r"\(5, 10\)"),
        (lambda K: None, r"\(1,\)"),
    ],
)
def test_blocks_of_another_shape_are_refused(monkeypatch, spoil, shape):
    monkeypatch.setattr(Misshapen, "spoil", staticmethod(spoil))
    X, kernel = np.arange(5.0)[:, None], Misshapen()
    for call in (kernel, kernel.gram_lower, lambda X: kernel(X, X)):
        said = rf"Misshapen\._block returned an array of shape {shape}, \(5, 5\) is wanted"
        with pytest.raises(ValueError, match=said):
            call(X)


@pytest.mark.parametrize(
    "made", [lambda k: RBF() + k, lambda k: k * RBF(), lambda k: 2.0 * k, lambda k: k.on([0])]
)
def test_a_part_of_another_shape_is_named(monkeypatch, made):
    monkeypatch.setattr(Misshapen, "spoil", staticmethod(lambda K: K[:, :1]))
    with pytest.raises(ValueError, match=r"Misshapen\._block returned .* \(5, 1\), \(5, 5\)"):
        made(Misshapen())(np.arange(5.0)[:, None])


@pytest.mark.parametrize(
    "asked",
    [
        lambda k, X: k.times(X, X, np.ones((5, 2))),
        lambda k, X: (k * RBF()).pullback(X, None, np.ones((5, 5))),
        lambda k, X: (k**2).pullback(X, X, np.ones((5, 5))),
    ],
    ids=["product with a matrix", "pullback of a product", "pullback of a power"],
)
def test_blocks_that_would_be_broadcast_are_refused(monkeypatch, asked):
    monkeypatch.setattr(Misshapen, "spoil", staticmethod(lambda K: K[:1]))
    with pytest.raises(ValueError, match=r"Misshapen\._block returned .* \(1, 5\), \(5, 5\)"):
        asked(Misshapen(), np.arange(5.0)[:, None])


def test_blocks_may_be_strided(monkeypatch):
    monkeypatch.setattr(Misshapen, "spoil", staticmethod(lambda K: np.repeat(K, 2, axis=1)[:, ::2]))
    X = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(Misshapen()(X), Linear()(X))


@pytest.mark.parametrize("kernel", [RBF(1.0), Tanh(1.0, 0.5), RBF(1.0) + Linear()])
def test_products_with_points_of_other_columns(kernel):
    wrong = np.ones((3, 2)), np.ones((4, 1)), np.ones((4, 1))
    with pytest.raises(ValueError, match="X and Z must have the same number of columns, got 2"):
        kernel.times(*wrong)
