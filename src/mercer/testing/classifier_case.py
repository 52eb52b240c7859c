"""A classifier with the data it is tried on."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from mercer.likelihoods import Softmax
from mercer.posterior import Stacked
from mercer.testing.regressor_case import quietly

__all__ = ["ClassifierCase", "classifier_case", "hard_labels", "surface", "tolerance"]

Floats = NDArray[np.float64]


def surface(model: Any, X: Any) -> Floats:
    """Return all that a model predicts: probabilities, latent means and standard deviations."""
    parts = [model.predict_proba(X)]
    if hasattr(model, "predict_latent"):
        parts += [np.reshape(part, (len(X), -1)) for part in model.predict_latent(X, True)]
    return np.hstack(parts)


class ClassifierCase:
    """A classifier, data to fit it to, and a fit that rules share and do not change.

    Parameters
    ----------
    estimator : estimator
        Not fitted; rules work with clones of it.
    X, y : arrays of shape (n, d), and (n,) or (n, C) for soft labels
    X_new : array of shape (t, d)
    objects : functions by name, which a saved model is given back
    """

    def __init__(
        self, estimator: Any, X: Floats, y: NDArray[Any], X_new: Floats, objects: dict[str, Any]
    ) -> None:
        self.estimator, self.objects = estimator, objects
        self.X, self.y, self.X_new = X, y, X_new

    @cached_property
    def model(self) -> Any:
        """A fit to the data."""
        return self.fit(self.X, self.y)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Return a clone fitted to these data."""
        model = clone(self.estimator).set_params(**params)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return quietly(model.fit, X, y, **options)

    def hold(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return a clone fitted with its hyperparameters kept, if it can be told to.

        A search ends at slightly different places for slightly different numbers, so that what
        must agree to many digits is compared without one.
        """
        held = {"optimizer": None} if "optimizer" in self.estimator.get_params() else {}
        return self.fit(X, y, sample_weight, **held)

    @property
    def is_normalised(self) -> bool:
        """Whether classes have probabilities of their own that were made to add up to 1."""
        return isinstance(getattr(self.model, "predictive_", None), Stacked)


def tolerance(model: Any) -> float:
    """Return what two ways to the same probabilities may differ by: more for sums over points."""
    likelihood = getattr(model, "likelihood_", None)
    sums = isinstance(likelihood, Softmax) and likelihood.n_classes > 2
    return 2e-4 if sums else 1e-7


def hard_labels(case: ClassifierCase) -> str:
    """Say whether rules on labels do not apply."""
    return "" if case.y.ndim == 1 else "its targets are probabilities"


def classifier_case(
    estimator: Any, X: Any = None, y: Any = None, objects: dict[str, Any] | None = None
) -> ClassifierCase:
    """Return the case of a classifier, with small random data where none are given."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise ValueError(f"a classifier is wanted, not fitted, got {estimator!r}")
    if (X is None) != (y is None):
        raise ValueError("give X and y both or neither")
    rng = np.random.default_rng(0)
    if X is None:
        X = rng.normal(size=(30, 2))
        score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=30)
        several = get_tags(estimator).classifier_tags.multi_class
        edges = np.quantile(score, [0.35, 0.7] if several else [0.5])
        y = np.array(["ash", "birch", "cedar"])[np.searchsorted(edges, score)]
    X, y = np.array(X, dtype=float), np.array(y)
    estimator = clone(estimator)
    params = estimator.get_params(deep=False)
    if "random_state" in params and params["random_state"] is None:
        estimator.set_params(random_state=0)  # rules compare fits with each other
    X_new = X.mean(axis=0) + X.std(axis=0) * rng.normal(size=(5, X.shape[1]))
    return ClassifierCase(estimator, X, y, X_new, {} if objects is None else objects)
