"""From validated rows and a user's model to the objective that a fit maximises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.estimators.inputs import require_numbers
from mercer.estimators.memory import require_memory
from mercer.estimators.precomputed import require_no_inputs
from mercer.estimators.resolve import as_gaussian, as_kernel, require_mercer
from mercer.evidence import Data, Objective, undetermined
from mercer.evidence.defaults import (
    bounded_noise,
    default_kernel,
    default_noise,
    default_starts,
    output_units,
    spread,
)
from mercer.kernels import Kernel, Precomputed
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = [
    "Prepared",
    "Rows",
    "all_or_nothing",
    "is_precomputed",
    "naming_the_model",
    "prepare_exact",
    "validated_rows",
]

Floats = NDArray[np.float64]


def is_precomputed(estimator: Any) -> bool:
    """Whether the estimator is to be given kernel matrices instead of inputs."""
    return isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"


class Rows(NamedTuple):
    """Training rows, those of weight 0 left out (of a precomputed matrix they stay in X).

    X : inputs
    Y : (n, P) targets
    weights : (n,) or None
    kept : mask over the rows that were given
    multioutput : whether the targets came in columns
    """

    X: Any
    Y: Floats
    weights: Floats | None
    kept: NDArray[np.bool_]
    multioutput: bool


class Prepared(NamedTuple):
    """What a fit begins with.

    objective : what it maximises, at its start
    undetermined : why the targets say nothing about it, None if they do
    multioutput : whether the targets came in columns
    """

    objective: Objective
    undetermined: str | None
    multioutput: bool


def validated_rows(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    kernel: Kernel | None,
    precomputed: bool,
) -> Rows:
    """Check what was given to `fit`, and that an exact fit to it fits into memory."""
    matrices = _matrices(estimator, precomputed)
    if kernel is None or kernel.is_numeric:
        require_numbers(X)
        require_numbers(y, "y")
        # before anything is copied
        shape = getattr(X, "shape", None)
        require_memory(shape[0] if shape else len(X) if hasattr(X, "__len__") else 0, matrices)
        X, y = validate_data(
            estimator, X, y, multi_output=True, y_numeric=True, dtype=np.float64, order="C"
        )
        if kernel is not None:
            X = kernel.inputs(X)
    else:
        X = kernel.inputs(X)
        require_memory(len(X), matrices)
        y = check_array(y, ensure_2d=False, dtype=np.float64)
    multioutput = np.ndim(y) == 2
    Y = np.array(y, dtype=float)
    Y = Y.reshape(len(Y), -1)
    if len(Y) != len(X):
        raise ValueError(f"X has {len(X)} rows and y has {len(Y)}")
    if sample_weight is None:
        return Rows(X, Y, None, np.ones(len(Y), dtype=bool), multioutput)
    weights = _checked_weights(sample_weight, len(Y))
    kept = weights > 0
    X, Y, weights = X if precomputed else X[kept], Y[kept], weights[kept]
    return Rows(X, Y, None if np.all(weights == 1.0) else weights, kept, multioutput)


def _checked_weights(sample_weight: ArrayLike, n: int) -> Floats:
    try:
        weights = np.array(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be {n} numbers, got {sample_weight!r}") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got shape {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must hold finite numbers that are not negative")
    if not np.any(weights):
        raise ValueError("sample_weight must hold at least one non-zero number")
    return weights


def _matrices(estimator: Any, precomputed: bool) -> float:
    """Return how many n x n matrices a fit has at once, at the most."""
    searching = 1.0
    if estimator.optimizer is not None:
        starts = min(effective_n_jobs(estimator.n_jobs), 1 + estimator.n_restarts)
        # leave-one-out has Q^-1, its adjoint, and a scaled copy of Q^-1 in two orders
        searching = starts * (4.0 if estimator.objective == "loo" else 1.0)
    return searching + (2.0 if precomputed else 0.0)


def _output_units(
    rows: Rows, mean: Mean, normalize: bool, default_model: bool
) -> tuple[Floats, float, Mean]:
    """Return the units in which the kernel sees the outputs, their variance in these, and the mean.

    Several outputs under one default kernel are seen in units of their standard deviations, unless
    the noise is given, which is in the user's units.
    """
    Y, weights = rows.Y, rows.weights
    outputs = Y.shape[1]
    if normalize and isinstance(mean, means.Zero):
        # scikit-learn's meaning: the normalised targets have mean 0
        mean = means.Constant(np.average(Y, axis=0, weights=weights), estimate=None)
    residual = Y if mean.estimate is not None else Y - mean(rows.X, outputs)
    width = output_units(Y, residual, weights)
    _require_squares(Y, width)
    if normalize or (default_model and outputs > 1):
        return width, 1.0, mean
    return np.ones(outputs), float(np.mean(width**2)), mean


def _require_squares(Y: Floats, width: Floats) -> None:
    """Raise ValueError where the targets are so large or so small that variances are no doubles."""
    size, least = np.max(np.abs(Y)), np.min(width)
    if size > 1e140 or least < 1e-140:
        raise ValueError(
            f"the targets are as large as {size:.3g} and vary by {least:.3g}; their variances must "
            "be numbers that doubles hold: give them in other units, from 1e-140 to 1e140"
        )


def prepare_exact(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> Prepared:
    """Return the objective of an exact fit by a `GPRegressor`, at its start.

    The start is the user's, or that of the last fit. Of the default model it is the best of a few
    if there is going to be a search.
    """
    precomputed = is_precomputed(estimator)
    kernel, noise = (None, None) if precomputed else as_kernel(estimator.kernel, X)
    likelihood = as_gaussian(estimator.likelihood, noise)
    mean = means.from_spec(estimator.mean)
    rows = validated_rows(estimator, X, y, sample_weight, kernel, precomputed)
    if precomputed:
        # The engine works on row numbers of the matrix.
        require_no_inputs(mean)
        kernel = Precomputed(rows.X)
        rows = rows._replace(X=np.flatnonzero(rows.kept).astype(float)[:, None])
    scale, variance, mean = _output_units(
        rows, mean, estimator.normalize_y, kernel is None and likelihood is None
    )
    data = Data(rows.X, rows.Y, rows.weights, scale)
    reason = undetermined(data, mean)
    widths = np.ones(1)
    if kernel is None or kernel.is_numeric:
        widths = spread(rows.X, rows.weights)
    default = None
    if kernel is None:
        kernel = default = default_kernel(widths, variance, estimator.hyperprior is not None)
    kernel = kernel.anchored(rows.X)
    require_mercer(kernel)
    if default is None and reason is not None and not estimator.normalize_y:
        # The user's kernel is then all that is known of the scale.
        variance = float(np.mean(kernel.diag(rows.X))) or 1.0
    if likelihood is None:
        likelihood = default_noise(variance)
    elif not np.all(rows.kept):
        likelihood = likelihood.subset(rows.kept)
    if rows.weights is not None:
        likelihood = likelihood.weighted(rows.weights)
    warm = estimator.warm_start and hasattr(estimator, "kernel_")
    if warm:
        kernel, likelihood = _warm(estimator, kernel, likelihood)
    # Bounds that come from the data serve the search alone: the fitted kernel keeps the user's.
    bounds = np.concatenate(
        [
            kernel.with_bounds_from(widths, variance).bounds,
            bounded_noise(likelihood, variance).bounds,
        ]
    )
    objective = Objective(kernel, likelihood, mean, data, estimator.objective, bounds)
    searched = reason is None and estimator.optimizer is not None
    if default is not None and searched and not warm:
        objective.begin_at_best(default_starts(default))
    return Prepared(objective, reason, rows.multioutput)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if what is done to it fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def naming_the_model(objective: Objective) -> Iterator[None]:
    """Say which model it was, and what may be wrong with it, if its matrix cannot be factorised."""
    try:
        yield
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            f"the covariance of the targets cannot be factorised under {objective.kernel!r} with "
            f"{objective.likelihood!r}: {error}. Likely causes: repeated rows with too little "
            "noise, a length scale far longer than the data, or a kernel that is not positive "
            "semi-definite. Try more noise, or scale the inputs"
        ) from error


def _warm(estimator: Any, kernel: Kernel, likelihood: Gaussian) -> tuple[Kernel, Gaussian]:
    """Move the start to the hyperparameters of the last fit, where they have the same form."""
    if estimator.kernel_.parameter_names == kernel.parameter_names:
        kernel = kernel.with_theta(estimator.kernel_.theta)
    if estimator.likelihood_.parameter_names == likelihood.parameter_names:
        likelihood = likelihood.with_theta(estimator.likelihood_.theta)
    return kernel, likelihood
