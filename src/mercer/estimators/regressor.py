"""What every Mercer regressor offers once it has a `predictive_` and a `likelihood_`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from mercer.likelihoods import Likelihood
from mercer.posterior import Predictive

__all__ = ["BayesianRegressor", "InputGradient"]

Floats = NDArray[np.float64]


class InputGradient(NamedTuple):
    """Derivatives of the predicted mean and standard deviation in x, (n, d) or (n, d, P)."""

    mean: Floats
    std: Floats


class BayesianRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the regressors: predictions, intervals, samples and densities.

    Subclasses fit, and implement `_model(X) -> (predictive, likelihood, inputs)`.
    """

    predictive_: Predictive
    likelihood_: Likelihood

    def _model(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        """Return the process (fitted, or the prior), the likelihood, and X validated."""
        raise NotImplementedError(f"{type(self).__name__} must define _model(X)")

    def _shaped(self, values: Floats) -> Floats:
        """Drop the axis of outputs when fitted to one column of targets."""
        return values if getattr(self, "_multioutput", False) else values[..., 0]

    def _noise_variance(self, predictive: Predictive, likelihood: Likelihood) -> Floats:
        """Return the variance of a new observation's noise for each output, (P,)."""
        scale = np.asarray(getattr(predictive, "scale", 1.0))
        return np.asarray(likelihood.new_variance * scale**2)

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
            Whether the spread is that of the underlying function. By default it is that of a new
            observation, noise included.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, P)
        std : ndarray of the same shape, if `return_std`
        cov : ndarray of shape (n, n) or (n, n, P), if `return_cov`

        Notes
        -----
        O(n m) for means and O(n m^2) for standard deviations at n points with m basis functions,
        in bounded memory; a joint covariance needs n^2.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        predictive, likelihood, X = self._model(X)
        if not (return_std or return_cov):
            return self._shaped(predictive.mean(X))
        noise = np.zeros(1) if latent else self._noise_variance(predictive, likelihood)
        if return_cov:
            mean, cov = predictive.mean(X), predictive.cov(X)
            rows = np.arange(len(mean))
            cov[rows, rows] += noise
            return self._shaped(mean), self._shaped(cov)
        mean, var = predictive.mean_and_var(X)
        return self._shaped(mean), self._shaped(np.sqrt(var + noise))

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.95, latent: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the ends of the equal-tailed interval that holds a new observation.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        coverage : float, default 0.95
            The probability that the interval is to hold, between 0 and 1.
        latent : bool, default False
            Whether the interval is for the underlying function instead of a new observation.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
        from scipy.special import ndtri

        mean, std = self.predict(X, return_std=True, latent=latent)
        half = ndtri(0.5 + 0.5 * coverage) * std
        return mean - half, mean + half

    def predict_gradient(self, X: ArrayLike) -> InputGradient:
        """Return the derivatives in x of the mean and standard deviation that `predict` returns.

        Returns
        -------
        InputGradient
            `mean` and `std`, each of shape (n, d), or (n, d, P) for several outputs.
        """
        predictive, likelihood, X = self._model(X)
        dmean, dvar = predictive.gradients(X)
        std = np.sqrt(predictive.var(X) + self._noise_variance(predictive, likelihood))
        safe = np.where(std > 0, std, 1.0)[:, None, :]
        dstd = np.where(std[:, None, :] > 0, dvar / (2.0 * safe), 0.0)
        return InputGradient(self._shaped(dmean), self._shaped(dstd))

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the log density of each observed y under its prediction.

        Returns
        -------
        ndarray of shape (n,), or (n, P) for several outputs
        """
        mean, std = self.predict(X, return_std=True)
        y = np.asarray(y, dtype=float)
        if y.shape != mean.shape:
            raise ValueError(f"y must have shape {mean.shape}, as the predictions, got {y.shape}")
        floor = np.finfo(float).tiny
        safe = np.maximum(std, floor)
        return np.asarray(-0.5 * ((y - mean) / safe) ** 2 - np.log(safe) - 0.5 * np.log(2 * np.pi))

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
        draws = predictive.sample(X, n_samples, rng)  # (n, n_samples, P)
        if not latent:
            noise = np.sqrt(self._noise_variance(predictive, likelihood))
            draws = draws + noise * rng.standard_normal(draws.shape)
        return draws.transpose(0, 2, 1) if getattr(self, "_multioutput", False) else draws[..., 0]


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator for any `random_state` that scikit-learn takes."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
