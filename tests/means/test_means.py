"""Values, regressors, gradients and storage of mean functions."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer.errors import StorageError
from mercer.means import Affine, Constant, Function, Functions, Linear, Mean, Zero, from_spec
from mercer.params import LogNormal, Parameter
from mercer.registry import from_json, to_json

X = np.random.default_rng(0).normal(size=(5, 3))


def wave(X):
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] ** 2


def two_waves(X):
    return np.stack([wave(X), 100.0 * np.cos(X[:, 1])], axis=1)


MEANS = {
    "zero": Zero(),
    "unknown constant": Constant(),
    "constant": Constant(1.5),
    "held constant": Constant(-2.0, estimate=None),
    "constants": Constant([1.0, -3.0]),
    "integrated constants": Constant([1.0, -3.0], estimate="integrate"),
    "unknown linear": Linear(),
    "integrated linear": Linear(estimate="integrate"),
    "linear": Linear(0.5, [1.0, 2.0, -1.0]),
    "held linear": Linear(0.5, [1.0, 2.0, -1.0], estimate=None),
    "linears": Linear([0.5, 3.0], [[1.0, 0.0], [2.0, 4.0], [-1.0, 5.0]]),
    "function": Function(wave),
    "functions": Function(two_waves),
}
every_mean = pytest.mark.parametrize("mean", MEANS.values(), ids=MEANS.keys())


# ----------------------------------------------------------------------------- what holds for all


@every_mean
def test_mean_is_fixed_part_plus_regressors(mean):
    H, beta = mean.features(X), mean.coefficients
    want = mean.fixed_part(X)
    if beta is not None:
        assert beta.shape[0] == H.shape[1]
        want = want + H @ beta
    np.testing.assert_allclose(mean(X), want, rtol=1e-14)
    assert mean(X).shape[0] == 5 and H.shape[0] == 5


@every_mean
def test_gradients_are_those_of_values(mean):
    # Central differences; the means are smooth of size up to 100, so 1e-5 steps err by 1e-8.
    h = 1e-5
    slope, feature_slope = (
        np.stack([(value(X + h * e) - value(X - h * e)) / (2 * h) for e in np.eye(3)], axis=1)
        for value in (mean, mean.features)
    )
    assert mean.gradient(X).shape == slope.shape
    np.testing.assert_allclose(mean.gradient(X), slope, rtol=1e-7, atol=1e-7)
    G = np.random.default_rng(1).normal(size=mean.features(X).shape)
    want = np.einsum("ndr,nr->nd", feature_slope, G)
    assert mean.pull_features(X, G).shape == X.shape
    np.testing.assert_allclose(mean.pull_features(X, G), want, rtol=1e-7, atol=1e-7)


def test_a_mean_with_features_of_its_own_has_a_gradient():
    class Square(Mean):
        def __init__(self):
            self._set()

        coefficients = np.array([[2.0, -1.0]])

        def features(self, X):
            return np.sum(X**2, axis=1, keepdims=True)

        def pull_features(self, X, G):
            return 2.0 * X * G

    np.testing.assert_allclose(Square().gradient(X), np.stack([4.0 * X, -2.0 * X], axis=2))


def test_derivatives_of_many_columns_need_no_more_memory_than_they_hold():
    wide = np.ones((50, 300))
    mean = Linear(0.5, np.arange(300.0))
    G = np.ones((50, 301))
    tracemalloc.start()
    pulled, gradient = mean.pull_features(wide, G), mean.gradient(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * wide.nbytes
    np.testing.assert_array_equal(pulled, 1.0)
    np.testing.assert_array_equal(gradient[7, :, 0], np.arange(300.0))
    with pytest.raises(ValueError, match=r"G must have shape \(50, 301\), got \(50, 300\)"):
        mean.pull_features(wide, wide)
    with pytest.raises(ValueError, match="the mean is of 300 columns, but X has 3"):
        mean.gradient(X)


@every_mean
def test_storage(mean):
    functions = {"wave": wave, "two_waves": two_waves}
    back = from_json(to_json(mean), functions)
    assert type(back) is type(mean) and back == mean and back.estimate == mean.estimate
    np.testing.assert_array_equal(back(X), mean(X))
    np.testing.assert_array_equal(back.theta, mean.theta)


@every_mean
def test_theta_is_the_estimated_coefficients(mean):
    beta = mean.coefficients
    if mean.estimate == "ml" and beta is not None:
        np.testing.assert_array_equal(mean.theta, beta.ravel())
        new = mean.with_theta(mean.theta + 1.0)
        np.testing.assert_array_equal(new.coefficients, beta + 1.0)
        np.testing.assert_array_equal(mean.coefficients, beta)
    else:
        assert mean.theta.shape == (0,)
        assert mean.with_theta([]) == mean
    p = mean.theta.size
    assert mean.bounds.shape == (p, 2) and np.all(np.isinf(mean.bounds))
    assert len(mean.parameter_names) == p


@every_mean
def test_pullback_is_the_derivative_in_theta(mean):
    P = mean(X).shape[1]
    G = np.random.default_rng(1).normal(size=(5, P))
    got = mean.pullback(X, G)
    assert got.shape == mean.theta.shape
    # The mean is linear in theta, so that unit steps are exact.
    want = [
        np.sum(G * (mean.with_theta(mean.theta + e)(X) - mean(X))) for e in np.eye(mean.theta.size)
    ]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_pullback_of_a_constant_that_serves_many():
    G = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_allclose(Constant(2.0).pullback(X, G), [G.sum()], rtol=1e-13)


@every_mean
def test_one_output_serves_many(mean):
    P = mean(X).shape[1]
    assert P in (1, 2)
    if P == 1:
        np.testing.assert_array_equal(mean(X, 3), np.repeat(mean(X), 3, axis=1))
        assert mean.gradient(X, 3).shape == (5, 3, 3)
        assert mean.fixed_part(X, 3).shape == (5, 3)
    else:
        np.testing.assert_array_equal(mean(X, 2), mean(X))
        with pytest.raises(ValueError, match="of 2 outputs, but 3 are wanted"):
            mean(X, 3)


@every_mean
def test_results_are_new_arrays(mean):
    before = mean(X)
    for array in (mean(X), mean.coefficients, mean.features(X), mean.theta):
        if array is not None:
            array[...] = 77.0
    np.testing.assert_array_equal(mean(X), before)


@every_mean
def test_repr_names_the_class(mean):
    assert repr(mean).startswith(type(mean).__name__ + "(")


# ------------------------------------------------------------------------------------------- each


def test_zero_takes_any_objects():
    np.testing.assert_array_equal(Zero()(["a", "bc", "d"], 2), np.zeros((3, 2)))
    assert Zero().features(["a"]).shape == (1, 0)
    assert Zero().estimate is None


def test_unknown_coefficients_mean_zero():
    for mean in (Constant(), Linear(), Constant(estimate="integrate")):
        np.testing.assert_array_equal(mean(X, 2), np.zeros((5, 2)))
        np.testing.assert_array_equal(mean.gradient(X, 2), np.zeros((5, 3, 2)))
        assert mean.coefficients is None


def test_constant():
    np.testing.assert_array_equal(Constant(1.5)(["a", "b"]), [[1.5], [1.5]])
    np.testing.assert_array_equal(Constant([1.0, 2.0])(X[:1]), [[1.0, 2.0]])
    np.testing.assert_array_equal(Constant().features(X), np.ones((5, 1)))
    assert Constant(1.5).parameter_names == ["value"]
    assert Constant([1.0, 2.0]).parameter_names == ["value[0]", "value[1]"]
    assert Constant(1.5).value == 1.5 and Constant().value is None


def test_linear():
    mean = Linear(0.5, [1.0, 2.0, -1.0])
    want = 0.5 + X[:, 0] + 2 * X[:, 1] - X[:, 2]
    np.testing.assert_allclose(mean(X)[:, 0], want, rtol=1e-14)
    both = Linear([0.5, 3.0], [[1.0, 0.0], [2.0, 4.0], [-1.0, 5.0]])
    np.testing.assert_allclose(both(X)[:, 0], want, rtol=1e-14)
    np.testing.assert_allclose(both(X)[:, 1], 3.0 + 4 * X[:, 1] + 5 * X[:, 2], rtol=1e-14)
    assert both.parameter_names[:4] == ["intercept[0]", "intercept[1]", "slope[0]", "slope[1]"]
    np.testing.assert_array_equal(both.slope, [[1.0, 0.0], [2.0, 4.0], [-1.0, 5.0]])
    np.testing.assert_array_equal(both.gradient(X)[0], both.slope)
    assert Linear().slope is None and Linear().intercept is None
    assert Linear(1.0, 2.0)(np.array([[3.0]])) == 7.0


@settings(deadline=None)
@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(2, 4), st.integers(1, 3)),
        elements=st.floats(-1e6, 1e6),
    )
)
def test_linear_coefficients_round_trip(beta):
    mean = Linear(estimate="ml").with_coefficients(beta)
    np.testing.assert_array_equal(mean.coefficients, beta)
    np.testing.assert_array_equal(mean.theta, beta.ravel())
    assert mean.estimate == "ml"
    assert from_json(to_json(mean)) == mean
    assert mean.with_parameters(**mean.parameters) == mean
    Z = np.ones((2, beta.shape[0] - 1))
    np.testing.assert_allclose(mean(Z), np.tile(beta.sum(axis=0), (2, 1)), atol=1e-8)


@pytest.mark.parametrize("estimate", ["ml", "integrate"])
def test_with_coefficients_keeps_the_estimate(estimate):
    new = Constant(estimate=estimate).with_coefficients([[1.0, 2.0]])
    assert new.estimate == estimate
    np.testing.assert_array_equal(new(X[:1]), [[1.0, 2.0]])
    assert new.theta.size == (2 if estimate == "ml" else 0)
    assert Constant().with_coefficients([[4.0]]) == Constant(4.0)


def test_with_coefficients_of_none():
    assert Zero().with_coefficients(np.empty((0, 2))) == Zero()
    with pytest.raises(ValueError, match="Zero has no coefficients"):
        Zero().with_coefficients([[1.0]])


def test_with_parameters():
    assert Constant(1.0).with_parameters(value=Parameter(3.0)) == Constant(3.0)
    held = Constant(1.0, estimate=None)
    assert held.with_parameters(**held.parameters) == held
    with pytest.raises(ValueError, match="no parameter"):
        Constant(1.0).with_parameters(slope=Parameter(3.0))


def test_given_arrays_are_copied():
    slope = np.array([1.0, 2.0, 3.0])
    mean = Linear(0.0, slope)
    slope[:] = 9.0
    np.testing.assert_array_equal(mean.slope, [1.0, 2.0, 3.0])


def test_equality_and_repr():
    assert Constant(1.0) != Constant(1.0, estimate=None)
    assert Constant(1.0) != Constant(2.0)
    assert Constant() != Linear() and Zero() == Zero()
    assert Function(wave) == Function(wave) != Function(two_waves)
    assert repr(Zero()) == "Zero()"
    assert repr(Constant()) == "Constant(estimate='ml')"
    assert repr(Constant(2.0, estimate=None)) == "Constant(value=2, estimate=None)"
    assert repr(Linear(1 / 3, [1.0, 2.5])) == (
        "Linear(intercept=0.3333, slope=[1, 2.5], estimate='ml')"
    )
    assert repr(Function(wave)) == "Function(f=wave)"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Constant(estimate="best"), 'estimate must be "ml", "integrate" or None'),
        (lambda: Constant(estimate=3), "estimate must be"),
        (lambda: Constant(estimate=None), "the value must be given"),
        (lambda: Linear(estimate=None), "the value must be given"),
        (lambda: Constant(np.nan), "value must be a finite number"),
        (lambda: Constant("a"), "value must be a finite number"),
        (lambda: Constant([]), "value must be a finite number"),
        (lambda: Constant([[1.0]]), "value must be one number, or one an output"),
        (lambda: Constant(Parameter(1.0, fixed=True)), "say estimate=None to hold it"),
        (lambda: Constant(Parameter(1.0, bounds=(0, 2))), "takes no bounds"),
        (lambda: Constant(Parameter(1.0, prior=LogNormal())), "no hyperprior"),
        (lambda: Linear(1.0), "both or neither"),
        (lambda: Linear(slope=[1.0]), "both or neither"),
        (lambda: Linear([1.0, 2.0], [1.0, 2.0]), "slope must have shape"),
        (lambda: Linear([1.0, 2.0], [[1.0, 2.0, 3.0]]), "slope must have shape"),
        (lambda: Linear([[1.0]], [1.0]), "slope must have shape"),
        (lambda: Linear(1.0, [np.inf]), "slope must be a finite"),
        (lambda: Linear(1.0, np.ones((1, 1, 1))), "slope must have shape"),
        (lambda: Constant().with_coefficients([1.0]), r"of shape \(1, P\)"),
        (lambda: Constant().with_coefficients([[1.0], [2.0]]), r"of shape \(1, P\)"),
        (lambda: Constant().with_coefficients([[np.nan]]), "must be finite"),
        (lambda: Linear().with_coefficients([[1.0]]), r"of shape \(1 \+ d, P\)"),
        (lambda: Linear().with_coefficients(3.0), r"of shape \(1 \+ d, P\)"),
        (lambda: Linear(1.0, [1.0])(X), "of 1 columns, but X has 3"),
        (lambda: Linear().features(X[0]), r"X must have shape \(n, d\)"),
        (lambda: Linear().features(["a", "b"]), "inputs that are numbers"),
        (lambda: Linear().features([[np.nan]]), "X must be finite"),
        (lambda: Function(3.0), "f must be a function"),
    ],
)
def test_bad_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


# -------------------------------------------------------------------------------------- functions


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (np.zeros(4), r"must return shape \(5,\) or \(5, P\)"),
        (np.zeros((4, 2)), "must return shape"),
        (np.zeros((5, 0)), "must return shape"),
        (np.zeros((5, 1, 1)), "must return shape"),
        (1.0, "must return shape"),
        (np.array([0.0, 0.0, np.nan, 0.0, 0.0]), "NaN or infinity in row 2"),
        (np.array([[0.0, 0.0]] * 4 + [[0.0, np.inf]]), "NaN or infinity in row 4"),
        (None, "must return shape"),
        (["a"] * 5, "must return numbers"),
    ],
)
def test_function_results_are_checked(result, match):
    with pytest.raises(ValueError, match=match):
        Function(lambda X: result)(X)


def test_function_takes_any_objects():
    mean = Function(lambda words: np.array([len(w) for w in words]))
    np.testing.assert_array_equal(mean(["a", "bcd"]), [[1.0], [3.0]])
    with pytest.raises(ValueError, match="inputs that are numbers"):
        mean.gradient(["a", "bcd"])


def test_function_gradient_has_ten_digits():
    # Steps are relative for large inputs: x^2 at 1e6 as well as near 0.
    Z = np.array([[1e6], [1.0], [0.0], [-3.0]])
    got = Function(lambda X: X[:, 0] ** 2).gradient(Z)[:, 0, 0]
    np.testing.assert_allclose(got, 2 * Z[:, 0], rtol=1e-9, atol=1e-9)
    got = Function(lambda X: np.exp(X[:, 0])).gradient(Z[1:])[:, 0, 0]
    np.testing.assert_allclose(got, np.exp(Z[1:, 0]), rtol=1e-9)


def test_function_does_not_change_inputs_or_keep_results():
    kept = np.zeros(5)
    mean = Function(lambda X: kept)
    mean(X)[:] = 5.0
    np.testing.assert_array_equal(kept, 0.0)
    before = X.copy()
    Function(wave).gradient(X)
    np.testing.assert_array_equal(X, before)


def test_nameless_function_cannot_be_saved():
    with pytest.raises(ValueError, match="no name"):
        to_json(Function(lambda X: X[:, 0]))
    with pytest.raises(StorageError, match="wave"):
        from_json(to_json(Function(wave)))


# ------------------------------------------------------------------------------------------ specs


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        (None, Zero()),
        ("zero", Zero()),
        ("constant", Constant()),
        ("linear", Linear()),
        (wave, Function(wave)),
        (Constant(2.0, estimate=None), Constant(2.0, estimate=None)),
    ],
)
def test_specs(spec, want):
    got = from_spec(spec)
    assert isinstance(got, Mean) and got == want


@pytest.mark.parametrize("spec", ["quadratic", 3.0, Zero, [], np.zeros(2)])
def test_bad_specs(spec):
    with pytest.raises(ValueError, match='mean must be None, "zero", "constant", "linear"'):
        from_spec(spec)


def test_functions_are_regressors_and_refuse_what_is_none():
    X = np.linspace(-1.0, 1.0, 6)[:, None]

    def powers(X):
        return np.column_stack([X[:, 0] ** 2, X[:, 0] ** 3, np.ones(len(X))])

    mean = Functions(powers, [0, 2], Linear())
    wanted = np.column_stack([X[:, 0] ** 2, np.ones(6), np.ones(6), X[:, 0]])
    np.testing.assert_array_equal(mean.features(X), wanted)
    known = mean.with_coefficients([[1.0], [2.0], [3.0], [4.0]])
    np.testing.assert_allclose(known(X)[:, 0], wanted @ [1.0, 2.0, 3.0, 4.0])
    for build, text in (
        (lambda: Functions(3.0), "function of X"),
        (lambda: Functions(powers, [0.5]), "whole numbers"),
        (lambda: Functions(powers, rest="linear"), "must be a mean"),
        (lambda: Functions(powers, beta=[1.0, 2.0, 3.0], n_outputs=2), "2 outputs"),
        (lambda: Functions(powers, [7]).features(X), "function 7"),
        (lambda: Functions(lambda X: X[:, 0]).features(X), r"shape \(6, q\)"),
        (lambda: Functions(lambda X: np.log(-np.abs(X))).features(X), "finite"),
        (lambda: Functions(powers, beta=[1.0, 2.0]).features(X), "2 coefficients, but 3"),
    ):
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=text):
            build()


def test_an_affine_mean_is_another_in_other_units():
    held = Linear([1.0, -2.0], np.arange(6.0).reshape(3, 2), estimate=None)
    np.testing.assert_allclose(Affine(held, 3.0, -1.0)(X), 3.0 * held(X) - 1.0)
    np.testing.assert_allclose(Affine(held, 3.0, -1.0, output=1)(X), 3.0 * held(X)[:, 1:] - 1.0)
    np.testing.assert_allclose(Affine(held, 3.0).gradient(X), 3.0 * held.gradient(X))
    with pytest.raises(ValueError, match="output 2 is wanted, and the mean is of 2"):
        Affine(held, output=2)(X)
    for wrong, text in ((("mean",), "must be a mean"), ((held, np.nan), "must be finite")):
        with pytest.raises(ValueError, match=text):
            Affine(*wrong)


def test_an_affine_mean_has_what_is_not_estimated_of_another():
    mean = Affine(Functions(two_waves, [0], Function(wave)), 0.5, 2.0)
    np.testing.assert_allclose(mean(X)[:, 0], 0.5 * wave(X) + 2.0)
    objects = {"two_waves": two_waves, "wave": wave}
    again = from_json(to_json(mean), objects)
    np.testing.assert_array_equal(again(X), mean(X))
