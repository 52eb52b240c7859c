"""Flat vectors of objects with parameters and children."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer import means
from mercer.likelihoods import Gaussian
from mercer.params import Gamma, LogNormal, Parameter, Parametrised, positive
from mercer.registry import from_json, storable, to_json


@storable
class ParamsLeaf(Parametrised):
    def __init__(self, scale, shift=0.0, label="x"):
        self.label = label
        shift = shift if isinstance(shift, Parameter) else Parameter(shift)
        self._set(scale=positive("scale", scale), shift=shift)

    def _options(self):
        return {"label": self.label}

    def value(self):
        return np.sum(np.atleast_1d(self.scale) ** 2) * np.exp(self.shift)

    def gradient(self):
        exp = np.exp(self.shift)
        return self._own_gradient(scale=2 * np.atleast_1d(self.scale) * exp, shift=self.value())


class ParamsPair(Parametrised):
    def __init__(self, left, right, weight=1.0):
        self._set(left, right, weight=positive("weight", weight, zero=True))


def leaf(**changes):
    return ParamsLeaf(**({"scale": [0.5, 2.0], "shift": 0.3} | changes))


def test_theta_order_bounds_and_names():
    pair = ParamsPair(leaf(), ParamsLeaf(3.0, shift=Parameter(1.0, bounds=(-2.0, 4.0))), weight=7.0)
    np.testing.assert_allclose(
        pair.theta, [np.log(7.0), np.log(0.5), np.log(2.0), 0.3, np.log(3.0), 1.0], rtol=1e-15
    )
    assert pair.parameter_names == [
        "weight",
        "ParamsLeaf1.scale[0]",
        "ParamsLeaf1.scale[1]",
        "ParamsLeaf1.shift",
        "ParamsLeaf2.scale",
        "ParamsLeaf2.shift",
    ]
    assert pair.bounds.shape == (6, 2)
    np.testing.assert_array_equal(pair.bounds[5], [-2.0, 4.0])
    nested = ParamsPair(pair, leaf(), weight=Parameter(1.0, fixed=True))
    assert nested.parameter_names[1] == "ParamsPair.ParamsLeaf1.scale[0]"
    assert nested.parameter_names[-1] == "ParamsLeaf.shift"


@settings(deadline=None)
@given(hnp.arrays(float, 6, elements=st.floats(-20, 20)))
def test_theta_round_trip(theta):
    pair = ParamsPair(leaf(), leaf(scale=1.0), weight=2.0)
    # exp and log of numbers up to 20 round at about 20 eps.
    np.testing.assert_allclose(pair.with_theta(theta).theta, theta, rtol=1e-14, atol=1e-14)


def test_fixed_parameters_are_left_out_and_kept():
    pair = ParamsPair(leaf(scale=Parameter([0.5, 2.0], fixed=True)), leaf(), weight=0.0)
    assert pair.parameter_names == [
        "ParamsLeaf1.shift",
        "ParamsLeaf2.scale[0]",
        "ParamsLeaf2.scale[1]",
        "ParamsLeaf2.shift",
    ]
    new = pair.with_theta([9.0, 0.0, 0.0, 1.0])
    left, right = new._children
    np.testing.assert_array_equal(left.scale, [0.5, 2.0])
    assert (left.shift, right.shift, new.weight) == (9.0, 1.0, 0.0)
    np.testing.assert_array_equal(right.scale, [1.0, 1.0])


def test_nothing_free():
    held = ParamsLeaf(Parameter(1.0, fixed=True), Parameter(0.0, fixed=True))
    assert held.theta.shape == (0,) and held.theta.dtype == float
    assert held.bounds.shape == (0, 2)
    assert held.parameter_names == []
    assert held.with_theta([]) == held
    assert held.log_prior() == 0.0 and held.log_prior_gradient().shape == (0,)
    assert held.gradient().shape == (0,)


def test_objects_never_change_nor_alias():
    original = leaf()
    before = original.theta
    new = original.with_theta(before + 1.0)
    np.testing.assert_array_equal(original.theta, before)
    theta = before.copy()
    other = original.with_theta(theta)
    theta[:] = 100.0
    original.theta[:] = 100.0
    original.parameters["scale"] = Parameter(9.0)
    np.testing.assert_array_equal(original.theta, before)
    np.testing.assert_allclose(other.theta, before, rtol=1e-15, atol=1e-15)
    assert new.label == original.label
    with pytest.raises(ValueError, match="read-only"):
        original.scale[0] = 3.0


@pytest.mark.parametrize("theta", [[1.0], [1.0, 2.0, np.nan], [[1.0, 2.0, 3.0]], np.zeros(4)])
def test_bad_theta(theta):
    with pytest.raises(ValueError, match=r"theta must be a finite vector of shape \(3,\)"):
        leaf().with_theta(theta)


def test_with_parameters():
    new = leaf().with_parameters(shift=Parameter(5.0, fixed=True))
    assert new.shift == 5.0 and new.parameter_names == ["scale[0]", "scale[1]"]
    with pytest.raises(ValueError, match=r"no parameter \['wrong'\]; it has \['scale', 'shift'\]"):
        leaf().with_parameters(wrong=Parameter(1.0))


def test_parameters_read_as_values():
    assert leaf().shift == 0.3
    with pytest.raises(AttributeError, match="no attribute 'wrong'"):
        _ = leaf().wrong
    # Copying looks attributes up on an object that has none yet.
    assert copy.deepcopy(leaf()) == leaf()


def test_gradient_chain():
    at = leaf()
    h = 1e-6
    slope = [
        (at.with_theta(at.theta + h * e).value() - at.with_theta(at.theta - h * e).value())
        / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(at.gradient(), slope, rtol=1e-8)


def test_log_prior_covers_children_and_leaves_fixed_ones_out():
    a, b, c = LogNormal(0.2, 0.7), Gamma(2.0, 0.5), LogNormal(-1.0, 2.0)
    pair = ParamsPair(
        leaf(scale=Parameter([0.5, 2.0], prior=a)),
        leaf(scale=Parameter(3.0, prior=c, fixed=True)),
        weight=Parameter(1.7, prior=b),
    )
    want = a.log_density(np.array([0.5, 2.0])).sum() + b.log_density(np.array([1.7]))[0]
    assert pair.log_prior() == pytest.approx(want, rel=1e-14)
    h = 1e-5
    slope = [
        (
            pair.with_theta(pair.theta + h * e).log_prior()
            - pair.with_theta(pair.theta - h * e).log_prior()
        )
        / (2 * h)
        for e in np.eye(pair.theta.size)
    ]
    np.testing.assert_allclose(pair.log_prior_gradient(), slope, rtol=1e-8, atol=1e-9)


def test_equality_hash_repr_and_storage():
    assert leaf() == leaf() and hash(leaf()) == hash(leaf())
    assert leaf() != leaf(label="y")
    assert leaf() != leaf(shift=0.4)
    assert leaf() != leaf(scale=Parameter([0.5, 2.0], prior=LogNormal()))
    assert leaf() != 1
    assert ParamsPair(leaf(), leaf()) != ParamsPair(leaf(), leaf(shift=1.0))
    assert repr(leaf()) == "ParamsLeaf(scale=[0.5, 2], shift=0.3, label='x')"
    for stored in (leaf(), leaf(scale=Parameter(2.0, bounds=(1.0, np.inf), prior=Gamma(2.0, 1.0)))):
        assert from_json(to_json(stored)) == stored


def test_objects_are_immutable_and_can_be_copied():
    k = leaf()
    for name in ("scale", "label", "anything"):
        with pytest.raises(
            AttributeError, match="ParamsLeaf objects do not change: make a new one"
        ):
            setattr(k, name, 3.0)
    with pytest.raises(AttributeError, match="do not change"):
        del k.label
    for same in (copy.copy(k), copy.deepcopy(k), pickle.loads(pickle.dumps(k))):
        assert same == k and hash(same) == hash(k) and same.label == "x"
        with pytest.raises(AttributeError, match="do not change"):
            same.label = "y"


@pytest.mark.parametrize("make", [lambda: means.Constant(1.0), lambda: Gaussian(0.1)])
def test_means_and_likelihoods_are_immutable_too(make):
    thing = make()
    with pytest.raises(AttributeError, match="do not change"):
        thing.estimate = "integrate"
    assert pickle.loads(pickle.dumps(thing)) == thing == copy.copy(thing)


def test_one_number_for_all_columns_has_the_sum_of_their_gradients():
    one, each = ParamsLeaf(2.0, 0.5), ParamsLeaf([2.0, 3.0], 0.5)
    columns = np.array([1.0, 10.0])
    np.testing.assert_allclose(one._own_gradient(scale=columns, shift=7.0), [22.0, 7.0])
    np.testing.assert_allclose(each._own_gradient(scale=columns, shift=7.0), [2.0, 30.0, 7.0])
