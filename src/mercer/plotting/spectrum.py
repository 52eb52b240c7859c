"""Which functions a kernel holds simple: its eigenfunctions and eigenvalues (BKM section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels import Kernel, eigensystem
from mercer.plotting.models import kernel_of
from mercer.plotting.slices import along, is_range
from mercer.plotting.style import BLUE, GREY, axes_for, is_several, panels_for, sequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_eigenfunctions", "plot_eigenvalues"]

Floats = NDArray[np.float64]

_NODES = 200


def plot_eigenfunctions(
    kernel: Any,
    X: Any,
    n: int | None = None,
    *,
    weights: ArrayLike | None = None,
    n_points: int = 300,
    ax: Any = None,
) -> Any:
    """Draw the eigenfunctions of a kernel's largest eigenvalues, over one column.

    They are what the process is made of: a draw is their sum with independent coefficients whose
    variances are the eigenvalues.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : (low, high), or array-like of shape (m, 1)
        The measure: uniform between two numbers, or a sample or quadrature nodes.
    n : int, optional
        How many functions; without it 6, or as many as there are nodes.
    weights : array of shape (m,), optional
        Weights of the rows of X; equal ones without it.
    n_points : int, default 300
        At how many points the functions are drawn.
    ax : axes, optional
        One for all the functions, or n of them for one each.

    Returns
    -------
    Axes, or an array of them if several were given

    See Also
    --------
    mercer.kernels.eigensystem : the numbers that are drawn.
    """
    kernel = _kernel_of(kernel)
    nodes, w = _measure(X, weights, kernel)
    if nodes.ndim != 2 or nodes.shape[1] != 1:
        raise ValueError(
            f"eigenfunctions are drawn over one column of numbers, X has shape {nodes.shape}; "
            "mercer.kernels.eigensystem gives them for any number"
        )
    n = _number(n, 6, nodes, w)
    values, functions = eigensystem(kernel, nodes, w, n)
    ends = X if is_range(X) else (nodes.min(), nodes.max())
    x = along(ends, n_points)
    phi = functions(x[:, None])  # (n_points, n)
    several = is_several(ax)
    panels = panels_for(ax, (1, n), (6.4, 4.0)) if several else np.array([axes_for(ax)] * n)
    for i, (panel, colour) in enumerate(zip(panels, sequence(n), strict=True)):
        label = rf"$\lambda_{{{i + 1}}}$ = {values[i]:.3g}"
        if several:
            panel.axhline(0.0, color=GREY, linewidth=0.6)
            panel.set_title(label, fontsize="medium")
        elif i == 0:
            panel.axhline(0.0, color=GREY, linewidth=0.6)
        panel.plot(x, phi[:, i], color=BLUE if several else colour, linewidth=1.6, label=label)
        panel.set(xlim=(x[0], x[-1]))
    if several:
        return panels
    panels[0].set(xlabel="x", ylabel="eigenfunction")
    # beside the curves, which leave no corner free
    panels[0].legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return panels[0]


def plot_eigenvalues(
    kernel: Any,
    X: Any,
    n: int | None = None,
    *,
    weights: ArrayLike | None = None,
    share: float = 0.99,
    color: str = BLUE,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a kernel's largest eigenvalues, those that hold most of its variance filled.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : (low, high), or array-like of shape (m, d)
        The measure: uniform between two numbers, or a sample or quadrature nodes.
    n : int, optional
        How many eigenvalues, without it 20, or as many as there are nodes; those that are 0 to
        rounding are not drawn, nor those below 0 that a kernel has which is no covariance.
    weights : array of shape (m,), optional
        Weights of the rows of X; equal ones without it.
    share : float, default 0.99
        The filled ones hold this much of the variance of a draw, E[k(x, x)]. Of a kernel that is
        no covariance there are no draws, and all are filled.
    color, label : str, optional
        Of the points.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}")
    kernel = _kernel_of(kernel)
    nodes, w = _measure(X, weights, kernel)
    values = eigensystem(kernel, nodes, w, _number(n, 20, nodes, w)).values
    values = values[values > 0]
    needed, text = len(values), "those above 0; the kernel is no covariance"
    if kernel.is_mercer:
        mean = np.average(kernel.diag(nodes), weights=w)
        needed, text = _holding(values, float(mean if w is None else mean * np.sum(w)), share)
    number = np.arange(1, len(values) + 1)
    ax = axes_for(ax)
    faces = np.where(number <= needed, color, "white")
    ax.plot(number, values, color=color, linewidth=0.8, alpha=0.6)
    ax.scatter(
        number,
        values,
        s=26,
        facecolors=list(faces),
        edgecolors=color,
        linewidths=1.2,
        zorder=3,
        label=text if label is None else f"{label}: {text}",
    )
    ax.set_yscale("log")
    ax.set(xlabel="i", ylabel=r"eigenvalue $\lambda_i$")
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _holding(values: Floats, total: float, share: float) -> tuple[int, str]:
    """Return how many eigenvalues hold a share of the total variance, and words for it."""
    needed = int(np.sum(np.cumsum(values) < share * total)) + 1
    if needed <= len(values):
        return needed, f"the first {needed}: {100 * share:g}% of the variance"
    held = 100 * np.sum(values) / total
    return len(values), f"all {len(values)}: {held:.3g}% of the variance"


def _number(n: int | None, usual: int, nodes: Any, weights: Any) -> int:
    """Return how many to draw: as many as are asked for, or the usual number where there are."""
    if n is not None:
        return n
    return min(usual, len(nodes) if weights is None else int(np.sum(np.asarray(weights) > 0)))


def _kernel_of(given: Any) -> Kernel:
    kernel = kernel_of(given)
    if kernel is None:
        raise ValueError(f"a kernel is wanted, such as RBF(1.0) or model.kernel_; got {given!r}")
    return kernel


def _measure(X: Any, weights: ArrayLike | None, kernel: Kernel) -> tuple[Any, Floats | None]:
    """Return nodes and weights; of a range those of Gauss, for the uniform distribution on it."""
    if not is_range(X):
        return kernel.inputs(X), None if weights is None else np.asarray(weights, dtype=float)
    if weights is not None:
        raise ValueError("a range (low, high) stands for the uniform measure: leave weights out")
    low, high = along(X, 2)
    nodes, w = np.polynomial.legendre.leggauss(_NODES)
    return (0.5 * (low + high) + 0.5 * (high - low) * nodes)[:, None], 0.5 * w
