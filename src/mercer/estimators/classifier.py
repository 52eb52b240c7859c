"""What every Mercer classifier offers once it has a `predictive_`, a `likelihood_` and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from mercer.estimators.labels import codes_of, soft_targets
from mercer.estimators.nested import NestedParameters
from mercer.estimators.options import as_generator
from mercer.estimators.process import (
    FittedProcess,
    coupled_moments,
    latent_cov,
    latent_mean,
    latent_moments,
)
from mercer.likelihoods import Likelihood, SoftLabels, Softmax
from mercer.likelihoods.class_probabilities import (
    Probabilities,
    link_probabilities,
    softmax_probabilities,
)
from mercer.posterior import Predictive

__all__ = ["BayesianClassifier", "of_labels"]

Floats = NDArray[np.float64]


class BayesianClassifier(
    NestedParameters,
    FittedProcess,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the classifiers: labels, probabilities, latent values, samples and densities.

    Subclasses fit, and set what `FittedProcess` names and `classes_`. `likelihood_` is one of two
    classes, a `Softmax` over all, or a list with one for each class against the others; the
    predictive has one output, C coupled ones, or C.
    """

    classes_: NDArray[Any]

    def _model(self, X: Any) -> tuple[Predictive, Any]:
        """Return the fitted process, and X validated."""
        X = self._new_inputs(X)
        return self.predictive_, X

    # --- classes ------------------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row: the most probable one by `predict_proba`.

        How sure it is, `predict_proba` says; the spread of the latent function is had from
        ``predict_latent(X, return_std=True)``.

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self._probabilities(X).values
        return np.asarray(self.classes_[np.argmax(values, axis=1)])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class, averaged over the latent functions.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.

        Returns
        -------
        ndarray of shape (n, C)
            A column for each of `classes_`. Rows add up to 1, and no entry is nearer to 0 or 1
            than 1e-15.
        """
        return self._probabilities(X).values

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the logarithms of `predict_proba`."""
        return np.log(self._probabilities(X).values)

    def predict_proba_error(self, X: ArrayLike) -> Floats:
        """Return by how much the integration may have put `predict_proba` wrong, for each row.

        Averages over a softmax of three classes or more are quasi-Monte Carlo sums, continued
        until twice their standard error is at most 1e-4, or half a million points are summed: then
        it may be more. All others are good to 1e-8.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._probabilities(X).error

    def _probabilities(self, X: Any) -> Probabilities:
        predictive, X = self._model(X)
        if isinstance(self.likelihood_, Softmax):
            return softmax_probabilities(*coupled_moments(predictive, X))
        return link_probabilities(self._links, *latent_moments(predictive, X))

    @property
    def _links(self) -> list[Likelihood]:
        """The likelihoods of labels -1 and 1."""
        return [of_labels(likelihood) for _, likelihood, _ in self._models()]

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the log of the probability that the model gives to each label.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        y : array-like of shape (n,)
            Labels. With `soft_labels` also a matrix as `fit` takes it: then the expected log
            probability, or the logarithm of the mixture.

        Returns
        -------
        ndarray of shape (n,), none below log(1e-15)
        """
        logs = self.predict_log_proba(X)
        kind = getattr(self, "soft_labels", False)
        if np.ndim(y) == 1 or not kind:
            return np.asarray(logs[np.arange(len(logs)), codes_of(y, self.classes_, len(logs))])
        Y = soft_targets(y, self.classes_).Y
        if len(Y) != len(logs):
            raise ValueError(f"X has {len(logs)} rows and y has {len(Y)}")
        if kind == "mixture":
            return np.asarray(np.log(np.sum(Y * np.exp(logs), axis=1)))
        return np.asarray(np.sum(Y * logs, axis=1))

    # --- latent functions ---------------------------------------------------------------------

    def predict_latent(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Any:
        """Predict the latent functions, of which the probabilities are made.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        return_std : bool, default False
            Whether to return their standard deviations too.
        return_cov : bool, default False
            Whether to return their joint covariance too.

        Returns
        -------
        mean : ndarray of shape (n,) for two classes, (n, C) for one function a class
        std : ndarray of the same shape, if `return_std`
        cov : ndarray of shape (n, n), if `return_cov`; (n, n, C) for one function a class, and
            (n, C, n, C) where these are coupled by a softmax. So it is for more than two classes
            of an on-line model too, whose functions are independent: between two classes all is 0
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        predictive, X = self._model(X)

        def shaped(values: Floats) -> Floats:
            return values[..., 0] if predictive.n_outputs == 1 else values

        if return_cov:
            return shaped(latent_mean(predictive, X)), shaped(latent_cov(predictive, X))
        if return_std:
            mean, var = latent_moments(predictive, X)
            return shaped(mean), shaped(np.sqrt(var))
        return shaped(latent_mean(predictive, X))

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, latent: bool = False
    ) -> NDArray[Any]:
        """Draw joint samples of the labels at the rows of X.

        Functions are drawn, and labels given these. With one class against the rest, a class is
        drawn in proportion to what its own function gives it.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to draw.
        n_samples : int, default 1
            How many functions to draw.
        random_state : int, RandomState, Generator or None, default 0
            The source of randomness.
        latent : bool, default False
            Whether to return the latent functions instead of labels.

        Returns
        -------
        ndarray of shape (n, n_samples); latent functions of several classes (n, C, n_samples)
        """
        predictive, X = self._model(X)
        rng = as_generator(random_state)
        if not self._pairwise:  # where infinite entries are refused
            latent_moments(predictive, X)  # which refuses rows that are too large
        draws = predictive.sample(X, n_samples, rng)  # (n, n_samples, P)
        if latent:
            return draws[..., 0] if predictive.n_outputs == 1 else draws.transpose(0, 2, 1)
        n, _, outputs = draws.shape
        codes = self._drawn(draws.reshape(n * n_samples, outputs), rng)
        return np.asarray(self.classes_[codes.reshape(n, n_samples)])

    def _drawn(self, F: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw a class, by its number, for each row of latent values (k, P)."""
        if isinstance(self.likelihood_, Softmax):
            return self.likelihood_.sample(F, rng)
        links = self._links
        if len(links) == 1:
            return np.asarray(links[0].sample(F[:, 0], rng) > 0, dtype=np.intp)
        given = link_probabilities(links, F, np.zeros_like(F)).values
        below = np.cumsum(given, axis=1)[:, :-1]
        return np.asarray(np.sum(rng.uniform(size=(len(F), 1)) >= below, axis=1))


def of_labels(likelihood: Likelihood) -> Likelihood:
    """Return the likelihood of labels, without their being soft."""
    return likelihood.likelihood if isinstance(likelihood, SoftLabels) else likelihood
