"""On-line estimators whose process is replaced, told other rules, or swept again."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest

from mercer import GPClassifier, OnlineGPClassifier, OnlineGPRegressor, SparseGPRegressor
from mercer.errors import ConvergenceWarning, MercerWarning, TooLargeError
from mercer.estimators import memory
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian, Logistic
from mercer.means import Constant
from mercer.posterior import prior

from .online_cases import KERNEL, NEW, SMALL, X, Y, streaming

THREE = np.array(["a", "b", "c"])[np.digitize(Y, [-0.4, 0.4])]


# --- another posterior --------------------------------------------------------------------------


def test_another_posterior_carries_on_what_was_counted():
    model = streaming().partial_fit(X, Y)
    evidence, loss = model.log_evidence_, model.projection_loss_
    small, _ = model.posterior_.prune(10)
    model.posterior_ = small
    assert model.n_seen_ == 60 and model.log_evidence_ == evidence
    assert model.projection_loss_ == loss  # what this model has lost
    model.partial_fit(X[:5], Y[:5])
    assert model.n_seen_ == 65 and model.log_evidence_ != evidence


def test_a_posterior_of_another_model_is_refused():
    model = streaming().partial_fit(X, Y)
    before = model.predict(NEW)
    both = np.c_[Y, Y]
    others = {
        "kernel": OnlineGPRegressor(RBF(2.0), Gaussian(0.1), mean="zero").partial_fit(X, Y),
        "mean": streaming(mean=Constant(1.0, estimate=None)).partial_fit(X, Y),
        "scale": streaming().partial_fit(X, both),
        "weight": SparseGPRegressor(
            KERNEL,
            Gaussian(0.05),
            approximation="sor",
            n_inducing=5,
            mean="zero",
            optimizer=None,
        ).fit(X, Y),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"same model: its {name} is"):
            model.posterior_ = other.posterior_
    with pytest.raises(ValueError, match="scale"):
        model.posterior_ = prior(KERNEL, n_outputs=2)
    np.testing.assert_array_equal(model.predict(NEW), before)
    model.posterior_ = prior(KERNEL)  # all is forgotten, and the units are the same
    assert model.n_basis_ == 0


def test_a_degenerate_posterior_takes_no_options_that_could_do_nothing():
    sor = SparseGPRegressor(
        KERNEL, Gaussian(0.05), approximation="sor", n_inducing=8, optimizer=None
    ).fit(X, Y)
    given = sor.posterior_, sor.likelihood_
    for options in ({"forget": 0.1}, {"criterion": "mean"}, {"max_basis": 5}, {"tol": 0.1}):
        with pytest.raises(ValueError, match="would do nothing"):
            OnlineGPRegressor.from_posterior(*given, **options)
        OnlineGPRegressor.from_posterior(*given, lift=True, **options)
    model = OnlineGPRegressor.from_posterior(*given).partial_fit(X, Y)
    smaller, _ = model.posterior_.prune(4, noise=0.05)
    model.posterior_ = smaller
    model.partial_fit(X, Y)
    assert model.n_basis_ == 4
    model.set_params(forget=0.1)
    with pytest.raises(ValueError, match="forget would do nothing"):
        model.partial_fit(X, Y)


def one_vs_rest(**options):
    options = {"optimizer": None, "multi_class": "one_vs_rest"} | options
    return GPClassifier(KERNEL, "logistic", **options).fit(X, THREE)


def test_classes_against_the_rest_go_on_together():
    whole = one_vs_rest()
    model = OnlineGPClassifier.from_posterior(
        whole.posteriors_, whole.likelihood_[0], classes=whole.classes_, tol=0.0
    )
    np.testing.assert_allclose(model.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-7)
    for p, posterior in enumerate(whole.posteriors_):
        own = OnlineProcess.from_posterior(posterior, Logistic(), tol=0.0)
        own.learn(X[:1], np.array([[1.0 if THREE[0] == "abc"[p] else -1.0]]))
        if p == 0:
            model.partial_fit(X[:1], THREE[:1])
        got = model.posterior_.mean(NEW)[:, p]
        np.testing.assert_allclose(got, own.posterior().mean(NEW)[:, 0], atol=1e-6)


def test_why_classes_against_the_rest_cannot_go_on_together():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        searched = one_vs_rest(optimizer="lbfgs", max_iter=3)
    with pytest.raises(ValueError, match="cannot go on together: one has the kernel"):
        OnlineGPClassifier.from_posterior(
            searched.posteriors_, "logistic", classes=searched.classes_
        )
    whole, half = one_vs_rest(), one_vs_rest().posteriors_
    half[1] = GPClassifier(KERNEL, "logistic", optimizer=None).fit(X[:30], Y[:30] > 0).posterior_
    with pytest.raises(ValueError, match="same basis points"):
        OnlineGPClassifier.from_posterior(half, "logistic", classes=whole.classes_)
    for wrong in (whole.predictive_, [], [3]):
        with pytest.raises(ValueError, match="list posteriors_"):
            OnlineGPClassifier.from_posterior(wrong, "logistic", classes=whole.classes_)
    softmax = GPClassifier(KERNEL, optimizer=None).fit(X, THREE)
    with pytest.raises(ValueError, match="go on from posteriors_"):
        OnlineGPClassifier.from_posterior(
            softmax.posterior_, softmax.likelihood_, classes=softmax.classes_
        )


# --- other parameters ---------------------------------------------------------------------------


def test_parameters_that_are_set_later_are_obeyed():
    model = streaming(max_basis=10).partial_fit(X[:20], Y[:20])
    assert model.n_basis_ == 10
    model.set_params(max_basis=30).partial_fit(X[20:40], Y[20:40])
    assert model.n_basis_ == 30
    loss = model.projection_loss_
    model.set_params(max_basis=5, criterion="mean", forget=0.2).partial_fit(X[40:41], Y[40:41])
    assert model.n_basis_ == 5 and model.projection_loss_ > loss
    assert model._process.rules.criterion == 0 and model._process.rules.keep == 0.8
    for options in ({"tol": 2.0}, {"novelty": "none"}, {"max_basis": 0}):
        other = streaming().partial_fit(X, Y).set_params(**options)
        with pytest.raises(ValueError, match=next(iter(options))):
            other.partial_fit(X, Y)
        assert other.n_seen_ == 60


def test_what_is_refused_leaves_the_basis_alone():
    model = streaming().partial_fit(X, Y).set_params(max_basis=5)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X[:1], [np.nan])
    assert model.n_basis_ == 60


@pytest.mark.parametrize("labels", [False, True])
def test_memory_is_that_of_the_covariances_there_are(labels, monkeypatch):
    """Columns of numbers share one, labels have one for each class: 2 + 2 c matrices."""
    m = 1000
    monkeypatch.setattr(memory, "available_memory", lambda: int(1.1 * 8 * 5 * m**2))
    both = np.c_[Y, Y, Y]
    if labels:
        with pytest.raises(TooLargeError, match="max_basis"):
            OnlineGPClassifier(KERNEL, max_basis=m).partial_fit(X, THREE, ["a", "b", "c"])
        with pytest.raises(TooLargeError, match="max_basis"):  # rows would wait
            OnlineGPClassifier(max_basis=m).partial_fit(X, THREE, ["a", "b", "c"])
    else:
        model = streaming(max_basis=m).partial_fit(X, both)
        with pytest.raises(TooLargeError, match="max_basis"):
            OnlineGPRegressor.from_posterior(model.posterior_, model.likelihood_, 2 * m)


def test_memory_of_sweeps_is_asked_for_before_the_first(monkeypatch):
    """They have an n x m matrix and a copy of it: here 400 x 100, beside four of 101 x 101."""
    rows, targets = np.tile(X, (7, 1))[:400], np.tile(Y, 7)[:400]
    monkeypatch.setattr(memory, "available_memory", lambda: int(1.1 * 8 * 5e4))
    options = {"optimizer": None, "max_basis": 100}
    with pytest.raises(TooLargeError, match=r"n_sweeps.*n_sweeps=1"):
        streaming(n_sweeps=2, **options).fit(rows, targets)
    streaming(n_sweeps=2, recycle="heuristic", **options).fit(rows, targets)
    monkeypatch.setattr(memory, "available_memory", lambda: int(1.1 * 8 * 9e4))
    streaming(n_sweeps=2, **options).fit(rows, targets)


# --- sweeps and rows that were skipped ----------------------------------------------------------


@SMALL
def test_ctrl_c_is_heard_within_a_heuristic_sweep(monkeypatch):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y, 30)
    learn, calls = OnlineProcess.learn, []

    def interrupted(self, *args):
        calls.append(len(args[0]))
        if sum(calls) == 1800 + 1024:
            signal.raise_signal(signal.SIGINT)
        return learn(self, *args)

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    model = streaming(optimizer=None, max_basis=10, n_sweeps=5, recycle="heuristic")
    model.fit(rows, targets)
    assert model.status_ == "interrupted"
    assert sum(calls) == 1800 + 1024
    assert model.n_seen_ == 1800
    monkeypatch.undo()
    once = streaming(optimizer=None, max_basis=10).fit(rows, targets)
    assert model.log_evidence_ == once.log_evidence_


def test_ctrl_c_with_the_last_rows_of_a_heuristic_sweep_begins_no_other(monkeypatch):
    learn, calls = OnlineProcess.learn, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return learn(self, *args)

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    model = streaming(optimizer=None, max_basis=10, n_sweeps=3, recycle="heuristic").fit(X, Y)
    assert (model.status_, len(calls)) == ("interrupted", 2)


def test_what_learn_could_not_return_is_refused_before_anything_is_learned():
    """Without a mean of observations there is none to predict; the function has one."""

    def log_cauchy(y, f):
        return -np.log(np.pi * (1.0 + (y - f) ** 2))

    fresh = OnlineGPRegressor(KERNEL, Custom(log_cauchy))
    begun = OnlineGPRegressor(KERNEL, Custom(log_cauchy)).partial_fit(X[:5], Y[:5])
    for model in (fresh, begun):
        with pytest.raises(ValueError, match="no conditional_mean and no conditional_var: "):
            model.learn(X, Y)
    assert not fresh.__sklearn_is_fitted__() and begun.n_seen_ == 5
    assert np.all(np.isfinite(begun.predict(NEW, latent=True)))


def window():
    def within(y, f):
        return np.where((np.abs(y - f) <= 1.0) & (y < 100.0), -np.log(2.0), -np.inf)

    return Custom(
        within,
        knots=lambda y: y[:, None] + [-1.0, 1.0],
        conditional_mean=np.array,
        conditional_var=lambda f: np.full(np.shape(f), 1.0 / 3.0),
    )


def test_skipped_rows_are_told_by_the_numbers_they_were_given_with():
    x, y = np.zeros((6, 1)), np.array([0.1, 0.2, 0.0, 500.0, 0.1, 0.0])
    model = OnlineGPRegressor(RBF(), window())
    weights = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    with pytest.warns(MercerWarning, match=r"1 of 4 rows were skipped, row 3 \(counted from 0\)"):
        model.partial_fit(x, y, weights)
    with pytest.warns(MercerWarning, match="^the row was skipped.*too large for floating point"):
        model.partial_fit(x[3:4], y[3:4])


def test_a_skipped_row_that_had_waited():
    model = streaming().partial_fit(X, Y)
    before = OnlineProcess(KERNEL, Gaussian(0.1)).learn(X[:3], Y[:3])
    before.log_density[0] = np.nan
    with pytest.warns(MercerWarning, match="1 of 3 rows were skipped, one of an earlier call"):
        model._warn_of_skipped(before, np.array([-1, 0, 1]))
