"""Who is compared: sums of kernels that are sparse, by priors or margins, and one that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
)

__all__ = ["CONTENDERS", "DENSE", "SPARSE", "VECTORS", "Contender"]

Floats = NDArray[np.float64]

SPARSE, VECTORS, DENSE = "Laplacian process", "support vectors", "exact Gaussian process"


class Contender(NamedTuple):
    """A method.

    numbers, labels : fit a model to rows and targets, with all of its choices
    kernels : how many kernel functions a fitted model sums over
    has_density : whether models say how probable targets are
    """

    name: str
    numbers: Callable[[Floats, NDArray[Any]], Any]
    labels: Callable[[Floats, NDArray[Any]], Any]
    kernels: Callable[[Any], int]
    has_density: bool = True


# In units of inputs and targets of variance 1. The width is l^2 = d/(2 g), g the multiple of 1/d
# that scikit-learn's gamma="scale" has for 1.
_WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Of equals a grid's first is taken: a large C, which has fewer support vectors.
_COSTS = (100.0, 10.0, 1.0, 0.1)
_ZONES = (0.05, 0.15, 0.5)


def _support_regression(X: Floats, y: NDArray[Any]) -> Any:
    """Return epsilon-insensitive regression, its C, epsilon and width by five folds."""
    grid = {
        "regressor__svr__C": _COSTS,
        "regressor__svr__epsilon": _ZONES,
        "regressor__svr__gamma": [width / X.shape[1] for width in _WIDTHS],
    }
    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    )
    return GridSearchCV(model, grid, scoring="neg_mean_squared_error", cv=5).fit(X, y)


def _support_classes(X: Floats, y: NDArray[Any]) -> Any:
    """Return a soft margin, its C and width by five folds."""
    grid = {"svc__C": _COSTS, "svc__gamma": [width / X.shape[1] for width in _WIDTHS]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5).fit(X, y)


def _n_support(model: Any) -> int:
    best = model.best_estimator_
    inner = getattr(best, "regressor_", best)
    return len(inner[-1].support_)


#: In the order of the tables. Others join by being listed.
CONTENDERS = (
    Contender(
        SPARSE,
        lambda X, y: LaplacianProcessRegressor().fit(X, y),
        lambda X, y: LaplacianProcessClassifier().fit(X, y),
        lambda model: int(model.n_active_),
    ),
    Contender(VECTORS, _support_regression, _support_classes, _n_support, has_density=False),
    Contender(
        DENSE,
        lambda X, y: GPRegressor().fit(X, y),
        lambda X, y: GPClassifier().fit(X, y),
        lambda model: model.posterior_.basis.n_points,
    ),
)
