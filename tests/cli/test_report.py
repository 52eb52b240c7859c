"""What is told of a model."""

from __future__ import annotations

import numpy as np

from mercer.cli.columns import TableColumn
from mercer.cli.report import _quality, _relevance
from mercer.cli.summary import _relevances, _terms_that_count
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
