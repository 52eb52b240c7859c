"""Fitted functions, with what is not known about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.metrics.checks import require_level
from mercer.plotting.models import (
    Known,
    interval,
    knows_latent,
    label_of,
    link_of,
    one_output,
    predict,
    refuse_classifier,
    require_fitted,
    rows_like_training,
    through,
    to_matrix,
    training_rows,
)
from mercer.plotting.slices import Slice, is_range, slice_of
from mercer.plotting.style import BLUE, INK, axes_for, is_several, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_fit"]

Floats = NDArray[np.float64]


def plot_fit(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    columns: Any = None,
    at: Any = None,
    coverage: float = 0.95,
    latent: bool | None = None,
    output: int | None = None,
    n_points: int | None = None,
    margin: float = 0.1,
    color: str = BLUE,
    label: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw a fitted regression over one column, two columns, or a slice of more.

    Of one column: the mean, and the intervals that hold the function (dark) and a new observation
    (light) with probability `coverage`. Of two: contours of the mean, and beside it of the
    standard deviation. All is in the units of the targets: where there is a link, as under counts,
    the dark interval is that of their mean, and the standard deviation that of a new observation.

    Parameters
    ----------
    model : fitted regressor
        With ``predict(X, return_std=True)``, and `predict_interval` if it has one.
    X : array-like of shape (n, d), or (low, high), optional
        With `y`, the data to draw. Alone, rows whose range is drawn; of one column, that range.
        By default the training rows, where the model has kept them. Of relevance vectors and
        others that keep basis points alone it is their range, which may be narrower than that of
        the rows; marks at the foot of the picture say which of the two there are.
    y : array-like of shape (n,) or (n, P), optional
        Targets.
    columns : int, str or two of them, optional
        What varies, where the model has more columns than that.
    at : dict or array of shape (d,), optional
        The values at which the other columns are held, by number or name; their medians without.
    coverage : float, default 0.95
        The probability of the intervals.
    latent : bool, optional
        True for the uncertainty of the function alone, False for that of a new observation alone.
        By default both intervals, and the standard deviation of the function. Where there is a
        link, True is for the function in its own units (the logarithm of a rate, say), without
        the targets.
    output : int, optional
        Which output, where there are several.
    n_points : int, optional
        The number of points along a column: 200 for one column, 50 for each of two.
    margin : float, default 0.1
        How far beyond the data to draw, in units of their range.
    color, label : str, optional
        Of the mean of one column.
    ax : axes, optional
        One, or for two columns two: mean and standard deviation. Of two columns, one alone has
        the mean.

    Returns
    -------
    Axes, or an array of two
    """
    refuse_classifier(model)
    require_fitted(model, "; plot_samples(model, X) shows the prior of one that is not")
    coverage = require_level("coverage", coverage)
    if y is not None and (X is None or is_range(X)):
        raise ValueError("y was given without its rows: give X too")
    part = slice_of(model, X, columns, at, margin)
    known = training_rows(model) if y is None else Known(to_matrix(X), np.array(y, float), True)
    inputs, targets = known.X, known.y
    if targets is not None:
        targets = one_output(targets, output, model)
        if inputs is None or len(inputs) != len(targets):
            raise ValueError(
                f"X and y must have as many rows, got {np.shape(X)[0]}, {len(targets)}"
            )
    # Where columns are held, the data lie off the slice: only where they are is marked.
    seen = None if inputs is None else inputs[:, part.columns]
    link = link_of(model)
    beneath = link is not None and latent is True  # in units that the targets are not in
    targets = targets if part.is_whole and not beneath else None
    unknown = knows_latent(model) if latent is None else latent
    if unknown and not knows_latent(model):
        raise ValueError(
            f"{type(model).__name__} does not tell the function from its noise: leave latent out"
        )
    ylabel = f"latent function of {label_of(y)}" if beneath else label_of(y)
    if len(part.columns) == 1:
        bands = [True, False] if latent is None and unknown else [unknown]
        values, rows = part.grid(n_points or 200)
        X_grid = rows_like_training(model, rows)
        mean = one_output(predict(model, X_grid, beneath)[0], output, model)
        dark = "for the function" if link is None or beneath else f"for the mean of {ylabel}"
        ends = {}
        for kind in bands:
            both = interval(model, X_grid, coverage, kind)
            both = through(link, both) if kind and not beneath else both
            text = f"{100 * coverage:g}% {dark if kind else 'of new observations'}"
            ends[text] = (0.3 if kind else 0.15, [one_output(end, output, model) for end in both])
        chosen = axes_for(ax)
        _draw_curve(chosen, values[0], mean, ends, color, label)
        if seen is not None and targets is not None:
            _draw_points(chosen, seen[:, 0], targets)
        elif seen is not None:
            _draw_rug(chosen, seen[:, 0], "rows" if known.are_rows else "basis points")
        chosen.set(xlabel=part.names[part.columns[0]], ylabel=ylabel, xlim=part.ranges[0])
        if part.caption():
            chosen.set_title(part.caption(), fontsize="small", loc="left")
        chosen.legend(frameon=False, fontsize="small")
        return chosen
    unknown = unknown and (link is None or beneath)
    ylabel = f"the {ylabel}" if beneath else ylabel
    return _two_columns(model, part, seen, targets, unknown, output, n_points or 50, ylabel, ax)


def _draw_curve(
    ax: Axes,
    x: Floats,
    mean: Floats,
    ends: dict[str, tuple[float, list[Floats]]],
    color: str,
    label: str | None,
) -> None:
    for text, (alpha, (low, high)) in ends.items():
        ax.fill_between(x, low, high, color=color, alpha=alpha, linewidth=0, label=text)
    ax.plot(x, mean, color=color, linewidth=1.8, label=label or "mean")


def _draw_points(ax: Axes, x: Floats, y: Floats) -> None:
    # many points become a cloud that shows how dense they are
    alpha = float(np.clip(200 / max(len(x), 1), 0.15, 1.0))
    size = 18.0 if len(x) <= 200 else 8.0
    ax.scatter(x, y, s=size, color=INK, alpha=alpha, linewidths=0, zorder=3, label="data")


def _draw_rug(ax: Axes, x: Floats, label: str) -> None:
    # at the foot of the axes, whatever the range of the values
    ax.plot(
        x,
        np.zeros(len(x)),
        "|",
        color=INK,
        markersize=8,
        alpha=0.5,
        transform=ax.get_xaxis_transform(),
        clip_on=False,
        label=label,
    )


def _two_columns(
    model: Any,
    part: Slice,
    seen: Floats | None,
    targets: Floats | None,
    latent: bool,
    output: int | None,
    n_points: int,
    ylabel: str,
    ax: Any,
) -> Any:
    values, rows = part.grid(n_points)
    X_grid = rows_like_training(model, rows)
    shape = (n_points, n_points)
    mean, std = (
        one_output(out, output, model).reshape(shape) for out in predict(model, X_grid, latent)
    )
    single = ax is not None and not is_several(ax)
    panels = np.array([axes_for(ax)]) if single else panels_for(ax, (1, 2), (10.0, 4.0))
    what = "standard deviation" + (" of the function" if latent else " of a new observation")
    surfaces = [(mean, f"mean of {ylabel}", "viridis"), (std, what, "magma_r")]
    for panel, (surface, title, colours) in zip(panels, surfaces, strict=False):
        # the colours of the data are those of the mean
        pool = surface if targets is None or surface is std else np.append(surface, targets)
        levels = _round_levels(float(np.min(pool)), float(np.max(pool)))
        filled = panel.contourf(*values, surface, levels=levels, cmap=colours)
        panel.contour(*values, surface, levels=levels, colors="white", linewidths=0.4, alpha=0.7)
        if seen is not None:
            style: dict[str, Any] = {"facecolors": "white", "s": 12, "edgecolors": INK}
            if surface is mean and targets is not None:
                style = {
                    "c": targets,
                    "cmap": colours,
                    "vmin": levels[0],
                    "vmax": levels[-1],
                    "s": 26,
                }
                style |= {"edgecolors": "white"}
            panel.scatter(seen[:, 0], seen[:, 1], linewidths=0.6, **style)
        bar = panel.figure.colorbar(filled, ax=panel)
        bar.set_ticks(list(levels[:: max(1, len(levels) // 6)]))
        names = [part.names[c] for c in part.columns]
        panel.set(xlabel=names[0], ylabel=names[1], xlim=part.ranges[0], ylim=part.ranges[1])
        title = f"{title}\n{part.caption()}" if part.caption() else title
        panel.set_title(title, fontsize="medium", loc="left")
    return panels[0] if single else panels


def _round_levels(low: float, high: float) -> Floats:
    """Return some dozen round numbers that contain a range."""
    from matplotlib.ticker import MaxNLocator

    high = high if high > low else low + max(abs(low), 1.0)
    return np.asarray(MaxNLocator(12).tick_values(low, high), dtype=float)
