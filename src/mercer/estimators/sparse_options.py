"""What may be asked of a sparse regressor, and what goes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_count,
    require_flag,
)
from mercer.estimators.prepare_sparse import kind_of
from mercer.estimators.rows import is_precomputed
from mercer.inference.approximations import APPROXIMATIONS
from mercer.selection import STRATEGIES

__all__ = ["block_labels", "check_sparse_options"]

_NAMES = (*APPROXIMATIONS, "nystrom", "sod")


def check_sparse_options(estimator: Any, groups: Any, query: Any) -> None:
    """Raise ValueError for an option of a `SparseGPRegressor` that is none of its choices.

    Or that does not go with the others, or with what `fit` was given.
    """
    require_choice("approximation", estimator.approximation, _NAMES)
    require_choice("blocks", estimator.blocks, ("kmeans", "contiguous"))
    require_count("n_inducing", estimator.n_inducing, 1)
    for name in ("learn_inducing", "augment", "normalize_y"):
        require_flag(name, getattr(estimator, name))
    named = isinstance(estimator.inducing, str)
    if named:
        require_choice("inducing", estimator.inducing, (*STRATEGIES, "query"))
    kind = kind_of(estimator)  # which checks power and joint
    check_search_options(estimator)
    if is_precomputed(estimator):
        raise ValueError(
            "kernel='precomputed' has no inputs that could be inducing; use GPRegressor"
        )
    queried = named and estimator.inducing == "query"
    if queried != (query is not None):
        raise ValueError(
            "inducing='query' and fit(X, y, query=...) go together: the points to be predicted "
            "are the inducing inputs then"
        )
    if groups is not None and kind.training != "blocks":
        raise ValueError(
            f"groups are blocks of rows, which approximation={estimator.approximation!r} does not "
            "have; use 'pitc' or 'pic'"
        )
    if estimator.approximation == "sod" and (queried or not named):
        raise ValueError(
            "approximation='sod' is exact inference on some of the rows, and inducing says how "
            f"they are chosen: one of {', '.join(map(repr, STRATEGIES))}; for rows of your own "
            "choice fit GPRegressor to them"
        )
    plain = estimator.approximation in ("nystrom", "sod")
    if plain and estimator.joint != "exact":
        raise ValueError(f"joint={estimator.joint!r} does not go with {estimator.approximation!r}")
    if estimator.augment and (plain or estimator.joint != "exact"):
        raise ValueError("augment=True goes with neither 'nystrom', 'sod' nor joint='independent'")


def block_labels(groups: ArrayLike, kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the blocks that the rows which are kept belong to, checked, in a form to be saved."""
    labels = np.asarray(groups)
    if labels.dtype == object:
        labels = np.array(labels.tolist())
    if labels.shape != kept.shape:
        raise ValueError(
            f"groups must have a label for each of {kept.size} rows, got shape {labels.shape}"
        )
    if labels.dtype.kind == "f" and np.any(np.isnan(labels)):
        raise ValueError("groups hold NaN, and each row must belong to a block")
    return np.asarray(labels[kept])
