"""Saved, pickled and pruned fits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor, load, save
from mercer.kernels import Matern

from .data import make, quiet_fit


def trend(X):
    return 2.0 * X[:, 0]


@pytest.mark.parametrize(
    "model",
    [
        GPRegressor(),
        GPRegressor(1.5 * Matern([1.0, 2.0, 3.0], nu=2.5) + 0.5, mean="linear", normalize_y=True),
        GPRegressor(mean="zero", objective="loo", n_restarts=1, random_state=0),
    ],
    ids=["default", "composed", "loo"],
)
def test_save_and_load_are_bit_identical(model, tmp_path):
    X, y = make()
    quiet_fit(model, X, np.column_stack([y, 2 * y]), sample_weight=np.linspace(0.5, 2, 40))
    path = tmp_path / "model.mercer"
    save(model, path)
    loaded = load(path)
    assert type(loaded) is GPRegressor
    for a, b in zip(
        model.predict(X, return_std=True), loaded.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(model.theta_, loaded.theta_)
    np.testing.assert_array_equal(model.loo().mean, loaded.loo().mean)
    assert loaded.kernel_ == model.kernel_ and repr(loaded.kernel_) == repr(model.kernel_)
    np.testing.assert_array_equal(model.history_["theta"], loaded.history_["theta"])
    quiet_fit(loaded, X, y)


def test_scikit_learn_kernels_are_saved_with_their_noise(tmp_path):
    X, y = make()
    kernel = sk.RBF(1.5) + sk.WhiteKernel(0.3, noise_level_bounds="fixed")
    model = quiet_fit(GPRegressor(kernel), X, y)
    save(model, tmp_path / "model.mercer")
    loaded = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    assert quiet_fit(loaded, X, y).likelihood_.noise == 0.3


def test_what_cannot_be_saved_is_refused(tmp_path):
    X, y = make()
    model = GPRegressor(random_state=np.random.RandomState(0), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="random_state"):
        save(model, tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())


def test_functions_are_saved_by_name(tmp_path):
    X, y = make()
    model = GPRegressor(mean=trend, optimizer=None).fit(X, y)
    save(model, tmp_path / "model.mercer")
    with pytest.raises(ValueError, match="trend"):
        load(tmp_path / "model.mercer")
    loaded = load(tmp_path / "model.mercer", objects={"trend": trend})
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))


def test_pickle():
    X, y = make()
    model = GPRegressor().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_pruning_a_fit():
    X, y = make(150)
    model = GPRegressor().fit(X, y)
    losses = []
    for m in (150, 100, 50, 20):
        small, loss = model.posterior_.prune(m)
        losses.append(loss)
        assert small.n_basis <= m
    assert losses[0] == 0.0 and np.all(np.diff(losses) >= 0)
    assert np.max(np.abs(model.posterior_.prune(100)[0].mean(X)[:, 0] - model.predict(X))) < 0.05
