"""What may be asked of a Laplacian process, and what goes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.expansion_options import check_functions
from mercer.estimators.memory import available_memory, require_memory, require_sections
from mercer.estimators.options import (
    check_run_options,
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
)
from mercer.estimators.rows import is_precomputed
from mercer.likelihoods import (
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Likelihood,
    Logistic,
)
from mercer.priors import CoefficientPrior, FeatureSelection, Laplacian, WeightDecay

__all__ = [
    "CLASS_LOSSES",
    "PRIORS",
    "check_laplacian_options",
    "class_loss",
    "most_active",
    "noise_spec",
]

Floats = NDArray[np.float64]

#: The priors by name.
PRIORS: dict[str, type[CoefficientPrior]] = {
    "laplacian": Laplacian,
    "weight_decay": WeightDecay,
    "feature_selection": FeatureSelection,
}
#: What a classifier may minimise.
CLASS_LOSSES = ("logistic", "soft_margin", "quadratic_soft_margin")
# Prior scales at the most: fourth powers of them are to be doubles.
_LARGEST = 1e70
_NOISE = (Gaussian, Laplace, EpsilonInsensitive, Huber)


def check_laplacian_options(estimator: Any) -> None:
    """Raise ValueError for an option of a Laplacian process that is none of its choices."""
    require_choice("prior", estimator.prior, tuple(PRIORS))
    if estimator.prior_scale is not None:
        require_number("prior_scale", estimator.prior_scale)
        if not 1.0 / _LARGEST <= estimator.prior_scale <= _LARGEST:
            raise ValueError(
                f"prior_scale must be a positive number, from {1.0 / _LARGEST:g} to {_LARGEST:g}, "
                f"or None, got {estimator.prior_scale!r}"
            )
    require_number("tol", estimator.tol)
    if not 0.0 < estimator.tol < 1.0:
        raise ValueError(f"tol must lie between 0 and 1, got {estimator.tol!r}")
    if estimator.max_active is not None:
        require_count("max_active", estimator.max_active, 1)
        if estimator.prior == "weight_decay":
            raise ValueError(
                "with prior='weight_decay' all functions are in use; leave max_active out, or take "
                "another prior"
            )
    require_count("n_folds", estimator.n_folds, 2)
    require_count("n_penalties", estimator.n_penalties, 2)
    require_choice("optimizer", estimator.optimizer, ("search", None))
    check_run_options(estimator)
    if hasattr(estimator, "normalize_y"):
        require_flag("normalize_y", estimator.normalize_y)
    check_functions(estimator)


def noise_spec(likelihood: Likelihood | None) -> Likelihood:
    """Return the noise that was asked for, None being Gaussian noise to be estimated."""
    if likelihood is None:
        return Gaussian()
    if not isinstance(likelihood, _NOISE):
        names = ", ".join(kind.__name__ for kind in _NOISE)
        raise ValueError(
            f"a Laplacian process takes noise of the kinds {names}, got {likelihood!r}; "
            "GPRegressor takes others"
        )
    if isinstance(likelihood, Gaussian):
        if likelihood.covariance is not None:
            raise ValueError(
                "a full noise covariance couples the rows, which only exact inference can hold; "
                "use GPRegressor"
            )
        if isinstance(likelihood.noise, np.ndarray) and not np.all(
            np.asarray(likelihood.noise) > 0
        ):
            raise ValueError(
                "the noise variances of the rows must be positive, got a 0 among them: give those "
                "rows a small one, or use GPRegressor"
            )
    return likelihood


def class_loss(spec: Any) -> str:
    """Return the name of what a classifier minimises, which may be given as `Logistic()`."""
    if isinstance(spec, Logistic):
        return "logistic"
    require_instance("likelihood", spec)
    if not (isinstance(spec, str) and spec in CLASS_LOSSES):
        shown = ", ".join(map(repr, CLASS_LOSSES))
        raise ValueError(f"likelihood must be one of {shown}, or Logistic(), got {spec!r}")
    return spec


def most_active(estimator: Any, n: int, size: int) -> int | None:
    """Return how many functions may be in use, or raise at once where they have no room.

    None for no limit: as many as there are have room.
    """
    if estimator.prior == "weight_decay":  # all of them, and what their singular values take
        require_memory(max(n, size), 8.0, "a fit with prior='weight_decay'")
        return None
    if is_precomputed(estimator):
        require_memory(n, 2.0, "a fit to a precomputed kernel")
    if estimator.max_active is not None:
        most = min(int(estimator.max_active), size)
        require_sections(n, most)
        return most
    available = available_memory()
    # the functions in use, and a copy of them while their number grows
    if available is None or 4 * 8 * n * min(n, size) <= available:
        return None
    return max(1, available // (4 * 8 * n))
