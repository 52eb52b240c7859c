"""What to tell of a search: why there was none, how it ended, curvature and standard errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BoundWarning, ConvergenceWarning, warn
from mercer.evidence.defaults import deviation, rounding
from mercer.evidence.objective import Data, Objective
from mercer.evidence.optimum import Optimum
from mercer.evidence.parts import parts
from mercer.evidence.searchable import Searchable
from mercer.inference.exact import conditioned
from mercer.kernels import Kernel, Precomputed
from mercer.means import Mean

__all__ = [
    "hessian",
    "standard_errors",
    "undetermined",
    "warn_at_bounds",
    "warn_if_unrelated",
    "warn_of_search",
]

Floats = NDArray[np.float64]

# What to do about a parameter of this name at this bound.
_ADVICE = {
    ("noise", "lower"): (
        "the targets look free of noise; fix the noise if they are, or widen its bounds"
    ),
    ("noise", "upper"): "the kernel explains nothing; try another kernel or wider bounds",
    ("length_scale", "lower"): (
        "neighbours look unrelated; check for duplicates or outliers, or widen the bounds"
    ),
    ("length_scale", "upper"): (
        "that input hardly matters, or the search began too far away (try n_restarts=5)"
    ),
    ("variance", "lower"): (
        "this term of the kernel explains nothing: leave it out, or, if there is a signal, try "
        "n_restarts=5 or a shorter length_scale"
    ),
}


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
    objective: Objective, optimum: Optimum, columns: Sequence[str] | None = None
) -> None:
    """Warn of a search that stopped early, of bounds, and of rows that are all far apart.

    `columns` are the names of the inputs, if they have any.
    """
    if optimum.status == "stopped":
        warn(
            f"the search for hyperparameters stopped early ({optimum.message}); raise max_iter, "
            "or give starts and bounds that suit the data",
            ConvergenceWarning,
        )
    words: dict[str, str] = {}
    if columns is not None and np.shape(objective.data.X)[1:] == (len(columns),):
        words = _length_scales_in_words(objective.kernel, columns)
    warn_at_bounds(objective, optimum.theta, words)
    kernel, _ = objective.unpack(optimum.theta)
    if kernel.is_numeric and not isinstance(kernel, Precomputed):
        warn_if_unrelated(kernel, objective.data.X)


def warn_at_bounds(
    objective: Searchable, theta: Floats, words: Mapping[str, str] | None = None
) -> None:
    """Warn of the parameters that stand at a bound, and say what to do about each.

    `words` has what to call them, where that is not their name.
    """
    low, high = objective.bounds.T
    near = 1e-4 * np.minimum(high - low, 1.0)
    lines = []
    for i, name in enumerate(objective.parameter_names):
        side = (
            "lower"
            if theta[i] <= low[i] + near[i]
            else "upper"
            if theta[i] >= high[i] - near[i]
            else None
        )
        if side is not None:
            shown = (words or {}).get(name, name)
            lines.append(f"{shown} at its {side} bound: {_advice(name, side)}")
    if lines:
        warn("the best hyperparameters found stand at a bound. " + "; ".join(lines), BoundWarning)


def _length_scales_in_words(kernel: Kernel, columns: Sequence[str]) -> dict[str, str]:
    """Return what to call the length scale of each named column, by the parameter's name."""
    scaled = [p for p in parts(kernel, len(columns)) if "length_scale" in p.kernel.parameters]
    words = {}
    for part in scaled:
        where = f" in {part.path.rstrip('.')}" if len(scaled) > 1 else ""
        of_each = part.kernel.parameters["length_scale"].is_vector
        if of_each or len(part.columns) == 1:
            for i, column in enumerate(part.columns):
                name = f"kernel.{part.path}length_scale" + (f"[{i}]" if of_each else "")
                words[name] = f"the length scale of {str(columns[column])!r}{where}"
    return words


def _advice(name: str, side: str) -> str:
    parameter = name.rpartition(".")[2].partition("[")[0]
    return _ADVICE.get(
        (parameter, side),
        "widen its bounds with Parameter(value, bounds=(low, high)), or fix it",
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
    evaluate: Callable[[Floats], tuple[float, Floats]], theta: Floats, step: float = 1e-4
) -> Floats:
    """Return the second derivatives of a function by central differences of its gradient.

    `evaluate` must raise where it has no value, rather than return a penalty.
    """
    p = theta.size
    H = np.empty((p, p))
    for i in range(p):
        shift = np.zeros(p)
        shift[i] = step
        H[i] = (evaluate(theta + shift)[1] - evaluate(theta - shift)[1]) / (2.0 * step)
    return 0.5 * (H + H.T)


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
