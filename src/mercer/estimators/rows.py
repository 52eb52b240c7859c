"""What is given to `fit`: rows, checked, and whether their matrices fit into memory."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from mercer.estimators.inputs import require_numbers, require_targets
from mercer.estimators.iterative_options import options_of
from mercer.estimators.memory import require_memory, require_preconditioner
from mercer.evidence import best_engine
from mercer.evidence.target_sums import sums_of, with_rows
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Posterior
from mercer.posterior.factors import frozen

__all__ = [
    "Rows",
    "checked_inputs",
    "checked_rows",
    "checked_weights",
    "is_precomputed",
    "kept_inputs",
    "kept_weights",
    "matrices_of",
    "powers",
    "validated_rows",
]

Floats = NDArray[np.float64]

# How many n x n matrices an engine has at once in a search. Leave-one-out of the exact one has
# Q^-1, its adjoint, and a scaled copy of Q^-1 in two orders.
_MATRICES = {
    "exact": 1.0,
    "exact loo": 4.0,
    "iterative": 0.0,  # it keeps a matrix only where there is room for it
    "laplace": 3.0,
    "ep": 3.0,
    "vi": 5.0,
    "bounds": 5.0,
    "map": 3.0,
}
# A weight of less than that part of the largest is 0: the variance of such a row, noise over
# weight, would overflow, and nothing of what the row says would survive rounding anyway.
_LIGHTEST = 1e-290


def is_precomputed(estimator: Any) -> bool:
    """Whether the estimator is to be given kernel matrices instead of inputs."""
    kernel = getattr(estimator, "kernel", None)
    return isinstance(kernel, str) and kernel == "precomputed"


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


def validated_rows(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    kernel: Kernel | None,
    inference: str,
    likelihood: Likelihood | None,
) -> Rows:
    """Check what was given to `fit`, and that a fit to it by this engine fits into memory."""
    precomputed = is_precomputed(estimator)
    if inference == "iterative" and not precomputed:
        require_preconditioner(_count(X), options_of(estimator.inference).rank)
        return checked_rows(estimator, X, y, sample_weight, kernel)
    matrices = _matrices(estimator, precomputed, inference, likelihood)
    what = "an exact fit" if inference == "exact" else f"a fit with inference={inference!r}"
    require_targets(estimator, y)
    require_memory(_count(X), matrices, what)  # before anything is copied
    return checked_rows(estimator, X, y, sample_weight, kernel)


def checked_rows(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    kernel: Kernel | None,
    again: bool = False,
    some: bool = True,
) -> Rows:
    """Check what was given to `fit`; of a precomputed matrix all columns stay.

    If `again`, the columns must be those of the call before. With `some`, weights must not all be
    0. The estimator keeps sums of its targets, `_target_sums`.
    """
    require_targets(estimator, y)
    X, y = checked_inputs(estimator, X, kernel, y, again)
    multioutput = np.ndim(y) == 2
    Y = np.array(y, dtype=float)
    Y = Y.reshape(len(Y), -1)
    if len(Y) != len(X):
        raise ValueError(f"X has {len(X)} rows and y has {len(Y)}")
    weights, kept = kept_weights(sample_weight, len(Y), some)
    rows = Rows(X, Y, weights, kept, multioutput)
    if not np.all(kept):
        X = X if is_precomputed(estimator) else X[kept]
        rows = rows._replace(X=X, Y=Y[kept])
    _keep_sums(estimator, rows, again)
    return rows


def _keep_sums(estimator: Any, rows: Rows, again: bool) -> None:
    """Keep the sums of the targets, if `again` with those of the rows before.

    Where these are unknown (of a posterior, or a file of an earlier version) so are all.
    """
    before = vars(estimator).get("_target_sums")
    if not again:
        estimator._target_sums = sums_of(rows.Y, rows.weights)
    elif before is not None and before.shape[1] == rows.Y.shape[1]:  # others are refused later
        estimator._target_sums = with_rows(before, rows.Y, rows.weights)


def kept_inputs(X: Any, posterior: Posterior) -> Any:
    """Return training inputs that nobody can change: the posterior's points where they are these.

    A posterior by "map" may have some of the rows alone, or all of them in another order.
    """
    points, X = posterior.basis.points, np.asarray(X)
    if X.dtype == object:  # of which nothing is known, not even what == says
        same = points.shape == X.shape and all(map(operator.is_, points.flat, X.flat))
    else:
        same = np.array_equal(points, X)
    return points if same else frozen(X.copy())


def checked_weights(sample_weight: ArrayLike, n: int, some: bool = True) -> Floats:
    """Return the weights of n rows as an array, or say what is wrong with them.

    With `some`, that is also where all of them are 0.
    """
    try:
        weights = np.array(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be {n} numbers, got {sample_weight!r}") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise ValueError(
            "sample_weight must hold finite numbers that are not negative, got "
            f"{weights[wrong[0]]} in row {wrong[0]}"
        )
    if some and not np.any(weights):
        raise ValueError("sample_weight must hold at least one non-zero number")
    return weights


def powers(sample_weight: ArrayLike, n: int, some: bool = True) -> Floats:
    """Return the weights of n rows as powers of their likelihoods; see `checked_weights`."""
    weights = checked_weights(sample_weight, n, some)
    largest = np.max(weights)
    if 0.0 < largest < _LIGHTEST:
        raise ValueError(
            f"sample_weight is at most {largest:.3g}, and the noise of a row, divided by such a "
            "weight, is no double; weights are powers of the likelihood, 1 for an ordinary row"
        )
    weights[weights < _LIGHTEST * max(1.0, largest)] = 0.0
    return weights


def kept_weights(
    sample_weight: ArrayLike | None, n: int, some: bool = True
) -> tuple[Floats | None, NDArray[np.bool_]]:
    """Return the weights of the rows that are kept, None if all are 1, and which of n these are.

    With `some`, there must be any.
    """
    if sample_weight is None:
        return None, np.ones(n, dtype=bool)
    weights = powers(sample_weight, n, some)
    kept = weights > 0
    return None if np.all(weights[kept] == 1.0) else weights[kept], kept


def checked_inputs(
    estimator: Any, X: Any, kernel: Kernel | None, y: Any = None, again: bool = False
) -> Any:
    """Return what is given to `fit` as X, checked, as the kernel takes it; None is the default one.

    Of a precomputed matrix, for which there is no kernel yet, it is the matrix. With targets y that
    are numbers it is the pair of both. If `again`, its columns must be those of the call before.
    """
    if kernel is not None and not kernel.is_numeric:
        X = kernel.inputs(X)
        return X if y is None else (X, check_array(y, ensure_2d=False, dtype=np.float64))
    require_numbers(X)
    options = {"dtype": np.float64, "order": "C", "reset": not again}
    if y is None:
        X = validate_data(estimator, X, **options)
    else:
        require_numbers(y, "y")
        X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=True, **options)
    X = X if kernel is None else kernel.inputs(X)
    return X if y is None else (X, y)


def _count(X: Any) -> int:
    """Return how many rows X has, as far as that can be told before it is checked."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if hasattr(X, "__len__") else 0
    return int(shape[0]) if len(shape) else 0


def matrices_of(
    inference: str, likelihood: Any, searched: bool = True, objective: str = "evidence"
) -> float:
    """Return how many n x n matrices an engine has at once, searching or not."""
    if not searched:
        return _MATRICES[inference]
    if inference == "map" and objective != "joint":
        # The hyperparameters are searched by the evidence of another engine.
        judge = best_engine(Gaussian(1.0) if likelihood is None else likelihood)
        return max(_MATRICES["map"], _MATRICES[judge])
    return _MATRICES[inference + (" loo" if objective == "loo" else "")]


def _matrices(estimator: Any, precomputed: bool, inference: str, likelihood: Any) -> float:
    """Return how many n x n matrices a fit has at once, at the most."""
    searched = estimator.optimizer is not None
    starts = min(effective_n_jobs(estimator.n_jobs), 1 + estimator.n_restarts) if searched else 1
    each = matrices_of(inference, likelihood, searched, estimator.objective)
    return starts * each + (2.0 if precomputed else 0.0)
