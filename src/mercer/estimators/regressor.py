"""What every Mercer regressor offers once it has a `predictive_` and a `likelihood_`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from mercer.estimators.nested import NestedParameters
from mercer.estimators.options import as_generator
from mercer.estimators.process import FittedProcess, latent_cov, latent_mean, latent_moments
from mercer.likelihoods import Likelihood
from mercer.likelihoods.observed import (
    observed_cov,
    observed_gradients,
    observed_interval,
    observed_mean,
    observed_var,
)
from mercer.posterior import Predictive

__all__ = ["BayesianRegressor", "InputGradient"]

Floats = NDArray[np.float64]


class InputGradient(NamedTuple):
    """Derivatives of the predicted mean and standard deviation in x, (n, d) or (n, d, P)."""

    mean: Floats
    std: Floats


class BayesianRegressor(
    NestedParameters,
    FittedProcess,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the regressors: predictions, intervals, samples and densities.

    Subclasses fit, and set what `FittedProcess` names. One that predicts unfitted overrides
    `_model`.
    """

    # Whether the targets came in columns, and so do predictions.
    _multioutput: bool = False
    # Of the training targets, for their mean and variance; set where rows are checked.
    _target_sums: Floats

    def _model(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        """Return the process (fitted, or the prior), the likelihood, and X validated."""
        X = self._new_inputs(X)
        return self.predictive_, self.likelihood_, X

    def _shaped(self, values: Floats) -> Floats:
        """Drop the axis of outputs when fitted to one column of targets."""
        return values if self._multioutput else values[..., 0]

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
    ) -> Any:
        """Predict the mean, and with it the standard deviation or the covariance.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        return_std : bool, default False
            Whether to return the standard deviation of each prediction too.
        return_cov : bool, default False
            Whether to return the joint covariance of all predictions too.
        latent : bool, default False
            Whether mean and spread are those of the underlying function. By default they are
            those of a new observation: the spread includes the noise, and where there is a link,
            such as the logarithm of a rate, the mean is that of the counts.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, P)
        std : ndarray of the same shape, if `return_std`
        cov : ndarray of shape (n, n) or (n, n, P), if `return_cov`

        Notes
        -----
        O(n m) for means and O(n m^2) for standard deviations at n points with m basis functions,
        in bounded memory; a joint covariance takes three arrays of n^2 at once, four under a link.
        Under a link the mean of an observation takes the variance of the function, and so as long
        as the standard deviation.

        Noise may have no variance (`StudentT` with at most 2 degrees of freedom): the standard
        deviation is infinite then. It may have no mean either (at most 1): the median stands in
        for it. Both come with a warning, and `predict_interval` serves in both cases.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        predictive, likelihood, X = self._model(X)
        s = predictive.scale
        if return_cov:
            mean, cov = latent_mean(predictive, X), latent_cov(predictive, X)
            if not latent:
                # in place: of all that is here the covariance alone is of size n x n
                cov /= s**2
                m = mean / s
                mean = s * observed_mean(likelihood, m, np.einsum("iip->ip", cov).copy())
                cov = observed_cov(likelihood, m, cov)
                cov *= s**2
            return self._shaped(mean), self._shaped(cov)
        if return_std or not (latent or likelihood.adds_noise):
            mean, var = latent_moments(predictive, X)
        else:
            mean = latent_mean(predictive, X)
            var = np.zeros(mean.shape)  # which has no part in it
        std = np.sqrt(var)
        if not latent:
            m, v = mean / s, var / s**2
            mean = s * observed_mean(likelihood, m, v)
            if return_std:
                std = s * np.sqrt(observed_var(likelihood, m, v))
        return (self._shaped(mean), self._shaped(std)) if return_std else self._shaped(mean)

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.95, latent: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the ends of the equal-tailed interval that holds a new observation.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        coverage : float, default 0.95
            The probability that the interval is to hold, between 0 and 1. Where noise is not
            symmetric the upper tail is 1e-14 at the least.
        latent : bool, default False
            Whether the interval is for the underlying function instead of a new observation.
        """
        try:
            inside = 0.0 < coverage < 1.0 and float(coverage) < 1.0
        except TypeError:
            inside = False
        if not inside:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
        predictive, likelihood, X = self._model(X)
        mean, var = latent_moments(predictive, X)
        if latent:
            half = -ndtri(0.5 * (1.0 - float(coverage))) * np.sqrt(var)
            return self._shaped(mean - half), self._shaped(mean + half)
        s = predictive.scale
        low, high = observed_interval(likelihood, mean / s, var / s**2, coverage)
        return self._shaped(s * low), self._shaped(s * high)

    def predict_gradient(self, X: ArrayLike) -> InputGradient:
        """Return the derivatives in x of the mean and standard deviation that `predict` returns.

        Returns
        -------
        InputGradient
            `mean` and `std`, each of shape (n, d), or (n, d, P) for several outputs.
        """
        predictive, likelihood, X = self._model(X)
        s = predictive.scale
        with np.errstate(over="ignore", invalid="ignore"):
            dmean, dvar = predictive.gradients(X)
        mean, var = latent_moments(predictive, X)
        mean, var = mean / s, var / s**2
        dmean, dvar = observed_gradients(likelihood, mean, var, dmean / s, dvar / s**2)
        std = np.sqrt(likelihood.predictive_var(mean, var))  # NaN where there is none: no slope
        safe = np.where(std > 0, std, 1.0)[:, None, :]
        dstd = np.where(std[:, None, :] > 0, dvar / (2.0 * safe), 0.0)
        return InputGradient(self._shaped(s * dmean), self._shaped(s * dstd))

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the log density of each observed y under its prediction.

        Returns
        -------
        ndarray of shape (n,), or (n, P) for several outputs
        """
        likelihood, s, *scaled = self._beside(X, y)
        return self._shaped(likelihood.log_predictive(*scaled) - np.log(s))

    def predict_cdf(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the predicted probability that a new observation is at most y.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        y : array-like of shape (n,) or (n, P)
            A value for each prediction. For observed ones the result is the probability integral
            transform, uniform between 0 and 1 where predictions are calibrated.

        Returns
        -------
        ndarray of shape (n,), or (n, P) for several outputs
        """
        likelihood, _, *scaled = self._beside(X, y)
        return self._shaped(likelihood.predictive_cdf(*scaled))

    def _beside(self, X: Any, y: ArrayLike) -> tuple[Likelihood, Floats, Floats, Floats, Floats]:
        """Return the likelihood, the scale, and in its units y, latent mean and variance."""
        predictive, likelihood, X = self._model(X)
        mean, var = latent_moments(predictive, X)
        y = np.asarray(y, dtype=float)
        if y.shape != self._shaped(mean).shape:
            raise ValueError(
                f"y must have shape {self._shaped(mean).shape}, as the predictions, got {y.shape}"
            )
        s = predictive.scale
        return likelihood, s, y.reshape(mean.shape) / s, mean / s, var / s**2

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, latent: bool = False
    ) -> Floats:
        """Draw joint samples of the predictions at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to draw.
        n_samples : int, default 1
            How many functions to draw.
        random_state : int, RandomState, Generator or None, default 0
            The source of randomness.
        latent : bool, default False
            Whether to draw the underlying function instead of new observations.

        Returns
        -------
        ndarray of shape (n, n_samples), or (n, P, n_samples) for several outputs
        """
        predictive, likelihood, X = self._model(X)
        rng = as_generator(random_state)
        if not self._pairwise:  # where infinite entries are refused
            latent_moments(predictive, X)  # which refuses rows that are too large
        draws = predictive.sample(X, n_samples, rng)  # (n, n_samples, P)
        if not latent:
            draws = predictive.scale * likelihood.sample(draws / predictive.scale, rng)
        return draws.transpose(0, 2, 1) if self._multioutput else draws[..., 0]
