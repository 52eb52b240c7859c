"""What to tell of a search: why there was none, how it ended, curvature and standard errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BoundWarning, ConvergenceWarning, warn
from mercer.evidence.defaults import deviation, rounding
from mercer.evidence.directions import Directions
from mercer.evidence.latent import LatentObjective
from mercer.evidence.objective import Data, Objective
from mercer.evidence.optimum import Optimum
from mercer.evidence.parts import parts
from mercer.evidence.searchable import Searchable
from mercer.evidence.shares import NEGLIGIBLE, variances_over
from mercer.evidence.unscaled import warn_if_too_small
from mercer.inference.exact import conditioned
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.dot import Dot
from mercer.likelihoods import SoftLabels, Softmax
from mercer.likelihoods.labels import Binary
from mercer.means import Mean
from mercer.params import InverseHalfNormal

__all__ = [
    "hessian",
    "standard_errors",
    "undetermined",
    "warn_at_bounds",
    "warn_if_noise_does_better",
    "warn_if_unrelated",
    "warn_of_search",
]

Floats = NDArray[np.float64]

_WIDEN = "widen its bounds with Parameter(value, bounds=(low, high)), or fix it"
_NOTHING = (
    "this term of the kernel explains nothing: leave it out, or, if there is a signal, try "
    "n_restarts=5"
)
_SEPARATED = (
    "most often the labels can be separated, and a larger variance only makes them surer: wider "
    "bounds do not help then, a hyperprior does, as in Parameter(1.0, prior=LogNormal(0.0, 1.0))"
)
# Under a hyperprior that is level there, columns that do not matter end at the upper bound.
_AS_MEANT = ""
_OF_COLUMN = "the length scale of "
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
    ("df", "lower"): (
        "some targets are so far off that the noise has no mean, and predict() no standard "
        "deviation (predict_interval() serves); for noise that has both, fix it, as in "
        "StudentT(Parameter(4.0, fixed=True))"
    ),
    ("df", "upper"): "the tails are those of Gaussian noise, which is faster",
    ("epsilon", "lower"): "a zone without cost is of no use here; Laplace() does without it",
    ("threshold", "lower"): "the noise has no Gaussian middle; Laplace() is that limit",
    ("threshold", "upper"): "the noise has no heavy tails; Gaussian() is that limit, and faster",
    ("variance", "lower"): f"{_NOTHING} or a shorter length_scale",
}
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
    objective: Objective | LatentObjective, optimum: Optimum, columns: Sequence[str] | None = None
) -> None:
    """Warn of a search that stopped early, of bounds, and of kernels too small or too short.

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
    kernel = objective.unpack(optimum.theta)[0]
    warn_at_bounds(objective, optimum.theta, words, _advice_on_terms(objective, kernel))
    warn_if_noise_does_better(objective, optimum)
    warn_if_too_small(objective, optimum)
    if kernel.is_numeric and not isinstance(kernel, Precomputed):
        warn_if_unrelated(kernel, objective.data.X)


def warn_at_bounds(
    objective: Searchable,
    theta: Floats,
    words: Mapping[str, str] | None = None,
    advice: Mapping[tuple[str, str], str] | None = None,
) -> None:
    """Warn of the parameters that stand at a bound, and say once what to do about those alike.

    `words` has what to call them, where that is not their name; `advice` what to do about one at
    the "lower" or "upper" bound, where its name alone does not tell, empty where that is nothing.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    of_labels = isinstance(getattr(objective, "likelihood", None), (Binary, SoftLabels, Softmax))
    sides = _sides(theta, objective.bounds)
    for name, side in zip(objective.parameter_names, sides, strict=True):
        if side is not None:
            shown = (words or {}).get(name, name)
            todo = (advice or {}).get((name, side), _advice(name, side))
            if of_labels and side == "upper" and name.endswith("variance"):
                todo = _SEPARATED
            if todo:
                alike.setdefault((side, todo), []).append(shown)
    if alike:
        lines = [_told(names, side, todo) for (side, todo), names in alike.items()]
        warn("the best hyperparameters found stand at a bound. " + "; ".join(lines), BoundWarning)


def _told(names: Sequence[str], side: str, todo: str) -> str:
    """Say of one or more parameters at which bound they are, and what to do."""
    if len(names) == 1:
        return f"{names[0]} at its {side} bound: {todo}"
    if all(name.startswith(_OF_COLUMN) for name in names):
        names = [f"the length scales of {names[0].removeprefix(_OF_COLUMN)}"] + [
            name.removeprefix(_OF_COLUMN) for name in names[1:]
        ]
    todo = todo.replace("that input hardly matters", "those inputs hardly matter")
    return f"{', '.join(names[:-1])} and {names[-1]} at their {side} bounds: {todo}"


def _sides(theta: Floats, bounds: Floats) -> list[str | None]:
    """Return at which of its bounds each component stands, None if at neither."""
    low, high = bounds.T
    near = 1e-4 * np.minimum(high - low, 1.0)
    lower, upper = theta <= low + near, theta >= high - near
    return ["lower" if a else "upper" if b else None for a, b in zip(lower, upper, strict=True)]


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
                words[name] = f"{_OF_COLUMN}{str(columns[column])!r}{where}"
    return words


def _advice(name: str, side: str) -> str:
    parameter = name.rpartition(".")[2].partition("[")[0]
    return _ADVICE.get((parameter, side), _WIDEN)


def _advice_on_terms(
    objective: Objective | LatentObjective, kernel: Kernel
) -> dict[tuple[str, str], str]:
    """Return the advice on parameters that goes by what the term they belong to is and does."""
    X = objective.data.X
    every = list(parts(kernel, X.shape[1] if np.ndim(X) == 2 else 0))
    shares = _shares(objective, kernel)
    advice = {}
    for part in every:
        name = f"kernel.{part.path}variance"
        if name in shares:
            scaled = any(
                each.path.startswith(part.path) and "length_scale" in each.kernel.parameters
                for each in every
            )
            nothing = _NOTHING + (" or a shorter length_scale" if scaled else "")
            advice[name, "lower"] = nothing if shares[name] < NEGLIGIBLE else _WIDEN
        if "length_scale" not in part.kernel.parameters:
            continue
        length = part.kernel.parameters["length_scale"]
        for i in range(len(part.columns) if length.is_vector else 1):
            scale = f"kernel.{part.path}length_scale" + (f"[{i}]" if length.is_vector else "")
            if isinstance(part.kernel, Dot):
                advice[scale, "lower"] = _WIDEN
            if isinstance(length.prior, InverseHalfNormal) and len(part.columns) > 1:
                advice[scale, "upper"] = _AS_MEANT
    return advice


def _shares(objective: Objective | LatentObjective, kernel: Kernel) -> dict[str, float]:
    """Return how much of the targets' variance each variance in the kernel accounts for."""
    data = objective.data
    unit = float(np.mean(deviation(objective.latent, data.weights) ** 2)) or 1.0
    variances = variances_over(kernel, data.X, data.weights)
    return {f"kernel.{name}": variance / unit for name, variance in variances.items()}


def warn_if_noise_does_better(objective: Objective | LatentObjective, optimum: Optimum) -> None:
    """Warn if the targets are more probable under noise alone than with the kernel.

    Not where `warn_at_bounds` has said why: a variance is at its lower bound, or bounds that the
    user gave are in the way.
    """
    if objective.criterion != "evidence":
        return
    model = kernel, likelihood, *_ = objective.unpack(optimum.theta)
    given = np.concatenate([part.bounds for part in model])
    sides = zip(objective.parameter_names, _sides(optimum.theta, objective.bounds), strict=True)
    told = any(_sides(optimum.theta, given)) or any(
        name.endswith(".variance") and side == "lower" for name, side in sides
    )
    alone = None if told else objective.evidence_of_noise(likelihood)
    if alone is None:
        return
    value = optimum.value - sum(part.log_prior() for part in model)
    if value < alone - _LITTLE:
        warn(
            f"the log evidence of the best hyperparameters found is {value:.6g}, that of noise "
            f"alone {alone:.6g}: with {kernel!r} the model does worse than without a kernel. Try "
            "n_restarts=5, begin in the units of the data (periods above all), or take another "
            "kernel",
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
