"""Relevance vectors for numbers where others fail, and where a fit is cut short."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.errors import BoundWarning, ConvergenceWarning, UndeterminedWarning
from mercer.evidence import relevance_engines, relevance_label_engines

from .relevance_data import HELD, rows


@pytest.mark.parametrize("options", [{}, HELD, {"mean": "zero"}, {"robust": True}], ids=str)
@pytest.mark.parametrize("name", ["constant", "zero", "one row", "twice", "same columns", "exact"])
def test_odd_data(name, options):
    X, y = rows(30)
    X, y = {
        "constant": (X, np.full(30, 3.0)),
        "zero": (X, np.zeros(30)),
        "one row": (X[:1], y[:1]),
        "twice": (np.repeat(X[:6], 5, axis=0), y),
        "same columns": (np.hstack([X, X, np.ones_like(X)]), y),
        "exact": (X, np.sinc(X[:, 0])),
    }[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RelevanceVectorRegressor(**options).fit(X, y)
    scatter = np.var(y)
    if "robust" in options:  # where outliers have no say in how little noise there may be
        scatter = min(scatter, (1.4826 * np.median(np.abs(y - np.median(y)))) ** 2)
    if name == "exact" and model.noise_variance_ <= 1.01e-8 * scatter:
        assert any(issubclass(w.category, BoundWarning) for w in caught)
    mean, std = model.predict(X[:4], return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(std > 0)
    assert model.n_relevance_ > 0 or model.mean_.value is not None
    if name in ("constant", "zero"):
        np.testing.assert_allclose(mean, y[:4], atol=2e-3)


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("name", ["constant", "one row", "straight"])
def test_targets_that_the_mean_passes_through_are_told_as_such(name, robust):
    X, y = rows(30)
    X, y, mean = {
        "constant": (X, np.full(30, 3.0), "constant"),
        "one row": (X[:1], y[:1], "constant"),
        "straight": (X, 2.0 * X[:, 0] + 1.0, "linear"),
    }[name]
    with pytest.warns(UndeterminedWarning, match="constant, or the mean passes") as caught:
        model = RelevanceVectorRegressor(mean=mean, robust=robust).fit(X, y)
    assert model.n_relevance_ == 0 and len(caught) == 1


def test_steps_may_be_limited():
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        model = RelevanceVectorRegressor(max_steps=2, **HELD).fit(X, y)
    assert model.status_ == "stopped"


@pytest.mark.parametrize("count", [1, 4, 15])
def test_a_fit_that_is_interrupted_keeps_the_best_so_far(count):
    X, y = rows(40)
    seen = []

    def report(*told):
        seen.append(told)
        if len(seen) == count:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RelevanceVectorRegressor(verbose=report).fit(X, y)
    assert model.status_ == "interrupted" and len(seen) == count
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


@pytest.mark.parametrize(
    ("model", "module", "name"),
    [
        (RelevanceVectorRegressor(**HELD), relevance_engines, "solve"),
        (RelevanceVectorRegressor(algorithm="em", **HELD), relevance_engines, "solve"),
        (RelevanceVectorRegressor(robust=True, **HELD), relevance_engines, "robust"),
        (RelevanceVectorClassifier(**HELD), relevance_label_engines, "solve"),
    ],
    ids=["numbers", "em", "robust", "labels"],
)
def test_functions_after_one_that_is_interrupted_are_only_begun(monkeypatch, model, module, name):
    X, y = rows(60)
    whole, steps = getattr(module, name), []

    def broken(problem, *args, **options):
        steps.append(options["max_iter"])
        found = whole(problem, *args, **options)
        if len(steps) > 1:
            return found
        if name == "robust":
            return found._replace(fit=found.fit._replace(status="interrupted"))
        return found._replace(status="interrupted")

    monkeypatch.setattr(module, name, broken)
    labels = module is relevance_label_engines
    Y = np.digitize(y, [1.9, 2.4]) if labels else np.column_stack([y, np.cos(X[:, 0]), -y])
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert [str(w.message) for w in caught] == [
        "the fit was interrupted; the best model so far is kept"
    ]
    assert steps == [None, 1, 1] and model.status_ == "interrupted"
    assert np.all(np.isfinite(model.predict(X)))
