"""Why nothing can be told of the penalty of a kernel expansion, in words, and what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.expansion_targets import Options, Targets
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._first_penalty import are_alike
from mercer.inference._largest_penalty import loss_without_functions

__all__ = ["TIES", "hold_the_median", "why_none_compared", "why_untold"]

Floats = NDArray[np.float64]

# What can no longer be otherwise unless all is given.
_OTHERWISE = "Give kernel, likelihood and prior_scale to have it otherwise"
# Equal targets that are more than this share of all can be why no function gains anything, where
# that is known and rows are not alike; those that are more than half of all are the median.
_SOME, _HALF = 0.05, 0.5
#: What to say where ties are why.
TIES = (
    "so many targets are the same that by absolute distances no function is nearer to them than a "
    "constant is: none was fitted. Gaussian noise goes by averages, and tells more of such "
    "targets; so does GPRegressor(likelihood=Poisson()) of counts"
)


def why_untold(
    targets: Targets, problem: ExpansionProblem, options: Options, is_rounding: bool
) -> str | None:
    """Return why nothing can be told of a penalty, and what to give; None if something can.

    `is_rounding` says whether the penalty at which a path would begin is no more than that.
    """
    loss = problem.loss
    if not loss.is_of_labels and not np.any(Reduced(problem).problem.loss.y):
        return (
            "the targets are constant, or the mean passes through all of them: no function was "
            f"fitted, and their noise is the least there can be. {_OTHERWISE}"
        )
    if targets.can_be_split and not is_rounding:
        return None
    if targets.can_be_split and loss.zone > 0 and not loss_without_functions(problem) > 0:
        return _of_a_zone(targets, options)
    if targets.can_be_split and loss.kind == "linear" and not are_alike(problem):
        if not loss.is_of_labels and _are_tied(loss.y, targets.weights, _SOME):
            return TIES
        if loss.is_of_labels and _are_tied(loss.y, targets.weights, _HALF):
            return (
                "as far as functions of this kernel can tell, one of the two classes is the "
                "likelier one everywhere, so that a soft margin gains nothing by any: none was "
                "fitted, and probabilities are the shares of the classes. likelihood='logistic' "
                "tells more of rare classes, or try another kernel, or a shorter length scale"
            )
    few = (
        "the rows are too few, or too much alike, to hold some of them out and predict these from "
        "the others: "
    )
    if not loss.is_of_labels:
        return (
            f"{few}nothing was chosen by them, few functions or none are in use, and noise is what "
            f"it began with. {_OTHERWISE}"
        )
    if targets.is_margin and not targets.can_be_split:
        return f"{few}margins are not calibrated. likelihood='logistic' can do without"
    return (
        f"{few}few functions or none count, and probabilities are about the shares of the classes"
    )


def why_none_compared(weights: Floats) -> str:
    """Return why no penalty of a path could be compared with another."""
    end = "no penalty could be compared with another, and the largest was taken"
    if len(weights) > 1 and np.max(weights) > 0.9 * np.sum(weights):
        return (
            "one row, or equal ones, outweigh all others together, which leaves nothing to "
            f"estimate noise from: {end}. Give them a weight nearer to the others', or give "
            "likelihood and prior_scale"
        )
    if np.sum(weights) >= 0.99 * len(weights):
        return (
            f"the rows are too few to estimate noise from what functions leave of them: {end}. "
            "Give likelihood and prior_scale"
        )
    return (
        f"the rows weigh {np.sum(weights):.3g} together, which leaves nothing to estimate noise "
        f"from: {end}. Weights are powers of the likelihood, so that those that add up to 1 stand "
        "for one row: give weights that add up to the number of rows, or give likelihood and "
        "prior_scale"
    )


def hold_the_median(y: Floats, weights: Floats) -> bool:
    """Whether more than half of the targets are the same."""
    return _are_tied(y, weights, _HALF)


def _of_a_zone(targets: Targets, options: Options) -> str:
    zone, remedy = "epsilon of EpsilonInsensitive", "give a smaller epsilon"
    if targets.shapes_the_loss:
        zone, remedy = f"{zone} is left open, and the one that was found", "give epsilon"
        if options.max_active is not None:
            zone += f" with max_active={options.max_active}"
            remedy = "raise max_active, or give epsilon"
    return (
        f"{zone} is so wide that the mean alone is near enough to all targets: there was "
        f"nothing to compare penalties by, and few functions or none are in use; {remedy}"
    )


def _are_tied(y: Floats, weights: Floats, share: float) -> bool:
    """Whether some rows have the same target, and more than this share of all weight."""
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    shares = np.bincount(which, weights) / np.sum(weights)
    return bool(np.any((counts > 1) & (shares > share)))
