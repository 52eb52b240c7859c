"""Who is compared: sums of kernels that are sparse, by priors or margins, and one that is not.

Each method makes its own choices by the training rows: by folds over a grid, or as it does without
being told. Of more than a thousand rows a thousand serve for that, and then all are fitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercer import (
    GPClassifier,
    GPRegressor,
    LaplacianProcessClassifier,
    LaplacianProcessRegressor,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
)

__all__ = [
    "DENSE",
    "EXACT",
    "LAPLACIAN",
    "PEER",
    "RELEVANCE",
    "RELEVANT",
    "SPARSE",
    "SUPPORT",
    "VECTORS",
    "Contender",
    "peers",
]

Floats = NDArray[np.float64]

SPARSE, VECTORS, DENSE = "Laplacian process", "support vectors", "exact Gaussian process"
RELEVANT, PEER = "relevance vectors", "fastrvm"
# Rows by which choices are made at the most.
_CHOICE_ROWS = 1000


class Contender(NamedTuple):
    """A method.

    numbers, labels : fit a model to rows and targets, with all of its choices
    kernels : how many kernel functions a fitted model sums over
    has_density : whether models say how probable targets are
    without : problems that are too large for it
    """

    name: str
    numbers: Callable[[Floats, NDArray[Any]], Any]
    labels: Callable[[Floats, NDArray[Any]], Any]
    kernels: Callable[[Any], int]
    has_density: bool = True
    without: tuple[str, ...] = ()


# In units of inputs and targets of variance 1. The width is l^2 = d/(2 g), g the multiple of 1/d
# that scikit-learn's gamma="scale" has for 1.
_WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Of equals a grid's first is taken: a large C, which has fewer support vectors.
_COSTS = (100.0, 10.0, 1.0, 0.1)
_ZONES = (0.05, 0.15, 0.5)


def _some(n: int) -> NDArray[np.intp] | slice:
    if n <= _CHOICE_ROWS:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n)[:_CHOICE_ROWS])


def _by_folds(model: Any, grid: Any, scoring: str, X: Floats, y: NDArray[Any]) -> Any:
    """Return the model of the best options by five folds, fitted to all rows."""
    some = _some(len(y))
    search = GridSearchCV(model, grid, scoring=scoring, cv=5, refit=False)
    with warnings.catch_warnings():  # options that fail in some fold are the worst, and that is all
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X[some], y[some])
    return clone(model).set_params(**search.best_params_).fit(X, y)


def _numbers(inner: Any, **grid: Any) -> Callable[[Floats, NDArray[Any]], Any]:
    """Return a fit of inputs and targets that are standardised, with a width by folds."""

    def fit(X: Floats, y: NDArray[Any]) -> Any:
        model = TransformedTargetRegressor(
            make_pipeline(StandardScaler(), inner), transformer=StandardScaler()
        )
        step = f"regressor__{type(inner).__name__.lower()}__"
        own = {step + name: values for name, values in grid.items()}
        own[f"{step}gamma"] = [width / X.shape[1] for width in _WIDTHS]
        return _by_folds(model, own, "neg_mean_squared_error", X, y)

    return fit


def _labels(inner: Any, **grid: Any) -> Callable[[Floats, NDArray[Any]], Any]:
    def fit(X: Floats, y: NDArray[Any]) -> Any:
        step = f"{type(inner).__name__.lower()}__"
        own = {step + name: values for name, values in grid.items()}
        own[f"{step}gamma"] = [width / X.shape[1] for width in _WIDTHS]
        return _by_folds(make_pipeline(StandardScaler(), inner), own, "accuracy", X, y)

    return fit


def _own(model: Any) -> Callable[[Floats, NDArray[Any]], Any]:
    """Return a fit of one of Mercer's models, which makes its choices itself."""

    def fit(X: Floats, y: NDArray[Any]) -> Any:
        some = _some(len(y))
        fitted = clone(model).fit(X[some], y[some])
        if len(y) > _CHOICE_ROWS:
            known = {"kernel": fitted.kernel_, "optimizer": None}
            if isinstance(model, GPRegressor):  # the others choose their noise all the same
                known["likelihood"] = fitted.likelihood_
            fitted = clone(model).set_params(**known).fit(X, y)
        return fitted

    return fit


def _inner(model: Any) -> Any:
    return getattr(model, "regressor_", model)[-1]


def _distinct(indices: Any) -> int:
    """Return how many rows are in use by any of several functions."""
    return len(np.unique(np.concatenate([np.ravel(own) for own in _listed(indices)])))


def _listed(indices: Any) -> list[Any]:
    return list(indices) if isinstance(indices, list | tuple) else [indices]


LAPLACIAN = Contender(
    SPARSE,
    _own(LaplacianProcessRegressor()),
    _own(LaplacianProcessClassifier()),
    lambda model: int(model.n_active_),
)
RELEVANCE = Contender(
    RELEVANT,
    _own(RelevanceVectorRegressor()),
    _own(RelevanceVectorClassifier()),
    lambda model: _distinct(model.relevance_indices_),
)
SUPPORT = Contender(
    VECTORS,
    _numbers(SVR(), C=_COSTS, epsilon=_ZONES),
    _labels(SVC(), C=_COSTS),
    lambda model: len(_inner(model).support_),
    has_density=False,
)
EXACT = Contender(
    DENSE,
    _own(GPRegressor()),
    _own(GPClassifier()),
    lambda model: model.posterior_.basis.n_points,
)


def peers() -> tuple[Contender, ...]:
    """Return fastrvm's machines, their width by folds, if they are installed."""
    if find_spec("fastrvm") is None:
        return ()
    from fastrvm import RVC, RVR

    return (
        Contender(
            PEER,
            _numbers(RVR(fit_intercept=True)),
            _labels(RVC(fit_intercept=True)),
            lambda model: _distinct(_inner(model).relevance_),
            has_density=False,
            without=("usps",),  # a thousand of its rows, one width: no end in three minutes
        ),
    )
