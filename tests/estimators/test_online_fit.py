"""On-line models that are kept, given other options, refused and interrupted."""

from __future__ import annotations

import pickle
import signal
import warnings

import numpy as np
import pandas as pd
import pytest

from mercer import (
    GPRegressor,
    OnlineGPClassifier,
    OnlineGPRegressor,
    load,
    means,
    save,
)
from mercer.errors import MercerWarning
from mercer.estimators.online_start import sample_of
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Callable, Linear, Polynomial, Tanh
from mercer.likelihoods import Gaussian, Laplace, Probit

from .online_cases import (
    FIRST,
    KERNEL,
    NEW,
    REST,
    SMALL,
    X,
    Y,
    finite,
    near,
    same,
    streaming,
)


@pytest.mark.parametrize("max_basis", [12, 80])
def test_a_saved_model_goes_on_bit_by_bit(tmp_path, max_basis):
    model = streaming(max_basis=max_basis).partial_fit(X[FIRST], Y[FIRST])
    path = tmp_path / "model.mercer"
    save(model, path)
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        same(again, model)
        going = streaming(max_basis=max_basis).partial_fit(X[FIRST], Y[FIRST])
        same(again.partial_fit(X[REST], Y[REST]), going.partial_fit(X[REST], Y[REST]))


def test_waiting_rows_are_saved(tmp_path):
    model = OnlineGPRegressor(n_init=40, max_iter=5).partial_fit(X[FIRST], Y[FIRST])
    path = tmp_path / "model.mercer"
    save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = OnlineGPRegressor(n_init=40, max_iter=5).partial_fit(X, Y)
        same(load(path).partial_fit(X[REST], Y[REST]), whole)


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = OnlineGPRegressor(1.5 * RBF(1.0).on("b"), Gaussian(0.1)).partial_fit(frame, Y)
    assert list(model.feature_names_in_) == ["a", "b"]
    model.partial_fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]], Y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["a"]], Y)
    assert model.n_seen_ == 120


def test_fit_starts_anew():
    model = streaming(optimizer=None)
    model.partial_fit(X, 5.0 + Y).fit(X[FIRST], Y[FIRST])
    same(model, streaming(optimizer=None).fit(X[FIRST], Y[FIRST]))
    model.partial_fit(X[REST], Y[REST])
    assert model.n_seen_ == 60


def test_a_failed_call_changes_nothing():
    model = streaming().partial_fit(X, Y)
    wanted = model.predict(NEW)
    for wrong in (np.full(60, np.nan), Y[:-1]):
        with pytest.raises(ValueError, match=r"NaN|inconsistent|rows"):
            model.partial_fit(X, wrong)
    np.testing.assert_array_equal(model.predict(NEW), wanted)
    fresh = streaming()
    with pytest.raises(ValueError, match="NaN"):
        fresh.partial_fit(X, np.full(60, np.nan))
    assert not hasattr(fresh, "n_features_in_")


def test_the_sample_is_a_first_batch_and_rows_spread_over_all_others():
    rows = sample_of(100_000, 100)
    assert len(rows) == len(np.unique(rows)) == 500
    assert np.all(np.diff(rows) > 0) and 99_000 < rows[-1] < 100_000
    np.testing.assert_array_equal(rows[:250], np.arange(250))
    assert np.max(np.diff(rows)) < 1000
    for period in (2, 7, 200):  # no period of the rows is met or missed
        share = np.bincount(rows[250:] % period, minlength=period) / 250
        assert np.max(np.abs(share - 1.0 / period)) < 0.05
    assert len(sample_of(100_000, 701)) == 701
    for n in (30, 249, 250, 251, 500):
        np.testing.assert_array_equal(sample_of(n, 10), np.arange(n))
    for n in range(500, 1100, 7):  # rows that are taken twice would have no noise
        assert len(np.unique(sample_of(n, 10))) == 500


def test_a_daily_course_of_many_months_is_seen():
    """Rows that are spread alone are nine hours apart, and tell nothing of it."""
    rng = np.random.default_rng(0)
    days = np.arange(4320)[:, None] / 24.0
    y = 3.0 * np.sin(2.0 * np.pi * days[:, 0]) + rng.standard_normal(4320)
    model = OnlineGPRegressor(0.5 * RBF(0.3), Gaussian(), mean="zero", forget=0.003).fit(days, y)
    assert 0.8 < model.likelihood_.noise < 1.3  # the course is no noise, nor the noise a course
    assert 0.1 < np.exp(model.kernel_.theta[1]) < 0.5  # the length scale, in days


@pytest.mark.parametrize("chunk", [1, 40, 200])
@pytest.mark.parametrize("wild", [1e160, -1e200, 1e308])
def test_one_target_too_large_for_any_model_is_skipped_whenever_it_comes(wild, chunk):
    """Among the rows that wait too: it is not waited for ever for a model of such targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (200, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200)
    y[5] = wild
    model = OnlineGPRegressor(max_basis=20)
    with pytest.warns(MercerWarning, match="rows were skipped|row was skipped"):
        for at in range(0, 200, chunk):
            model.partial_fit(X[at : at + chunk], y[at : at + chunk])
    assert abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.1
    with pytest.warns(MercerWarning, match=r"row 5 \(counted from 0\)"):
        fitted = OnlineGPRegressor(max_basis=20).fit(X, y)
    assert abs(fitted.predict([[1.5]])[0] - np.sin(1.5)) < 0.1


@pytest.mark.parametrize("unit", [1e-160, 1e-100, 1e-75, 1e71, 1e100, 1e200, 1e307])
def test_targets_that_are_all_too_large_or_too_small_are_refused(unit):
    """Those near 0 are no model of the others."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (200, 1))
    y = unit * (np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200))
    with pytest.raises(ValueError, match="other units"):
        OnlineGPRegressor(max_basis=20).partial_fit(X, y)
    if 1e-140 < unit < 1e140:
        model = OnlineGPRegressor(max_basis=20, normalize_y=True).fit(X, y)
        assert abs(model.predict([[1.5]])[0] / unit - np.sin(1.5)) < 0.1


def test_a_kernel_may_vanish_beside_noise_that_does_not():
    rows = np.array([[0.0], [1e-80], [1.0], [2.0]])
    model = OnlineGPRegressor(Linear(), Gaussian(0.1), mean="zero").partial_fit(rows, rows[:, 0])
    assert model.predict([[2.0]])[0] == pytest.approx(2.0 * 5.0 / 5.1)
    small = OnlineGPRegressor(1e-150 * RBF(1.0), Gaussian(1e-152), optimizer=None)
    for learn in (small.partial_fit, small.fit):
        with pytest.raises(ValueError, match="beside noise of 1e-152; 1e-140 of either is"):
            learn(rows, 1e-75 * rows[:, 0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_basis": 0}, "max_basis"),
        ({"tol": -1.0}, "tol"),
        ({"tol": "small"}, "tol"),
        ({"novelty": "none"}, "novelty"),
        ({"criterion": "none"}, "criterion"),
        ({"n_init": 0}, "n_init"),
        ({"n_sweeps": 0}, "n_sweeps"),
        ({"recycle": "often"}, "recycle"),
        ({"forget": 1.0}, "forget"),
        ({"forget": 0.1, "n_sweeps": 2}, "partly lost"),
        ({"normalize_y": 1}, "normalize_y"),
        ({"kernel": "precomputed"}, "GPRegressor for kernel='precomputed'"),
        ({"kernel": Tanh()}, "Mercer"),
        ({"likelihood": Gaussian([0.1] * 60)}, "sample_weight"),
        ({"likelihood": Probit()}, "OnlineGPClassifier"),
        ({"mean": means.Constant(estimate="integrate")}, "from_posterior"),
        ({"likelihood": Laplace(0.1), "normalize_y": True}, "normalize_y"),
        ({"optimizer": "adam"}, "optimizer"),
    ],
)
def test_refusals(options, text):
    model = OnlineGPRegressor(**({"kernel": KERNEL, "likelihood": Gaussian(0.1)} | options))
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=text):
            call(X, Y)
    assert not hasattr(model, "n_features_in_")


def test_heuristic_sweeps_may_forget():
    model = streaming(forget=0.1, n_sweeps=2, recycle="heuristic", optimizer=None).fit(X, Y)
    twice = streaming(forget=0.1, optimizer=None).fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), twice.predict(X))
    once = streaming(n_sweeps=2, recycle="heuristic", optimizer=None).fit(X, Y)
    assert np.max(np.abs(model.predict(X) - once.predict(X))) > 1e-3


@SMALL
def test_ctrl_c_keeps_what_was_learned(monkeypatch):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y, 30)
    learn = OnlineProcess.learn
    model = streaming(optimizer=None, max_basis=10)

    def interrupted(self, *args):
        if self.n_seen == 512:
            signal.raise_signal(signal.SIGINT)
        return learn(self, *args)

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    model.fit(rows, targets)
    assert model.status_ == "interrupted"
    assert model.n_seen_ == 1024
    finite(model)
    part = streaming(max_basis=10)
    with pytest.raises(KeyboardInterrupt):
        part.partial_fit(rows, targets)
    assert part.n_seen_ == 1024
    finite(part)
    monkeypatch.undo()
    part.partial_fit(rows[1024:], targets[1024:])
    near(part, streaming(max_basis=10).partial_fit(rows, targets))


@SMALL
@pytest.mark.parametrize("rows", [1, 512, 600])
def test_ctrl_c_is_not_lost_where_it_comes_with_the_last_rows(rows, monkeypatch):
    """Else a loop over single rows could not be ended."""
    inputs, targets = np.tile(X, (10, 1))[:rows], np.tile(Y, 10)[:rows]
    learn = OnlineProcess.learn

    def interrupted(self, X, *args):
        found = learn(self, X, *args)
        if self.n_seen == rows:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    for name in ("learn", "partial_fit"):
        model = streaming(max_basis=10)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, name)(inputs, targets)
        assert model.n_seen_ == rows
    once = streaming(optimizer=None, max_basis=10).fit(inputs, targets)
    assert (once.status_, once.n_seen_) == ("complete", rows)
    for recycle in ("sites", "heuristic"):
        twice = streaming(optimizer=None, max_basis=10, n_sweeps=2, recycle=recycle)
        assert twice.fit(inputs, targets).status_ == "interrupted"
        np.testing.assert_array_equal(twice.predict(NEW), once.predict(NEW))


@SMALL
def test_verbose_tells_of_rows(capsys):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y, 30)
    streaming(optimizer=None, max_basis=10, verbose=1, n_sweeps=2).fit(rows, targets)
    lines = capsys.readouterr().err
    assert "row 1800 of 1800, 10 basis vectors" in lines
    assert "refining the sites of 1800 rows" in lines
    assert "complete: 1800 rows, 10 basis vectors" in lines


def test_memory_is_asked_for_first():
    with pytest.raises(ValueError, match="smaller max_basis"):
        streaming(max_basis=10**7).partial_fit(X, Y)


def test_from_a_posterior_the_first_named_frame_names_the_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = np.sin(frame["a"].to_numpy())
    whole = GPRegressor(RBF(1.0), Gaussian(0.01), optimizer=None).fit(frame[:30], y[:30])
    model = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(frame[30:], y[30:])
        model.predict(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])


def test_from_a_posterior_noise_that_is_not_chosen_is_refused():
    X = np.linspace(0, 1, 5)[:, None]
    whole = GPRegressor(RBF(1.0), Gaussian(0.01), optimizer=None).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="not chosen yet"):
        OnlineGPRegressor.from_posterior(whole.posterior_, Gaussian())
    known = GPRegressor(RBF(1.0), Gaussian(np.full(5, 0.01)), optimizer=None).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="sample_weight=1/variance"):
        OnlineGPRegressor.from_posterior(known.posterior_, known.likelihood_)


@pytest.mark.parametrize("options", [{}, {"n_sweeps": 20}, {"n_sweeps": 2, "recycle": "heuristic"}])
@pytest.mark.parametrize("size", [1e40, 1e80])
def test_a_wrong_entry_among_the_inputs_spoils_no_choice(size, options):
    """Of 1e80 a polynomial makes variances that are no doubles, and of a column its spread."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    f = (X[:, 0] + 1.0) ** 2
    wrong, rest = X.copy(), np.arange(200) != 10
    wrong[10] = size
    model = OnlineGPRegressor(Polynomial(2, 1.0), max_basis=30, mean="zero", **options)
    with pytest.warns(MercerWarning, match=r"1 of 200 rows were skipped, row 10 "):
        model.fit(wrong, f + 0.1 * rng.standard_normal(200))
    assert 0.003 < model.likelihood_.noise < 0.03
    assert np.sqrt(np.mean((model.predict(X) - f)[rest] ** 2)) < 0.1
    labels = OnlineGPClassifier(Polynomial(2, 1.0), max_basis=30, **options)
    with pytest.warns(MercerWarning, match=r"1 of 200 rows were skipped, row 10 "):
        labels.fit(wrong, f > 1.0)
    assert np.mean(labels.predict(X[rest]) == (f > 1.0)[rest]) > 0.95


def by_length(a, b):
    return float(np.exp(-0.25 * abs(len(str(a)) - len(str(b)))))


@pytest.mark.parametrize(
    "objects",
    [np.array(["a", "aa", "aaa"] * 10), np.array([1, 20, 300] * 10), ["a", "aa", "aaa"] * 10],
    ids=["text", "numbers", "list"],
)
@pytest.mark.parametrize("kind", [OnlineGPRegressor, OnlineGPClassifier])
def test_objects_of_any_kind_choose_hyperparameters(kind, objects):
    sizes = np.array([1.0, 2.0, 3.0] * 10)
    y = sizes if kind is OnlineGPRegressor else sizes > 1
    with warnings.catch_warnings(action="ignore", category=MercerWarning):
        model = kind(Callable(by_length), max_basis=10).fit(objects, y)
    assert model.n_basis_ == 3 and np.array_equal(np.round(model.predict(objects)), y)
