"""Whether a solution of an expansion is certified: by its gap, or because nothing is left."""

from __future__ import annotations

import numpy as np

from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_reduced import Reduced

__all__ = ["is_next_to_nothing", "judged"]

# Rounding of a loss, in units of the pulls times what residuals are differences of.
_ROUNDING = 8.0 * float(np.finfo(float).eps)
# What F - D may be of the loss of labels at f = 0: so much of the tolerance, and at least.
_NOTHING, _LEAST = 1e-6, 1e-9


def judged(work: Reduced, found: Expansion, tol: float) -> Expansion:
    """Return a solution of the problem that was given, with its status.

    It is certified also where F is next to nothing, which no relative gap can tell: where the
    functions without a penalty pass through all observations, F is what rounding of them and of f
    makes of nothing; where they separate labels, F falls for ever, towards 0. It is not where D is
    above F, of which no more than rounding can be true.
    """
    found, problem = work.restored(found), work.given
    if found.status == "interrupted":
        return found
    if found.dual - found.objective > tol * abs(found.objective):
        found = found._replace(status="stopped")
    if found.status == "stopped" and is_next_to_nothing(problem, found, tol):
        found = found._replace(status="certified")
    return found


def is_next_to_nothing(problem: ExpansionProblem, found: Expansion, tol: float) -> bool:
    """Whether what is left of an objective, or of the gap for labels, cannot be told from 0.

    Heavy rows prove nothing of the others, be they one or most: the penalty, and the gap, are
    compared with sums in which all rows have the least weight. Where functions without a penalty
    tell labels apart, each row has to have next to nothing of its loss at f = 0. Of numbers each
    has to have no more than rounding of its own size, or of the median row's, as a row near 0 may
    be a difference of what others are sums of.
    """
    loss, w = problem.loss, problem.weights
    least = np.ones(problem.n) if w is None else np.where(w > 0, np.min(w[w > 0]), 0.0)
    losses = loss.values(found.latent)
    penalty = found.objective - float(np.sum(problem.weighted(losses)))
    if loss.is_of_labels:
        at_0 = loss.values(np.zeros(problem.n))
        nothing = max(tol * _NOTHING, _LEAST) * at_0
        if abs(found.objective - max(found.dual, 0.0)) <= float(least @ nothing):
            return True
    else:
        size = np.abs(loss.y) + np.abs(problem.mean) + np.abs(found.latent)
        off = _ROUNDING * np.maximum(size, np.median(size if w is None else size[w > 0]))
        steep = np.abs(loss.pull(found.latent))
        if loss.kind == "linear":  # f may be on the flat piece of a loss, beside one that is not
            beside = loss.values(found.latent - off) + loss.values(found.latent + off) > 0.0
            steep = np.where(beside, np.max(np.abs(loss.reach()), axis=0), 0.0)
        nothing = steep * off
    return problem.everywhere(losses <= nothing) and penalty <= float(least @ nothing)
