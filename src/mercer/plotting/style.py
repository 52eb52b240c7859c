"""Colours that everybody can tell apart, and the axes to draw on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "PALETTE",
    "VERMILION",
    "axes_for",
    "panels_for",
    "sequence",
]

# Okabe and Ito's colours, which hold for the common kinds of colour blindness. Yellow is left out:
# it cannot be read as a line on white.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
ORANGE, PURPLE, SKY = "#E69F00", "#CC79A7", "#56B4E9"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
INK, GREY = "#222222", "#8A8A8A"


def pyplot() -> Any:
    """Return matplotlib.pyplot, which is imported here for the first time."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is not installed: python -m pip install matplotlib"
        ) from error
    return plt


def axes_for(ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """Return the axes that were given, or new ones in a figure of that size."""
    if ax is None:
        return panels_for(None, (1, 1), size)[0]  # type: ignore[no-any-return]
    if isinstance(ax, np.ndarray) and ax.size == 1:
        ax = ax.item()
    if not _is_axes(ax):
        raise ValueError(f"ax must be the axes to draw on, or None for new ones; got {ax!r}")
    return ax  # type: ignore[no-any-return]


def panels_for(ax: Any, shape: tuple[int, int], size: tuple[float, float]) -> NDArray[Any]:
    """Return as many axes as `shape` has places, flat: those that were given, or new ones."""
    count = shape[0] * shape[1]
    if ax is not None:
        given = np.array(ax, dtype=object).reshape(-1)
        if given.size != count or not all(_is_axes(one) for one in given):
            raise ValueError(
                f"ax must be {count} axes to draw on, or None for new ones; got {ax!r}"
            )
        return given
    _, made = pyplot().subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for one in made.flat:
        # A picture of our own has no box around it; the user's axes are left as they are.
        one.spines[["top", "right"]].set_visible(False)
    return np.array(made).reshape(-1)


def is_several(ax: Any) -> bool:
    """Whether several axes were given."""
    return isinstance(ax, (Sequence, np.ndarray)) and np.size(np.array(ax, dtype=object)) > 1


def _is_axes(thing: Any) -> bool:
    from matplotlib.axes import Axes

    return isinstance(thing, Axes)


def sequence(n: int) -> NDArray[Any]:
    """Return n colours in an order that shows, from dark to light, also in grey."""
    import matplotlib

    # the last tenth of the map is yellow
    return np.asarray(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, max(n, 1))))
