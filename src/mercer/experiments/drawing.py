"""Drawing the figures of experiments; matplotlib comes in by way of `mercer.plotting`."""

from __future__ import annotations

import os
from typing import Any

from mercer.experiments.records import Figure, Line

__all__ = ["draw"]


def draw(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a PNG file."""
    from mercer.plotting.style import INK, axes_for, pyplot, sequence

    ax = axes_for(None, (7.2, 4.6))
    picture: Any = ax.figure
    try:
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
        picture.savefig(path, dpi=150, format="png")
    finally:
        pyplot().close(picture)


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
