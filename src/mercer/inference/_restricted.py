"""Which solver over some columns suits a loss."""

from __future__ import annotations

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Restricted
from mercer.inference._l1_newton import Newton
from mercer.inference._l1_programme import Programme
from mercer.inference._l1_squares import Squares

__all__ = ["restricted"]


def restricted(problem: ExpansionProblem) -> Restricted:
    """Return the problem over the columns that will be added to it, none to begin with."""
    kind = problem.loss.kind
    if kind == "squares":
        return Squares(problem.loss.y, problem.mean, problem.H, problem.weights)
    return Programme(problem) if kind == "linear" else Newton(problem)
