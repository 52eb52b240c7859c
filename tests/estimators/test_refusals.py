"""Options and data that are refused, and in which words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV

from mercer import GPClassifier, GPRegressor, load, means, save
from mercer.errors import (
    JitterWarning,
    MercerWarning,
    TooLargeError,
)
from mercer.estimators.preparation import prepare
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Gaussian, Laplace, Poisson, StudentT

from .data import X_NEW, X, Y, fixed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inference": "magic"}, "inference must be one of"),
        ({"objective": "aic"}, "objective must be one of"),
        ({"hyperprior": "wide"}, "hyperprior must be one of"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"n_restarts": -1}, "n_restarts must be a whole number from 0"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"n_restarts": True}, "n_restarts must be a whole number"),
        ({"n_restarts": False}, "n_restarts must be a whole number"),
        ({"max_iter": np.True_}, "max_iter must be a whole number"),
        ({"n_jobs": "x"}, "n_jobs must be a whole number other than 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"n_jobs": True}, "n_jobs must be a whole number other than 0"),
        ({"verbose": "x"}, "verbose must be a whole number"),
        ({"verbose": -1}, "verbose must be a whole number from 0"),
        ({"normalize_y": "no"}, "normalize_y must be True or False"),
        ({"warm_start": 1}, "warm_start must be True or False"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"kernel": "rbf"}, "kernel must be None"),
        ({"kernel": abs}, r"Callable\(f\)"),
        ({"likelihood": "gaussian"}, "likelihood must be None or one of mercer.likelihoods"),
        ({"mean": "quadratic"}, "mean must be"),
        ({"kernel": RBF([1.0, 2.0])}, "2 values of length_scale, but the inputs have 3"),
        ({"kernel": RBF().on(5)}, "column 5"),
        ({"likelihood": Gaussian(np.ones(7))}, "7"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor(**options).fit(X, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"normalize_y": np.True_, "warm_start": np.False_},
        {"verbose": False},
        {"verbose": lambda start, count, value, best: None},
        {"n_restarts": np.int64(1), "n_jobs": -2},
        {"n_restarts": 1, "n_jobs": np.int64(2)},
    ],
)
def test_options_in_other_dress(options, tmp_path):
    model = GPRegressor(RBF(), max_iter=20, **options).fit(X, Y)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_flags_can_be_searched_over():
    grid = {"normalize_y": np.array([True, False])}
    search = GridSearchCV(fixed(), grid, cv=2, error_score="raise").fit(X, Y)
    assert isinstance(search.best_params_["normalize_y"], np.bool_)


def test_checking_options_draws_nothing():
    state = np.random.RandomState(0)
    GPRegressor(random_state=state).predict(X_NEW)
    assert state.randint(2**31) == np.random.RandomState(0).randint(2**31)


@pytest.mark.parametrize(
    ("bad_x", "bad_y", "text"),
    [
        (np.full((4, 2), np.nan), np.zeros(4), "NaN"),
        (np.zeros((4, 2)), [0.0, 1.0, np.inf, 2.0], "infinity"),
        (np.zeros((4, 2)), np.zeros(3), "inconsistent"),
        (np.zeros(4), np.zeros(4), "2D array"),
        (np.zeros((0, 2)), np.zeros(0), "0 sample"),
    ],
)
def test_bad_data(bad_x, bad_y, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor().fit(bad_x, bad_y)


def test_unfitted_models_check_their_options_too():
    with pytest.raises(ValueError, match="inference must be one of"):
        GPRegressor(inference="magic").predict(X_NEW)


def test_bad_weights_and_calls():
    with pytest.raises(ValueError, match="negative"):
        GPRegressor().fit(X, Y, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="at least one non-zero"):
        GPRegressor().fit(X, Y, sample_weight=np.zeros(40))
    model = fixed().fit(X, Y)
    for coverage in (95, 0, "0.9"):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            model.predict_interval(X_NEW, coverage=coverage)
    with pytest.raises(ValueError, match=r"shape \(40,\)"):
        GPRegressor().fit(X, Y, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="not both"):
        model.predict(X_NEW, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="y must have shape"):
        model.log_predictive_density(X_NEW, Y)
    with pytest.raises(ValueError, match="theta must have shape"):
        model.log_marginal_likelihood(np.zeros(2))
    with pytest.raises(ValueError, match="twice"):
        GPRegressor(sk.RBF() + sk.WhiteKernel(), Gaussian(0.1)).fit(X, Y)


FAILURES = {
    "weights": (X[:, :2], np.column_stack([Y, Y]), {}, -np.ones(40)),
    "lengths": (X[:, :2], Y[:39], {}, None),
    "columns": (X[:, :2], Y, {}, None),
    "noise": (X, np.column_stack([Y, Y]), {"likelihood": Gaussian(np.ones(7))}, None),
    "matrix": (
        np.zeros((40, 3)),
        np.column_stack([Y, Y]),
        {"kernel": Callable(lambda a, b: -1.0)},
        None,
    ),
    "after the search": (
        np.column_stack([X, X]),
        np.column_stack([Y, Y]),
        {"kernel": None, "optimizer": None, "mean": means.Linear(estimate="integrate")},
        None,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fit_leaves_the_model_as_it_was(case):
    inputs, targets, options, weights = FAILURES[case]
    model = fixed().fit(X, Y)
    model.set_params(**options)
    before, predicted = dict(vars(model)), model.predict(X_NEW, return_std=True)
    with pytest.raises(ValueError):
        model.fit(inputs, targets, weights)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(X_NEW, return_std=True), predicted)
    fresh = clone(model)
    with pytest.raises(ValueError):
        fresh.fit(inputs, targets, weights)
    assert vars(fresh).keys() == fresh.get_params(deep=False).keys()


def test_a_fit_that_cannot_fit_into_memory_is_refused_at_once(monkeypatch):
    import time

    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 2**34)
    started = time.perf_counter()
    with pytest.raises(TooLargeError, match=r"200,000 rows.*SparseGPRegressor and Bayes"):
        GPRegressor().fit(np.zeros((200_000, 1)), np.zeros(200_000))
    assert time.perf_counter() - started < 5.0


def test_jitter_warns_once_and_is_kept():
    X = np.repeat(np.linspace(0, 1, 15), 2)[:, None]
    model = GPRegressor(RBF(), Gaussian(np.zeros(30)), mean="zero", optimizer=None)
    with pytest.warns(JitterWarning, match="jitter_") as caught:
        model.fit(X, np.sin(X[:, 0]))
    assert len(caught) == 1 and model.jitter_ > 0


@pytest.mark.parametrize("unit", [1e-165, 1e160])
@pytest.mark.parametrize("normalize", [False, True])
def test_targets_whose_variances_are_no_doubles(unit, normalize):
    with pytest.raises(ValueError, match="in other units"):
        GPRegressor(normalize_y=normalize).fit(X, unit * Y)
    with pytest.raises(ValueError, match="in other units"):
        GPRegressor().fit(X, np.full(len(X), unit))


@pytest.mark.parametrize(
    ("likelihood", "options", "matrices"),
    [
        (Poisson(), {}, 5.0),  # searched by "vi"
        (Poisson(), {"optimizer": None}, 3.0),
        (Poisson(), {"objective": "joint"}, 3.0),
        (StudentT(), {}, 3.0),
        (None, {"n_restarts": 3, "n_jobs": 2}, 6.0),
    ],
)
def test_the_mode_asks_for_the_memory_of_its_judge(likelihood, options, matrices, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "mercer.estimators.rows.require_memory", lambda n, count, what: asked.append(count)
    )
    model = GPRegressor(RBF(), likelihood, inference="map", **options)
    prepare(model, X, np.arange(40.0) % 3, None)
    assert asked == [matrices]


def test_weights_too_small_to_divide_by_are_none():
    weights = np.ones(40)
    weights[[3, 7]] = 1e-310, 1e-300
    for model in (fixed(), fixed().set_params(likelihood=Laplace(0.3))):
        light = model.fit(X, Y, sample_weight=weights).predict(X_NEW, return_std=True)
        without = model.fit(X, Y, sample_weight=weights * (weights > 0.5))
        np.testing.assert_array_equal(light, without.predict(X_NEW, return_std=True))
    # the least that counts
    weights[[3, 7]] = 1e-280, 1e-200
    assert len(fixed().fit(X, Y, sample_weight=weights).X_train_) == 40
    np.testing.assert_allclose(fixed().fit(X, Y, weights).predict(X_NEW), light[0], atol=0.1)
    labels = GPClassifier(RBF(), optimizer=None).fit(X, Y > 0, sample_weight=weights - weights[3])
    assert len(labels.X_train_) == 39
    with pytest.raises(ValueError, match=r"at most 1e-310.*1 for an ordinary row"):
        fixed().fit(X, Y, sample_weight=np.full(40, 1e-310))


def test_an_exact_fit_that_takes_hours_is_told_before(monkeypatch):
    monkeypatch.setattr("mercer.estimators.memory.LONG", 29)
    X, y = np.arange(30.0)[:, None], np.arange(30.0)
    advice = r"to 30 rows may take hours: .* SparseGPRegressor and"
    with pytest.warns(MercerWarning, match=advice):
        GPRegressor(optimizer=None).fit(X, y)
    with pytest.warns(MercerWarning, match=r"SparseGPClassifier is made"):
        GPClassifier(optimizer=None).fit(X, y > 15)
