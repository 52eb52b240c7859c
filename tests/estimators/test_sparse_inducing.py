"""Inducing inputs and blocks of rows of a SparseGPRegressor."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SparseGPRegressor
from mercer.errors import ConvergenceWarning, JitterWarning
from mercer.estimators import inducing
from mercer.kernels import RBF, Callable, Linear
from mercer.likelihoods import Gaussian
from mercer.posterior import BlockPredictive
from mercer.selection import STRATEGIES

from .data import quiet_fit
from .sparse_data import GROUPS, NOISE, X_NEW, M, N, X, Y, Z, fitted, held, wavy

# --- inducing inputs -------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_choices_do_not_depend_on_how_rows_are_written(strategy):
    weights = np.ones(N)
    weights[[3, 8]], weights[5] = 2.0, 0.0
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(N), weights.astype(int)))
    options = {"inducing": strategy, "n_inducing": 7, "random_state": 1}
    for name in ("vfe", "pitc", "sod"):
        one = quiet_fit(held(name, **options), X, Y, sample_weight=weights)
        two = quiet_fit(held(name, **options), X[rows], Y[rows])
        np.testing.assert_allclose(one.inducing_, two.inducing_, rtol=1e-12)
        got, wanted = (m.predict(X_NEW, return_std=True) for m in (two, one))
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_learned_inputs_raise_the_bound():
    still, moved = (
        quiet_fit(
            SparseGPRegressor(
                approximation="vfe", n_inducing=5, learn_inducing=learn, random_state=0
            ),
            X,
            Y,
        )
        for learn in (False, True)
    )
    assert moved.log_marginal_likelihood_value_ > still.log_marginal_likelihood_value_ + 1.0
    assert not np.array_equal(moved.inducing_, still.inducing_)


def test_a_search_that_moves_them_ends_once_it_gains_little():
    model = fitted(optimizer="lbfgs", inducing="kmeans", n_inducing=M, max_iter=1000)
    assert model.status_ == "converged"
    assert 10 < model.n_iter_ < 200
    best = np.maximum.accumulate(model.history_["value"])
    assert 0 < best[-1] - best[-10] < 0.1


def test_a_search_that_moves_them_says_at_its_limit_what_it_still_gained():
    model = SparseGPRegressor(approximation="vfe", n_inducing=M, max_iter=12, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"last 10 gained [\d.]+: .*usable.*unless"):
        model.fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.set_params(learn_inducing=False, max_iter=1).fit(X, Y)


def test_those_of_fitc_stay_where_new_points_join_them():
    """They suit the rows alone: intervals of new points would be far too narrow."""
    (A, y), (B, b) = wavy(400), wavy(200, seed=1)
    settings = {"approximation": "fitc", "n_inducing": 25, "max_iter": 25, "random_state": 0}
    model = SparseGPRegressor(1.0 * RBF([1.0, 1.0]), augment=True, **settings)
    still, moved = (
        quiet_fit(clone(model).set_params(learn_inducing=learn), A, y) for learn in (None, True)
    )
    start = quiet_fit(clone(model).set_params(optimizer=None), A, y)
    np.testing.assert_array_equal(still.inducing_, start.inducing_)
    assert not np.array_equal(moved.inducing_, start.inducing_)
    densities = [np.mean(m.log_predictive_density(B, b)) for m in (still, moved)]
    assert densities[0] > densities[1] + 0.3
    for name, moves in [("dtc", True), ("vfe", True), ("pitc", True), ("fitc", False)]:
        other = clone(model).set_params(approximation=name, max_iter=2)
        assert np.array_equal(quiet_fit(other, A, y).inducing_, start.inducing_) != moves


def test_given_inputs_are_as_many_as_they_are():
    assert len(held(n_inducing=3).fit(X, Y).inducing_) == M
    assert len(held("pitc", n_inducing=20, augment=True).fit(X, Y).inducing_) == M


def test_jitter_is_told_of_where_it_is_not_small_beside_the_noise():
    twice = np.concatenate([Z, Z])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = held(inducing=twice).fit(X, Y)
    assert 0 < model.jitter_ < 1e-8
    once = held(inducing=Z).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), once.predict(X_NEW), rtol=1e-6)
    with pytest.warns(JitterWarning, match="inducing variables.*may coincide"):
        held(inducing=twice).set_params(likelihood=Gaussian(1e-8)).fit(X, Y)


def test_points_to_be_predicted_as_inducing_inputs():
    model = quiet_fit(SparseGPRegressor(inducing="query"), X, Y, query=X_NEW)
    np.testing.assert_array_equal(model.inducing_, X_NEW)  # though a search has been made
    np.testing.assert_array_equal(
        fitted("fitc", inducing="query", query=Z).predict(X_NEW), fitted("fitc").predict(X_NEW)
    )


def test_inputs_that_are_no_numbers():
    words = ["abc", "abd", "bce", "xyz", "xyw", "zzz"]
    kernel = Callable(shared)
    model = SparseGPRegressor(kernel, NOISE, n_inducing=3, optimizer=None, random_state=0)
    assert len(quiet_fit(model, words, np.arange(6.0)).inducing_) == 3
    assert np.all(np.isfinite(model.predict(["abz"])))
    quiet_fit(model.set_params(approximation="pitc"), words, np.arange(6.0))
    assert np.all(np.isfinite(model.predict(["abz"])))


def shared(a, b):
    return float(len(set(a) & set(b))) + (a == b)


# --- blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", ["kmeans", "contiguous"])
def test_blocks_are_about_as_large_as_there_are_inducing_inputs(blocks):
    model = held("pitc", inducing="random", n_inducing=8, blocks=blocks).fit(X, Y)
    sizes = np.bincount(model._groups)
    assert sizes.min() > 0 and sizes.max() <= 16 and sizes.sum() == N


def test_blocks_of_inputs_that_repeat_are_cut():
    A = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    y = np.sin(np.arange(100.0))
    model = quiet_fit(held("pitc", inducing="kmeans", n_inducing=2), A, y)
    assert np.bincount(model._groups).max() <= 8
    assert len(model.inducing_) == 2


def test_blocks_are_near_in_the_columns_that_matter():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 3))
    units = inducing.block_units(2.0 * RBF([0.5, 100.0, 2.0]) + RBF([0.7, 9.0, 1.0]), A)
    np.testing.assert_allclose(units, [0.5, 9.0, 1.0])
    np.testing.assert_allclose(inducing.block_units(Linear(), A), A.std(axis=0))


def test_new_points_join_the_groups_that_they_name():
    model = fitted("pic")
    assert isinstance(model.predictive_, BlockPredictive) and not hasattr(model, "posterior_")
    near = np.where(X_NEW[:, 0] > 0, "right", "left")
    other = np.where(near == "left", "right", "left")
    away = model.predict(X_NEW, groups=other, return_std=True)
    wanted = model.predictive_.at(other).mean_and_var(X_NEW)
    np.testing.assert_array_equal(away[0], wanted[0][:, 0])
    assert np.max(np.abs(away[0] - model.predict(X_NEW, groups=near))) > 1e-3
    with pytest.raises(ValueError, match="labels of training blocks"):
        model.predict(X_NEW, groups=np.full(9, "middle"))
    with pytest.raises(ValueError, match="'pic' alone"):
        fitted("pitc").predict(X_NEW, groups=near)


def test_labels_of_any_type_and_weights_of_zero():
    weights = np.ones(N)
    weights[:20] = 0.0
    labels = np.array(GROUPS, dtype=object)
    model = fitted("pic", sample_weight=weights, groups=labels)
    kept = fitted("pic", X=X[20:], y=Y[20:], groups=GROUPS[20:])
    np.testing.assert_allclose(model.predict(X_NEW), kept.predict(X_NEW), rtol=1e-9)
