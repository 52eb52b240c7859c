"""What may be asked of a greedy regressor, and what goes together."""

from __future__ import annotations

from typing import Any

from mercer.estimators.memory import available_memory, require_sections
from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_count,
    require_flag,
    require_number,
)
from mercer.estimators.rows import is_precomputed
from mercer.inference.greedy import DUALS
from mercer.likelihoods import Gaussian, Likelihood
from mercer.means import Mean

__all__ = ["candidates_of", "check_greedy_options", "most_of", "require_greedy_model"]


def check_greedy_options(estimator: Any) -> None:
    """Raise ValueError for an option of a `SparseGreedyGPRegressor` that is none of its choices."""
    require_number("tol", estimator.tol)
    if not 0.0 <= estimator.tol < 2.0:
        raise ValueError(f"tol must be a Gap from 0 to less than 2, got {estimator.tol!r}")
    if isinstance(estimator.n_candidates, str):
        require_choice("n_candidates", estimator.n_candidates, ("all",))
    else:
        require_count("n_candidates", estimator.n_candidates, 1)
    if estimator.max_basis is not None:
        require_count("max_basis", estimator.max_basis, 1)
    require_choice("dual", estimator.dual, DUALS)
    require_flag("normalize_y", estimator.normalize_y)
    check_search_options(estimator)
    if is_precomputed(estimator):
        raise ValueError(
            "SparseGreedyGPRegressor takes inputs, not kernel matrices; use GPRegressor for "
            "kernel='precomputed'"
        )


def require_greedy_model(likelihood: Likelihood | None, mean: Mean) -> Gaussian | None:
    """Return the likelihood, or raise ValueError for a model that the certificate is not for."""
    if likelihood is not None:
        if not isinstance(likelihood, Gaussian):
            raise ValueError(
                "SparseGreedyGPRegressor proves bounds for Gaussian noise alone, got "
                f"{likelihood!r}; SparseGPRegressor and GPRegressor take other noise"
            )
        if likelihood.covariance is not None:
            raise ValueError(
                "a full noise covariance couples the rows, which only exact inference can hold; "
                "use GPRegressor"
            )
    if mean.estimate == "integrate":
        raise ValueError(
            "SparseGreedyGPRegressor bounds the log posterior of a function in the kernel's space, "
            "which a mean that is integrated out does not leave alone; use estimate='ml', or "
            "SparseGPRegressor, which takes estimate='integrate'"
        )
    return likelihood


def candidates_of(estimator: Any) -> int | None:
    """Return how many candidates a step has, None for all."""
    return None if isinstance(estimator.n_candidates, str) else int(estimator.n_candidates)


def most_of(estimator: Any, n: int) -> int:
    """Return how many basis functions there may be for n rows: what is wanted, and has room."""
    if estimator.max_basis is not None:
        most = min(int(estimator.max_basis), n)
        require_sections(n, most)
        return most
    available = available_memory()
    # a matrix of n x m, and the next larger one while it grows
    return n if available is None else max(1, min(n, available // (3 * 8 * n)))
