"""What the data say of a likelihood's parameters before a search for them begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.evidence.defaults import bounded_noise, default_noise
from mercer.likelihoods import (
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    StudentT,
)
from mercer.likelihoods.spread import deviation_of, spread_of
from mercer.params import LogNormal, Parameter
from mercer.registry import from_json, to_json

OPEN = [Laplace(), EpsilonInsensitive(), Huber(), StudentT(), EpsilonInsensitive(0.0)]
left_open = pytest.mark.parametrize("likelihood", OPEN, ids=str)

Y = np.random.default_rng(2).normal(3.0, 2.0, 401)


# --------------------------------------------------------------------------------- what is open


@left_open
def test_what_is_open_has_no_value_yet(likelihood):
    assert likelihood.scale is None and "scale" not in likelihood.parameters
    assert "scale" not in likelihood.parameter_names
    assert likelihood.get_params()["scale"] is None
    assert from_json(to_json(likelihood)) == likelihood
    assert likelihood.with_params(scale=0.5).scale == 0.5
    for call in (
        lambda: likelihood.log_density(0.0, 1.0),
        lambda: likelihood.smoothed(0.0, 1.0, 1.0),
        lambda: likelihood.predictive_var(0.0, 1.0),
        lambda: likelihood.sample(0.0, np.random.default_rng(0)),
        lambda: likelihood.fisher(0.0),
    ):
        with pytest.raises(ValueError, match=r"of \w+ is not chosen yet: .*begun"):
            call()


def test_epsilon_may_be_open_alone():
    likelihood = EpsilonInsensitive(scale=0.5)
    assert likelihood.epsilon is None and likelihood.scale == 0.5
    with pytest.raises(ValueError, match=r"the epsilon of .* EpsilonInsensitive\(epsilon=0.1\)"):
        likelihood.log_density(0.0, 1.0)
    begun = likelihood.begun(Y)
    assert begun.scale == 0.5
    assert begun.epsilon == pytest.approx(0.1 * spread_of(Y))


# ---------------------------------------------------------------------------------------- begun


@left_open
def test_starts_and_bounds_are_in_the_datas_units(likelihood):
    begun = likelihood.begun(Y)
    assert begun.scale == pytest.approx(0.3 * spread_of(Y))
    low, high = begun.parameters["scale"].bounds
    assert (low, high) == pytest.approx((1e-3 * spread_of(Y), 10.0 * spread_of(Y)))
    assert np.all(np.isfinite(begun.log_density(Y, 3.0)))
    units = {"scale", "epsilon"}
    moves = np.array([name in units for name in begun.parameter_names], dtype=float)
    for factor, shift in ((1e-6, 0.0), (1e4, 1e5)):
        other = likelihood.begun(factor * Y + shift)
        np.testing.assert_allclose(other.theta, begun.theta + np.log(factor) * moves, atol=1e-9)
        move = np.log(factor) * moves[:, None]
        np.testing.assert_allclose(other.bounds, begun.bounds + move, atol=1e-9)


@left_open
def test_gross_errors_do_not_move_the_start(likelihood):
    spoilt = Y.copy()
    spoilt[::5] += 1e6  # one in five
    ratio = likelihood.begun(spoilt).scale / likelihood.begun(Y).scale
    assert 1.0 < ratio < 1.6


@left_open
def test_weights_are_repetitions(likelihood):
    counts = np.random.default_rng(3).integers(0, 4, Y.size)
    weighted = likelihood.begun(Y, counts)
    repeated = likelihood.begun(np.repeat(Y, counts))
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-13)


def test_what_was_given_stays():
    prior = LogNormal(0.0, 1.0)
    given = StudentT(Parameter(3.0, prior=prior), Parameter(0.5, prior=prior))
    begun = given.begun(Y)
    assert (begun.df, begun.scale) == (3.0, 0.5)
    assert begun.parameters["scale"].prior == begun.parameters["df"].prior == prior
    assert begun.parameters["scale"].bounds is not None
    for scale in (Parameter(0.5, fixed=True), Parameter(0.5, bounds=(0.1, 0.9))):
        assert Laplace(scale).begun(Y) == Laplace(scale)
    # far from what the data suggest, there is room on either side
    for scale in (1e-9, 1e9):
        low, high = Huber(scale).begun(Y).parameters["scale"].bounds
        assert low <= 0.1 * scale * (1 + 1e-12) and 10.0 * scale <= high * (1 + 1e-12)
    assert EpsilonInsensitive(0.0).begun(Y).parameter_names == ["scale"]


def test_what_has_no_units_stays():
    for likelihood in (Logistic(), Probit(), Probit(Parameter(2.0)), Poisson()):
        assert likelihood.begun(np.ones(3)) is likelihood


def test_a_mixture_gets_bounds_on_its_scales():
    noise = MixtureNoise([0.9, 0.1], [0.0, 1.0], [0.1, 1e3])
    begun = noise.begun(Y)
    np.testing.assert_array_equal(begun.theta, noise.theta)
    bounds = np.exp(begun.bounds[2:])
    unit = spread_of(Y)
    np.testing.assert_allclose(bounds, [[1e-3 * unit, 10 * unit], [1e-3 * unit, 1e4]])


def test_gaussian_noise_begins_as_exact_inference_does():
    variance = np.var(Y)
    want = bounded_noise(default_noise(variance), variance)
    begun = Gaussian().begun(Y)
    np.testing.assert_allclose(begun.theta, want.theta, rtol=1e-13)
    np.testing.assert_allclose(begun.bounds, want.bounds, rtol=1e-13)
    given = Gaussian(1e9)
    np.testing.assert_allclose(given.begun(Y).bounds, bounded_noise(given, variance).bounds)
    known = Gaussian(np.full(3, 0.2))
    assert known.begun(np.zeros(3)) is known


# --------------------------------------------------------------------------------------- spread


def test_spread_of_a_normal_sample_is_its_deviation():
    sample = np.random.default_rng(0).normal(-7.0, 0.3, 40_001)
    assert spread_of(sample) == pytest.approx(0.3, rel=0.02)
    assert spread_of(sample) == pytest.approx(
        1.482602218505602 * np.median(np.abs(sample - np.median(sample))), rel=1e-12
    )


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
    st.integers(-900, 900),
    st.lists(st.integers(1, 4), min_size=12, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_spread_of_anything_is_positive_and_in_its_units(values, power, counts):
    y, w = np.array(values), np.array(counts[: len(values)], dtype=float)
    for measure in (spread_of, deviation_of):
        width = measure(y, w)
        assert np.isfinite(width) and width > 0
        assert measure(np.repeat(y, w.astype(int))) == pytest.approx(width, rel=1e-9)
        if np.any(y):
            assert measure(np.ldexp(y, power), w) == np.ldexp(width, power) or width < 1e-9
        assert measure(-y, w) == pytest.approx(width, rel=1e-9)


def test_spread_where_most_targets_are_the_same():
    mostly = np.array([0.0] * 9 + [5.0])
    assert spread_of(mostly) == pytest.approx(np.std(mostly))
    for measure in (spread_of, deviation_of):
        assert measure(np.full(4, -2.5)) == 2.5
        assert measure(np.zeros(4)) == 1.0
        assert measure([7.0]) == 7.0
        assert measure([1.0, 2.0, 9.0], [1.0, 1.0, 0.0]) == measure([1.0, 2.0])


@pytest.mark.parametrize(
    ("y", "weights", "match"),
    [
        ([[1.0]], None, "vectors of one length"),
        ([1.0, 2.0], [1.0], "vectors of one length"),
        ([np.nan, 1.0], None, "finite"),
        ([1.0, 2.0], [1.0, -1.0], "not negative"),
        ([], None, "at least one target"),
        ([1.0], [0.0], "at least one target"),
        (["a"], None, "must be numbers"),
    ],
)
def test_bad_targets(y, weights, match):
    for likelihood in (Laplace(), Gaussian()):
        with pytest.raises(ValueError, match=match):
            likelihood.begun(y, weights)
