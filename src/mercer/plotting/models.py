"""What the plots ask of a model, whichever it is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.exceptions import NotFittedError

__all__ = [
    "Predicted",
    "checked_coverage",
    "column_names",
    "counted",
    "interval",
    "is_fitted",
    "knows_latent",
    "label_of",
    "one_output",
    "outcomes",
    "predict",
    "require_fitted",
    "rows_like_training",
    "standardised",
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


def training_rows(model: Any) -> tuple[Floats | None, Floats | None]:
    """Return the inputs and targets that a model was fitted to, as far as it still has them."""
    points, y = getattr(model, "X_train_", None), getattr(model, "y_train_", None)
    if points is not None:
        # scikit-learn's meaning: targets are kept as they were normalised
        y = None if getattr(model, "normalize_y", False) else y
    else:
        basis = getattr(getattr(model, "posterior_", None), "basis", None)
        points = getattr(basis, "points", None)
    if getattr(model, "kernel", None) == "precomputed" or points is None or np.ndim(points) != 2:
        return None, None
    try:
        X = np.array(points, dtype=float)
    except (TypeError, ValueError):
        return None, None
    # of a pruned posterior, points are some of the rows
    return X, None if y is None or len(y) != len(X) else np.array(y, dtype=float)


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


@contextmanager
def _without_names() -> Iterator[None]:
    # without pandas the grid has no names, and is made in the model's own order of columns
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


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


def predict(model: Any, X: Any, latent: bool = False) -> tuple[Floats, Floats]:
    """Return mean and standard deviation, with an axis of outputs where the model has one."""
    options = {"latent": True} if latent else {}
    with _without_names():
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
        with _without_names():
            low, high = model.predict_interval(X, coverage, **options)
        return low, high
    mean, std = predict(model, X)
    half = ndtri(0.5 + 0.5 * coverage) * std
    return mean - half, mean + half


def outcomes(model: Any, X: Any, y: Any, output: int | None = None) -> Predicted:
    """Return the predictions for given rows, or for the training rows, each from the others."""
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
        observed = targets.reshape(len(mean), -1)
        column = observed[:, 0] if observed.shape[1] == 1 else one_output(observed, output, model)
        return Predicted(column, mean, std, ndtr(standardised(column, mean, std)), True)
    means, stds = predict(model, X)
    mean, std = one_output(means, output, model), one_output(stds, output, model)
    observed = _targets(y, means.shape)
    cdf = _distribution(model, X, observed, means, stds)
    return Predicted(
        one_output(observed, output, model), mean, std, one_output(cdf, output, model), False
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


def _distribution(model: Any, X: Any, y: Floats, mean: Floats, std: Floats) -> Floats:
    """Return the predicted probability of a value of at most y."""
    likelihood = getattr(model, "likelihood_", None)
    if likelihood is None or not hasattr(likelihood, "predictive_cdf") or not knows_latent(model):
        return np.asarray(
            ndtr(standardised(y, mean, std))
        )  # the spread is all there is: taken as normal
    centre, spread = predict(model, X, latent=True)
    scale = np.asarray(getattr(getattr(model, "predictive_", None), "scale", 1.0), dtype=float)
    s = scale if np.ndim(y) == 2 else scale.reshape(-1)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        cdf = likelihood.predictive_cdf(y / s, centre / s, (spread / s) ** 2)
    return np.asarray(np.nan_to_num(cdf, nan=0.5))  # certain, and right


def standardised(y: Floats, mean: Floats, std: Floats) -> Floats:
    """Return (y - mean)/std; where a prediction is certain, 0 if it is right, infinite if not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((y - mean) / std, nan=0.0, posinf=np.inf, neginf=-np.inf)


def counted(name: str, given: object) -> int:
    """Return a number of things that a caller has given, if it is one."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {given!r}")
    return int(given)


def checked_coverage(coverage: float) -> float:
    """Return a probability that an interval can have."""
    try:
        inside = 0.0 < coverage < 1.0
    except TypeError:
        inside = False
    if not inside:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
    return float(coverage)
