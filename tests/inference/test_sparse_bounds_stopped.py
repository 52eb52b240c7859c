"""The upper bound of a search that is not let to its end."""

from __future__ import annotations

from dataclasses import replace

from mercer.inference import sparse_bounds
from mercer.likelihoods import Logistic

from . import sparse_latent_cases as cases
from .latent import make


def test_a_search_that_stops_early_says_so(monkeypatch):
    p = replace(make("logistic", 25, kernel=30.0 * cases.ROUGH), likelihood=Logistic())
    q = cases.sparse(p, "fitc")
    best = sparse_bounds.upper_bound(q)
    monkeypatch.setattr("mercer.inference._newton._ITERATIONS", 1)
    short = sparse_bounds.upper_bound(q)
    assert (best.status, short.status) == ("converged", "stopped")
    assert short.log_evidence >= best.log_evidence and short.gap > best.gap
