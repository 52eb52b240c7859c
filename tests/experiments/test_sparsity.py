"""Sparsity against error: its problems, its contenders, and a quick run on tables made here."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from sklearn.svm import SVC

from mercer.experiments import Setting, experiments
from mercer.experiments.sparsity import _claims, _measured, _Run
from mercer.experiments.sparsity_contenders import CONTENDERS, DENSE, SPARSE, VECTORS, Contender
from mercer.experiments.sparsity_tasks import DATA, Split, Task, _sinc, tasks

EXPERIMENT = experiments()["sparsity"]


def write(folder, name, X, y, split=None):
    header = [f"x{j}" for j in range(X.shape[1])] + ([] if split is None else ["split"]) + ["y"]
    with gzip.open(folder / f"{name}.csv.gz", "wt", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(header)
        for i, row in enumerate(X):
            rows.writerow([*row, *([] if split is None else [split[i]]), y[i]])


@pytest.fixture
def folder(tmp_path):
    """Small tables of the names that are read."""
    rng = np.random.default_rng(0)
    for name in DATA:
        X = rng.normal(size=(150, 2))
        f = np.sin(2.0 * X[:, 0]) + X[:, 1]
        split = ["test" if i % 2 else "train" for i in range(150)]
        if name in ("boston", "abalone"):
            y = f + 0.1 * rng.normal(size=150)
            write(tmp_path, name, X, y, split if name == "boston" else None)
        else:
            write(tmp_path, name, X, np.where(f > 0, "up", "down"), split)
    return str(tmp_path)


def test_a_quick_run(folder):
    outcome = EXPERIMENT.run(Setting(quick=True, folder=folder))
    numbers, labels = outcome.tables
    assert [row[0] for row in numbers.rows] == ["sinc"] * 3 + ["boston"] * 3
    assert [row[0] for row in labels.rows] == ["ripley-synth"] * 3
    for row in (*numbers.rows, *labels.rows):
        header = numbers.header if row in numbers.rows else labels.header
        cells = dict(zip(header, row, strict=True))
        known = cells["set"] == "sinc" and cells["method"] != VECTORS
        assert (cells.get("latent coverage") is not None) == known
        assert cells["rows"] <= 40 and cells["splits"] == 1
        assert cells["method"] in (SPARSE, VECTORS, DENSE)
        assert (cells["minus log density"] is None) == (cells["method"] == VECTORS)
        kernels = cells["kernels"].mean
        assert kernels == cells["rows"] if cells["method"] == DENSE else kernels <= cells["rows"]
    assert len(outcome.claims) == 6 and len(outcome.figures) == 2
    for figure in outcome.figures:
        exact = figure.lines[-1]
        assert exact.label == DENSE and np.all(exact.x == 1.0) and np.all(exact.y == 1.0)


def test_the_problems(folder):
    found = list(tasks(Setting(folder=folder)))
    assert [task.name for task in found] == ["sinc", *DATA]
    assert [task.is_classes for task in found] == [False] * 3 + [True] * (len(DATA) - 2)
    boston = found[1].split(0)
    assert len(boston.y) == len(boston.y_test) == 75
    assert not set(map(tuple, boston.X)) & set(map(tuple, boston.X_test))


def test_sinc_is_judged_by_the_function():
    split = _sinc(3)
    x = split.X_test[split.X_test[:, 0] != 0]
    np.testing.assert_allclose(split.f_test[split.X_test[:, 0] != 0], np.sin(x[:, 0]) / x[:, 0])
    assert np.std(split.y_test - split.f_test) == pytest.approx(0.1, rel=0.1)
    assert np.std(split.y - np.sinc(split.X[:, 0] / np.pi)) == pytest.approx(0.1, rel=0.3)
    assert not np.array_equal(_sinc(0).y, split.y)


def test_support_vectors_are_counted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    vectors = next(who for who in CONTENDERS if who.name == VECTORS)
    model = vectors.labels(X, y)
    svc = model.best_estimator_[-1]
    again = SVC(C=svc.C, gamma=svc.gamma).fit(model.best_estimator_[0].transform(X), y)
    assert vectors.kernels(model) == again.n_support_.sum() <= 60


def test_errors_and_densities():
    class Constant:
        def predict(self, X, return_std=False, latent=False):
            mean = np.full(len(X), 2.0)
            return (mean, np.full(len(X), 0.5)) if return_std else mean

        def log_predictive_density(self, X, y):
            return -np.asarray(y)

    who = Contender("c", lambda X, y: Constant(), lambda X, y: Constant(), lambda model: 7)
    split = Split(np.zeros((3, 1)), np.zeros(3), np.zeros((4, 1)), np.array([2.0, 2.0, 2.0, 4.0]))
    run = _measured(who, Task("t", False, 1, lambda i: split), split)
    assert (run.error, run.surprise, run.kernels) == (1.0, 2.5, 7.0)
    assert _measured(who, Task("t", True, 1, lambda i: split), split).error == 25.0
    assert np.isnan(run.covered)
    known = split._replace(f_test=np.array([2.0, 2.8, 2.9, 1.0]))
    run = _measured(who, Task("t", False, 1, lambda i: known), known)
    assert (run.surprise, run.covered) == (2.5, 50.0)
    assert run.error == pytest.approx(np.sqrt((0.64 + 0.81 + 1.0) / 4))


def test_claims():
    def found(kernels, error):
        return {
            ("a", SPARSE): [_Run(error, 0.0, kernels, 1.0)],
            ("a", VECTORS): [_Run(1.0, 0.0, 30.0, 1.0)],
            ("a", DENSE): [_Run(1.0, 0.0, 100.0, 1.0)],
        }

    assert [c.holds for c in _claims(found(29.0, 1.09))] == [True, True]
    assert [c.holds for c in _claims(found(31.0, 1.11))] == [False, False]
