"""From rows and labels to the objectives that a classifier maximises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from mercer import means
from mercer.estimators.class_options import ClassModel, class_kernel, class_model, soft_kind
from mercer.estimators.inputs import require_targets
from mercer.estimators.labels import (
    Targets,
    checked_labels,
    hard_targets,
    soft_targets,
)
from mercer.estimators.memory import require_memory
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.rows import checked_inputs, is_precomputed, kept_weights, matrices_of
from mercer.estimators.starting import begin_at_best, begins_warm, begun_kernel, warmed
from mercer.evidence import LatentData, LatentObjective
from mercer.evidence.defaults import default_class_kernel, default_starts
from mercer.kernels import Kernel, Scaled
from mercer.likelihoods import Likelihood, Softmax

__all__ = [
    "BegunClasses",
    "ClassRows",
    "PreparedClasses",
    "begin_classes",
    "bound_by_data",
    "label_variance",
    "objectives_for",
    "prepare_classes",
]

Floats = NDArray[np.float64]


class ClassRows(NamedTuple):
    """Training rows, those of weight 0 left out (of a precomputed matrix they stay in X).

    X : inputs
    targets : their classes
    weights : (n,) or None
    kept : mask over the rows that were given
    """

    X: Any
    targets: Targets
    weights: Floats | None
    kept: NDArray[np.bool_]


class PreparedClasses(NamedTuple):
    """What a fit begins with.

    model : how labels come from latent functions
    targets : the classes
    objectives : what it maximises, one for each part that is fitted by itself, at their starts
    """

    model: ClassModel
    targets: Targets
    objectives: list[LatentObjective]


class BegunClasses(NamedTuple):
    """A model of classes at its start, on the rows of a fit.

    model, targets, objectives : as in `PreparedClasses`
    default : the default kernel, None if the user gave another
    widths : (d,) standard deviations of the columns
    variance : of latent values that a label is about as informative as
    searched : whether there is going to be a search
    warm : whether it starts from the last fit
    """

    model: ClassModel
    targets: Targets
    objectives: list[LatentObjective]
    default: Scaled | None
    widths: Floats
    variance: float
    searched: bool
    warm: bool


def prepare_classes(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> PreparedClasses:
    """Return the objectives of a `GPClassifier`, at their starts.

    Of the default kernel a start is the best of a few if there is going to be a search.
    """
    begun = begin_classes(estimator, X, y, sample_weight)
    if begun.default is not None and begun.searched and not begun.warm:
        for objective in begun.objectives:
            begin_at_best(objective, default_starts(begun.default))
    return PreparedClasses(begun.model, begun.targets, begun.objectives)


def begin_classes(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, dense: bool = True
) -> BegunClasses:
    """Return the model that a classifier starts from: the user's, or that of the last fit.

    If `dense`, matrices of n x n are going to be written out, for which there must be memory;
    otherwise it is a model with inducing inputs.
    """
    precomputed = is_precomputed(estimator)
    kernel = None if precomputed else class_kernel(estimator.kernel, X)
    mean = means.from_spec(estimator.mean)
    rows = _validated(estimator, X, y, sample_weight, kernel, precomputed)
    model = class_model(estimator, len(rows.targets.classes), sparse=not dense)
    if dense:
        _require_memory(estimator, model, rows, precomputed)
    if precomputed:
        kernel, numbers = over_row_numbers(rows.X, rows.kept, mean)
        rows = rows._replace(X=numbers)
    variance = label_variance(model.likelihood)
    begun = begun_kernel(kernel, rows, variance, estimator.hyperprior, default_class_kernel)
    kernel, default, widths = begun
    data = LatentData(rows.X, rows.targets.Y, rows.weights)
    warm = _begins_warm(estimator, kernel, model, rows.targets)
    searched = estimator.optimizer is not None
    if searched and not warm:
        kernel = kernel.with_start_from(widths, variance)
    engine = estimator.inference, soft_kind(estimator.soft_labels) is not None
    objectives = objectives_for(model.kind, kernel, model.likelihood, mean, data, *engine)
    if warm:
        parts = [
            [warmed(part, old) for part, old in zip(_parts(objective), last, strict=True)]
            for objective, last in zip(objectives, estimator._models(), strict=True)
        ]
        kernels, likelihoods, means_ = (list(each) for each in zip(*parts, strict=True))
        objectives = objectives_for(model.kind, kernels, likelihoods, means_, data, *engine)
    for objective in objectives:
        bound_by_data(objective, widths, variance)
    return BegunClasses(model, rows.targets, objectives, default, widths, variance, searched, warm)


def bound_by_data(objective: LatentObjective, widths: Floats, variance: float) -> None:
    """Give the search bounds that come from the data; the fitted kernel keeps the user's."""
    bounds = objective.kernel.with_bounds_from(widths, variance).bounds
    objective.bounds[: len(bounds)] = bounds


def _begins_warm(estimator: Any, kernel: Kernel, model: ClassModel, targets: Targets) -> bool:
    """Whether there is a last fit to start from, of the same parts."""
    return (
        begins_warm(estimator, kernel)
        and getattr(estimator, "_kind", "") == model.kind
        and len(estimator.classes_) == len(targets.classes)
    )


def _parts(objective: LatentObjective) -> tuple[Any, Any, Any]:
    return objective.kernel, objective.likelihood, objective.mean


def objectives_for(
    kind: str,
    kernel: Any,
    likelihood: Any,
    mean: Any,
    data: LatentData,
    inference: str,
    soft: bool,
) -> list[LatentObjective]:
    """Return the objective of each part of a model that is fitted by itself.

    Parameters
    ----------
    kind : {"binary", "softmax", "one_vs_rest"}
    kernel, likelihood, mean : those of all parts, or lists with one for each
    data : LatentData
        With a distribution over the classes for each row.
    inference : the engine's name
    soft : whether these are soft labels
    """
    Y = data.y
    columns = range(Y.shape[1]) if kind == "one_vs_rest" else [1]
    targets = [Y] if kind == "softmax" else [Y[:, c] if soft else 2 * Y[:, c] - 1 for c in columns]
    kernels, likelihoods, means_ = (_each(p, len(targets)) for p in (kernel, likelihood, mean))
    return [
        LatentObjective(k, link, m, replace(data, y=y), inference)
        for k, link, m, y in zip(kernels, likelihoods, means_, targets, strict=True)
    ]


def _each(given: Any, count: int) -> list[Any]:
    return given if isinstance(given, list) else [given] * count


def _validated(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    kernel: Kernel | None,
    precomputed: bool,
) -> ClassRows:
    """Check what was given to `fit`."""
    require_targets(estimator, y)
    soft = soft_kind(estimator.soft_labels) is not None
    X = checked_inputs(estimator, X, kernel)
    targets = soft_targets(y, estimator.classes) if soft else None
    if targets is None:
        labels = checked_labels(y)
    else:
        labels = targets.Y
    check_consistent_length(X, labels)
    weights, kept = kept_weights(sample_weight, len(labels))
    if not (precomputed or np.all(kept)):
        X = X[kept]
    if targets is None:
        targets = hard_targets(labels[kept])
    else:
        targets = targets._replace(Y=targets.Y[kept])
    return ClassRows(X, targets, weights, kept)


def _require_memory(estimator: Any, model: ClassModel, rows: ClassRows, precomputed: bool) -> None:
    """Raise at once if a fit cannot fit into memory."""
    n, C = rows.targets.Y.shape
    jobs = effective_n_jobs(estimator.n_jobs) if estimator.optimizer is not None else 1
    each = matrices_of(estimator.inference, model.likelihood, estimator.optimizer is not None)
    if model.kind == "softmax":
        matrices = (2.0 * C + 4.0) * min(jobs, 1 + estimator.n_restarts)
    elif model.kind == "one_vs_rest":
        matrices = each * min(jobs, C) + C
    else:
        matrices = each * min(jobs, 1 + estimator.n_restarts)
    what = f"a fit with inference={estimator.inference!r} and {C} classes"
    require_memory(n, matrices + (2.0 if precomputed else 0.0), what, classes=True)


def label_variance(likelihood: Any) -> float:
    """Return the variance of latent values that a label is about as informative as.

    That is the inverse of its Fisher information where all classes are as probable: 4 for the
    logistic function, pi/2 for the probit, and the number of classes for a softmax.
    """
    if isinstance(likelihood, Softmax):
        return float(likelihood.n_classes)
    assert isinstance(likelihood, Likelihood)
    if likelihood.missing("fisher"):
        return 1.0  # a step, which has no scale
    return 1.0 / float(likelihood.fisher(0.0))
