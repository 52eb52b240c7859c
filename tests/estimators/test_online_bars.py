"""Warnings of error bars that rows do not keep to."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import (
    GPRegressor,
    LaplacianProcessRegressor,
    OnlineGPClassifier,
    OnlineGPRegressor,
    RelevanceVectorRegressor,
    load,
    save,
)
from mercer.errors import CalibrationWarning, MercerWarning
from mercer.estimators.online_bars import count_outside
from mercer.estimators.online_loss import NO_LOSSES
from mercer.estimators.online_rows import NumberRows
from mercer.inference.online import Before, OnlineProcess
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Gaussian, Laplace

NARROW = "of the last .* rows lay outside the intervals .* error bars are too narrow"


def rows(n, low=-3.0, high=3.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def texts_of(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found]


def test_rows_are_counted_by_their_own_noise():
    """By hand: normal rows, some of them three of their standard deviations off."""
    process = OnlineProcess(RBF(1.0), Gaussian(0.5), n_outputs=2, scale=[1.0, 10.0])
    n = 100
    before = Before(np.zeros((n, 2)), np.tile([0.5, 50.0], (n, 1)), np.zeros(n))
    Y = np.zeros((n, 2))
    Y[:7, 0], Y[:3, 1], Y[90:, 0] = 1.97, 19.7, 1.95  # of deviations 1 and 10
    before.log_density[0] = np.nan  # which was skipped
    lost = dict(NO_LOSSES)
    count_outside(lost, before, Y, None, process)
    assert lost["judged"] == 99 and lost["outside"] == (6 + 2) / 2
    weights = np.where(np.arange(n) < 5, 1.0, 100.0)  # intervals are of rows of weight 1
    lost = dict(NO_LOSSES)
    count_outside(lost, before, Y, weights, process)
    assert lost["judged"] == 4 and lost["outside"] == (4 + 2) / 2
    for _ in range(30):  # the last thousand or so count
        count_outside(lost, before, Y, None, process)
    assert 1000 <= lost["judged"] < 2000
    assert lost["outside"] / lost["judged"] == pytest.approx(4 / 99, rel=0.03)


@pytest.mark.parametrize("kind", [RelevanceVectorRegressor, LaplacianProcessRegressor])
@pytest.mark.parametrize("chunk", [1, 100, 600])
def test_few_functions_far_from_new_rows_are_told_with_the_way_out(kind, chunk):
    first = kind().fit(*rows(200, -3.0, 0.0))
    model = OnlineGPRegressor.from_posterior(first.posterior_, first.likelihood_)
    X, y = rows(600, -3.0, 6.0)
    texts = []
    for at in range(0, 600, chunk):
        part = slice(at, at + chunk)
        texts += texts_of(lambda part=part: model.partial_fit(X[part], y[part]))
    (text,) = texts
    assert "lift='scaled'" in text
    with warnings.catch_warnings(action="ignore", category=MercerWarning):
        lifted = OnlineGPRegressor.from_posterior(
            first.posterior_, first.likelihood_, 100, lift="scaled"
        )
    assert not texts_of(lambda: lifted.partial_fit(X, y))


def test_drift_is_told(tmp_path):
    """Rows after a posterior are not compared with a constant, which would tell it otherwise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (1500, 1))
    y = np.sin(X[:, 0] + np.arange(1500) / 300.0) + 0.2 * rng.standard_normal(1500)
    known = {"kernel": RBF(1.5), "likelihood": Gaussian(0.04), "mean": "zero", "optimizer": None}
    first = GPRegressor(**known).fit(X[:100], y[:100])
    model, drifting = (
        OnlineGPRegressor.from_posterior(first.posterior_, first.likelihood_, 30, forget=forget)
        for forget in (0.0, 0.003)
    )
    with pytest.warns(CalibrationWarning, match=f"{NARROW}.*drift, for which there is forget"):
        model.partial_fit(X[100:1000], y[100:1000])
    save(model, tmp_path / "m")
    assert not texts_of(lambda: load(tmp_path / "m").partial_fit(X[1000:], y[1000:]))  # once
    assert not texts_of(lambda: drifting.partial_fit(X[100:], y[100:]))


def test_outliers_labels_and_other_noise_are_not_judged_by_it():
    X, y = rows(800)
    y[::12] += 5.0
    clean = OnlineGPRegressor(RBF(1.0), Gaussian(0.01), mean="zero")
    assert not any(
        "too narrow" in text and "95%" in text for text in texts_of(lambda: clean.fit(X, y))
    )
    heavy = OnlineGPRegressor(RBF(1.0), Laplace(1e-3), mean="zero")
    assert not any("hold 95%" in text for text in texts_of(lambda: heavy.partial_fit(X, y)))
    labels = OnlineGPClassifier(RBF(1.0))
    assert not texts_of(lambda: labels.fit(X, np.random.default_rng(0).integers(0, 2, 800)))


def test_where_the_kernel_is_no_covariance_there_is_no_lift():
    first = LaplacianProcessRegressor(Tanh(1.0, 0.5), optimizer=None).fit(*rows(200, -3.0, 0.0))
    model = OnlineGPRegressor.from_posterior(first.posterior_, first.likelihood_)
    (text,) = texts_of(lambda: model.partial_fit(*rows(600, -3.0, 6.0)))
    assert "they stay: fit it anew to rows from wherever they come" in text


def test_single_rows_are_judged_as_tables_are():
    X, y = rows(400)
    model = OnlineGPRegressor(RBF(1.0), Gaussian(1e-4), mean="zero", optimizer=None)
    model.partial_fit(X[:1], y[:1])
    del model._target_sums  # without which they are not compared with a constant
    single = NumberRows(model, 0.95)

    def learn():
        for i in range(1, 400):
            single.learn(X[i : i + 1], float(y[i]))

    (text,) = texts_of(learn)
    assert "error bars are too narrow" in text
