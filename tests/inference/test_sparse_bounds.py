"""The logistic bounds with inducing variables: the dense ones, differences and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import means
from mercer.inference import bounds, sparse_bounds, sparse_ep
from mercer.likelihoods import Logistic, Probit

from . import sparse_latent_cases as cases
from .latent import make

KINDS = ("dtc", "fitc")


def problem(n=25, weights=False, variance=1.0):
    p = make("logistic", n, kernel=variance * cases.ROUGH, weights=weights, mean=True)
    return replace(p, likelihood=Logistic())


def value_of(q):
    return sparse_bounds.solve(q).log_evidence


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_inducing_inputs_at_the_rows(kind, weights):
    p = problem(weights=weights)
    cases.assert_dense_at_the_rows(sparse_bounds, bounds, p, kind, 1e-7, means.Constant(0.3))
    wanted = bounds.upper_bound(p).log_evidence
    got = sparse_bounds.upper_bound(cases.sparse(p, kind, Z=p.X))
    assert got.log_evidence == pytest.approx(wanted, rel=1e-10)
    assert got.status == "converged"


@pytest.mark.parametrize("kind", KINDS)
def test_matrix_written_out(kind):
    q = cases.sparse(problem(), kind)
    cases.assert_dense_of_gram(sparse_bounds, bounds, q, 1e-7)
    wanted = bounds.upper_bound(cases.as_dense(q)).log_evidence
    assert sparse_bounds.upper_bound(q).log_evidence == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_adjoints_by_differences(kind, weights):
    q = cases.sparse(problem(20, weights), kind)
    solution, adjoints = sparse_bounds.evidence(q, inputs=True)
    assert solution.status == "converged"
    cases.assert_slopes(value_of, q, adjoints, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_rows_repeated(kind):
    times = np.arange(25) % 4
    many, weighted = cases.repeated(cases.sparse(problem(), kind), times)
    (one, a), (two, b) = (sparse_bounds.evidence(q, inputs=True) for q in (many, weighted))
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-10)
    np.testing.assert_allclose(b.theta, a.theta, atol=1e-7)
    np.testing.assert_allclose(b.Z, a.Z, atol=1e-7)
    upper = [sparse_bounds.upper_bound(q).log_evidence for q in (many, weighted)]
    assert upper[0] == pytest.approx(upper[1], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variance", [1.0, 1e2, 1e4])
def test_bounds_on_the_evidence(kind, variance):
    """They hold EP's evidence between them, and the lower one never falls on its way."""
    q = cases.sparse(problem(60, variance=variance), kind, 12)
    lower, upper = sparse_bounds.solve(q), sparse_bounds.upper_bound(q)
    assert lower.status == upper.status == "converged"
    assert lower.log_evidence < sparse_ep.solve(q).log_evidence < upper.log_evidence
    assert np.min(np.diff(lower.bounds)) >= -1e-9
    again = sparse_bounds.solve(q, lower.state)
    assert again.n_iterations <= 1
    assert again.log_evidence == pytest.approx(lower.log_evidence, rel=1e-10)


def test_refused():
    q = cases.sparse(problem(), "fitc")
    with pytest.raises(ValueError, match=r"likelihood must be Logistic\(\)"):
        sparse_bounds.solve(replace(q, likelihood=Probit()))
    with pytest.raises(ValueError, match="labels must be -1 or 1"):
        sparse_bounds.solve(replace(q, y=np.zeros(q.n)))
    with pytest.raises(ValueError, match="state of a solution with 25 rows"):
        sparse_bounds.solve(q, sparse_bounds.State(np.zeros(3), np.zeros(3)))


def test_an_upper_bound_whose_search_stops_early_says_so(monkeypatch):
    p = replace(make("logistic", 25, kernel=30.0 * cases.ROUGH), likelihood=Logistic())
    q = cases.sparse(p, "fitc")
    best = sparse_bounds.upper_bound(q)
    monkeypatch.setattr("mercer.inference._newton._ITERATIONS", 1)
    # once: the steps that polish the end of a search would reach the top when taken up ten times
    monkeypatch.setattr("mercer.inference._scalar._ESCAPES", 1)
    short = sparse_bounds.upper_bound(q)
    assert (best.status, short.status) == ("converged", "stopped")
    assert short.log_evidence > best.log_evidence + 1.0 and short.gap > best.gap + 1.0
