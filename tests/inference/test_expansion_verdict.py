"""When nothing is left of an objective: direct questions to the verdict."""

from __future__ import annotations

import numpy as np

from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_verdict import is_next_to_nothing
from mercer.inference.laplacian import solve
from mercer.likelihoods import Laplace, Logistic

from .expansion_cases import Case


def test_a_bound_above_the_objective_of_labels_proves_nothing():
    problem = Case("logistic").problem()
    found = solve(problem, lam=0.3)
    above = found._replace(dual=(1.0 + 1e-3) * found.objective)
    assert not is_next_to_nothing(problem, above, 1e-6)


def test_a_loss_that_is_left_at_light_rows_is_something():
    problem = ExpansionProblem.of(
        ArrayColumns(np.eye(3)), Laplace(1.0), np.array([1e6, 1.0, 1.0]), weights=[1e12, 1.0, 1.0]
    )
    found = solve(problem, lam=1e-3)
    none = found._replace(
        indices=found.indices[:0], coef=found.coef[:0], latent=np.array([1e6, 0.0, 0.0])
    )
    assert not is_next_to_nothing(problem, none._replace(objective=2.0, dual=0.0), 1e-6)
    same = none._replace(latent=problem.loss.y, objective=0.0, dual=0.0)
    assert is_next_to_nothing(problem, same, 1e-6)


def test_labels_that_functions_with_a_penalty_tell_apart_leave_the_penalty():
    """Their losses are next to nothing, and what that costs is not."""
    y = np.array([1.0, -1.0, 1.0])
    problem = ExpansionProblem.of(ArrayColumns(np.eye(3)), Logistic(), y)
    apart = solve(problem, lam=1e-3)._replace(latent=100.0 * y, dual=0.0)
    assert is_next_to_nothing(problem, apart._replace(objective=1e-10), 1e-6)
    assert not is_next_to_nothing(problem, apart._replace(objective=0.3), 1e-6)
    one = apart._replace(latent=np.array([100.0, -100.0, 10.0]), objective=5e-5)
    assert not is_next_to_nothing(problem, one, 1e-6)
