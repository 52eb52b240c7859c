"""Coefficients of a linear programme, and what of them is rounding."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_programme import Programme
from mercer.likelihoods import Laplace

RNG = np.random.default_rng(0)
PHI, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
LAM = np.full(3, 0.5)


def solved(multipliers):
    """The solution with these multipliers, that of the constant first."""
    problem = ExpansionProblem.of(ArrayColumns(PHI), Laplace(1.0), Y, H=np.ones((40, 1)))
    programme = Programme(problem)
    programme.add(PHI)
    programme.solve(LAM)
    penalties = np.concatenate([[0.0], LAM])
    return programme._solved(np.zeros(40), np.array(multipliers), penalties)


def test_coefficients_that_are_rounding_are_none():
    found = solved([0.1, 0.3, 1e-14, -3e-13])
    assert np.count_nonzero(found.coef) == 1 and found.beta[0] != 0.0
    f = PHI @ found.coef + found.beta[0]
    np.testing.assert_allclose(found.latent, f, rtol=1e-12)
    objective = np.sum(np.abs(Y - f)) + 0.5 * np.sum(np.abs(found.coef))
    assert found.objective == pytest.approx(objective, rel=1e-12)


def test_what_is_small_and_no_rounding_is_kept_and_so_are_constants():
    assert np.count_nonzero(solved([0.1, 0.3, 1e-9, 0.0]).coef) == 2
    assert solved([1e-14, 0.3, 1e-14, 0.0]).beta[0] != 0.0
