"""Intervals and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mercer.metrics import (
    calibration_curve,
    calibration_error,
    coverage,
    interval_score,
    interval_width,
    pit,
)


def simulated(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)
    return mean + std * rng.normal(size=n), mean, std


def ends(mean, std, level):
    return mean - norm.ppf(0.5 + level / 2) * std, mean + norm.ppf(0.5 + level / 2) * std


@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
def test_intervals_of_the_true_distribution_hold_what_they_should(level):
    y, mean, std = simulated()
    # four standard errors
    assert coverage(y, *ends(mean, std, level)) == pytest.approx(
        level, abs=4 * np.sqrt(level * (1 - level) / len(y))
    )


def test_interval_score_is_least_for_the_true_quantiles():
    y, mean, std = simulated()
    best = interval_score(y, *ends(mean, std, 0.9), 0.9)
    for factor in (0.8, 1.25):
        assert interval_score(y, *ends(mean, factor * std, 0.9), 0.9) > best
    assert interval_score(y, *ends(mean, std, 0.9), 0.9) < interval_score(
        y, *ends(mean + 0.5, std, 0.9), 0.9
    )
    inside = (ends(mean, std, 0.9)[0] <= y) & (y <= ends(mean, std, 0.9)[1])
    lower, upper = ends(mean[inside], std[inside], 0.9)
    assert interval_score(y[inside], lower, upper, 0.9) == pytest.approx(
        interval_width(lower, upper)
    )


@given(st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 3), min_size=1, max_size=9))
def test_scores_by_hand(rows):
    y, a, b = np.array(rows).T
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    inside = [low <= t <= high for t, low, high in zip(y, lower, upper, strict=True)]
    assert coverage(y, lower, upper) == pytest.approx(np.mean(inside))
    missed = [max(low - t, t - high, 0) for t, low, high in zip(y, lower, upper, strict=True)]
    assert interval_score(y, lower, upper, 0.8) == pytest.approx(
        np.mean(upper - lower) + 10 * np.mean(missed)
    )


def test_ends_belong_to_intervals_and_may_be_infinite():
    assert coverage([1.0, 2.0], [1.0, 1.0], [2.0, 2.0]) == 1.0
    assert coverage([1.0, 2.0], [-np.inf, -np.inf], [1.5, 1.5]) == 0.5
    assert interval_width([0.0], [np.inf]) == np.inf


def test_weights_and_outputs():
    y = np.array([[0.0, 5.0], [1.0, 0.0], [9.0, 0.0]])
    lower, upper = np.full((3, 2), -1.0), np.full((3, 2), 2.0)
    np.testing.assert_allclose(coverage(y, lower, upper, multioutput="raw_values"), [2 / 3, 2 / 3])
    np.testing.assert_allclose(
        coverage(y, lower, upper, sample_weight=[2, 1, 0], multioutput="raw_values"), [1.0, 1 / 3]
    )
    assert interval_width(lower, upper, sample_weight=[2, 1, 0]) == 3.0
    assert interval_score(y, lower, upper, 0.5, sample_weight=[1, 0, 0]) == 3.0 + 0.5 * 4 * 3.0


def test_bad_intervals():
    with pytest.raises(ValueError, match=r"lower must not be above upper, row 1 has 3.0 and 2.0"):
        coverage([1.0, 1.0], [0.0, 3.0], [2.0, 2.0])
    with pytest.raises(ValueError, match=r"lower must have the shape of y, \(2,\), got \(1,\)"):
        coverage([1.0, 1.0], [0.0], [2.0])
    with pytest.raises(ValueError, match=r"upper must have the shape of lower"):
        interval_width([0.0, 1.0], [2.0])
    with pytest.raises(ValueError, match="lower holds NaN"):
        interval_width([np.nan], [2.0])
    with pytest.raises(ValueError, match="y is empty"):
        coverage([], [], [])
    for level in (0.0, 1.0, 95, "0.9", None):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            interval_score([1.0], [0.0], [2.0], level)


# --- calibration ------------------------------------------------------------------------------


def test_calibration_of_the_true_distribution():
    y, mean, std = simulated(5000)
    values = pit(y, mean, std)
    assert calibration_error(values) < 1.0 / np.sqrt(5000)
    nominal, observed = calibration_curve(values)
    np.testing.assert_allclose(observed, nominal, atol=0.03)
    wide, narrow = pit(y, mean, 2 * std), pit(y, mean, std / 2)
    assert np.all(calibration_curve(wide).observed > nominal)
    assert np.all(calibration_curve(narrow).observed < nominal)
    assert calibration_error(wide) > 0.1 and calibration_error(narrow) > 0.1


def test_calibration_curve_is_coverage():
    y, mean, std = simulated(200)
    weights = np.random.default_rng(1).integers(0, 3, size=200)
    levels = [0.3, 0.61, 0.9]
    curve = calibration_curve(pit(y, mean, std), levels, sample_weight=weights)
    want = [coverage(y, *ends(mean, std, level), sample_weight=weights) for level in levels]
    np.testing.assert_allclose(curve.observed, want)
    np.testing.assert_array_equal(curve.nominal, levels)
    assert calibration_error(pit(y, mean, std), levels, sample_weight=weights) == pytest.approx(
        np.mean(np.abs(np.subtract(want, levels)))
    )


def test_calibration_of_several_outputs():
    y, mean, std = simulated(100)
    values = np.column_stack([pit(y, mean, std), pit(y, mean, 3 * std)])
    each = calibration_error(values, multioutput="raw_values")
    assert each == pytest.approx([calibration_error(values[:, 0]), calibration_error(values[:, 1])])
    assert calibration_error(values) == pytest.approx(each.mean())
    assert calibration_curve(values).observed.shape == (19, 2)


def test_bad_calibration():
    with pytest.raises(ValueError, match=r"pit_values must be probabilities .* from -1 to 2"):
        calibration_error([-1.0, 2.0])
    for levels in ([0.0], [0.5, 1.0], [[0.5]]):
        with pytest.raises(ValueError, match="levels must be numbers between 0 and 1"):
            calibration_error([0.5], levels)
    with pytest.raises(ValueError, match="pit_values is empty"):
        calibration_error([])
