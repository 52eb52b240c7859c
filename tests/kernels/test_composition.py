"""Arithmetic, columns, flat vectors, equality, text and storage."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from mercer import GPRegressor
from mercer.kernels import (
    RBF,
    ArcSine,
    Callable,
    Categorical,
    Constant,
    EquivalentGP,
    Features,
    Flipped,
    Linear,
    Matern,
    On,
    Periodic,
    Polynomial,
    Power,
    Precomputed,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
    Tanh,
)
from mercer.params import LogNormal, Parameter

from .cases import A2, TABLE, bumps, inputs, shared_letters
from .marks import every

X = np.random.default_rng(0).normal(size=(5, 3))


# --- arithmetic -----------------------------------------------------------------------------------


def test_operators():
    a, b = RBF(0.7), Linear(0.3)
    np.testing.assert_allclose((a + b)(X), a(X) + b(X))
    np.testing.assert_allclose((a * b)(X), a(X) * b(X))
    np.testing.assert_allclose((a + 2.0)(X), a(X) + 2.0)
    np.testing.assert_allclose((a**2)(X), a(X) ** 2)
    for twice in (2 * a, a * 2, 2.0 * a, np.float64(2.0) * a, a * np.float64(2.0), np.int64(2) * a):
        assert isinstance(twice, Scaled)
        np.testing.assert_allclose(twice(X), 2.0 * a(X))
    for more in (1 + a, a + 1, np.float64(1.0) + a):
        assert more(X)[0, 0] == 2.0


def test_sums_and_products_are_flat_and_scales_merge():
    a, b, c = RBF(0.7), Linear(0.3), Periodic(1.0, 2.0)
    assert (a + (b + c)).kernels == (a, b, c) == ((a + b) + c).kernels
    assert (a * (b * c)).kernels == (a, b, c)
    assert (2.0 * (3.0 * a)) == Scaled(6.0, a)
    held = 2.0 * (Parameter(3.0, fixed=True) * a)
    assert held.parameters["variance"].fixed and held.variance == 6.0
    assert Sum(a).kernels == (a,)


def test_what_cannot_be_combined():
    a = RBF()
    for other in ("x", None, np.ones(3), [1.0]):
        with pytest.raises(TypeError):
            a + other
        with pytest.raises(TypeError):
            other * a
    for exponent in (0, -1.0, np.nan, np.inf, "2", True):
        with pytest.raises(ValueError, match="exponent must be a positive number"):
            Power(a, exponent)
    for factor in (0.0, -1.0, Parameter([1.0, 2.0])):
        with pytest.raises(ValueError, match="variance must be"):
            factor * a
    with pytest.raises(ValueError, match="needs at least one kernel"):
        Sum()
    for make in (Sum, Product, lambda k: Scaled(1.0, k), lambda k: Power(k, 2), Flipped):
        with pytest.raises(ValueError, match=r"takes (a kernel|kernels), got 3"):
            make(3)


def test_powers_and_mercer():
    assert (Linear() ** 2).is_mercer and (RBF() ** 0.5).is_mercer
    assert ((2.0 * RBF() * Categorical(0.5)) ** 0.3).is_mercer
    assert not (Linear() ** 0.5).is_mercer
    assert not ((RBF() + RBF()) ** 0.5).is_mercer
    with pytest.raises(ValueError, match="negative values"):
        (Linear() ** 0.5)(X)
    codes = np.array([[0.0], [1.0], [1.0]])
    k = (Categorical(0.0) * RBF(0.7)) ** 0.5
    gradient = k.pullback(codes, None, np.ones((3, 3)))
    assert np.all(np.isfinite(gradient.theta)) and np.all(np.isfinite(gradient.X))


def test_is_mercer():
    assert not Tanh().is_mercer
    for k in (Tanh() + RBF(), 2.0 * Tanh(), Tanh() * RBF(), Tanh() ** 2, Tanh().on(0)):
        assert not k.is_mercer
    assert Flipped(Tanh()).is_mercer and EquivalentGP(Tanh(), X).is_mercer
    assert not Callable(shared_letters, is_mercer=False).is_mercer
    assert not Precomputed(TABLE, is_mercer=False).is_mercer
    for k in (RBF(), ArcSine(), Polynomial(3), Categorical(), Features(bumps)):
        assert k.is_mercer


# --- columns --------------------------------------------------------------------------------------


@every
def test_on_takes_columns(case):
    if case.inputs == "words":
        return
    rng = np.random.default_rng(3)
    small, other = case.kernel.inputs(inputs(case, 5, 0)), case.kernel.inputs(inputs(case, 4, 1))
    columns = [2, 0][: small.shape[1]]
    wide, wide_other = rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    wide[:, columns], wide_other[:, columns] = small, other
    k = case.kernel.on(columns)
    np.testing.assert_array_equal(k(wide), case.kernel(small))
    np.testing.assert_array_equal(k(wide, wide_other), case.kernel(small, other))
    np.testing.assert_array_equal(k.diag(wide), case.kernel.diag(small))
    G = rng.normal(size=(5, 4))
    inner, outer = case.kernel.pullback(small, other, G), k.pullback(wide, wide_other, G)
    np.testing.assert_array_equal(inner.theta, outer.theta)
    for part, whole in ((inner.X, outer.X), (inner.Z, outer.Z)):
        np.testing.assert_array_equal(whole[:, columns], part)
        rest = np.setdiff1d(np.arange(4), columns)
        np.testing.assert_array_equal(whole[:, rest], 0.0)


def test_on_is_a_class():
    assert RBF().on([2, 0]) == On(RBF(), [2, 0])
    assert RBF().on(1).columns == (1,)
    with pytest.raises(ValueError, match="On takes a kernel, got 'rbf'"):
        On("rbf", 0)


def test_columns_that_were_found_keep_their_names():
    k = RBF([1.0, 2.0]).on(["c", "a"]) * Linear().on("b").on(["a", "b"])
    found = k.with_columns(["a", "b", "c"])
    assert found == RBF([1.0, 2.0]).on([2, 0]) * Linear().on(1).on([0, 1])
    for same in (
        found,
        found.with_theta(found.theta),
        RBF.from_json(found.to_json()),
        pickle.loads(pickle.dumps(found)),
        found.with_params(On1__RBF__length_scale=[1.0, 2.0]),
        found.with_bounds_from(np.ones(3), 1.0),
    ):
        assert repr(same) == repr(k)
        first, second = same.kernels
        assert first.columns == (2, 0) and first.names == ("c", "a")
        assert second.kernel.columns == (1,) and second.kernel.names == ("b",)
    # another frame has them elsewhere, an array where they were
    moved = found.with_columns(["b", "c", "d", "a"])
    assert moved == RBF([1.0, 2.0]).on([1, 3]) * Linear().on(1).on([3, 0])
    assert found.with_columns(["a", "b", "c"]) is found
    assert found.with_columns(None) is found
    np.testing.assert_array_equal((2.0 * found).with_columns(None)(X), 2.0 * found(X))
    with pytest.raises(ValueError, match="no column names"):
        (found + k).with_columns(None)
    # a number in place of a name is a number
    numbered = RBF().on("a").with_columns(["b", "a"]).with_params(columns=0)
    assert repr(numbered) == "RBF(length_scale=1).on([0])" and numbered.names is None
    assert On(RBF(), {"c": 2, "a": 0}) == RBF().on([2, 0])


def test_a_kernel_fitted_to_a_frame_takes_arrays():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2))
    frame = pd.DataFrame(rows, columns=["height", "age"])
    y = np.sin(rows[:, 1]) + rows[:, 0] + 0.1 * rng.normal(size=30)
    kernel = GPRegressor(RBF().on("age") + Linear().on("height")).fit(frame, y).kernel_
    of_array, of_frame = (GPRegressor(kernel, optimizer=None).fit(X, y) for X in (rows, frame))
    assert of_array.kernel_ == of_frame.kernel_
    np.testing.assert_array_equal(of_array.predict(rows), of_frame.predict(frame))
    # names count again where there are some
    moved = GPRegressor(of_array.kernel_, optimizer=None).fit(frame[["age", "height"]], y)
    assert moved.kernel_.kernels[0].columns == (0,)


def test_on_refuses_columns_that_are_none():
    for columns in ([], [-1], [0.5], ["a", 1], [[0]], None, {"a": "b"}, {0: 1}, {}):
        with pytest.raises(ValueError, match="columns must"):
            RBF().on(columns)
    for columns in ([0, 0], ["a", "a"], {"a": 1, "b": 1}):
        with pytest.raises(ValueError, match="columns must not repeat, got"):
            RBF([1.0, 2.0]).on(columns)
    with pytest.raises(ValueError, match="columns must not repeat, got"):
        On.from_state({"kernel": RBF(), "columns": [["a", 0], ["a", 1]]})
    with pytest.raises(ValueError, match="uses column 3, the inputs have 3"):
        RBF().on([0, 3])(X)
    with pytest.raises(ValueError, match="can only be taken of a matrix"):
        Callable(shared_letters).on(0)(["ab", "bc"])


def test_words_in_a_column():
    table = np.array([["ab", "x"], ["bc", "y"]], dtype=object)
    K = Callable(lambda a, b: shared_letters(a[0], b[0])).on(0)(table)
    np.testing.assert_array_equal(K, [[2.0, 1.0], [1.0, 2.0]])


def test_numbers_in_one_column_and_words_in_another():
    table = np.array([[0.0, "ab"], [1.0, "bc"], [2.0, "bc"]], dtype=object)
    numbers = table[:, :1].astype(float)
    words = Callable(lambda a, b: shared_letters(a[0], b[0]))
    k = RBF(0.7).on(0) * words.on(1) + 0.5
    assert not k.is_numeric
    letters = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 2.0]])
    np.testing.assert_allclose(k(table), RBF(0.7)(numbers) * letters + 0.5)
    gradient = k.pullback(table, None, np.ones((3, 3)), inputs=False)
    expected = RBF(0.7).pullback(numbers, None, letters, inputs=False)
    np.testing.assert_allclose(gradient.theta[:1], expected.theta)
    table[1, 0] = np.nan
    with pytest.raises(ValueError, match=r"X\[:, \[0\]\] holds NaN"):
        k(table)
    table[1, 0] = "one"
    with pytest.raises(ValueError, match=r"columns \[0\] must be numbers"):
        k(table)
    with pytest.raises(ValueError, match="must be an array of numbers"):
        (RBF() + words.on(1))(table)


# --- flat vectors ---------------------------------------------------------------------------------


@every
def test_theta_goes_there_and_back(case):
    k = case.kernel
    assert k.theta.shape == (len(k.parameter_names),) and k.bounds.shape == (k.theta.size, 2)
    assert len(set(k.parameter_names)) == k.theta.size
    moved = k.with_theta(k.theta + 0.25)
    np.testing.assert_allclose(moved.theta, k.theta + 0.25, rtol=1e-14)
    assert moved.with_theta(k.theta).parameter_names == k.parameter_names
    np.testing.assert_allclose(moved.with_theta(k.theta).theta, k.theta, atol=1e-15)
    rows = inputs(case, 5, 0)
    if k.theta.size and np.any(k(rows)):
        assert not np.array_equal(moved(rows), k(rows))
        np.testing.assert_allclose(moved.with_theta(k.theta)(rows), k(rows), rtol=1e-9, atol=1e-12)
    for wrong in (np.append(k.theta, 0.0), np.full(max(1, k.theta.size), np.nan)):
        with pytest.raises(ValueError, match="theta must be a finite vector"):
            k.with_theta(wrong)


def test_names_and_order_of_theta():
    k = 2.0 * (RBF([0.5, 1.0, 3.0]) + Linear(0.4)) + Categorical(0.25) * RBF(3.0)
    assert k.parameter_names == [
        "Scaled.variance",
        "Scaled.Sum.RBF.length_scale[0]",
        "Scaled.Sum.RBF.length_scale[1]",
        "Scaled.Sum.RBF.length_scale[2]",
        "Scaled.Sum.Linear.offset",
        "Product.Categorical.correlation",
        "Product.RBF.length_scale",
    ]
    expected = [*np.log([2.0, 0.5, 1.0, 3.0, 0.4]), np.log(0.25 / 0.75), np.log(3.0)]
    np.testing.assert_allclose(k.theta, expected)


def test_edges_are_held_and_signs_are_kept():
    assert Linear(0.0).theta.size == 0 and Polynomial(2, 0.0).theta.size == 0
    assert Constant(0.0).theta.size == 0
    for edge in (0.0, 1.0, [0.5, 1.0]):
        assert Categorical(edge).theta.size == 0
    np.testing.assert_allclose(Tanh(2.0, -0.4).theta, [np.log(2.0), -0.4])
    assert Tanh(1.0, 0.0).parameter_names == ["scale", "offset"]
    assert Linear().length_scale is None and Linear(length_scale=2.0).length_scale == 2.0


def test_bounds_from_data_contain_the_values_and_respect_what_is_given():
    widths, variance = np.array([0.1, 100.0]), 9.0
    given = Parameter(0.5, bounds=(0.1, 1.0))
    for k in (
        2.0 * RBF([1e-9, 1.0]) + RationalQuadratic(1.0, 1e9) + Periodic(1.0, [1.0, 1.0]),
        Linear(1e-9, [1.0, 1e9]) + Polynomial(2, 1e3, 1.0) + Matern(),
        Tanh(1e-9, -50.0) * ArcSine(1e9, [1.0, 2.0]) + Constant(1e9),
        Categorical([0.1, 0.9]) + RBF(1.0).on(1),
        EquivalentGP(RBF([1.0, 1e9]), A2) + Flipped(Tanh(), A2),
    ):
        bounded = k.with_bounds_from(widths, variance)
        low, high = bounded.bounds.T
        assert np.all(low < bounded.theta) and np.all(bounded.theta < high)
        np.testing.assert_array_equal(bounded.theta, k.theta)
    k = (RBF(given) + RBF(2.0)).with_bounds_from(widths, variance)
    np.testing.assert_allclose(k.bounds[0], np.log([0.1, 1.0]))
    on = RBF(1.0).on(1).with_bounds_from(widths, variance)
    np.testing.assert_allclose(on.bounds, np.log([[0.1, 1e5]]))


def test_with_parameters():
    k = RationalQuadratic(0.7, 2.0)
    changed = k.with_parameters(alpha=3.0)
    assert changed == RationalQuadratic(0.7, 3.0) and k.alpha == 2.0
    held = k.with_parameters(length_scale=Parameter(0.7, fixed=True))
    assert held.parameter_names == ["alpha"]
    fresh = k.with_parameters(length_scale=Parameter(2.0))
    np.testing.assert_allclose(fresh.theta, np.log([2.0, 2.0]))
    assert (2.0 * RBF()).with_parameters(variance=3.0) == 3.0 * RBF()
    with pytest.raises(ValueError, match=r"no parameter.*beta"):
        k.with_parameters(beta=1.0)
    with pytest.raises(ValueError, match="alpha must be positive"):
        k.with_parameters(alpha=-1.0)


def test_hyperpriors_are_found_in_the_tree():
    prior = LogNormal(0.3, 0.5)
    k = 2.0 * RBF(Parameter([0.5, 2.0, 1.0], prior=prior)) + Linear(0.4)
    expected = float(np.sum(prior.log_density(np.array([0.5, 2.0, 1.0]))))
    np.testing.assert_allclose(k.log_prior(), expected)
    slope = [
        (k.with_theta(k.theta + h).log_prior() - k.with_theta(k.theta - h).log_prior()) / 2e-6
        for h in 1e-6 * np.eye(5)
    ]
    np.testing.assert_allclose(k.log_prior_gradient(), slope, atol=1e-8)
