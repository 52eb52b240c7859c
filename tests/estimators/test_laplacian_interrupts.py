"""Ctrl-C while a Laplacian process is fitted: what is left, and that it says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import LaplacianProcessClassifier, LaplacianProcessRegressor
from mercer.errors import ConvergenceWarning
from mercer.evidence import expansion_choice
from mercer.evidence.optimum import Recorder
from mercer.inference import laplacian
from mercer.inference._columns import ArrayColumns
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Huber

KERNEL = RBF(0.6)


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(n)


class Interrupting:
    """Lets a function be called so often, and then once with Ctrl-C; counts the calls."""

    def __init__(self, monkeypatch, module, name, at):
        function, self.calls = getattr(module, name), 0

        def broken(*args, **options):
            self.calls += 1
            if self.calls == at:
                raise KeyboardInterrupt
            return function(*args, **options)

        monkeypatch.setattr(module, name, broken)


def test_an_interrupted_choice_of_penalties_is_not_certified(monkeypatch):
    X, y = rows()
    Interrupting(monkeypatch, laplacian.Solver, "path", 3)  # after two folds
    with pytest.warns(ConvergenceWarning, match="best by the folds that were done"):
        model = LaplacianProcessRegressor(KERNEL, optimizer=None).fit(X, y)
    assert model.status_ == "interrupted" and model.gap_ <= 1e-6
    assert model.score(X, y) > 0.3


def test_ctrl_c_is_heeded_in_any_pass_over_the_columns(monkeypatch):
    X, y = rows(40)
    options = {"optimizer": None, "n_folds": 3, "n_penalties": 6}

    def ended(at):
        with monkeypatch.context() as patch:
            passes = Interrupting(patch, ArrayColumns, "products", at)
            try:
                status = LaplacianProcessRegressor(KERNEL, **options).fit(X, y).status_
            except KeyboardInterrupt:  # before there was a fold
                status = "raised"
            return passes.calls, status

    count, status = ended(np.inf)
    assert status == "certified"
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for at in range(2, count + 1):  # the first is where the path begins
            calls, status = ended(at)
            assert calls == at  # no fold follows
            found.append(status)
    assert set(found) == {"raised", "interrupted"} and found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("noise", "prior", "at", "match"),
    [
        (None, "laplacian", 8, "by the folds that were done is kept; that of 1 more functions"),
        (None, "weight_decay", 8, "by the folds that were done is kept; that of 1 more functions"),
        (None, "laplacian", 6, "compared; that of 2 more functions"),  # before a fold of the second
        (Huber(), "laplacian", 3, "that of 2 more functions"),
        (None, "feature_selection", 3, "that of 2 more functions"),
    ],
)
def test_no_choice_follows_one_that_is_interrupted(monkeypatch, noise, prior, at, match):
    X, y = rows(40)
    Y = np.column_stack([y, 5.0 * np.cos(X[:, 0]), -y])
    options = {"prior": prior, "optimizer": None, "n_penalties": 8, "n_folds": 5}
    paths = Interrupting(monkeypatch, laplacian.Solver, "path", at)  # there is one a fold
    with pytest.warns(ConvergenceWarning, match=match):
        model = LaplacianProcessRegressor(KERNEL, noise, **options).fit(X, Y)
    assert paths.calls == at and model.status_ == "interrupted"
    assert model.score(X, Y) > 0.3


@pytest.mark.parametrize("likelihood", ["logistic", "soft_margin", "quadratic_soft_margin"])
def test_classes_that_are_left_have_the_penalty_of_the_last(monkeypatch, likelihood):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    paths = Interrupting(monkeypatch, laplacian.Solver, "path", 8)
    with pytest.warns(ConvergenceWarning, match="that of 1 more functions is at the same place"):
        model = LaplacianProcessClassifier(
            KERNEL, likelihood, optimizer=None, n_penalties=8, n_folds=5
        ).fit(X, y)
    assert paths.calls == 8 and model.status_ == "interrupted"
    assert model.path_[1] is not None and model.path_[2] is None
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("noise", [Huber(), EpsilonInsensitive()], ids=repr)
@pytest.mark.parametrize("prior", ["laplacian", "feature_selection"])
def test_no_round_follows_an_interrupted_path(monkeypatch, noise, prior):
    X, y = rows(40)
    paths = Interrupting(monkeypatch, laplacian.Solver, "path", 4)  # in the first of several rounds
    options = {"prior": prior, "optimizer": None, "n_penalties": 8}
    with pytest.warns(ConvergenceWarning, match="interrupted as penalties were compared"):
        model = LaplacianProcessRegressor(KERNEL, noise, **options).fit(X, y)
    assert paths.calls == 4 and model.status_ == "interrupted"
    assert model.score(X, y) > 0.2


def test_a_solution_that_gives_the_noise_may_be_interrupted(monkeypatch):
    X, y = rows(40)
    model = LaplacianProcessRegressor(KERNEL, Huber(), optimizer=None, n_penalties=8).fit(X, y)
    whole = laplacian.solve
    calls = []

    def broken(*args, **options):
        calls.append(1)
        found = whole(*args, **options)
        return found._replace(status="interrupted") if len(calls) == 1 else found

    monkeypatch.setattr(laplacian, "solve", broken)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        other = LaplacianProcessRegressor(KERNEL, Huber(), optimizer=None, n_penalties=8).fit(X, y)
    assert other.status_ == "interrupted" and model.status_ == "certified"


def test_interrupted_length_scales_are_told_of(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    for model, targets in (
        (LaplacianProcessRegressor(n_penalties=8), y),
        (LaplacianProcessClassifier(n_penalties=8), y > 0),
    ):
        with monkeypatch.context() as patch:
            evaluate, calls = Recorder.__call__, []

            def broken(recorder, theta, *args, evaluate=evaluate, calls=calls):
                calls.append(1)
                if len(calls) == 4:  # once there is something to keep
                    raise KeyboardInterrupt
                return evaluate(recorder, theta, *args)

            patch.setattr(Recorder, "__call__", broken)
            with pytest.warns(ConvergenceWarning, match="relative length scales was interrupted"):
                model.fit(X, targets)
        assert model.status_ == "interrupted" and model.history_["value"].size == 0
        assert model.history_["theta"].shape == (0, 2)


def test_an_interrupted_search_keeps_the_best_kernel(monkeypatch):
    X, y = rows()
    with monkeypatch.context() as patch:
        Interrupting(patch, laplacian.Solver, "path", 18)  # five folds, some of them prolonged
        with pytest.warns(ConvergenceWarning, match="best hyperparameters so far"):
            model = LaplacianProcessRegressor(KERNEL).fit(X, y)
    assert model.status_ == "interrupted" and len(model.history_["value"]) >= 1
    assert model.score(X, y) > 0.3
    Interrupting(monkeypatch, laplacian.Solver, "path", 1)  # before there is anything
    fresh = LaplacianProcessRegressor(KERNEL, optimizer=None)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not hasattr(fresh, "kernel_")


@pytest.mark.parametrize("prior", ["laplacian", "feature_selection"])
@pytest.mark.parametrize("loss", ["soft_margin", "quadratic_soft_margin"])
def test_classes_that_were_not_compared_have_their_own_shares(prior, loss, monkeypatch):
    """Slopes of the class that was compared serve them, and its offset is its own."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [20, 40, 140])
    X = rng.normal(size=(200, 2)) + 2.5 * np.column_stack([y == 0, y == 1])
    Interrupting(monkeypatch, expansion_choice, "scored_path", 2)
    model = LaplacianProcessClassifier(RBF(1.5), loss, prior=prior, optimizer=None)
    with pytest.warns(ConvergenceWarning, match="of 2 more functions is at the same place"):
        model.fit(X, y)
    rates = np.mean(model.predict_proba(X), axis=0)
    np.testing.assert_allclose(rates, [0.1, 0.2, 0.7], atol=0.05)
    assert model.score(X, y) > 0.8


def exact_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 1))
    return X, np.sin(2.0 * X[:, 0]) + 1e-3 * rng.standard_normal(120)


SELECTION = {"kernel": RBF(2.0), "prior": "feature_selection", "optimizer": None, "n_folds": 3}


@pytest.mark.parametrize(("place", "at"), [("path", 2), ("path", 3), ("fold", 8)])
def test_ctrl_c_while_feature_selection_finds_its_noise_keeps_what_there_is(monkeypatch, place, at):
    """In the second and third path that is compared, before any fold, and after one."""
    X, y = exact_rows()
    modules = {"path": (expansion_choice, "scored_path"), "fold": (laplacian.Solver, "path")}
    calls = Interrupting(monkeypatch, *modules[place], at)
    with pytest.warns(ConvergenceWarning, match="interrupted as penalties were compared"):
        model = LaplacianProcessRegressor(**SELECTION).fit(X, y)
    assert calls.calls == at and model.status_ == "interrupted"
    assert model.score(X, y) > 0.99


def test_ctrl_c_while_residuals_are_found_keeps_the_choice(monkeypatch):
    X, y = exact_rows()
    solved = expansion_choice.solve_for

    def interrupted(problem, penalty, own):
        return solved(problem, penalty, own)._replace(status="interrupted")

    monkeypatch.setattr(expansion_choice, "solve_for", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted as penalties were compared"):
        model = LaplacianProcessRegressor(**SELECTION).fit(X, y)
    assert model.status_ == "interrupted" and model.score(X, y) > 0.99
