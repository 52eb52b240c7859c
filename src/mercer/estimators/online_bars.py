"""Error bars of an on-line process that rows do not keep to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.errors import CalibrationWarning, warn
from mercer.estimators.online_prequential import interval_before
from mercer.inference.online import Before, OnlineProcess
from mercer.likelihoods import Gaussian

__all__ = ["FEWEST", "count_outside", "fade", "warn_of_bars"]

Floats = NDArray[np.float64]

#: Rows by which a stream is judged at the least.
FEWEST = 200
# About how many of the last ones count.
_LATELY = 1000
# What intervals are to hold, and the share of rows outside of theirs that is too many: outliers
# alone are fewer.
_COVERAGE, _MANY = 0.95, 0.2


def fade(lost: dict[str, float], count: str, total: str) -> None:
    """Halve a count of rows, and what was added up of them, once it is much more than lately."""
    if lost[count] >= 2 * _LATELY:
        lost[count], lost[total] = lost[count] / 2.0, lost[total] / 2.0


def count_outside(
    lost: dict[str, float],
    before: Before,
    Y: Floats,
    weights: Floats | None,
    process: OnlineProcess,
) -> None:
    """Count rows that were predicted so, and how many lay outside; of Gaussian noise alone.

    They are `judged` and `outside`, changed in place. Intervals are of rows of weight 1, and others
    do not count: whether a weight is of repeated rows or of one with less noise, nobody knows.
    """
    if not isinstance(process.likelihood, Gaussian):
        return
    low, high = interval_before(process.likelihood, process.scale, before, _COVERAGE)
    known = ~np.isnan(before.log_density)  # others were skipped, and told of
    if weights is not None:
        known &= np.asarray(weights) == 1.0
    lost["judged"] += float(np.sum(known))
    lost["outside"] += float(np.sum(((Y < low) | (Y > high))[known])) / Y.shape[1]
    fade(lost, "judged", "outside")


def warn_of_bars(lost: dict[str, float], process: OnlineProcess, more: str) -> bool:
    """Warn if too many rows lay outside, and return whether it did.

    `more` tells how more rows could choose the model, if any chose it.
    """
    if lost["judged"] < FEWEST or lost["outside"] <= _MANY * lost["judged"]:
        return False
    why = (
        "The function may drift, for which there is forget; or kernel and noise do not suit these "
        f"rows. {more}"
    )
    if process.is_degenerate:
        way = "fit it anew to rows from wherever they come"
        if process.kernel.is_mercer:
            way = "from_posterior(..., lift='scaled', max_basis=100) goes on under the whole kernel"
        why = f"A posterior of few functions knows nothing far from these, and they stay: {way}"
    warn(
        f"{lost['outside'] / lost['judged']:.0%} of the last {lost['judged']:.0f} rows lay outside "
        f"the intervals that were to hold 95% of them: error bars are too narrow. {why}".rstrip(),
        CalibrationWarning,
    )
    return True
