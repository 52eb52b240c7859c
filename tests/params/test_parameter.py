"""One parameter: values, transforms, bounds, hyperpriors, copies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.params import Flat, Gamma, HalfNormal, LogNormal, Parameter, positive
from mercer.registry import from_json, to_json

inside = {
    "log": st.floats(1e-8, 1e8),
    "identity": st.floats(-1e8, 1e8),
    "logit": st.floats(1e-5, 1 - 1e-5),
}


@st.composite
def parameters(draw):
    transform = draw(st.sampled_from(sorted(inside)))
    numbers = inside[transform]
    value = draw(numbers | st.lists(numbers, min_size=1, max_size=4))
    return Parameter(value, fixed=draw(st.booleans()), transform=transform)


@settings(deadline=None)
@given(parameters())
def test_theta_round_trip(p):
    back = p.with_theta(p.theta)
    # One rounding in log and one in exp: relative error about eps |log x|.
    np.testing.assert_allclose(back.value, p.value, rtol=1e-14)
    assert back.is_vector == p.is_vector
    assert (back.fixed, back.transform) == (p.fixed, p.transform)
    assert p.theta.shape == (p.size,)


@settings(deadline=None)
@given(parameters())
def test_storage_round_trip_is_exact(p):
    assert from_json(to_json(p)) == p


@settings(deadline=None)
@given(parameters())
def test_chain_rule(p):
    # d(value)/d(theta) by central differences; 1e-6 steps err by about 1e-10 relative.
    h = 1e-6
    above, below = (np.atleast_1d(p.with_theta(p.theta + s * h).value) for s in (1, -1))
    slope = (above - below) / (2 * h)
    scale = np.abs(np.atleast_1d(p.value)) + 1.0
    got = p.to_theta_gradient(np.ones(p.size))
    np.testing.assert_allclose(got / scale, slope / scale, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("transform", "value", "theta"),
    [("log", np.e**2, 2.0), ("identity", -3.0, -3.0), ("logit", 0.8, np.log(4.0))],
)
def test_transforms(transform, value, theta):
    p = Parameter(value, transform=transform)
    assert p.theta == pytest.approx([theta], rel=1e-14)
    assert p.is_free


@pytest.mark.parametrize(
    ("transform", "value"), [("log", 0.0), ("log", [1.0, 0.0]), ("logit", 0.0), ("logit", 1.0)]
)
def test_values_at_the_edge_are_held(transform, value):
    assert not Parameter(value, transform=transform).is_free


def test_fixed_is_not_free():
    assert Parameter(1.0).is_free
    assert not Parameter(1.0, fixed=True).is_free


def test_bounds_are_transformed():
    p = Parameter([1.0, 2.0], bounds=(0.1, [10.0, 20.0]), transform="log")
    np.testing.assert_allclose(p.theta_bounds, np.log([[0.1, 10.0], [0.1, 20.0]]), rtol=1e-15)
    q = Parameter(0.5, bounds=(0.2, 0.9), transform="logit")
    np.testing.assert_allclose(q.theta_bounds, [[np.log(0.25), np.log(9.0)]], rtol=1e-14)


def test_bounds_without_being_given():
    assert np.all(np.isinf(Parameter(1.0).theta_bounds))
    log = Parameter([1.0, 2.0], transform="log").theta_bounds
    assert log.shape == (2, 2) and np.all(np.isfinite(log)) and np.all(log[:, 0] < log[:, 1])


@pytest.mark.parametrize(
    "bounds",
    [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0,), 3.0, (0.0, 1.0, 2.0), ("a", "b"), ([0, 0], 1)],
)
def test_bad_bounds(bounds):
    with pytest.raises(ValueError, match="bounds must"):
        Parameter(1.0, bounds=bounds)


@pytest.mark.parametrize("value", [np.nan, np.inf, [1.0, np.nan], [], [[1.0]], None])
def test_bad_values(value):
    with pytest.raises(ValueError, match="a parameter must be"):
        Parameter(value)


def test_bad_transform_and_prior():
    with pytest.raises(ValueError, match="transform must be one of"):
        Parameter(1.0, transform="square")
    with pytest.raises(ValueError, match="prior must be a hyperprior"):
        Parameter(1.0, prior=3.0)


# -------------------------------------------------------------------------------------- aliases


def test_value_is_a_copy_and_read_only():
    given_value = np.array([1.0, 2.0])
    p = Parameter(given_value)
    given_value[0] = 9.0
    np.testing.assert_array_equal(p.value, [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        p.value[0] = 9.0


@pytest.mark.parametrize("transform", sorted(inside))
def test_theta_is_a_new_array(transform):
    p = Parameter([0.25, 0.5], transform=transform)
    before = p.theta
    p.theta[:] = 7.0
    p.theta_bounds[:] = 7.0
    np.testing.assert_array_equal(p.theta, before)
    theta = p.theta
    q = p.with_theta(theta)
    theta[:] = 0.1
    np.testing.assert_allclose(q.value, p.value, rtol=1e-15)


def test_bounds_are_copies():
    low = np.array([0.1, 0.2])
    p = Parameter([1.0, 2.0], bounds=(low, 5.0))
    low[:] = 4.0
    np.testing.assert_array_equal(p.theta_bounds[:, 0], [0.1, 0.2])


def test_scalars_stay_floats():
    p = Parameter(np.float32(0.5))
    assert type(p.value) is float and not p.is_vector and p.size == 1
    assert type(p.with_theta(np.array([0.25])).value) is float
    assert Parameter([0.5]).is_vector


# ------------------------------------------------------------------------------------ hyperpriors


@pytest.mark.parametrize("prior", [LogNormal(0.3, 0.8), Gamma(2.0, 3.0), HalfNormal(1.5), Flat()])
@pytest.mark.parametrize("value", [0.7, [0.4, 1.9]])
def test_log_prior_and_its_gradient(prior, value):
    p = Parameter(value, prior=prior, transform="log")
    want = float(np.sum(prior.log_density(np.atleast_1d(value))))
    assert p.log_prior() == pytest.approx(want, rel=1e-15)  # of the value: no Jacobian
    h = 1e-5
    slope = [
        (p.with_theta(p.theta + h * e).log_prior() - p.with_theta(p.theta - h * e).log_prior())
        / (2 * h)
        for e in np.eye(p.size)
    ]
    np.testing.assert_allclose(p.log_prior_gradient(), slope, rtol=1e-8, atol=1e-9)


def test_without_prior():
    p = Parameter([1.0, 2.0])
    assert p.log_prior() == 0.0
    np.testing.assert_array_equal(p.log_prior_gradient(), np.zeros(2))


@pytest.mark.parametrize("prior", [None, Flat(), LogNormal(30.0, 5.0), Gamma(100.0, 1.0)])
@pytest.mark.parametrize("transform", ["log", "logit", "identity"])
def test_draws_are_around_the_value_whatever_the_prior(prior, transform):
    p = Parameter([0.2, 0.9], prior=prior, transform=transform)
    draws = np.array([p.draw_theta(np.random.default_rng(i)) for i in range(50)])
    assert np.all(np.abs(draws - p.theta) <= 2.0) and np.all(np.ptp(draws, axis=0) > 2.0)


@pytest.mark.parametrize("theta", [-1e3, -40.0, -36.0, 36.0, 37.0, 40.0, 1e3])
def test_a_logit_never_reaches_0_or_1(theta):
    p = Parameter(0.5, transform="logit").with_theta(np.array([theta]))
    assert 0.0 < p.value < 1.0 and p.is_free and np.all(np.isfinite(p.theta))


@pytest.mark.parametrize("given", ["a", ["a", "b"], None, [[1.0], [1.0, 2.0]], 1j, object()])
def test_what_is_no_number(given):
    with pytest.raises(ValueError, match="a parameter must be a finite number or a vector of them"):
        Parameter(given)
    with pytest.raises(ValueError, match="location must be a finite number or a vector of them"):
        LogNormal(given)


# ------------------------------------------------------------------------------ equality and repr


def test_equality():
    p = Parameter([1.0, 2.0], bounds=(0.1, 3.0), prior=LogNormal(0.0, 1.0))
    assert p == Parameter([1.0, 2.0], bounds=(0.1, 3.0), prior=LogNormal(0.0, 1.0))
    assert hash(p) == hash(p.replace())
    for change in (
        {"value": [1.0, 2.5]},
        {"bounds": None},
        {"bounds": (0.1, 4.0)},
        {"prior": None},
        {"prior": LogNormal(0.0, 2.0)},
        {"fixed": True},
        {"transform": "log"},
    ):
        assert p.replace(**change) != p
    assert Parameter(1.0) != Parameter([1.0])
    assert Parameter(1.0) != 1.0


def test_repr():
    assert repr(Parameter(2.0)) == "Parameter(2)"
    text = repr(Parameter([2.0, 1 / 3], bounds=(0.1, 3.0), prior=Flat(), fixed=True))
    assert text == "Parameter([2, 0.3333], bounds=(0.1, 3.0), prior=Flat(), fixed=True)"


# --------------------------------------------------------------------------------------- positive


def test_positive_takes_numbers_vectors_and_parameters():
    assert positive("scale", 2.0).transform == "log"
    np.testing.assert_array_equal(positive("scale", [1.0, 2.0]).value, [1.0, 2.0])
    p = positive("scale", Parameter(2.0, bounds=(1.0, 3.0), prior=Flat(), fixed=True))
    assert p.fixed and p.prior == Flat() and p.bounds == (1.0, 3.0) and p.transform == "log"
    assert positive("offset", 0.0, zero=True).value == 0.0


@pytest.mark.parametrize(
    ("given_value", "options", "match"),
    [
        (-1.0, {}, "scale must be positive"),
        (0.0, {}, "scale must be positive"),
        ([1.0, -1.0], {}, "scale must be positive"),
        (-1.0, {"zero": True}, "scale must be at least 0"),
        ([1.0, 2.0], {"vector": False}, "scale must be one number"),
        (Parameter(1.0, bounds=(0.0, 2.0)), {}, "lower bound of scale must be positive"),
        (np.nan, {}, "finite"),
    ],
)
def test_positive_refuses(given_value, options, match):
    with pytest.raises(ValueError, match=match):
        positive("scale", given_value, **options)
