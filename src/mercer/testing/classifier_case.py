"""A classifier with the data it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from mercer.likelihoods import Softmax
from mercer.testing.estimator_case import Accuracy, EstimatorCase

__all__ = ["ClassifierCase", "hard_labels"]

Floats = NDArray[np.float64]


class ClassifierCase(EstimatorCase):
    """A classifier, data to fit it to, and a fit that rules share and do not change.

    Its targets are labels (n,), or soft ones (n, C).
    """

    kind, method = "a classifier", "predict_proba"
    ways = (
        ("predict", {}),
        ("predict_proba", {}),
        ("predict_log_proba", {}),
        ("predict_proba_error", {}),
        ("predict_latent", {}),
        ("sample_y", {}),
    )

    def example(self, estimator: Any, rng: np.random.Generator) -> tuple[Floats, NDArray[Any]]:
        """Return thirty rows of three classes, or of two if it takes no more."""
        X = rng.normal(size=(30, 2))
        score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=30)
        several = get_tags(estimator).classifier_tags.multi_class
        edges = np.quantile(score, [0.35, 0.7] if several else [0.5])
        return X, np.array(["ash", "birch", "cedar"])[np.searchsorted(edges, score)]

    @cached_property
    def accuracy(self) -> Accuracy:
        """How near two ways to one result come: less for probabilities that are sums over points.

        Engines that iterate end within their tolerance.
        """
        likelihood = getattr(self.model, "likelihood_", None)
        sums = isinstance(likelihood, Softmax) and likelihood.n_classes > 2
        near = 2e-4 if sums else 1e-7
        return Accuracy(
            weights=(1e-5, near + 1e-5),
            order=(1e-6, near + 1e-6),
            threads=(1e-8, 1e-6),
            units=(0.0, 2e-3),
            evidence=1e-6,
            gradient=(1e-3, 1e-3),
            step=1e-3,
        )

    def observed(self, model: Any, X: Any) -> Floats:
        """Return the probabilities of the classes."""
        return np.asarray(model.predict_proba(X))

    def latent(self, model: Any) -> Callable[..., Any] | None:
        """Return `predict_latent`, if it has one."""
        return getattr(model, "predict_latent", None)

    @property
    def is_normalised(self) -> bool:
        """Whether classes have probabilities of their own that were made to add up to 1."""
        outputs = getattr(getattr(self.model, "predictive_", None), "n_outputs", 1)
        return outputs > 1 and not isinstance(self.model.likelihood_, Softmax)


def hard_labels(case: ClassifierCase) -> str:
    """Say whether rules on labels do not apply."""
    return "" if case.y.ndim == 1 else "its targets are probabilities"
