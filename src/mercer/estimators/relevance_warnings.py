"""What a relevance vector machine warns of: functions that are none, too many, or too far away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning, warn
from mercer.estimators.expansion_process import named_outputs
from mercer.estimators.relevance_frame import Frame
from mercer.evidence.relevance_engines import Machine
from mercer.evidence.relevance_functions import Dictionary
from mercer.evidence.relevance_search import Ended
from mercer.likelihoods.spread import far_from_others

__all__ = ["warn_if_empty", "warn_of_far", "warn_of_many"]

# Functions are many where rows determine more coefficients than this part of their number, or than
# the other where some targets are far from all others; of fewer rows nobody expects much.
_MANY, _OUTLIERS, _FEW = 0.5, 0.1, 20
# How often a row counts on average, by its weight or as equal ones, from which on that is told.
_HEAVY = 1.2


def warn_if_empty(
    frame: Frame, functions: Dictionary, machines: Sequence[Machine], classes: NDArray[Any] | None
) -> None:
    """Warn of targets that no function was kept for, though they vary.

    They are called by their number, or, of labels, by what `classes` has at their place.
    """
    empty = [
        p
        for p, machine in enumerate(machines)
        if not frame.relevant(functions, machine.fit.indices).n_relevance
    ]
    if empty:
        targets = "targets" if classes is None else "labels"
        which = "" if len(machines) == 1 else f" for {named_outputs(empty, classes)}"
        warn(
            f"no relevance vector was kept{which}: by the evidence none of the functions tells of "
            f"the {targets}, and predictions are the mean alone. If there is more to them, try "
            "another kernel. A sum with a term that hardly varies, such as Linear() of columns "
            "far from 0, hides its other terms: centre the columns, or give a list of kernels",
            MercerWarning,
        )


def warn_of_many(frame: Frame, end: Ended, is_robust: bool, has_noise: bool) -> None:
    """Warn of functions that are so many that they follow single rows.

    Parameters
    ----------
    frame, end : the model, and where its fit has ended
    is_robust : whether outliers are left to the noise already
    has_noise : whether the variance of the noise was given
    """
    rows = frame.model.rows
    n = len(rows.Y)
    if n < _FEW or end.status == "interrupted":
        return
    is_far = not is_robust and any(far_from_others(y, rows.weights).any() for y in rows.Y.T)
    limit = (_OUTLIERS if is_far else _MANY) * n
    # what rows determine takes a factor's inverse, and is no more than there are functions
    many = [machine.fit for machine in end.machines if len(machine.fit.indices) > limit]
    determined = max((fit.n_determined for fit in many), default=0.0)
    if determined <= limit:
        return
    why = "It may help to"
    if not is_robust:
        why = "Some targets are far" if is_far else "If targets are far"
        why = f"{why} from all others: robust=True leaves these to the noise. Otherwise"
    noise = "give more `noise`" if has_noise else "give `noise`"
    average = float(np.mean(rows.weights))
    heavy = ""
    if average > _HEAVY:
        heavy = f". Rows count {average:.2g} times on average, by sample_weight or as equal rows, "
        heavy += "like rows without noise of their own: let weights that mean precision average 1"
    warn(
        f"the functions have {determined:.0f} coefficients to follow {n} rows with, and error bars "
        f"say little. {why} {noise}, or try a wider kernel or GPRegressor, whose error "
        "bars hold better where columns are so many that nothing tells noise from the function"
        f"{heavy}",
        MercerWarning,
    )


def warn_of_far(far: int, n: int) -> None:
    """Warn of points, so many of n, at which error bars are those of noise or mean alone."""
    if far:
        warn(
            f"{far} of {n} points are far from every relevance vector, where none of the "
            "functions says anything: error bars there are too small. augment=True has them "
            "grow as a Gaussian process does, for n times the cost",
            MercerWarning,
        )
