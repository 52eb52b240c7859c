"""Which columns a fitted kernel looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.evidence.shares import relevance_in_words, relevances_by_share, terms_of
from mercer.kernels import Linear
from mercer.plotting.models import (
    column_names,
    kernel_of,
    require_fitted,
    to_matrix,
    training_rows,
)
from mercer.plotting.style import PALETTE, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_relevance"]


def plot_relevance(
    model: Any, X: Any = None, *, n_columns: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how fast the fitted function may change along each column.

    The bar of a column is its standard deviation over its length scale: how many length scales its
    values are apart. Along a column of much less than 1 the function hardly bends (it may still
    have a slope); one of several is looked at closely.

    Where the kernel is a sum, the bars of each part are multiplied by its share of the prior
    standard deviation over the rows, so that one that explains nothing makes no column relevant.
    Those of a linear part are its columns' shares. Periodic parts have none.

    Parameters
    ----------
    model : fitted estimator, or kernel
        With a `kernel_` of which at least one part has length scales, or is linear. Of a
        model with a list of them, for each class or one beside the other, give one of these, and X.
    X : array-like of shape (n, d), optional
        Rows whose standard deviations are the units; without it the training rows, with the
        weights that they were fitted with. Models that do not keep these, `X_train_`, want it.
    n_columns : int, optional
        How many columns to draw, the most relevant ones; all without it.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    kernel = kernel_of(model)
    if kernel is None:
        require_fitted(model)
        fitted = getattr(model, "kernel_", None)
        if isinstance(fitted, list):
            # where each class has a kernel of its own, it has a search of its own
            of_classes = isinstance(getattr(model, "history_", None), list)
            raise ValueError(
                f"this {type(model).__name__} has {len(fitted)} kernels"
                f"{', one for each class' if of_classes else ''}: give one of them, and X, as in "
                "plot_relevance(model.kernel_[i], X)"
            )
        kernel = kernel_of(fitted)
    known = training_rows(model)
    # Basis points that were chosen from the rows have another spread than these.
    rows = to_matrix(X) if X is not None else known.X if known.are_rows else None
    if rows is None:
        raise ValueError(
            f"this {type(model).__name__} does not keep the inputs it was fitted to: give X, for "
            "the spread of its columns"
        )
    d = model.n_features_in_ if hasattr(model, "n_features_in_") else rows.shape[1]
    if rows.shape[1] != d:
        raise ValueError(f"X has {rows.shape[1]} columns, the model was fitted to {d}")
    names = column_names(model, d, X)
    parts, what = [], ""
    if kernel is not None:
        kernel = kernel.with_columns(names)
        kernel.inputs(rows)  # one that was given may be for other columns
        weights = getattr(model, "sample_weight_", None) if X is None else None
        parts = relevances_by_share([kernel], rows, weights)
        linear = any(isinstance(part.kernel, Linear) for part in parts)
        what = relevance_in_words(len(terms_of(kernel)) > 1, linear)
    if not parts:
        raise ValueError(
            f"the kernel {kernel!r} has no length scales in the units of the columns; RBF, Matern, "
            "Exponential and RationalQuadratic have, and Linear is taken too"
        )
    bars = np.array([part.values for part in parts])
    most = np.max(np.nan_to_num(bars), axis=0)
    order = np.argsort(-most, kind="stable")[: d if n_columns is None else n_columns]

    ax = axes_for(ax, (6.4, 1.2 + 0.32 * len(order) * max(1.0, 0.5 * len(parts))))
    # Parts that look at the same column share its place.
    present = ~np.isnan(bars[:, order])  # (parts, columns)
    height = 0.75 / np.maximum(np.sum(present, axis=0), 1)
    rank = np.cumsum(present, axis=0) - 1 - 0.5 * (np.sum(present, axis=0) - 1)
    for i, part in enumerate(parts):
        here = present[i]
        ax.barh(
            (np.arange(len(order)) + rank[i] * height)[here],
            bars[i, order][here],
            height=0.92 * height[here],
            color=PALETTE[i % len(PALETTE)],
            label=_text(part.kernel),
        )
    ax.set_yticks(np.arange(len(order)), [names[c] for c in order])
    ax.set_ylim(len(order) - 0.5, -0.5)  # the most relevant on top
    ax.set(xlabel=what)
    ax.set_xlim(left=0.0)
    if len(parts) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _text(kernel: Any) -> str:
    length = kernel.length_scale
    shown = "" if length is None or np.ndim(length) else f"({length:.3g})"
    return type(kernel).__name__ + shown
