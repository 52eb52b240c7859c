"""Metrics of Gaussian predictions: against quadrature, SciPy, simulation, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from mercer.metrics import (
    crps,
    mean_standardised_log_loss,
    negative_log_predictive_density,
    pit,
)

NUMBERS = st.floats(-50.0, 50.0)
SPREADS = st.floats(0.01, 30.0)
METRICS = [negative_log_predictive_density, crps]


def make(n=40, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n,) if outputs is None else (n, outputs)
    return rng.normal(size=shape), rng.normal(size=shape), rng.uniform(0.3, 2.0, size=shape)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, SPREADS)
def test_crps_is_the_integral_it_is_defined_by(y, mean, std):
    z = (y - mean) / std
    near = np.clip(z, -10.0, 10.0)  # beyond, the integrands are 0 or 1
    below = quad(lambda t: norm.cdf(t) ** 2, -10.0, near)[0] + max(z - 10.0, 0.0)
    above = quad(lambda t: norm.sf(t) ** 2, near, 10.0)[0] + max(-10.0 - z, 0.0)
    assert crps([y], [mean], [std]) == pytest.approx(std * (below + above), rel=1e-7)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, SPREADS), min_size=1, max_size=20))
def test_log_density_is_scipys(rows):
    y, mean, std = np.array(rows).T
    want = -np.mean(norm.logpdf(y, mean, std))
    assert negative_log_predictive_density(y, mean, std) == pytest.approx(want, rel=1e-10)


@given(st.integers(2, 30), st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_the_baseline_itself_has_no_standardised_loss(n, seed, scale):
    rng = np.random.default_rng(seed)
    train, y = scale * rng.normal(size=n), scale * rng.normal(size=7)
    mean, std = np.full(7, train.mean()), np.full(7, train.std())
    assert mean_standardised_log_loss(y, mean, std, train) == pytest.approx(0.0, abs=1e-10)


def test_standardised_loss_has_no_units_and_sees_weights_of_training_rows():
    y, mean, std = make()
    train = np.random.default_rng(1).normal(size=15)
    loss = mean_standardised_log_loss(y, mean, std, train)
    assert mean_standardised_log_loss(10 * y, 10 * mean, 10 * std, 10 * train) == pytest.approx(
        loss, rel=1e-12
    )
    weights = np.tile([0, 1, 2], 5)
    assert mean_standardised_log_loss(y, mean, std, train, train_weight=weights) == pytest.approx(
        mean_standardised_log_loss(y, mean, std, np.repeat(train, weights))
    )
    assert loss == pytest.approx(
        negative_log_predictive_density(y, mean, std)
        + np.mean(norm.logpdf(y, train.mean(), train.std()))
    )


def test_the_true_distribution_scores_best():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=20_000), rng.uniform(0.5, 2.0, size=20_000)
    y = mean + std * rng.normal(size=20_000)
    for metric in METRICS:
        best = metric(y, mean, std)
        for worse in (metric(y, mean, 1.3 * std), metric(y, mean, 0.7 * std)):
            assert worse > best
        assert metric(y, mean + 0.3, std) > best


def test_pit_of_the_true_distribution_is_uniform():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=5000), rng.uniform(0.5, 2.0, size=5000)
    values = np.sort(pit(mean + std * rng.normal(size=5000), mean, std))
    # Kolmogorov and Smirnov: 1.63/sqrt(n) is passed once in a hundred
    assert np.max(np.abs(values - np.arange(1, 5001) / 5000)) < 1.63 / np.sqrt(5000)


@pytest.mark.parametrize("metric", METRICS)
def test_weights_repeat_and_remove_rows(metric):
    y, mean, std = make(6, 2)
    weights = np.array([0, 1, 2, 3, 0, 1])
    repeated = [np.repeat(a, weights, axis=0) for a in (y, mean, std)]
    assert metric(y, mean, std, sample_weight=weights) == pytest.approx(metric(*repeated))
    y[0] = 1e300  # no matter how wrong: 0 times an infinite loss is 0
    assert np.isfinite(metric(y, mean, std, sample_weight=weights))


@pytest.mark.parametrize("metric", METRICS)
def test_several_outputs(metric):
    y, mean, std = make(8, 3)
    each = metric(y, mean, std, multioutput="raw_values")
    assert each.shape == (3,)
    for j in range(3):
        assert each[j] == pytest.approx(metric(y[:, j], mean[:, j], std[:, j]))
    assert metric(y, mean, std) == pytest.approx(each.mean())
    assert isinstance(metric(y[:, 0], mean[:, 0], std[:, 0], multioutput="raw_values"), float)
    train = np.random.default_rng(1).normal(size=(9, 3))
    losses = mean_standardised_log_loss(y, mean, std, train, multioutput="raw_values")
    assert losses[1] == pytest.approx(
        mean_standardised_log_loss(y[:, 1], mean[:, 1], std[:, 1], train[:, 1])
    )


def test_predictions_without_spread():
    assert crps([1.0, 4.0], [1.0, 1.0], [0.0, 0.0]) == 1.5
    np.testing.assert_array_equal(
        pit([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]), [0.0, 0.5, 1.0]
    )
    # the limit is reached without warnings
    assert crps([3.0], [1.0], [1e-320]) == pytest.approx(2.0)
    assert pit([3.0], [1.0], [5e-324])[0] == 1.0
    assert negative_log_predictive_density([3.0], [1.0], [1e-200]) == np.inf
    with pytest.raises(ValueError, match=r"std must be above 0, row 1 has 0.0: .* no density"):
        negative_log_predictive_density([1.0, 1.0], [1.0, 1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"std must be at least 0, row 0 has -1\.0"):
        crps([1.0], [1.0], [-1.0])
    with pytest.raises(ValueError, match="the training targets have no variance"):
        mean_standardised_log_loss([1.0], [1.0], [1.0], [2.0, 2.0])


BAD = [
    (([], [], []), "y is empty"),
    ((np.empty((3, 0)),) * 3, "y is empty"),
    (([1.0, 2.0], [1.0], [1.0, 1.0]), r"mean must have the shape of y, \(2,\), got \(1,\)"),
    (([1.0], [1.0], [[1.0]]), r"std must have the shape of y, \(1,\), got \(1, 1\)"),
    ((1.0, 1.0, 1.0), r"y must have shape \(n,\)"),
    (([np.nan], [1.0], [1.0]), "y holds NaN or infinity"),
    (([1.0], [np.inf], [1.0]), "mean holds NaN or infinity"),
    ((["a"], [1.0], [1.0]), "y must be an array of numbers"),
]


@pytest.mark.parametrize(("arrays", "text"), BAD)
@pytest.mark.parametrize("metric", [*METRICS, pit])
def test_bad_arrays(metric, arrays, text):
    with pytest.raises(ValueError, match=text):
        metric(*arrays)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sample_weight": [1.0]}, r"sample_weight must have shape \(2,\), got shape \(1,\)"),
        ({"sample_weight": [1.0, -1.0]}, "not negative"),
        ({"sample_weight": [0.0, 0.0]}, "at least one non-zero"),
        ({"sample_weight": [1.0, np.nan]}, "finite"),
        ({"sample_weight": "many"}, "sample_weight must be 2 numbers"),
        ({"multioutput": "sum"}, "multioutput must be 'uniform_average' or 'raw_values'"),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_bad_options(metric, options, text):
    with pytest.raises(ValueError, match=text):
        metric([1.0, 2.0], [1.0, 1.0], [1.0, 1.0], **options)


def test_training_targets_of_other_outputs():
    y, mean, std = make(4, 2)
    with pytest.raises(ValueError, match=r"y_train must have the outputs of y"):
        mean_standardised_log_loss(y, mean, std, np.arange(4.0))
