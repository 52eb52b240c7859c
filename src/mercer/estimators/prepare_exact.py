"""From rows and a user's model to the objective of an exact fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import means
from mercer.estimators.rows import Rows
from mercer.estimators.starting import (
    Prepared,
    begins_warm,
    begun_kernel,
    of_these_rows,
    warmed,
)
from mercer.evidence import Data, Objective, undetermined
from mercer.evidence.defaults import bounded_noise, default_noise, default_starts, output_units
from mercer.evidence.guarded import Guarded
from mercer.evidence.starts import noisy_start
from mercer.kernels import Kernel, Scaled
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = [
    "Begun",
    "begin",
    "begin_at_defaults",
    "exact_objective",
    "outputs_in_units",
    "prepare_exact",
    "require_squares",
]

Floats = NDArray[np.float64]


def outputs_in_units(
    rows: Rows, mean: Mean, normalize: bool, default_model: bool, limit: float = 1e140
) -> tuple[Floats, float, Mean]:
    """Return the units in which the kernel sees the outputs, their variance in these, and the mean.

    Several outputs under one default kernel are seen in units of their standard deviations, unless
    the noise is given, which is in the user's units. Targets larger than `limit`, or smaller than
    its inverse, are refused.
    """
    Y, weights = rows.Y, rows.weights
    outputs = Y.shape[1]
    if normalize and isinstance(mean, means.Zero):
        # scikit-learn's meaning: the normalised targets have mean 0
        mean = means.Constant(np.average(Y, axis=0, weights=weights), estimate=None)
    residual = Y if mean.estimate is not None else Y - mean(rows.X, outputs)
    width = output_units(Y, residual, weights)
    require_squares(Y, width, limit)
    if normalize or (default_model and outputs > 1):
        return width, 1.0, mean
    return np.ones(outputs), float(np.mean(width**2)), mean


def require_squares(Y: Floats, width: Floats, limit: float = 1e140) -> None:
    """Raise ValueError where the targets are so large or so small that variances are no doubles."""
    size, least = np.max(np.abs(Y)), np.min(width)
    if size > limit or least < 1.0 / limit:
        raise ValueError(
            f"the targets are as large as {size:.3g} and vary by {least:.3g}; their variances must "
            "be numbers that doubles hold: give them in other units, "
            f"from {1.0 / limit:.0e} to {limit:.0e}"
        )


class Begun(NamedTuple):
    """A model of Gaussian noise at its start, on the rows of a fit.

    kernel, likelihood, mean : the model
    data : the rows
    bounds : (p, 2) of the kernel's and the likelihood's parameters, in a search
    default : the default kernel, None if the user gave another
    widths : (d,) standard deviations of the columns
    variance : that of the targets, in units in which the kernel sees them
    undetermined : why the targets say nothing about it, None if they do
    searched : whether there is going to be a search
    warm : whether it starts from the last fit
    """

    kernel: Kernel
    likelihood: Gaussian
    mean: Mean
    data: Data
    bounds: Floats
    default: Scaled | None
    widths: Floats
    variance: float
    undetermined: str | None
    searched: bool
    warm: bool


def begin(
    estimator: Any, kernel: Kernel | None, likelihood: Gaussian | None, mean: Mean, rows: Rows
) -> Begun:
    """Return the model that a regressor under Gaussian noise starts from.

    The start is the user's, but for a variance far from any of the data's units (see
    `Kernel.with_start_from`), or that of the last fit.
    """
    scale, variance, mean = outputs_in_units(
        rows, mean, estimator.normalize_y, kernel is None and likelihood is None
    )
    data = Data(rows.X, rows.Y, rows.weights, scale)
    reason = undetermined(data, mean)
    begun = begun_kernel(kernel, rows, variance, estimator.hyperprior)
    kernel = begun.kernel
    if begun.default is None and reason is not None and not estimator.normalize_y:
        # The user's kernel is then all that is known of the scale.
        variance = float(np.mean(kernel.diag(rows.X))) or 1.0
    if likelihood is None:
        likelihood = default_noise(variance)
    likelihood = of_these_rows(likelihood, rows)
    warm = begins_warm(estimator, begun.kernel)
    if warm:
        kernel = warmed(kernel, estimator.kernel_)
        likelihood = warmed(likelihood, estimator.likelihood_)
    searched = reason is None and estimator.optimizer is not None
    if searched and not warm:
        kernel = kernel.with_start_from(begun.widths, variance)
    # Bounds that come from the data serve the search alone: the fitted kernel keeps the user's.
    bounds = np.concatenate(
        [
            kernel.with_bounds_from(begun.widths, variance).bounds,
            bounded_noise(likelihood, variance).bounds,
        ]
    )
    return Begun(
        kernel,
        likelihood,
        mean,
        data,
        bounds,
        begun.default,
        begun.widths,
        variance,
        reason,
        searched,
        warm,
    )


def prepare_exact(
    estimator: Any, kernel: Kernel | None, likelihood: Gaussian | None, mean: Mean, rows: Rows
) -> Prepared:
    """Return the objective of an exact fit by a `GPRegressor`, at its start.

    Of the default model that is the best of a few if there is going to be a search, and one of
    much noise is tried after an end at none.
    """
    begun = begin(estimator, kernel, likelihood, mean, rows)
    objective = exact_objective(begun, estimator.objective)
    return Prepared(objective, begun.undetermined, rows.multioutput)


def exact_objective(begun: Begun, criterion: str = "evidence", again: bool = True) -> Objective:
    """Return the objective of an exact fit from what was begun, see `prepare_exact`.

    Without `again` there is no second search from much noise.
    """
    model = begun.kernel, begun.likelihood, begun.mean
    objective = Objective(*model, begun.data, criterion, begun.bounds)
    begin_at_defaults(objective, begun, again)
    return objective


def begin_at_defaults(objective: Guarded, begun: Begun, again: bool = True) -> None:
    """Move the start to the best of a few of the default model, if one is to be searched."""
    if begun.default is None or not begun.searched or begun.warm:
        return
    objective.begin_at_best(default_starts(begun.default))
    if again and begun.likelihood.theta.size:
        objective.again = noisy_start(objective, begun.default, begun.variance)
