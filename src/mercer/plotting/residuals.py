"""What a model did not foresee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from mercer.metrics.gaussian import standardised
from mercer.plotting.models import label_of, outcomes
from mercer.plotting.style import BLUE, GREY, VERMILION, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_residuals"]


def plot_residuals(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    output: int | None = None,
    outlying: float = 3.0,
    color: str = BLUE,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw standardised residuals, (observed - mean)/std, against the prediction.

    Of a model that is right they lie evenly around 0, 95% of them in the band, whatever is
    predicted. A funnel shows noise that changes, a bend a mean that is wrong.

    Where the predicted standard deviation is infinite, as with a `StudentT` of at most 2 degrees of
    freedom, they are normal scores: where a normal variable has the predicted probability of at
    most the observed value.

    Parameters
    ----------
    model : fitted regressor
        With ``predict(X, return_std=True)``.
    X, y : array-like of shapes (n, d) and (n,) or (n, P), optional
        Rows that the model was not fitted to. Without them the training rows, each predicted from
        the others by `loo`.
    output : int, optional
        Which output, where there are several.
    outlying : float, default 3.0
        Residuals of more than this many standard deviations are marked.
    color, label : str, optional
        Of the points.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    if not outlying > 0:
        raise ValueError(f"outlying must be a positive number, got {outlying!r}")
    predicted = outcomes(model, X, y, output)
    scored = bool(np.any(np.isinf(predicted.std)))
    if scored:
        z = np.asarray(ndtri(predicted.pit))
    else:
        z = standardised(predicted.y, predicted.mean, predicted.std)
    far = np.abs(z) > outlying
    n = len(z)
    ax = axes_for(ax)
    half = float(ndtri(0.975))
    ax.axhspan(-half, half, color=GREY, alpha=0.18, linewidth=0, label="95%")
    ax.axhline(0.0, color=GREY, linewidth=1.0)
    alpha = float(np.clip(300 / n, 0.2, 0.85))
    name = label or ("leave-one-out" if predicted.left_out else "observed")
    style: dict[str, Any] = {"linewidths": 0, "zorder": 3}
    ax.scatter(predicted.mean[~far], z[~far], s=18, color=color, alpha=alpha, label=name, **style)
    if np.any(far):
        expected = 2.0 * n * float(ndtr(-outlying))
        text = f"beyond {outlying:g}: {int(np.sum(far))}, by chance {expected:.1g}"
        ax.scatter(
            predicted.mean[far], z[far], s=30, marker="D", color=VERMILION, label=text, **style
        )
    kind = "leave-one-out prediction" if predicted.left_out else "prediction"
    unit = "normal score" if scored else "(observed - mean) / standard deviation"
    ax.set(xlabel=f"{kind} of {label_of(y)}", ylabel=unit)
    reach = 1.3 * max(3.0, float(np.max(np.abs(z[np.isfinite(z)]), initial=0.0)))
    ax.set_ylim(-reach, reach)
    close: dict[str, float] = {"columnspacing": 1.0, "handlelength": 1.2, "handletextpad": 0.5}
    ax.legend(frameon=False, fontsize="small", loc="upper right", ncols=3, **close)
    return ax
