"""What is told of a model."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa
import pytest

from mercer import GPRegressor
from mercer.cli.columns import TableColumn
from mercer.cli.fitting import FitOptions, fit_table
from mercer.cli.model import TableModel
from mercer.cli.report import _quality, _relevance, report
from mercer.cli.summary import _relevances, _terms_that_count
from mercer.cli.tables import table_of
from mercer.kernels import RBF, Linear, Matern

LEFT = {"rmse": 0.5, "nlpd": 1.23456, "coverage_95": 0.95}


def test_terms_that_explain_nothing_have_no_relevance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    columns = [TableColumn("a", "number"), TableColumn("b", "number")]
    rbf, matern = 2.0 * RBF([1.0, 4.0]), 1e-5 * Matern([1e-3, 1e-3])
    counted = _terms_that_count(rbf + matern + 1e-9 * Linear(), X, 1.0)
    assert counted == [rbf]
    assert [row[:2] for row in _relevances(counted, columns, X)] == [["a", 1.0], ["b", 4.0]]
    assert _terms_that_count(matern, X, 1.0) == [] == _relevances([], columns, X)


def test_a_small_term_ranks_no_column():
    X = np.random.default_rng(0).normal(size=(60, 3))
    columns = [TableColumn(name, "number") for name in "abc"]
    kernels = [0.008 * RBF([5.0, 1.0, 0.5]), Linear(length_scale=[1.0, 50.0, 2.0])]
    rows = _relevances(kernels, columns, X)
    assert [row[0] for row in rows] == ["a", "c", "b"]
    assert [row[1] for row in rows] == ["linear", "linear", 1.0]
    lines = _relevance({"relevances": rows, "kernel": "rbf+linear"})
    assert "share" in lines[0] and "linear" in lines[1] and lines[1].endswith("#" * 20)


@pytest.mark.parametrize("name", ["linear", "Linear", "rbf"])
def test_relevance_is_told_in_its_unit(name):
    X = np.random.default_rng(0).normal(size=(60, 2)) * [3.0, 4.0]
    columns = [TableColumn("a", "number"), TableColumn("b", "number")]
    kernel = Linear(length_scale=[1.0, 1.0]) if name != "rbf" else RBF([1.0, 1.0])
    rows = _relevances([2.0 * kernel], columns, X)
    head = _relevance({"relevances": rows, "kernel": name})[0]
    is_share = np.isclose(np.linalg.norm([row[2] for row in rows]), 1.0)
    assert is_share == (name != "rbf")
    assert ("share of the standard deviation" in head) == is_share
    assert ("standard deviation over length scale" in head) != is_share


def test_terms_count_by_what_varies():
    """Far from 0 the linear kernel is large and yet nearly constant."""
    X = np.random.default_rng(0).normal(size=(40, 1))
    flat, rbf = 1e-5 * Linear(), 1.0 * RBF()
    assert _terms_that_count(rbf + flat, X + 2000.0, 1.0) == [rbf]
    assert _terms_that_count(flat, 2000.0 * X, 1.0) == [flat]


def test_relevance_in_words():
    rows = [[f"c{i}", 2.0, 1.0 / (i + 1)] for i in range(40)]
    lines = _relevance({"relevances": rows, "explains_nothing": False})
    assert lines[1].endswith("#" * 20) and lines[-1] == "  and 25 less relevant columns"
    (said,) = _relevance({"relevances": [], "explains_nothing": True})
    assert said.startswith("nothing in the columns was found")


def test_numbers_have_significant_digits():
    lines = _quality({"log_evidence": -1234.56789, "target_std": 1.0, "leave_one_out": LEFT})
    assert lines[0] == "log evidence   -1234.57"
    assert "  NLPD         1.235 (mean negative log predictive density)" in lines


def test_rows_without_weight_are_not_told_of():
    """What they hold, a mark of what is missing perhaps, is in no unit of the others."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=30), rng.choice([1.0, 3.0], 30)
    y = np.sin(x) + 5.0 + 0.05 * rng.normal(size=30)
    options = FitOptions("y", weights="w")

    def summary(x, y, w):
        table = table_of(pa.table({"x": x, "y": y, "w": w}))
        return fit_table(table, options, lambda *_: contextlib.nullcontext(0)).summary

    known = summary(x, y, w)
    more = summary(np.append(x, -999999.0), np.append(y, -999999.0), np.append(w, 0.0))
    assert (known["rows"], more["rows"]) == (30, 31)
    assert not more["explains_nothing"]
    assert more["target_mean"] == pytest.approx(np.average(y, weights=w), rel=1e-12)
    variance = np.average((y - more["target_mean"]) ** 2, weights=w)
    assert more["target_std"] == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert [row[0] for row in more["relevances"]] == ["x"]
    np.testing.assert_allclose(more["relevances"][0][1:], known["relevances"][0][1:], rtol=1e-6)


def test_a_leave_one_out_that_is_refused_is_not_left_out_in_silence(monkeypatch):
    def fail(self):
        raise ValueError("row 3 cannot be left out")

    monkeypatch.setattr(GPRegressor, "loo", fail)
    table = table_of(pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.5, 2.0]}))
    model = fit_table(table, FitOptions("y"), lambda *_: contextlib.nullcontext(0))
    assert "no leave-one-out: row 3 cannot be left out" in model.summary["notes"]
    assert "leave_one_out" not in model.summary


def test_an_exact_fit_that_takes_hours_is_told_before(monkeypatch, capsys):
    monkeypatch.setattr("mercer.cli.fitting.LONG", 3)
    table = table_of(pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.5, 2.0]}))
    told = []

    @contextlib.contextmanager
    def watch(*_):
        told.append(capsys.readouterr().err)
        yield 0

    for method in ("gp", "sparse"):
        fit_table(table, FitOptions("y", method=method), watch)
    assert "4 rows may take hours; --method sparse is made" in told[0] and told[1] == ""


def test_a_model_of_which_nothing_else_is_known():
    X = np.linspace(0.0, 3.0, 8)[:, None]
    estimator = GPRegressor(RBF(1.0), optimizer=None).fit(X, np.sin(X[:, 0]))
    model = TableModel("y", [TableColumn("x", "number")], estimator, {})
    assert report(model) == "target    y\ncolumns   1: x"
    assert model.ignored(table_of(pa.table({"x": [1.0], "z": [2.0]}))) == ["z"]
