"""Parameters at their bounds, in words: which they are, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BoundWarning, warn
from mercer.evidence.defaults import deviation
from mercer.evidence.guarded import Guarded
from mercer.evidence.parts import parts
from mercer.evidence.searchable import Searchable
from mercer.evidence.shares import NEGLIGIBLE, variances_over
from mercer.kernels import Kernel
from mercer.kernels.dot import Dot

__all__ = ["advice_on_terms", "length_scales_in_words", "sides", "warn_at_bounds"]

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
_COUNTED = (
    "the targets look free of noise, as rows that are repeated do: weights count rows, and there "
    "are weights above 1. Weights that mean precision should average 1; inverse variances are best "
    "given as the noise, Gaussian(variances), or, to on-line models, as weights beside noise of 1 "
    "that is fixed, Gaussian(Parameter(1.0, fixed=True))"
)
_NO_PRECISIONS = (
    "weights count rows, there are weights above 1, and under this noise none of them stands for "
    "precision: if that is what they mean, leave them out"
)
_OF_COLUMN = "the length scale of "
# Weights above this count rows more than once. On average they make the targets look free of noise;
# a single one is enough to take precisions for counts.
_HEAVY = 1.2
# What to do about a parameter of this name at this bound.
_ADVICE = {
    ("noise", "lower"): (
        "either the targets are free of noise (fix it then), or a few are outliers that the "
        "function follows (try StudentT()), or rows repeat with the same target (leave repeats "
        "out), or rows are too few to tell noise from the function (give one length scale for all "
        "columns where the kernel has one for each; on-line models choose by more with a larger "
        "n_init)"
    ),
    ("noise", "upper"): "the kernel explains nothing; try another kernel or wider bounds",
    ("length_scale", "lower"): (
        "neighbours look unrelated; check for duplicates or outliers, or widen the bounds"
    ),
    ("length_scale", "upper"): (
        "hardly any effect on the target, or the search began too far away (try n_restarts=5)"
    ),
    ("df", "lower"): (
        "some targets are so far off that the noise has no mean, and predict() no standard "
        "deviation (predict_interval() serves); for noise that has both, fix it, as in "
        "StudentT(Parameter(4.0, fixed=True))"
    ),
    ("df", "upper"): (
        "these rows have no outliers, and noise as good as Gaussian, which is faster; where others "
        "may have some, fix it, as in StudentT(Parameter(4.0, fixed=True))"
    ),
    ("epsilon", "lower"): "a zone without cost is of no use here; Laplace() does without it",
    ("threshold", "lower"): "the noise has no Gaussian middle; Laplace() is that limit",
    ("threshold", "upper"): "the noise has no heavy tails; Gaussian() is that limit, and faster",
    ("variance", "lower"): f"{_NOTHING} or a shorter length_scale",
}


def warn_at_bounds(
    objective: Searchable,
    theta: Floats,
    words: Mapping[str, str] | None = None,
    advice: Mapping[tuple[str, str], str | None] | None = None,
) -> None:
    """Warn of the parameters that stand at a bound, and say once what to do about those alike.

    `words` has what to call them, where that is not their name; `advice` what to do about one at
    the "lower" or "upper" bound, where its name alone does not tell: None to say nothing of it.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    reached = sides(theta, objective.bounds)
    for name, side in zip(objective.parameter_names, reached, strict=True):
        if side is not None:
            shown = (words or {}).get(name, name)
            todo = (advice or {}).get((name, side), _advice(name, side))
            if todo is not None:
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
    return f"{', '.join(names[:-1])} and {names[-1]} at their {side} bounds: {todo}"


def sides(theta: Floats, bounds: Floats) -> list[str | None]:
    """Return at which of its bounds each component stands, None if at neither."""
    low, high = bounds.T
    near = 1e-4 * np.minimum(high - low, 1.0)
    lower, upper = theta <= low + near, theta >= high - near
    return ["lower" if a else "upper" if b else None for a, b in zip(lower, upper, strict=True)]


def length_scales_in_words(kernel: Kernel, columns: Sequence[str]) -> dict[str, str]:
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


def advice_on_terms(objective: Guarded, kernel: Kernel) -> dict[tuple[str, str], str | None]:
    """Return the advice on parameters that goes by what the term they belong to is and does.

    None for a length scale whose hyperprior is level above: a column that does not matter is meant
    to end at the upper bound.
    """
    X = objective.data.X
    every = list(parts(kernel, X.shape[1] if np.ndim(X) == 2 else 0))
    shares = _shares(objective, kernel)
    advice: dict[tuple[str, str], str | None] = {}
    likelihood = objective.likelihood
    if likelihood.is_of_labels:
        variances = [name for name in objective.parameter_names if name.endswith("variance")]
        advice = {(name, "upper"): _SEPARATED for name in variances}
    weights = objective.data.weights
    if weights is not None and np.mean(weights) > _HEAVY:
        advice["likelihood.noise", "lower"] = _COUNTED
    if weights is not None and np.max(weights) > _HEAVY:
        advice["likelihood.scale", "lower"] = f"the targets look free of noise: {_NO_PRECISIONS}"
        advice["likelihood.df", "lower"] = f"{_NO_PRECISIONS}. Or {_ADVICE['df', 'lower']}"
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
            level = length.prior is not None and length.prior.is_level_above
            if level and length.is_vector and len(part.columns) > 1:
                advice[scale, "upper"] = None
    return advice


def _shares(objective: Guarded, kernel: Kernel) -> dict[str, float]:
    """Return how much of the targets' variance each variance in the kernel accounts for."""
    data = objective.data
    unit = float(np.mean(deviation(objective.latent, data.weights) ** 2)) or 1.0
    variances = variances_over(kernel, data.X, data.weights)
    return {f"kernel.{name}": variance / unit for name, variance in variances.items()}
