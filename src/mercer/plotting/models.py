"""What the plots ask of a model, whichever it is."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from mercer.estimators.inputs import names_left_out
from mercer.estimators.resolve import is_sklearn_kernel
from mercer.kernels import Kernel, from_sklearn
from mercer.likelihoods import Likelihood
from mercer.metrics import pit
from mercer.metrics.gaussian import gaussian_interval
from mercer.metrics.predictions import pit_of, training_targets

__all__ = [
    "Known",
    "Predicted",
    "column_names",
    "interval",
    "is_fitted",
    "kernel_of",
    "knows_latent",
    "label_of",
    "link_of",
    "one_output",
    "outcomes",
    "predict",
    "refuse_classifier",
    "require_fitted",
    "rows_like_training",
    "through",
    "to_matrix",
    "training_rows",
]

Floats = NDArray[np.float64]


class Predicted(NamedTuple):
    """Observed targets and what was predicted of each, all of shape (n,).

    pit : the predicted probability of a value of at most the observed one
    left_out : whether each row was predicted from the others
    """

    y: Floats
    mean: Floats
    std: Floats
    pit: Floats
    left_out: bool


class Known(NamedTuple):
    """What a model still has of the rows that it was fitted to.

    X : (n, d) inputs, or None
    y : their targets, or None
    are_rows : whether X are all the rows, and not the points of a basis that was chosen
    """

    X: Floats | None
    y: Floats | None
    are_rows: bool


# --- is it fitted, to what ------------------------------------------------------------------------


def is_fitted(model: Any) -> bool:
    """Whether `fit` was called, also of models that predict without it."""
    if hasattr(model, "__sklearn_is_fitted__"):
        return bool(model.__sklearn_is_fitted__())
    return any(
        name.endswith("_") and not name.startswith("_") for name in getattr(model, "__dict__", ())
    )


def require_fitted(model: Any, instead: str = "") -> None:
    """Raise an error, a ValueError, unless the model is fitted."""
    if not hasattr(model, "predict"):
        raise ValueError(f"a fitted model is wanted, got {model!r}, which has no predict")
    if not is_fitted(model):
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted: call fit(X, y) first{instead}"
        )


_SURFACES = (
    "its probabilities are drawn by contours of predict_proba(X), as the decision surfaces in the "
    "gallery are (examples/plot_decision_surfaces.py)"
)
_SHARES = (
    "whether the probabilities of predict_proba(X) hold is drawn, for two classes, by "
    "sklearn.calibration.CalibrationDisplay, and what was taken for what by "
    "sklearn.metrics.ConfusionMatrixDisplay"
)


def refuse_classifier(model: Any, instead: str = _SURFACES) -> None:
    """Raise a ValueError for a classifier, whose labels are no numbers to be drawn."""
    # arrays and kernels have no tags to ask
    if hasattr(model, "__sklearn_tags__") and is_classifier(model):
        raise ValueError(
            f"{type(model).__name__} is a classifier, and this plot is for regressors; {instead}"
        )


def to_matrix(X: Any, name: str = "X") -> Floats:
    """Return rows of numbers, of an array or a frame, as a matrix of doubles."""
    try:
        matrix = np.array(X, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers to be drawn, got {type(X).__name__}") from None
    if matrix.ndim != 2 or len(matrix) == 0:
        hint = "; use X.reshape(-1, 1) for a single column" if matrix.ndim == 1 else ""
        raise ValueError(f"{name} must have rows and columns, got shape {matrix.shape}{hint}")
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{name} holds NaN or infinity")
    return matrix


def training_rows(model: Any) -> Known:
    """Return the inputs and targets that a model was fitted to, as far as it still has them.

    Of a model that keeps no rows these are its basis points, relevance vectors for one, which may
    be few and lie in a part of the range; no target belongs to them.
    """
    points, y = getattr(model, "X_train_", None), training_targets(model)
    are_rows = points is not None
    if points is None:
        basis = getattr(getattr(model, "posterior_", None), "basis", None)
        points, y = getattr(basis, "points", None), None
    if getattr(model, "kernel", None) == "precomputed" or points is None or np.ndim(points) != 2:
        return Known(None, None, False)
    try:
        X = np.array(points, dtype=float)
    except (TypeError, ValueError):
        return Known(None, None, False)
    return Known(X, None if y is None or len(y) != len(X) else y, are_rows)


# --- names ----------------------------------------------------------------------------------------


def column_names(model: Any, d: int, X: Any = None) -> list[str]:
    """Return a label for each of d columns: the names the model was fitted with, if it has them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is not None and len(names) == d:
        return [str(name) for name in names]
    return ["x"] if d == 1 else [f"x{i}" for i in range(d)]


def label_of(y: Any, otherwise: str = "y") -> str:
    """Return the name of a column of targets, where it has one."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else otherwise


def rows_like_training(model: Any, X: Floats) -> Any:
    """Return rows as a frame where the model knows its columns by name, and pandas is there."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != X.shape[1]:
        return X
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=names)


# --- kernels -------------------------------------------------------------------------------------


def kernel_of(given: Any) -> Kernel | None:
    """Return a kernel, of ours or of scikit-learn's, as ours; None for what is none."""
    if is_sklearn_kernel(given):
        return from_sklearn(given)[0]
    return given if isinstance(given, Kernel) else None


# --- predictions ----------------------------------------------------------------------------------


def one_output(values: Any, output: int | None, model: Any) -> Floats:
    """Return the values (n, ...) of one output: the only one, or the one asked for."""
    array: Floats = np.asarray(values, dtype=float)
    if array.ndim == 1:
        return array
    outputs = array.shape[1]
    if output is None and outputs == 1:
        output = 0
    if output is None or not -outputs <= output < outputs:
        raise ValueError(
            f"this {type(model).__name__} has {outputs} outputs and a plot shows one: say which by "
            f"output, from 0 to {outputs - 1}; got {output!r}"
        )
    return array[:, output]


def knows_latent(model: Any) -> bool:
    """Whether the model tells the underlying function from new observations."""
    return (
        hasattr(model, "predict_interval")
        and "latent" in inspect.signature(model.predict_interval).parameters
    )


def link_of(model: Any) -> Likelihood | None:
    """Return the likelihood where the function is in other units than the observations, or None.

    Under counts it is the logarithm of a rate; under noise that is added it is their mean itself.
    """
    likelihood = getattr(model, "likelihood_", getattr(model, "likelihood", None))
    if not isinstance(likelihood, Likelihood) or likelihood.adds_noise or not knows_latent(model):
        return None
    return likelihood


def predict(model: Any, X: Any, latent: bool = False) -> tuple[Floats, Floats]:
    """Return mean and standard deviation, with an axis of outputs where the model has one."""
    options = {"latent": True} if latent else {}
    with names_left_out():
        try:
            mean, std = model.predict(X, return_std=True, **options)
        except TypeError as error:
            raise ValueError(
                f"predict of {type(model).__name__} must give standard deviations by "
                f"return_std=True: {error}"
            ) from error
    return np.asarray(mean, dtype=float), np.asarray(std, dtype=float)


def interval(model: Any, X: Any, coverage: float, latent: bool) -> tuple[Floats, Floats]:
    """Return the ends of the central interval; from mean and spread where a model has no other."""
    if hasattr(model, "predict_interval"):
        options = {"latent": True} if latent else {}
        with names_left_out():
            low, high = model.predict_interval(X, coverage, **options)
        return low, high
    return gaussian_interval(*predict(model, X), coverage)


def through(link: Likelihood | None, ends: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the interval of an observation's mean from that of the function, both central.

    Links are monotone; one that falls swaps the ends.
    """
    if link is None:
        return ends
    one, other = (link.conditional_mean(end) for end in ends)
    return np.minimum(one, other), np.maximum(one, other)


def outcomes(model: Any, X: Any, y: Any, output: int | None = None) -> Predicted:
    """Return the predictions for given rows, or for the training rows, each from the others."""
    refuse_classifier(model, _SHARES)
    require_fitted(model)
    if (X is None) != (y is None):
        raise ValueError(
            "give both X and y, or neither for the training rows, each predicted from the others"
        )
    if X is None:
        if not hasattr(model, "loo"):
            raise ValueError(
                f"{type(model).__name__} has no loo(), to predict its training rows from each "
                "other: give X and y of rows that it was not fitted to"
            )
        left = model.loo()
        targets = np.asarray(model.y_train_, dtype=float)
        mean, std = (one_output(part, output, model) for part in (left.mean, left.std))
        if np.any(np.isinf(std)):
            raise ValueError(
                f"the leave-one-out predictions of this {type(model).__name__} have an infinite "
                "standard deviation, by which nothing can be judged: give X and y of rows that it "
                "was not fitted to"
            )
        observed = targets.reshape(len(mean), -1)
        column = observed[:, 0] if observed.shape[1] == 1 else one_output(observed, output, model)
        return Predicted(column, mean, std, pit(column, mean, std), True)
    means, stds = predict(model, X)
    mean, std = one_output(means, output, model), one_output(stds, output, model)
    observed = _targets(y, means.shape)
    if hasattr(model, "predict_cdf"):
        with names_left_out():
            ranks = pit_of(model, X, observed)
    else:
        ranks = pit(observed, means, stds)  # the spread is all there is: taken as normal
    return Predicted(
        one_output(observed, output, model), mean, std, one_output(ranks, output, model), False
    )


def _targets(y: Any, shape: tuple[int, ...]) -> Floats:
    try:
        observed = np.array(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"y must be numbers, got {type(y).__name__}") from None
    if observed.shape != shape:
        raise ValueError(f"y must have shape {shape}, as the predictions, got {observed.shape}")
    if not np.all(np.isfinite(observed)):
        raise ValueError("y holds NaN or infinity")
    return observed
