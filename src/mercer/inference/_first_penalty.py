"""Where a path of penalties begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import Columns, taken_in_pieces
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._largest_penalty import TOLERANCE, largest_penalty
from mercer.priors import CoefficientPrior, WeightDecay

__all__ = ["are_alike", "first_penalty", "rounding_of_first", "slope_bound"]

Floats = NDArray[np.float64]

# A slope along a function that is no more than this part of what it could be is rounding.
_ROUNDING = 1e-12
# Targets are known to so much of themselves, in units of the above.
_OWN = 1e-15 / _ROUNDING


def first_penalty(problem: ExpansionProblem, prior: type[CoefficientPrior]) -> float:
    """Return the penalty at which a path begins: nothing is in use, or next to nothing."""
    if prior is not WeightDecay:
        return largest_penalty(problem)
    # lam^2/unit theta^2 outweighs the loss along all functions
    weights = problem.weighted(np.ones(problem.n))
    trace = _typical_curvature(problem) * sum(
        float(np.sum(weights @ A**2)) for _, A in taken_in_pieces(problem.columns)
    )
    return float(np.sqrt(trace * problem.loss.unit))


def _typical_curvature(problem: ExpansionProblem) -> float:
    """Return the curvature of the loss at a row, or what stands for it if there are kinks."""
    loss = problem.loss
    if loss.kind != "linear":
        return loss.greatest_curvature
    if loss.is_of_labels:
        return 1.0
    root = np.sqrt(problem.weighted(np.ones(problem.n)))
    r = root * (loss.y - problem.mean)
    if problem.H is not None:
        A = root[:, None] * problem.H
        r = r - A @ np.linalg.lstsq(A, r, rcond=None)[0]
    size = float(np.sum(root * np.abs(r))) / float(np.sum(root**2))
    return 1.0 / size if size > 0 else 1.0


def rounding_of_first(problem: ExpansionProblem, prior: type[CoefficientPrior]) -> float:
    """Return what a penalty at which a path begins is above, if it is not rounding.

    A linear programme knows its slopes to its tolerance alone, in units of what they can be along
    functions without their part in those that have no penalty.
    """
    if prior is WeightDecay:  # where that does not depend on the targets
        return 0.0
    of_sums = _ROUNDING * slope_bound(problem)
    if problem.loss.kind != "linear":
        return of_sums
    return max(of_sums, TOLERANCE * _reduced_slope_bound(problem))


def are_alike(problem: ExpansionProblem) -> bool:
    """Whether all functions are, to rounding, combinations of those that have no penalty."""
    return _reduced_slope_bound(problem) <= _ROUNDING * slope_bound(problem)


def slope_bound(problem: ExpansionProblem) -> float:
    """Return what slopes along functions can be: pulls as large as rows have them."""
    return _slope_along(problem.columns, _greatest_pulls(problem, Reduced(problem).problem))


def _reduced_slope_bound(problem: ExpansionProblem) -> float:
    """Return that along functions without their part in those that have no penalty."""
    rest = Reduced(problem).problem
    return _slope_along(rest.columns, _greatest_pulls(problem, rest))


def _slope_along(columns: Columns, size: Floats) -> float:
    """Return the largest slope along columns of pulls that are all as large as `size` (n,)."""
    return max((float(np.max(size @ np.abs(A))) for _, A in taken_in_pieces(columns)), default=0.0)


def _greatest_pulls(problem: ExpansionProblem, rest: ExpansionProblem) -> Floats:
    """Return how large pulls can be, (n,); `rest` is the problem as it is reduced.

    Those of a heavy row are taken to be no larger than those of all others together, which they
    have to balance where there is a constant without a penalty. Without one they can be larger, and
    so can the first penalty, so that what is a small part of this bound is rounding all the same.
    """
    low, high = problem.loss.reach()
    size = np.maximum(-low, high)
    if problem.loss.kind != "linear":  # pulls are no larger than what a fit of H leaves of targets
        left = np.abs(rest.loss.y) + np.abs(rest.mean)
        whole = np.abs(problem.loss.y) + np.abs(problem.mean)
        size = np.minimum(size, np.maximum(left, _OWN * whole))
    size = problem.weighted(size)
    others = np.sum(size) - size
    return np.where(others > 0.0, np.minimum(size, others), size)
