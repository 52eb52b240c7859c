"""Error bars of an on-line process that rows do not keep to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.errors import CalibrationWarning, warn
from mercer.inference.online import Before, OnlineProcess
from mercer.likelihoods import Gaussian

__all__ = ["count_outside", "warn_of_bars"]

Floats = NDArray[np.float64]

# The half width of a 95% interval, in standard deviations, and the share of rows outside of theirs
# that is too many: outliers alone are fewer.
_HALF, _MANY = 1.96, 0.2
# Rows by which that is judged at the least, and about how many of the last ones count.
_FEWEST, _LATELY = 200, 1000


def count_outside(
    lost: dict[str, float],
    before: Before,
    Y: Floats,
    weights: Floats | None,
    process: OnlineProcess,
) -> None:
    """Count rows that were predicted so, and how many lay outside; of Gaussian noise alone.

    They are `judged` and `outside`, changed in place.
    """
    if not isinstance(process.likelihood, Gaussian):
        return
    noise = process.likelihood.new_variance * process.scale**2
    if weights is not None:
        noise = noise / np.asarray(weights)[:, None]
    off = np.abs(Y - before.mean) > _HALF * np.sqrt(before.var + noise)
    known = ~np.isnan(before.log_density)  # others were skipped, and told of
    lost["judged"] += float(np.sum(known))
    lost["outside"] += float(np.sum(off[known])) / Y.shape[1]
    if lost["judged"] >= 2 * _LATELY:
        lost["judged"], lost["outside"] = lost["judged"] / 2.0, lost["outside"] / 2.0


def warn_of_bars(lost: dict[str, float], process: OnlineProcess, more: str) -> bool:
    """Warn if too many rows lay outside, and return whether it did.

    `more` tells how more rows could choose the model, if any chose it.
    """
    if lost["judged"] < _FEWEST or lost["outside"] <= _MANY * lost["judged"]:
        return False
    why = (
        "The function may drift, for which there is forget; or kernel and noise do not suit these "
        f"rows. {more}"
    )
    if process.is_degenerate:
        why = (
            "A posterior of few functions knows nothing far from these, and they stay: "
            "from_posterior(..., lift='scaled', max_basis=100) goes on under the whole kernel"
        )
    warn(
        f"{lost['outside'] / lost['judged']:.0%} of the last {lost['judged']:.0f} rows lay outside "
        f"the intervals that were to hold 95% of them: error bars are too narrow. {why}".rstrip(),
        CalibrationWarning,
    )
    return True
