"""SparseGPRegressor as exact inference on some of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor
from mercer.errors import TooLargeError
from mercer.estimators import memory
from mercer.selection import STRATEGIES

from .sparse_data import KERNEL, NOISE, X_NEW, M, N, X, Y, fitted, held


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subset_of_data_is_exact_on_its_rows(strategy):
    model = fitted("sod", inducing=strategy, n_inducing=M, random_state=0)
    kept = np.flatnonzero(np.all(X[:, None] == model.X_train_, axis=2).any(axis=1))
    assert kept.size == len(model.inducing_) <= M
    np.testing.assert_array_equal(np.sort(model.X_train_, axis=0), np.sort(X[kept], axis=0))
    exact = GPRegressor(KERNEL, NOISE, optimizer=None).fit(X[kept], Y[kept])
    np.testing.assert_allclose(model.predict(X_NEW), exact.predict(X_NEW), rtol=1e-9)
    value = exact.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-10)
    assert model.loo().mean.shape == kept.shape


def test_subset_of_data_counts_repeats_where_all_rows_are_in_it():
    model = fitted("sod", X=np.repeat(X[:4], 3, axis=0), y=np.repeat(Y[:4], 3), inducing="random")
    np.testing.assert_array_equal(model.sample_weight_, [3.0] * 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_a_subset_counts_once(strategy):
    weights = np.where(np.arange(N) % 3, 2.0, 0.5)
    options = {"inducing": strategy, "n_inducing": 7, "random_state": 0}
    model = fitted("sod", sample_weight=weights, **options)
    rows = [np.flatnonzero(np.all(x == X, axis=1))[0] for x in model.X_train_]
    got = 1.0 if model.sample_weight_ is None else model.sample_weight_
    np.testing.assert_array_equal(np.broadcast_to(got, 7), np.minimum(weights[rows], 1.0))


def test_subset_of_data_asks_for_memory_first(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(TooLargeError):
        held("sod", inducing="random").fit(X, Y)
