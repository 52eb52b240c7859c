"""Drawing the figures of experiments; matplotlib comes in by way of `mercer.plotting`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.experiments.records import Figure, Line, Surface

__all__ = ["draw"]


def draw(figure: Figure | Surface, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a PNG file."""
    from mercer.plotting.style import axes_for, pyplot

    size = (7.2, 4.6) if isinstance(figure, Figure) else (8.0, 3.6)
    ax = axes_for(None, size)
    picture: Any = ax.figure
    try:
        if isinstance(figure, Figure):
            _draw_lines(figure, ax)
        else:
            _draw_surface(figure, ax)
        picture.savefig(path, dpi=150, format="png")
    finally:
        pyplot().close(picture)


def _draw_lines(figure: Figure, ax: Any) -> None:
    from mercer.plotting.style import INK, sequence

    for line, color in zip(figure.lines, sequence(len(figure.lines)), strict=True):
        _add(ax, line, color)
    if figure.mark is not None:
        value, meaning = figure.mark
        ax.axhline(value, color=INK, linewidth=0.8, linestyle=":", label=meaning)
    ax.set(xlabel=figure.x_label, ylabel=figure.y_label)
    ax.set_xscale("log" if figure.log_x else "linear")
    ax.set_yscale("log" if figure.log_y else "linear")
    ax.set_title(figure.title, fontsize="medium", loc="left")
    ax.legend(frameon=False, fontsize="small")


def _draw_surface(figure: Surface, ax: Any) -> None:
    from mercer.plotting.style import INK

    places = ax.figure.add_gridspec(1, 2)
    ax.set_subplotspec(places[0])
    ax.imshow(figure.values, cmap="gray", origin="lower", extent=figure.extent)
    ax.plot(*figure.points.T, ".", color=INK, markersize=2.0)
    ax.set_title(figure.title, fontsize="medium", loc="left")
    left, right, low, high = figure.extent
    rows, columns = figure.values.shape
    x, y = np.meshgrid(np.linspace(left, right, columns), np.linspace(low, high, rows))
    solid = ax.figure.add_subplot(places[1], projection="3d")
    solid.plot_surface(x, y, figure.values, cmap="gray", rcount=rows, ccount=columns, linewidth=0.0)
    solid.view_init(elev=40, azim=-125)


def _add(ax: Any, line: Line, color: Any) -> None:
    if line.dots:
        ax.errorbar(
            line.x,
            line.y,
            line.spread,
            color=color,
            linestyle="none",
            marker="D",
            markersize=4,
            elinewidth=0.9,
            label=line.label,
            zorder=3,
        )
        return
    ax.plot(line.x, line.y, color=color, linewidth=1.4, label=line.label)
    if line.spread is not None:
        low, high = line.y - line.spread, line.y + line.spread
        ax.fill_between(line.x, low, high, color=color, alpha=0.18, linewidth=0)
