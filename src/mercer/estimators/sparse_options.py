"""What may be asked of a sparse regressor, and what goes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.inputs import is_missing
from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_count,
    require_flag,
    require_number,
)
from mercer.estimators.prepare_sparse import against_blocks, kind_of
from mercer.estimators.rows import is_precomputed
from mercer.evidence import best_engine, require_pair
from mercer.inference._approximations import APPROXIMATIONS
from mercer.likelihoods import Gaussian, Likelihood
from mercer.selection import STRATEGIES

__all__ = [
    "LATENT_APPROXIMATIONS",
    "block_labels",
    "check_inducing_options",
    "check_sparse_options",
    "checked_labels",
    "latent_engine",
]

_NAMES = ("auto", *APPROXIMATIONS, "nystrom", "sod")
_INFERENCE = ("auto", "laplace", "ep")
#: Those that are priors of latent values, which go with any likelihood.
LATENT_APPROXIMATIONS = ("fitc", "dtc", "sor")


def check_sparse_options(estimator: Any, groups: Any, query: Any) -> None:
    """Raise ValueError for an option of a `SparseGPRegressor` that is none of its choices.

    Or that does not go with the others, or with what `fit` was given.
    """
    require_choice("approximation", estimator.approximation, _NAMES)
    require_choice("inference", estimator.inference, _INFERENCE)
    require_choice("blocks", estimator.blocks, ("kmeans", "contiguous"))
    for name in ("augment", "normalize_y"):
        require_flag(name, getattr(estimator, name))
    require_number("power", estimator.power)
    kind = kind_of(estimator)  # which checks power and joint
    check_search_options(estimator)
    queried = check_inducing_options(estimator, query)
    if groups is not None and kind.training != "blocks":
        against = against_blocks(estimator) if estimator.approximation == "auto" else None
        why = "" if against is None else f" with {against}"
        raise ValueError(
            f"groups are blocks of rows, which approximation={estimator.approximation!r} does not "
            f"have{why}; use 'pitc' or 'pic'"
        )
    if estimator.approximation == "sod" and (queried or not isinstance(estimator.inducing, str)):
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


def latent_engine(estimator: Any, likelihood: Likelihood | None, groups: Any = None) -> str | None:
    """Return the engine for a latent function that a `SparseGPRegressor` asks for.

    None is for Gaussian noise, whose posterior has a closed form. Raises ValueError for one that
    does not take the likelihood, and for options and groups that want the closed form.
    """
    gaussian = likelihood is None or isinstance(likelihood, Gaussian)
    inference: str = estimator.inference
    if gaussian and inference == "auto":
        return None
    given = Gaussian(1.0) if likelihood is None else likelihood
    if inference == "auto":
        inference = best_engine(given, sparse=True)
    require_pair(given, inference, sparse=True)
    if estimator.approximation not in ("auto", *LATENT_APPROXIMATIONS):
        names = ", ".join(map(repr, LATENT_APPROXIMATIONS))
        raise ValueError(
            f"inference={inference!r} of {type(given).__name__} goes with approximations that are "
            f"priors of independent rows given u, {names}, got {estimator.approximation!r}"
        )
    for name in ("augment", "normalize_y"):
        if getattr(estimator, name):
            raise ValueError(
                f"{name}=True goes with Gaussian noise and inference='auto' alone, got "
                f"inference={inference!r} of {type(given).__name__}"
            )
    if groups is not None:
        raise ValueError(
            "groups are blocks of rows, which go with Gaussian noise and inference='auto' alone, "
            f"got inference={inference!r} of {type(given).__name__}; leave them out"
        )
    return inference


def check_inducing_options(estimator: Any, query: Any) -> bool:
    """Raise ValueError for options of inducing inputs that are none, or that want others.

    Returns whether the points to be predicted are the inducing inputs.
    """
    if estimator.n_inducing is not None:
        require_count("n_inducing", estimator.n_inducing, 1)
    if estimator.learn_inducing is not None:
        require_flag("learn_inducing", estimator.learn_inducing)
    named = isinstance(estimator.inducing, str)
    if named:
        require_choice("inducing", estimator.inducing, (*STRATEGIES, "query"))
    if is_precomputed(estimator):
        raise ValueError(
            "kernel='precomputed' has no inputs that could be inducing; use "
            f"{type(estimator).__name__.removeprefix('Sparse')}"
        )
    queried = named and estimator.inducing == "query"
    if queried != (query is not None):
        raise ValueError(
            "inducing='query' and fit(X, y, query=...) go together: the points to be predicted "
            "are the inducing inputs then"
        )
    return queried


def block_labels(groups: ArrayLike, kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the blocks that the rows which are kept belong to, checked, in a form to be saved."""
    shape = np.shape(groups)
    if shape != kept.shape:
        raise ValueError(
            f"groups must have a label for each of {kept.size} rows, got shape {shape}"
        )
    return np.asarray(checked_labels(groups)[kept])


def checked_labels(groups: ArrayLike) -> NDArray[Any]:
    """Return labels of blocks, none of them missing, in a form to be saved."""
    given = np.asarray(groups, dtype=object)  # NaN among text would be text
    if given.ndim != 1:
        raise ValueError(f"groups must have a label for each row, got shape {given.shape}")
    missing = [i for i, label in enumerate(given.tolist()) if is_missing(label)]
    if missing:
        raise ValueError(
            f"groups hold {given[missing[0]]!r} in row {missing[0]}, counted from 0, and each row "
            "must belong to a block"
        )
    labels = np.asarray(groups)
    return np.array(labels.tolist()) if labels.dtype == object else labels
