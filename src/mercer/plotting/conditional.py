"""What observing one of two normal variables says of the other (BKM section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.plotting.models import refuse_classifier
from mercer.plotting.style import GREY, INK, PALETTE, axes_for, is_several, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_conditional"]

Floats = NDArray[np.float64]


def plot_conditional(
    cov: ArrayLike,
    given: ArrayLike,
    mean: ArrayLike | None = None,
    *,
    variables: tuple[int, int] = (0, 1),
    names: tuple[str, str] = ("$y_1$", "$y_2$"),
    ax: Any = None,
) -> NDArray[Any]:
    """Draw the joint density of two normal variables, and one given the other.

    Left, the contours that hold half, nine tenths and 99% of the joint density, with the line of
    the conditional mean. Right, on the same vertical axis, the marginal density of the second
    variable and its conditional density for each observed value of the first (BKM 30).

    Parameters
    ----------
    cov : array-like of shape (p, p)
        The joint covariance, such as ``kernel(X)`` or that of ``model.predict(X,
        return_cov=True)``.
    given : float or array of floats
        The observed value, or values, of the first variable.
    mean : array-like of shape (p,), optional
        The joint mean; zero without it.
    variables : (int, int), default (0, 1)
        Which two of the p variables: the observed one and the other.
    names : (str, str)
        Their labels.
    ax : axes, or two, optional
        For the joint density and for the densities of the second variable. One alone is split.

    Returns
    -------
    array of two axes
        The joint density, and the densities of the second variable.
    """
    refuse_classifier(cov)  # a model in place of its covariance
    m, S = _moments(mean, cov, variables)
    values = np.atleast_1d(_numbers(given, "given must be one or more finite numbers"))
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ValueError(f"given must be one or more finite numbers, got {given!r}")
    slope = S[0, 1] / S[0, 0]
    # (BKM 44) and (BKM 45), for one variable given one other
    means = m[1] + slope * (values - m[0])
    std = np.sqrt(S[1, 1] - slope * S[0, 1])
    spread = np.sqrt(np.diag(S))
    reach = np.array([min(m[0] - 3.2 * spread[0], *values), max(m[0] + 3.2 * spread[0], *values)])
    vertical = np.array(
        [
            min(m[1] - 3.2 * spread[1], *(means - 3.2 * std)),
            max(m[1] + 3.2 * spread[1], *(means + 3.2 * std)),
        ]
    )

    panels = panels_for(ax, (1, 2), (6, 4)) if is_several(ax) else [axes_for(ax, (7.0, 4.2))]
    joint = panels[0]
    a, b = np.linspace(reach[0], reach[1], 201), np.linspace(vertical[0], vertical[1], 201)
    U = np.stack(np.meshgrid(a - m[0], b - m[1]), axis=-1)
    distance = np.einsum("...i,ij,...j->...", U, np.linalg.inv(S), U)
    # a normal pair lies within a squared distance r with probability 1 - exp(-r/2)
    levels = -2.0 * np.log1p(-np.array([0.5, 0.9, 0.99]))
    joint.contourf(a, b, distance, levels=[0.0, *levels], cmap="Blues_r", alpha=0.45)
    lines = joint.contour(a, b, distance, levels=levels, colors=INK, linewidths=0.7)
    texts = dict(zip(levels.tolist(), ["50%", "90%", "99%"], strict=True))
    joint.clabel(lines, fmt=texts, fontsize="x-small")
    joint.plot(reach, m[1] + slope * (reach - m[0]), color=GREY, linewidth=1.0, linestyle=":")
    side = _beside(joint) if len(panels) == 1 else panels[1]
    side.plot(_normal(b, m[1], spread[1]), b, color=GREY, linewidth=1.4, label=f"p({names[1]})")
    for value, centre, colour in zip(values, means, _colours(len(values)), strict=True):
        joint.axvline(value, color=colour, linewidth=1.4)
        joint.errorbar(
            value, centre, yerr=std, color=colour, marker="o", markersize=5, capsize=3, zorder=4
        )
        density = _normal(b, centre, std)
        side.fill_betweenx(b, 0.0, density, color=colour, alpha=0.18, linewidth=0)
        text = f"p({names[1]} | {names[0]} = {value:g})"
        side.plot(density, b, color=colour, linewidth=1.6, label=text)
    joint.set(xlabel=names[0], ylabel=names[1], xlim=reach, ylim=vertical)
    side.set(xlabel="density")
    side.set_xlim(left=0.0)
    side.tick_params(labelleft=False)
    # above both, where nothing is covered
    where: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0.0, 1.0),
        "borderaxespad": 0.2,
    }
    across = joint.get_window_extent().width / joint.figure.dpi  # in inches
    where["ncols"] = max(1, int(across / 1.5))
    joint.legend(handles=list(side.lines), frameon=False, fontsize="small", **where)
    return np.array([joint, side])


def _beside(joint: Axes) -> Axes:
    """Return axes at the right side of others, which give up a third of their place for it."""
    place = joint.get_subplotspec()
    if place is None:  # they stand free in the figure
        side = joint.inset_axes((1.04, 0.0, 0.5, 1.0), sharey=joint)
    else:
        parts = place.subgridspec(1, 2, width_ratios=(2.1, 1.0), wspace=0.06)
        joint.set_subplotspec(parts[0])
        side = joint.get_figure(root=False).add_subplot(parts[1], sharey=joint)  # type: ignore[union-attr]
    side.spines[["top", "right"]].set_visible(False)
    return side


def _moments(
    mean: ArrayLike | None, cov: ArrayLike, variables: tuple[int, int]
) -> tuple[Floats, Floats]:
    K = _numbers(
        cov,
        "cov must be a covariance matrix (p, p), such as kernel(X) or that of "
        "model.predict(X, return_cov=True)",
    )
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) < 2 or not np.allclose(K, K.T):
        raise ValueError(f"cov must be a symmetric (p, p) matrix with p >= 2, got shape {K.shape}")
    p = len(K)
    m = np.zeros(p) if mean is None else _numbers(mean, f"mean must be {p} numbers")
    if m.shape != (p,):
        raise ValueError(f"mean must have shape ({p},), as cov, got {m.shape}")
    i, j = variables
    if not (0 <= i < p and 0 <= j < p and i != j):
        raise ValueError(
            f"variables must be two different numbers from 0 to {p - 1}, got {variables}"
        )
    # the others are integrated out by leaving them out
    m, K = m[[i, j]], K[np.ix_([i, j], [i, j])]
    if not (np.all(np.diag(K) > 0) and np.linalg.det(K) > 1e-12 * K[0, 0] * K[1, 1]):
        raise ValueError(
            f"the two variables have no joint density, their covariance {K.tolist()} is not "
            "positive definite; are they the same, or without variance?"
        )
    return m, K


def _numbers(values: ArrayLike, wanted: str) -> Floats:
    """Return an array of doubles; a ValueError that says what is wanted where there is none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; got {values!r}") from None


def _normal(x: Floats, mean: float, std: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((x - mean) / std) ** 2) / (np.sqrt(2.0 * np.pi) * std))


def _colours(n: int) -> list[str]:
    # the first is the blue of the contours
    return [PALETTE[1 + i % (len(PALETTE) - 1)] for i in range(n)]
