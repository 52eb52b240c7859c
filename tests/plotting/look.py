"""Reading numbers back from axes."""

from __future__ import annotations

import numpy as np


def line(ax, label):
    """Return x and y of the line with that label."""
    (found,) = [one for one in ax.lines if one.get_label() == label]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def band(ax, label):
    """Return x, low and high of a filled band."""
    (found,) = [one for one in ax.collections if one.get_label() == label]
    vertices = found.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    ends = [vertices[vertices[:, 0] == value, 1] for value in x]
    return x, np.array([e.min() for e in ends]), np.array([e.max() for e in ends])


def points(ax, label):
    """Return the points of a scatter, (n, 2)."""
    (found,) = [one for one in ax.collections if one.get_label() == label]
    return np.asarray(found.get_offsets(), float)


def labels(ax):
    """Return the texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]
