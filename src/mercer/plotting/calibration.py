"""Whether predicted probabilities are what comes true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from mercer.estimators.options import require_count
from mercer.metrics import calibration_curve
from mercer.plotting.models import outcomes
from mercer.plotting.style import BLUE, GREY, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration", "plot_pit"]

_BAND = 0.95


def plot_calibration(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    output: int | None = None,
    n_levels: int = 49,
    color: str = BLUE,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many observations lie in their central interval, for every probability of it.

    On the diagonal the model is calibrated. Below it the intervals are too narrow: it is too sure
    of itself; above, too wide. The band is where chance alone would put a calibrated model in 95%
    of all cases, at each probability.

    Parameters
    ----------
    model : fitted regressor
        With ``predict(X, return_std=True)``.
    X, y : array-like of shapes (n, d) and (n,) or (n, P), optional
        Rows that the model was not fitted to. Without them the training rows, each predicted from
        the others by `loo`.
    output : int, optional
        Which output, where there are several.
    n_levels : int, default 49
        At how many probabilities.
    color, label : str, optional
        Of the curve.
    ax : axes, optional
        Where to draw. Curves of several models can share axes.

    Returns
    -------
    Axes
    """
    require_count("n_levels", n_levels, 1)
    predicted = outcomes(model, X, y, output)
    n = len(predicted.y)
    nominal = np.linspace(0.0, 1.0, n_levels + 2)[1:-1]
    observed = calibration_curve(predicted.pit, nominal).observed
    ax = axes_for(ax, (4.8, 4.6))
    if not any(line.get_gid() == "diagonal" for line in ax.lines):  # once, for several models
        edges = np.linspace(0.0, 1.0, 201)
        low, high = (binom.ppf(q, n, edges) / n for q in (0.5 - _BAND / 2, 0.5 + _BAND / 2))
        ax.fill_between(edges, low, high, color=GREY, alpha=0.2, linewidth=0, label="chance (95%)")
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle="--", gid="diagonal")
    name = label or ("leave-one-out" if predicted.left_out else "observed")
    ax.plot([0.0, *nominal, 1.0], [0.0, *observed, 1.0], color=color, linewidth=1.8, label=name)
    ax.set(
        xlabel="probability of the interval",
        ylabel=f"share of {n} observations inside",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    ax.set_aspect("equal")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    return ax


def plot_pit(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    output: int | None = None,
    n_bins: int = 10,
    color: str = BLUE,
    ax: Axes | None = None,
) -> Axes:
    """Draw the histogram of the probability integral transform.

    That is the predicted probability of a value of at most the observed one. Of a model that is
    right it is uniform. A hump in the middle shows intervals that are too wide, a trough ones that
    are too narrow, a slope a bias. Each bar of a right model stays in the band in 95% of all cases.

    Parameters
    ----------
    model : fitted regressor
        With ``predict(X, return_std=True)``.
    X, y : array-like of shapes (n, d) and (n,) or (n, P), optional
        Rows that the model was not fitted to. Without them the training rows, each predicted from
        the others by `loo`.
    output : int, optional
        Which output, where there are several.
    n_bins : int, default 10
        The number of bars.
    color : str, optional
        Of the bars.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    require_count("n_bins", n_bins, 1)
    predicted = outcomes(model, X, y, output)
    n = len(predicted.y)
    counts, edges = np.histogram(predicted.pit, bins=n_bins, range=(0.0, 1.0))
    unit = n / n_bins  # what a uniform histogram has in each
    low, high = (binom.ppf(q, n, 1.0 / n_bins) / unit for q in (0.5 - _BAND / 2, 0.5 + _BAND / 2))
    ax = axes_for(ax, (5.2, 3.8))
    ax.bar(
        edges[:-1],
        counts / unit,
        width=np.diff(edges),
        align="edge",
        color=color,
        alpha=0.6,
        edgecolor="white",
        label="leave-one-out" if predicted.left_out else "observed",
    )
    ax.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label="chance (95%)", zorder=0)
    ax.axhline(1.0, color=GREY, linewidth=1.0, linestyle="--", zorder=2)
    ax.set(
        xlabel="predicted probability of at most the observed value",
        ylabel=f"density of {n} observations",
        xlim=(0, 1),
    )
    ax.set_ylim(bottom=0.0, top=1.25 * max(float(high), float(np.max(counts) / unit)))
    ax.legend(frameon=False, fontsize="small", loc="upper right", ncols=2)
    return ax
