"""Functions drawn from a process, before and after it has seen data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.options import as_generator
from mercer.metrics.gaussian import gaussian_interval
from mercer.plotting.models import (
    column_names,
    interval,
    is_fitted,
    kernel_of,
    knows_latent,
    link_of,
    one_output,
    predict,
    refuse_classifier,
    rows_like_training,
    through,
    to_matrix,
    training_rows,
)
from mercer.plotting.slices import along, is_range, span
from mercer.plotting.style import GREY, INK, PALETTE, axes_for, sequence
from mercer.posterior import Posterior, prior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_samples"]

Floats = NDArray[np.float64]

_COVERAGE = 0.95


def plot_samples(
    model: Any,
    X: Any = None,
    n_samples: int = 5,
    *,
    of: str = "auto",
    latent: bool | None = None,
    random_state: Any = 0,
    output: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw functions from the prior or the posterior, on their mean and 95% band.

    Parameters
    ----------
    model : kernel, or regressor with `sample_y`
        A kernel is the process with that covariance and mean 0.
    X : array-like of shape (n, 1), or (low, high), optional
        Where to draw: rows of one column, or a range. By default the range of the training rows,
        or of the basis points where a model keeps no others, with a tenth on either side.
    n_samples : int, default 5
        How many functions.
    of : {"auto", "prior", "posterior"}, default "auto"
        "auto" is the posterior of a fitted model, and the prior of anything else. The prior of a
        fitted model has its fitted hyperparameters. That of relevance vectors, Laplacian processes
        and `SparseGPRegressor` with "sor" is a ValueError: it is one of the coefficients of a sum
        of kernel functions, and no process with that kernel for its covariance.
    latent : bool, optional
        False draws observations, with their noise; a prior from a kernel has none. By default
        functions are drawn without it, in the units of the targets: where there is a link, as
        under counts, what the targets' mean would be. True leaves the functions in units of their
        own (the logarithm of a rate, say), without the targets where these differ.
    random_state : int, RandomState, Generator or None, default 0
        The source of randomness.
    output : int, optional
        Which output, where there are several.
    ax : axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    refuse_classifier(model)
    kernel = kernel_of(model)
    fitted = kernel is None and is_fitted(model)
    if of not in ("auto", "prior", "posterior"):
        raise ValueError(f'of must be "auto", "prior" or "posterior", got {of!r}')
    if kernel is None and not hasattr(model, "sample_y"):
        raise ValueError(f"a kernel, or a model with sample_y, is wanted; got {model!r}")
    if of == "posterior" and not fitted:
        name = "a kernel" if kernel is not None else f"a {type(model).__name__} that is not fitted"
        raise ValueError(f'{name} has no posterior: call fit(X, y) first, or draw of="prior"')
    before = of == "prior" or not fitted
    rows, known = _rows(X, model if fitted else None)
    link = None if kernel is not None else link_of(model)
    beneath = link is not None and latent is True  # in units that the targets are not in
    linked = None if beneath else link
    without = latent is not False and (kernel is not None or knows_latent(model))
    process = prior(kernel) if kernel is not None else None
    if fitted and of == "prior":
        process = _prior_of(model)
    if process is not None:
        draws = process.sample(rows, n_samples, as_generator(random_state)).transpose(0, 2, 1)
        middle, variances = process.mean_and_var(rows)
        low, high = gaussian_interval(middle, np.sqrt(variances), _COVERAGE)
        if linked is not None:
            middle = linked.predictive_mean(middle, variances)
    else:
        inputs = rows_like_training(model, rows)
        options = {"latent": True} if without else {}
        draws = model.sample_y(inputs, n_samples, random_state=random_state, **options)
        middle = predict(model, inputs, beneath)[0]
        low, high = interval(model, inputs, _COVERAGE, without)
        linked = linked if without else None  # observations are in their units already
    if linked is not None:
        draws, (low, high) = linked.conditional_mean(draws), through(linked, (low, high))
    draws = draws if draws.ndim == 2 else one_output(draws, output, model)
    centre, bottom, top = (one_output(v, output, model) for v in (middle, low, high))

    ax = axes_for(ax)
    x = rows[:, 0]
    ax.fill_between(x, bottom, top, color=GREY, alpha=0.22, linewidth=0, label="95%")
    ax.plot(x, centre, color=GREY, linewidth=1.2, linestyle="--", label="mean")
    colours = PALETTE if n_samples <= len(PALETTE) else sequence(n_samples)
    for draw, colour in zip(draws.T, colours, strict=False):
        ax.plot(x, draw, color=colour, linewidth=1.3)
    if not (before or beneath or known is None or known[1] is None):
        targets = one_output(known[1], output, model)
        ax.scatter(known[0][:, 0], targets, s=18, color=INK, linewidths=0, zorder=3, label="data")
    name = column_names(model, 1, X)[0]
    ylabel = "y" if not without else "f(x)" if link is None else "mean of y"
    ylabel = "latent function of y" if beneath else ylabel
    ax.set(xlabel=name, ylabel=ylabel, xlim=(x.min(), x.max()))
    kind = "prior" if before else "posterior"
    number = "1 draw" if n_samples == 1 else f"{n_samples} draws"
    ax.set_title(f"{number} from the {kind}", fontsize="medium", loc="left")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _prior_of(model: Any) -> Posterior:
    """Return the process that a fitted model has for its prior, in the units of the targets."""
    if not hasattr(model, "kernel_"):
        raise ValueError(f"{type(model).__name__} has no kernel_ whose prior could be drawn")
    if _is_sum(model):
        raise ValueError(
            f"the prior of this {type(model).__name__} is one of the coefficients of a sum of "
            "kernel functions, and not the process with covariance kernel_: "
            "mercer.priors.sample_functions(prior, kernel, centres, X) draws such sums, and "
            "plot_samples(kernel, X) draws from the process"
        )
    kernel = kernel_of(model.kernel_)
    if kernel is None:
        raise ValueError(f"{model.kernel_!r} is no kernel")
    posterior = getattr(model, "posterior_", None)
    outputs = getattr(posterior, "n_outputs", 1)
    process = prior(kernel, getattr(model, "mean_", None), outputs)
    return process.replace(scale=posterior.scale) if posterior is not None else process


def _is_sum(model: Any) -> bool:
    """Whether a fitted model is a sum of kernel functions, without the rest of the process."""
    posteriors = getattr(model, "posteriors_", [getattr(model, "posterior_", None)])
    return hasattr(model, "n_relevance_") or any(
        getattr(posterior, "weight", 1) == 0 for posterior in posteriors
    )


def _rows(X: Any, model: Any) -> tuple[Floats, tuple[Floats, Floats | None] | None]:
    """Return where to draw, in order, and the training rows that a fitted model has kept."""
    inputs, targets = (None, None) if model is None else training_rows(model)[:2]
    known = None if inputs is None else (inputs, targets)
    if X is None and inputs is None:
        raise ValueError("give X: the rows at which to draw, or their range as (low, high)")
    if X is None:
        rows = inputs
    elif is_range(X):
        rows = along(X, 200)[:, None]
    else:
        rows = to_matrix(X)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
    assert rows is not None
    columns = getattr(model, "n_features_in_", rows.shape[1])
    if rows.shape[1] != 1 or columns != 1:
        raise ValueError(
            f"draws are shown over one column, and there are {max(columns, rows.shape[1])}; "
            "plot_fit shows slices of a model with more"
        )
    return along(span(rows, 0.1), 200)[:, None] if X is None else rows, known
