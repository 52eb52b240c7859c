"""What to tell of a search: why there was none, how it ended, curvature and standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.evidence.at_bounds import (
    advice_on_terms,
    length_scales_in_words,
    sides,
    warn_at_bounds,
)
from mercer.evidence.defaults import deviation, rounding
from mercer.evidence.directions import Directions
from mercer.evidence.guarded import Guarded
from mercer.evidence.maximise import ITERATIONS
from mercer.evidence.noise_alone import evidence_of_noise
from mercer.evidence.objective import Data, Objective
from mercer.evidence.optimum import Optimum
from mercer.evidence.unscaled import warn_if_too_small
from mercer.inference.exact import conditioned
from mercer.kernels import Kernel, Precomputed
from mercer.means import Mean

__all__ = [
    "hessian",
    "standard_errors",
    "undetermined",
    "warn_if_noise_does_better",
    "warn_if_unrelated",
    "warn_of_search",
]

Floats = NDArray[np.float64]

# How many nats below that of noise alone an evidence may be.
_LITTLE = 2.0


def undetermined(data: Data, mean: Mean) -> str | None:
    """Return why the targets say nothing about the process around its mean, None if they do.

    Where the mean explains them without any remainder, and nothing else gives them a scale, the
    evidence grows without limit as kernel and noise shrink together.
    """
    n, outputs = data.Y.shape
    held = mean.estimate is None
    residual = data.Y - (mean if held else mean.fixed_part)(data.X, outputs)
    H = np.empty((n, 0)) if held else mean.features(data.X)
    centred, T = conditioned(H)
    beta = np.linalg.lstsq(centred, residual, rcond=None)[0]
    # what the remainder is a difference of, and so what it is rounded by
    terms = np.maximum(np.abs(data.Y), np.abs(H) @ np.abs(T @ beta))
    if np.any(np.abs(residual - centred @ beta) > rounding(terms)):
        return None
    if held:
        return "the targets equal the given mean"
    if n <= H.shape[1]:
        return (
            "there is only one row"
            if n == 1
            else f"there are no more rows ({n}) than coefficients of the mean ({H.shape[1]})"
        )
    if np.all(deviation(data.Y) <= rounding(data.Y)):
        return "the targets are constant"
    return "the mean explains the targets without any remainder"


def warn_of_search(
    objective: Guarded, optimum: Optimum, columns: Sequence[str] | None = None
) -> None:
    """Warn of a search that stopped early, of bounds, and of kernels too small or too short.

    `columns` are the names of the inputs, if they have any.
    """
    if optimum.status == "stopped":
        warn(
            f"the search for hyperparameters stopped early ({optimum.message}); "
            f"{_remedy(objective, optimum)}",
            ConvergenceWarning,
        )
    words: dict[str, str] = {}
    if columns is not None and np.shape(objective.data.X)[1:] == (len(columns),):
        words = length_scales_in_words(objective.kernel, columns)
    kernel = objective.unpack(optimum.theta)[0]
    warn_at_bounds(objective, optimum.theta, words, advice_on_terms(objective, kernel))
    warn_if_noise_does_better(objective, optimum)
    warn_if_too_small(objective, optimum)
    if kernel.is_numeric and not isinstance(kernel, Precomputed):
        warn_if_unrelated(kernel, objective.data.X)


def _remedy(objective: Guarded, optimum: Optimum) -> str:
    """Return what to do about a search that stopped early: not much, if inducing inputs moved."""
    inducing = getattr(objective, "inducing", None)
    if optimum.gain is None or inducing is None or not inducing.learned:
        return optimum.remedy
    return (
        "inducing inputs can be moved for hundreds of iterations that gain little, and the last "
        f"{ITERATIONS} gained {optimum.gain:.3g}: what was found is usable, and raising max_iter "
        "gains little, unless that is much"
    )


def warn_if_noise_does_better(objective: Guarded, optimum: Optimum) -> None:
    """Warn if the targets are more probable under noise alone than with the kernel.

    Not where `warn_at_bounds` has said why: a variance is at its lower bound, or bounds that the
    user gave are in the way.
    """
    if not isinstance(objective, Objective) or objective.criterion != "evidence":
        return  # there is nothing to compare
    model = objective.unpack(optimum.theta)
    kernel, likelihood = model
    given = np.concatenate([part.bounds for part in model])
    reached = zip(objective.parameter_names, sides(optimum.theta, objective.bounds), strict=True)
    told = any(sides(optimum.theta, given)) or any(
        name.endswith(".variance") and side == "lower" for name, side in reached
    )
    alone = None if told else evidence_of_noise(objective, likelihood)
    if alone is None:
        return
    value = optimum.value - sum(part.log_prior() for part in model)
    if value < alone - _LITTLE:
        rest = objective.constant(likelihood) - objective.constant_of_search(likelihood)
        warn(
            f"the log evidence of the best hyperparameters found is {value + rest:.6g}, and that "
            f"of noise alone is {alone - value:.3g} more: with {kernel!r} the model does worse "
            "than without a kernel. Try n_restarts=5, begin in the units of the data (periods "
            "above all), or take another kernel",
            ConvergenceWarning,
        )


def warn_if_unrelated(kernel: Kernel, X: Any) -> None:
    """Warn if, to a kernel, no two rows have anything to do with each other."""
    rows = X[:: max(1, len(X) // 200)]
    K = kernel(rows)
    scale = np.sqrt(np.diagonal(K))
    np.fill_diagonal(K, 0.0)
    if len(rows) > 5 and np.all(np.abs(K) <= 1e-4 * np.outer(scale, scale)):
        warn(
            f"under the fitted kernel {kernel!r} no two rows are near each other, so that every "
            "prediction is the mean. Give length scales in the units of the columns, scale the "
            "columns (StandardScaler), or leave the kernel to be chosen from the data",
            ConvergenceWarning,
        )


def hessian(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    theta: Floats,
    step: float = 1e-4,
    directions: Directions | None = None,
) -> Floats:
    """Return the second derivatives of a function by central differences of its gradient.

    `evaluate` must raise where it has no value, rather than return a penalty. The differences are
    along `directions`, or without these along the components of theta.
    """
    T = np.eye(theta.size) if directions is None else directions.matrix()
    slopes = [
        (evaluate(theta + shift)[1] - evaluate(theta - shift)[1]) / (2.0 * step)
        for shift in step * T.T
    ]
    along = np.reshape(slopes, T.shape) @ T  # T' H T
    if directions is not None:
        along = np.linalg.solve(T.T, np.linalg.solve(T.T, along.T).T)
    return np.asarray(0.5 * (along + along.T))


def standard_errors(H: Floats) -> Floats:
    """Return the square roots of the diagonal of -H^-1; infinite along flat or rising directions.

    This is the width of the Gaussian that touches the objective at its maximum.
    """
    if H.size == 0:
        return np.empty(0)
    values, vectors = np.linalg.eigh(-H)
    floor = np.max(np.abs(values)) * 1e-12
    inverse = np.where(values > floor, 1.0 / np.where(values > floor, values, 1.0), np.inf)
    with np.errstate(invalid="ignore"):
        terms = vectors**2 * inverse
    return np.asarray(np.sqrt(np.sum(np.where(vectors**2 < 1e-16, 0.0, terms), axis=1)))
