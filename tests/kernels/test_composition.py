"""Arithmetic, columns, flat vectors, equality, text and storage."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from mercer.errors import StorageError
from mercer.kernels import (
    RBF,
    ArcSine,
    Callable,
    Categorical,
    Constant,
    EquivalentGP,
    Features,
    Flipped,
    Kernel,
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

from .cases import A2, CASES, FUNCTIONS, SIGMA, TABLE, bumps, inputs, shared_letters

every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
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


def test_on_refuses_columns_that_are_none():
    for columns in ([], [0, 0], [-1], [0.5], ["a", 1], [[0]], None):
        with pytest.raises(ValueError, match="columns must"):
            RBF().on(columns)
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
        Linear(1e-9, [1.0, 1e9]) + Polynomial(2, 1e9, 1.0) + Matern(),
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


# --- immutable, and never an alias ----------------------------------------------------------------


@every
def test_kernels_do_not_change(case):
    k = case.kernel
    for name in [*k.parameters, *k._options(), "anything"]:
        with pytest.raises(AttributeError):
            setattr(k, name, 3.0)
    rows = inputs(case, 5, 0)
    K, theta = k(rows), k.theta
    kept = np.array(rows, copy=True) if not isinstance(rows, list) else list(rows)
    for array in (k.theta, k.bounds, k(rows), k.diag(rows), k.gram_lower(rows)):
        array[...] = 7.0
    k.with_theta(k.theta + 1.0)
    np.testing.assert_array_equal(k(rows), K)
    np.testing.assert_array_equal(k.theta, theta)
    np.testing.assert_array_equal(rows, kept)


def test_arguments_are_copied():
    scales, points, table, sigma = np.ones(2), A2.copy(), TABLE.copy(), SIGMA.copy()
    kernels = [
        RBF(scales),
        Linear(length_scale=scales),
        EquivalentGP(RBF(), points),
        Flipped(RBF(), points),
        Precomputed(table),
        Features(bumps, sigma),
    ]
    rows = [TABLE[:2, :1] * 0 if isinstance(k, Precomputed) else A2[:2] for k in kernels]
    before = [k(r) for k, r in zip(kernels, rows, strict=True)]
    for array in (scales, points, table, sigma):
        array += 1.0
    for k, r, K in zip(kernels, rows, before, strict=True):
        np.testing.assert_array_equal(k(r), K)
    for array in (kernels[0].length_scale, kernels[2].points, kernels[3].anchors, kernels[4].K):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@every
def test_copies_and_pickles(case):
    rows = inputs(case, 5, 0)
    K = case.kernel(rows)
    for other in (
        copy.copy(case.kernel),
        copy.deepcopy(case.kernel),
        pickle.loads(pickle.dumps(case.kernel)),
    ):
        assert other == case.kernel
        np.testing.assert_array_equal(other(rows), K)


# --- equality, text, storage ----------------------------------------------------------------------


def test_equality():
    kernels = [case.kernel for case in CASES.values()]
    for i, a in enumerate(kernels):
        for j, b in enumerate(kernels):
            assert (a == b) == (i == j), (a, b)
    assert RBF(1.0) != RBF([1.0]) and RBF() != Matern() and RBF() != "RBF" and RBF() != 1.0
    assert RBF() != RBF(Parameter(1.0, fixed=True))
    assert Matern(1.0, nu=1.5) != Matern(1.0, nu=2.5)
    assert EquivalentGP(RBF(), A2) != EquivalentGP(RBF(), A2[:3])
    assert len({RBF(), RBF(1.0), RBF(2.0)}) == 2


REPRS = {
    "RBF(length_scale=2)": RBF(2.0),
    "RBF(length_scale=[1, 2])": RBF([1.0, 2.0]),
    "Matern(length_scale=1, nu=2.5)": Matern(nu=2.5),
    "RationalQuadratic(length_scale=1, alpha=0.5)": RationalQuadratic(alpha=0.5),
    "2 * RBF(length_scale=1) + Constant(variance=3)": 2.0 * RBF() + 3.0,
    "(RBF(length_scale=1) + Linear(offset=0)) * Periodic(length_scale=1, periodicity=2)": (
        RBF() + Linear()
    )
    * Periodic(periodicity=2.0),
    "2 * (RBF(length_scale=1) + Linear(offset=0))": 2.0 * (RBF() + Linear()),
    "Linear(offset=0.5, length_scale=2) ** 3": Linear(0.5, 2.0) ** 3,
    "(2 * RBF(length_scale=1)) ** 0.5": (2.0 * RBF()) ** 0.5,
    "RBF(length_scale=1).on([0, 2])": RBF().on([0, 2]),
    "(RBF(length_scale=1) + Linear(offset=0)).on([1])": (RBF() + Linear()).on(1),
    "Polynomial(offset=1, degree=3)": Polynomial(3),
    "Tanh(scale=1, offset=-2)": Tanh(offset=-2.0),
    "ArcSine(scale=1)": ArcSine(),
    "Categorical(correlation=0.5)": Categorical(),
    "Features(bumps, Sigma=<array of shape (3, 3)>)": Features(bumps, SIGMA),
    "EquivalentGP(Tanh(scale=1, offset=0), points=<array of shape (5, 2)>)": EquivalentGP(
        Tanh(), A2
    ),
    "Flipped(Tanh(scale=1, offset=0), anchors=None)": Flipped(Tanh()),
    "Flipped(Tanh(scale=1, offset=0), anchors=<array of shape (5, 2)>)": Flipped(Tanh(), A2),
    "Callable(shared_letters)": Callable(shared_letters),
    "Callable(shared_letters, is_mercer=False, vectorised=True)": Callable(
        shared_letters, is_mercer=False, vectorised=True
    ),
    "Precomputed(<array of shape (4, 4)>)": Precomputed(TABLE),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text):
    assert repr(REPRS[text]) == text


@every
def test_repr_fits_a_screen(case):
    assert 0 < len(repr(case.kernel)) < 400 and "object at 0x" not in repr(case.kernel)


@every
def test_json_goes_there_and_back(case):
    text = case.kernel.to_json()
    again = Kernel.from_json(text, objects=FUNCTIONS)
    assert again == case.kernel and again.to_json() == text
    rows = inputs(case, 5, 0)
    np.testing.assert_array_equal(again(rows), case.kernel(rows))
    np.testing.assert_array_equal(again.bounds, case.kernel.bounds)


def test_json_keeps_bounds_priors_and_fixedness():
    k = Parameter(2.0, bounds=(1.0, np.inf)) * RBF(
        Parameter([1.0, 2.0], bounds=([0.1, 0.2], [10.0, 20.0]), prior=LogNormal(0.0, 1.0))
    ) + Constant(Parameter(0.5, fixed=True))
    assert Kernel.from_json(k.to_json()) == k


def test_functions_are_saved_by_name():
    text = Callable(shared_letters).to_json()
    with pytest.raises(StorageError, match="shared_letters"):
        Kernel.from_json(text)
    with pytest.raises(ValueError, match="no name"):
        Callable(lambda a, b: 1.0).to_json()
    with pytest.raises(ValueError, match="not of a kernel"):
        from mercer.registry import to_json

        Kernel.from_json(to_json(Parameter(1.0)))
