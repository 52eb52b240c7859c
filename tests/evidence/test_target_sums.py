"""Mean and deviation of training targets: against NumPy, in parts, kept by models and files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import mercer
from mercer import GPRegressor, OnlineGPRegressor
from mercer.evidence.target_sums import (
    constant_log_density,
    moments_of,
    sums_of,
    with_row,
    with_rows,
)
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.metrics import neg_mean_standardised_log_loss

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 1)), 5.0 + RNG.normal(size=(60, 2)) * [1.0, 30.0]
WEIGHTS = (np.arange(60) % 3).astype(float)


def online():
    return OnlineGPRegressor(RBF(1.0), Gaussian(0.1), max_basis=20, optimizer=None)


def check(sums, rows):
    mean, deviation = moments_of(sums)
    assert sums[1] == pytest.approx(np.full(rows.shape[1], len(rows)))
    assert mean == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert deviation == pytest.approx(rows.std(axis=0), rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_by_numpy(offset):
    mean, deviation = moments_of(sums_of(offset + Y, None))
    assert mean == pytest.approx((offset + Y).mean(axis=0), rel=1e-12)
    assert deviation == pytest.approx((offset + Y).std(axis=0), rel=1e-12)


def test_weights_repeat_rows():
    check(sums_of(Y, WEIGHTS), np.repeat(Y, WEIGHTS.astype(int), axis=0))


def test_density_of_a_constant_by_scipy():
    mean, deviation = Y.mean(axis=0), Y.std(axis=0)
    wanted = np.mean(np.sum(norm.logpdf(Y, mean, deviation), axis=1))
    assert constant_log_density(sums_of(Y, None)) == pytest.approx(wanted, rel=1e-12)
    assert np.isnan(constant_log_density(sums_of(np.full((5, 1), 3.0), None)))
    assert np.isnan(constant_log_density(sums_of(np.empty((0, 1)), None)))


def test_parts_add_up_to_the_whole_to_the_last_bit():
    joined = sums_of(Y[:1], WEIGHTS[1:2])
    for some in (slice(1, 2), slice(2, 2), slice(2, 40), slice(40, 60)):
        joined = with_rows(joined, Y[some], WEIGHTS[some] + 0.1)
    whole = sums_of(Y, np.r_[WEIGHTS[1], WEIGHTS[1:] + 0.1])
    np.testing.assert_array_equal(joined, whole)


def test_single_rows_add_up_to_the_whole_to_the_last_bit():
    sums = sums_of(np.empty((0, 1)), None)
    for y, weight in zip(Y[:, 1].tolist(), (WEIGHTS + 0.1).tolist(), strict=True):
        sums = with_row(sums, y, weight)
    np.testing.assert_array_equal(sums, sums_of(Y[:, 1:], WEIGHTS + 0.1))


def test_constant_targets_have_no_deviation_at_all():
    sums = with_rows(
        sums_of(np.full((7, 1), 0.1), np.linspace(0.1, 0.9, 7)), np.full((3, 1), 0.1), None
    )
    assert moments_of(sums) == (0.1, 0.0)


def test_rows_that_come_in_parts_have_the_sums_of_all():
    model = online()
    for some in (slice(0, 1), slice(1, 30), slice(30, 60)):
        model.partial_fit(X[some], Y[some])
    check(model._target_sums, Y)
    model.learn(X, Y, WEIGHTS)
    check(model._target_sums, np.concatenate([Y, np.repeat(Y, WEIGHTS.astype(int), axis=0)]))
    check(model.fit(X[:20], Y[:20])._target_sums, Y[:20])


def test_rows_that_wait_count_and_refused_ones_do_not():
    model = OnlineGPRegressor(RBF(1.0), n_init=40, optimizer=None)
    model.partial_fit(X[:25], Y[:25])
    check(model._target_sums, Y[:25])
    for columns in (1, 3):
        with pytest.raises(ValueError, match="y must have shape"):
            model.partial_fit(X[25:], np.ones((35, columns)))
    check(model.partial_fit(X[25:], Y[25:])._target_sums, Y)


def test_a_first_call_may_have_no_row_that_counts():
    model = online().partial_fit(X[:3], Y[:3], np.zeros(3))
    check(model.partial_fit(X, Y)._target_sums, Y)


def test_files_keep_them_and_those_of_earlier_versions_load(tmp_path):
    model = online().fit(X, Y[:, 0])
    want = neg_mean_standardised_log_loss(model, X, Y[:, 0])
    mercer.save(model, tmp_path / "new.mercer")
    loaded = mercer.load(tmp_path / "new.mercer")
    assert neg_mean_standardised_log_loss(loaded, X, Y[:, 0]) == want
    check(loaded.partial_fit(X, Y[:, 0])._target_sums, np.tile(Y[:, :1], (2, 1)))
    del model._target_sums
    mercer.save(model, tmp_path / "old.mercer")
    loaded = mercer.load(tmp_path / "old.mercer").partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="this OnlineGPRegressor has not kept the targets"):
        neg_mean_standardised_log_loss(loaded, X, Y[:, 0])


def test_what_goes_on_from_a_posterior_does_not_know_all_targets():
    whole = GPRegressor(RBF(1.0), Gaussian(0.1), optimizer=None).fit(X, Y[:, 0])
    going = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_, max_basis=20)
    going.partial_fit(X[:5], Y[:5, 0])
    with pytest.raises(ValueError, match="nor their mean and variance"):
        neg_mean_standardised_log_loss(going, X, Y[:, 0])


@pytest.mark.parametrize("at", [0, 30])
def test_targets_that_are_skipped_are_left_out(at):
    y = Y.copy()
    y[at, 0] = 1e200
    check(sums_of(y, None), np.delete(Y, at, axis=0))
    sums = np.zeros((4, 1))
    for value in y[:, 0]:
        sums = with_row(sums, value, 1.0)
    np.testing.assert_array_equal(sums, sums_of(y[:, :1], None))
