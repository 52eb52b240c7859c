"""Problems of expansions: duality, rows, and what is no problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference.laplacian import solve
from mercer.likelihoods import Laplace

from .expansion_cases import (
    NOISES,
    Case,
    losses,
)

each_noise = pytest.mark.parametrize("name", NOISES)


@each_noise
@given(seed=st.integers(0, 10_000), lam=st.floats(0.05, 5.0), free=st.booleans())
@settings(max_examples=12, deadline=None)
def test_weak_duality_of_any_pulls(name, seed, lam, free):
    case = Case(name, n=12, seed=seed, free=free, mean=True, weighted=True)
    problem, rng = case.problem(), np.random.default_rng(seed)
    u = problem.balanced(rng.normal(size=12) * rng.choice([0.1, 1.0, 10.0]))
    u *= min(1.0, lam / max(np.max(np.abs(case.Phi.T @ u)), 1e-300))
    theta = rng.normal(size=case.Phi.shape[1]) * rng.choice([0.0, 0.1, 1.0])
    f = case.mean + case.Phi @ theta
    f = f if case.H is None else f + case.H @ rng.normal(size=2)
    F = np.sum(case.weights * losses(name, case.y, f)) + lam * np.sum(np.abs(theta))
    assert problem.dual_value(u) <= F + 1e-9 * (1 + F)
    assert np.isfinite(problem.dual_value(u))
    if free:
        assert np.all(np.abs(case.H.T @ u) <= 1e-10 * (1 + np.abs(case.H.T) @ np.abs(u)))


def test_rows_of_a_problem_are_a_problem():
    case = Case("laplace", free=True, weighted=True)
    kept = np.arange(0, 50, 2)
    part = case.problem().rows(kept)
    other = ExpansionProblem.of(
        ArrayColumns(case.Phi[kept]),
        NOISES["laplace"],
        case.y[kept],
        H=case.H[kept],
        weights=case.weights[kept],
    )
    assert solve(part, lam=0.3).objective == solve(other, lam=0.3).objective


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": np.zeros(3)}, "y must have shape \\(4,\\), got \\(3,\\)"),
        ({"mean": np.zeros(3)}, "mean must have shape"),
        ({"mean": np.full(4, np.nan)}, "mean must be finite"),
        ({"H": np.ones(4)}, "H must have shape"),
        ({"H": np.full((4, 1), np.inf)}, "H must be finite"),
        ({"weights": -np.ones(4)}, "must not be negative"),
        ({"weights": np.zeros(4)}, "all weights are 0"),
    ],
)
def test_problems_that_are_none(options, words):
    given = {"y": np.zeros(4), **options}
    with pytest.raises(ValueError, match=words):
        ExpansionProblem.of(ArrayColumns(np.eye(4)), Laplace(1.0), **given)


def test_no_rows():
    with pytest.raises(ValueError, match="at least one row"):
        ExpansionProblem.of(ArrayColumns(np.empty((0, 2))), Laplace(1.0), np.empty(0))
