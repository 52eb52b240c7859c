"""From rows and a user's model to the objective of a fit by an approximate engine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.prepare_exact import require_squares
from mercer.estimators.rows import Rows
from mercer.estimators.starting import (
    Prepared,
    begin_at_best,
    begins_warm,
    begun_kernel,
    of_these_rows,
    warmed,
)
from mercer.evidence import Data, LatentData, LatentObjective, undetermined
from mercer.evidence.defaults import default_starts
from mercer.evidence.mean_start import begun_mean
from mercer.kernels import Kernel, Scaled
from mercer.likelihoods import Gaussian, Likelihood
from mercer.likelihoods.spread import spread_of
from mercer.means import Mean

__all__ = ["BegunLatent", "begin_latent", "prepare_latent"]

Floats = NDArray[np.float64]


class BegunLatent(NamedTuple):
    """A model of a latent function at its start, on the rows of a fit.

    objective : what it maximises
    default : the default kernel, None if the user gave another
    widths : (d,) standard deviations of the columns
    variance : that of plausible latent values
    undetermined : why the targets say nothing about it, None if they do
    searched : whether there is going to be a search
    warm : whether it starts from the last fit
    """

    objective: LatentObjective
    default: Scaled | None
    widths: Floats
    variance: float
    undetermined: str | None
    searched: bool
    warm: bool


def prepare_latent(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Likelihood | None,
    mean: Mean,
    rows: Rows,
    inference: str,
) -> Prepared:
    """Return the objective of a fit by an approximate engine, at its start.

    Of the default kernel that is the best of a few if there is going to be a search.
    """
    begun = begin_latent(estimator, kernel, likelihood, mean, rows, inference)
    if begun.default is not None and begun.searched and not begun.warm:
        begin_at_best(begun.objective, default_starts(begun.default))
    return Prepared(begun.objective, begun.undetermined, rows.multioutput)


def begin_latent(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Likelihood | None,
    mean: Mean,
    rows: Rows,
    inference: str,
) -> BegunLatent:
    """Return the model that a regressor under any noise starts from.

    The start is as that of an exact fit; what the user left open of the likelihood comes from the
    data.
    """
    likelihood = Gaussian() if likelihood is None else likelihood
    if isinstance(likelihood, Gaussian):
        likelihood = of_these_rows(likelihood, rows)
    y = _one_output(rows, likelihood)
    latent = likelihood.initial(y)
    reason = _undetermined(rows, likelihood, mean)
    # what the targets say of the function, less a mean that is known
    known = mean(rows.X, 1)[:, 0] if mean.estimate is None else 0.0
    width = spread_of(latent - known, rows.weights)
    if likelihood.adds_noise:
        require_squares(rows.Y, np.atleast_1d(width))
    begun = begun_kernel(kernel, rows, width**2, estimator.hyperprior)
    started = likelihood.begun(latent - known, rows.weights)
    mean = begun_mean(mean, rows.X, latent[:, None], rows.weights)
    model: tuple[Any, Any, Any] = (begun.kernel, _with_bounds_of(likelihood, started), mean)
    warm = begins_warm(estimator, begun.kernel)
    if warm:
        model = (
            warmed(model[0], estimator.kernel_),
            warmed(model[1], estimator.likelihood_),
            warmed(model[2], estimator.mean_),
        )
    kernel, likelihood, mean = model
    searched = reason is None and estimator.optimizer is not None
    if searched and not warm:
        kernel = kernel.with_start_from(begun.widths, width**2)
    # Bounds that come from the data serve the search alone: what is fitted keeps the user's.
    bounds = np.concatenate(
        [
            kernel.with_bounds_from(begun.widths, width**2).bounds,
            likelihood.begun(latent - known, rows.weights).bounds,
            mean.bounds,
        ]
    )
    objective = LatentObjective(
        kernel, likelihood, mean, LatentData(rows.X, y, rows.weights), inference, bounds
    )
    return BegunLatent(objective, begun.default, begun.widths, width**2, reason, searched, warm)


def _one_output(rows: Rows, likelihood: Likelihood) -> Floats:
    """Return the targets (n,), or refuse several columns of them."""
    outputs = rows.Y.shape[1]
    if outputs > 1:
        raise ValueError(
            f"y has {outputs} columns, and outside exact inference a fit has one: under "
            f"{type(likelihood).__name__} noise outputs do not share a covariance. Fit one model "
            "an output: [clone(model).fit(X, y) for y in np.asarray(Y).T]"
        )
    return rows.Y[:, 0]


def _undetermined(rows: Rows, likelihood: Likelihood, mean: Mean) -> str | None:
    """Return why the targets say nothing about the process, None if they do.

    Under noise of a free scale it is as with Gaussian noise; counts have a scale of their own,
    unless there are none: the evidence grows as the rate shrinks.
    """
    if likelihood.adds_noise:
        return undetermined(Data(rows.X, rows.Y, rows.weights, np.ones(1)), mean)
    if likelihood.counts_events and not np.any(rows.Y):
        return "all counts are 0"
    return "there is only one row" if len(rows.Y) == 1 else None


def _with_bounds_of(given: Likelihood, started: Likelihood) -> Likelihood:
    """Return the likelihood as it starts, with no other bounds than the user's."""
    own = given.parameters
    users = {
        name: parameter.replace(bounds=own[name].bounds if name in own else None)
        for name, parameter in started.parameters.items()
    }
    return started.with_parameters(**users) if users else started
