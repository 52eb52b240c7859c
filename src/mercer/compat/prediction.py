"""Predictions and samples, from the fitted attributes or from the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.compat.covariance import Covariance, covariance_of
from mercer.compat.options import check_options, kernel_or_default, kind_of_rows
from mercer.compute import blas_for
from mercer.errors import warn
from mercer.linalg import semidefinite_root
from mercer.means import Constant
from mercer.posterior import Basis, InverseTriangular, Posterior, prior

__all__ = ["Predicts"]

Floats = NDArray[np.float64]


class Predicts:
    """Adds predictions to a regressor with scikit-learn's attributes.

    They are made of the attributes as they are at the time, so that code which moves `kernel_`, or
    sets others, has the effect that it has in scikit-learn.
    """

    kernel: Any
    n_targets: int | None
    kernel_: Any
    X_train_: Any
    y_train_: NDArray[Any]
    L_: Floats
    alpha_: Floats
    _y_train_mean: Any
    _y_train_std: Any

    @property
    def posterior_(self) -> Posterior:
        """The fitted process, made of the fitted attributes as they are now."""
        check_is_fitted(self, "L_")
        return self._process(covariance_of(self.kernel_, self.X_train_))

    @property
    def predictive_(self) -> Posterior:
        """The fitted process: `posterior_`."""
        return self.posterior_

    def _process(self, covariance: Covariance) -> Posterior:
        if not hasattr(self, "X_train_"):
            return prior(covariance.kernel, None, self.n_targets or 1)
        scale = np.reshape(self._y_train_std, -1)
        mean = Constant(np.reshape(self._y_train_mean, -1), estimate=None)
        return Posterior(
            Basis(covariance.kernel, self.X_train_),
            self.alpha_.reshape(len(self.alpha_), -1),
            InverseTriangular(self.L_),
            mean=mean,
            scale=scale,
        )

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean, and with it the standard deviation or the covariance.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Where to predict. An unfitted model predicts from its prior.
        return_std : bool, default False
            Whether to return the standard deviation of each prediction too.
        return_cov : bool, default False
            Whether to return the joint covariance of all predictions too.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, P)
        std : ndarray of the same shape, if `return_std`
        cov : ndarray of shape (n, n) or (n, n, P), if `return_cov`
            Of the process and the white noise in the kernel; `alpha` is no part of it.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if hasattr(self, "X_train_"):
            kernel = self.kernel_
        else:
            check_options(self)
            kernel = kernel_or_default(self.kernel)
        X = validate_data(self, X, reset=False, **kind_of_rows(kernel))
        covariance = covariance_of(kernel, X)
        process = self._process(covariance)
        if not (return_std or return_cov):
            return _squeezed(process.mean(X))
        noise = covariance.noise * process.scale**2
        if return_std:
            mean, var = _Signed(**process.to_state()).mean_and_var(X)
            var += noise
            below = var < 0
            if np.any(below):
                warn(
                    "Predicted variances smaller than 0. Setting those variances to 0.",
                    UserWarning,
                )
                var[below] = 0.0
            return _squeezed(mean), _squeezed(np.sqrt(var))
        cov = process.cov(X)
        rows = np.arange(len(cov))
        cov[rows, rows] += noise
        return _squeezed(process.mean(X)), _squeezed(cov)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Floats:
        """Draw joint samples of the predictions at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Where to draw.
        n_samples : int, default 1
            How many functions to draw.
        random_state : int, RandomState or None, default 0
            The source of randomness.

        Returns
        -------
        ndarray of shape (n, n_samples), or (n, P, n_samples) for several outputs
        """
        rng = check_random_state(random_state)
        mean, cov = self.predict(X, return_cov=True)

        def draws() -> Floats:
            return np.asarray(rng.standard_normal((n_samples, len(mean))).T)

        if mean.ndim == 1:
            return np.asarray(mean[:, None] + semidefinite_root(cov) @ draws())
        # outputs differ in their units only
        root = semidefinite_root(cov[..., 0])
        units = getattr(self, "_y_train_std", np.ones(mean.shape[1]))
        parts = [
            centre[:, None] + unit / units[0] * (root @ draws())
            for centre, unit in zip(mean.T, units, strict=True)
        ]
        return np.stack(parts, axis=1)


class _Signed(Posterior):
    """A posterior whose variances may be below 0, as those of an indefinite kernel are."""

    def var_from(self, Phi: Floats, kdiag: Floats | None, *, overwrite: bool = False) -> Floats:
        var = np.array(kdiag)
        if isinstance(self.A, InverseTriangular):
            with blas_for(len(self.alpha)):
                images = self.A.apply(Phi, overwrite=overwrite)
                var -= np.einsum("ij,ij->j", images, images)
        return np.asarray(var[:, None] * self.scale**2)


def _squeezed(values: Floats) -> Floats:
    """Drop the axis of outputs where there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values
