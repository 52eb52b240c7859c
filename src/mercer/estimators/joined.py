"""Predictions of new points that may be joined to blocks of the training rows."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.regressor import BayesianRegressor, InputGradient
from mercer.estimators.sparse_options import checked_labels
from mercer.posterior import BlockPredictive, Predictive

__all__ = ["JoinedPredictions"]

Floats = NDArray[np.float64]


class JoinedPredictions(BayesianRegressor):
    """Predictions as those of `BayesianRegressor`, at points that may be said to be of a block.

    `groups` holds the block of training rows that each point is joined to, with "pic": a label that
    `fit` was given. Without it that is the block whose centre is nearest.
    """

    _predictive: Predictive | None

    def _joined(self, groups: ArrayLike | None) -> Self:
        """Return the same model for new points that belong to these blocks."""
        if groups is None:
            return self
        predictive = self.predictive_
        if not isinstance(predictive, BlockPredictive):
            raise ValueError(
                "new points belong to groups of training rows with approximation='pic' alone, and "
                f"augment=False; this model is {self!r}"
            )
        twin = copy(self)
        twin.__dict__.pop("posterior_", None)  # one that was put there knows of no other groups
        twin._predictive = predictive.at(checked_labels(groups))
        return twin

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Predict the mean, and with it the standard deviation or the covariance.

        As :meth:`GPRegressor.predict`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        return_std, return_cov, latent : bool, default False
            Whether to return standard deviations or the joint covariance too, and whether all is
            of the function alone, without noise.
        groups : array-like of shape (n,), optional
            The block of training rows that each point is joined to, with "pic": a label that `fit`
            was given. Without it that is the block whose centre is nearest.
        """
        model = self._joined(groups)
        return super(JoinedPredictions, model).predict(X, return_std, return_cov, latent)

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float = 0.95,
        latent: bool = False,
        groups: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the ends of the equal-tailed interval that holds a new observation.

        As :meth:`GPRegressor.predict_interval`; `groups` as in `predict`.
        """
        return super(JoinedPredictions, self._joined(groups)).predict_interval(X, coverage, latent)

    def predict_gradient(self, X: ArrayLike, groups: ArrayLike | None = None) -> InputGradient:
        """Return the derivatives in x of the mean and standard deviation that `predict` returns.

        As :meth:`GPRegressor.predict_gradient`; `groups` as in `predict`.
        """
        return super(JoinedPredictions, self._joined(groups)).predict_gradient(X)

    def log_predictive_density(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Floats:
        """Return the log density of each observed y under its prediction.

        As :meth:`GPRegressor.log_predictive_density`; `groups` as in `predict`.
        """
        return super(JoinedPredictions, self._joined(groups)).log_predictive_density(X, y)

    def predict_cdf(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Floats:
        """Return the predicted probability that a new observation is at most y.

        As :meth:`GPRegressor.predict_cdf`; `groups` as in `predict`.
        """
        return super(JoinedPredictions, self._joined(groups)).predict_cdf(X, y)

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: Any = 0,
        latent: bool = False,
        groups: ArrayLike | None = None,
    ) -> Floats:
        """Draw joint samples of the predictions at the rows of X.

        As :meth:`GPRegressor.sample_y`; `groups` as in `predict`.
        """
        model = self._joined(groups)
        return super(JoinedPredictions, model).sample_y(X, n_samples, random_state, latent)
