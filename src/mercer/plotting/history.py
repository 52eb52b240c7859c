"""How the search for hyperparameters went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.plotting.models import require_fitted
from mercer.plotting.style import BLUE, GREY, PALETTE, VERMILION, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history"]

Floats = NDArray[np.float64]

_NAMES = {
    "loo": "leave-one-out log density",
    "joint": "log density of function and hyperparameters",
}


def plot_history(model: Any, *, color: str = BLUE, ax: Axes | None = None) -> Axes:
    """Draw every value of the objective that the optimiser saw, and the best so far.

    A search that still climbs at its end wants more iterations. With restarts, whose evaluations
    follow each other, a step late in the picture is a better optimum than the first one found.

    Of a classifier with a search for each class, the best so far of each.

    Parameters
    ----------
    model : fitted estimator
        With ``history_["value"]``, or a list of such histories, one for each of `classes_`. The
        title has ``history_["status"]``, or `status_` where that is how the search ended.
    color : str, optional
        Of the best so far; classes have colours of their own.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    require_fitted(model)
    history = getattr(model, "history_", None)
    if history is None:
        raise ValueError(
            f"this {type(model).__name__} has no history: it does not keep the values that a "
            "search for hyperparameters went through, as other models do in `history_`"
        )
    histories = history if isinstance(history, list) else [history]
    searches = [np.asarray(one["value"], dtype=float) for one in histories]
    if not all(values.size for values in searches):
        raise ValueError(
            f"this {type(model).__name__} has no history: its hyperparameters were not "
            "searched for (optimizer=None, or nothing to be learned)"
        )
    ax = axes_for(ax)
    if isinstance(history, list):
        for i, (label, values) in enumerate(zip(model.classes_, searches, strict=True)):
            _draw_best(ax, values, PALETTE[i % len(PALETTE)], f"best so far, {label}")
    else:
        _draw_evaluations(ax, searches[0])
        _draw_best(ax, searches[0], color, "best so far")
    name = _NAMES.get(getattr(model, "objective", ""), "log evidence and hyperpriors")
    ax.set(xlabel="evaluation", ylabel=histories[0].get("objective", name))
    ax.locator_params(axis="x", integer=True)
    # the evidence of the classes adds up
    top = sum(float(np.fmax.reduce(values)) for values in searches)
    status = histories[0].get("status", getattr(model, "status_", ""))
    ax.set_title(
        f"best {top:.6g}" + (f", {status}" if status else ""), fontsize="medium", loc="left"
    )
    ax.legend(frameon=False, fontsize="small")
    return ax


def _draw_best(ax: Axes, values: Floats, color: str, label: str) -> None:
    number = np.arange(1, values.size + 1)
    best = np.fmax.accumulate(values)
    ax.step(number, best, where="post", color=color, linewidth=1.8, label=label)


def _draw_evaluations(ax: Axes, values: Floats) -> None:
    """Draw each evaluation, and set the range of values to where the search went."""
    number = np.arange(1, values.size + 1)
    top, start = float(np.fmax.reduce(values)), float(values[0])
    # Steps that overshoot may fall by orders of magnitude: they are marked at the foot.
    depth = top - start if np.isfinite(start) and start < top else float(np.ptp(values))
    depth = depth if depth > 0 else 1.0
    floor = top - 1.15 * depth
    below = ~(values >= floor)
    ax.scatter(
        number[~below],
        values[~below],
        s=14,
        color=GREY,
        linewidths=0,
        zorder=2,
        label="evaluations",
    )
    if np.any(below):
        ax.scatter(
            number[below],
            np.full(int(np.sum(below)), floor),
            s=26,
            marker="v",
            color=VERMILION,
            linewidths=0,
            zorder=3,
            label="evaluations further down",
        )
    ax.set_ylim(floor - 0.04 * depth, top + 0.08 * depth)
