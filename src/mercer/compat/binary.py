"""Two classes by Laplace's method, with scikit-learn's attributes: what the classifier is made of.

The counterpart of scikit-learn's private class for two classes: `base_estimator_`, or one of its
`estimators_`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Original
from sklearn.utils.validation import check_is_fitted

from mercer.compat.covariance import Covariance, covariance_of
from mercer.compat.fitting import Fits
from mercer.compat.options import kernel_or_default
from mercer.compat.storage import Stored
from mercer.errors import NotPositiveDefiniteError, warn
from mercer.inference import LatentProblem, laplace
from mercer.likelihoods import Logistic
from mercer.likelihoods.class_probabilities import link_probabilities
from mercer.posterior import Basis, InverseTriangular, Posterior
from mercer.registry import storable

__all__ = ["BinaryLaplace"]

Floats = NDArray[np.float64]

# A row whose curvature underflows keeps this much of a root, so that it can be divided by.
_LEAST_ROOT = 1e-100


@storable
class BinaryLaplace(Stored, Fits, BaseEstimator):  # type: ignore[misc]
    """Gaussian process classification into two classes, the logistic function as its link.

    Its parameters are those of :class:`mercer.compat.GaussianProcessClassifier`, which checks them
    and the data.

    Attributes
    ----------
    X_train_, y_train_ : ndarray
        The training rows, and their classes as 0 and 1.
    classes_ : ndarray of shape (2,)
        The labels.
    kernel_ : scikit-learn kernel
        The kernel with the fitted hyperparameters.
    pi_ : ndarray of shape (n,)
        The probability of the second class at the mode of the latent function.
    W_sr_ : ndarray of shape (n,)
        The root of the curvature of the log likelihood there.
    L_ : ndarray of shape (n, n)
        The lower Cholesky factor of 1 + W^1/2 K W^1/2.
    log_marginal_likelihood_value_ : float
        The log evidence of ``kernel_.theta``.
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the latent function and, unless `optimizer` is None, its hyperparameters."""
        kernel = kernel_or_default(self.kernel, Original)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"{type(self).__name__} requires 2 classes; got {len(classes)}: {classes}"
            )
        self._fit_kernel(
            kernel, X, codes, matrices=3.0, what="a fit by Laplace's method", classes=True
        )
        self.classes_ = classes
        self._settle()
        return self

    def _forget(self) -> None:
        if hasattr(self, "pi_"):  # a search begins at even odds
            del self.pi_

    def _drawn_start(self, rng: np.random.RandomState, bounds: Floats) -> Floats:
        # scikit-learn's regressor draws theta, its classifier takes the exponential of that: so
        # that the same seed leads to the same fit, so does this one
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(rng.uniform(*bounds.T)))

    def _settle(self) -> None:
        """Set what predictions need, at the fitted hyperparameters."""
        solution, _ = self._solved(covariance_of(self.kernel_, self.X_train_))
        if solution.status != "converged":
            warn(
                f"Newton's method did not settle at the mode for the kernel {self.kernel_}: is it "
                "a covariance?",
                ConvergenceWarning,
            )
        self.log_marginal_likelihood_value_ = np.float64(solution.log_evidence)
        self.pi_ = np.asarray(expit(solution.latent))
        self.W_sr_ = np.sqrt(np.maximum(solution.sites.precision, _LEAST_ROOT**2))
        scaled, _ = solution.sites.factors()
        # Above the diagonal of a factor is anything, which a product might stumble over.
        self.L_ = np.asfortranarray(self.W_sr_[:, None] * np.tril(scaled.L))

    def _objective(self, theta: Floats, eval_gradient: bool = True) -> Any:
        solution, gradient = self._solved(self._covariance(theta, False), eval_gradient)
        self.pi_ = np.asarray(expit(solution.latent))  # the next evaluation starts from here
        value = -np.float64(solution.log_evidence)
        return (value, -gradient) if eval_gradient else value

    def _evidence(self, theta: Floats, eval_gradient: bool, clone_kernel: bool) -> Any:
        solution, gradient = self._solved(self._covariance(theta, clone_kernel), eval_gradient)
        value = np.float64(solution.log_evidence)
        return (value, gradient) if eval_gradient else value

    def _solved(
        self, covariance: Covariance, eval_gradient: bool = False
    ) -> tuple[laplace.Solution, Floats]:
        """Return the mode and, if asked, the gradient over theta of its log evidence."""
        kernel, pull = covariance.kernel, None
        if eval_gradient:
            kernel, pull = covariance.differentiable(self.X_train_)
        labels = np.where(self.y_train_ == 1, 1.0, -1.0)
        # white noise is part of the latent function: it stands on the diagonal of K
        problem = LatentProblem(
            kernel,
            self.X_train_,
            labels,
            Logistic(),
            np.zeros(len(labels)),
            jitter=covariance.noise,
        )
        start = self.y_train_ - self.pi_ if hasattr(self, "pi_") else None
        try:
            if pull is None:
                return laplace.solve(problem, start), np.empty(0)
            solution, adjoints = laplace.evidence(problem, start)
        except NotPositiveDefiniteError as error:
            raise np.linalg.LinAlgError(
                f"The kernel, {covariance.given}, is not returning a positive definite matrix. "
                f"({error})"
            ) from error
        noise = adjoints.factor * float(np.trace(adjoints.K))
        return solution, pull(adjoints.K, adjoints.factor, noise)

    # --- predicting ---------------------------------------------------------------------------

    @property
    def posterior_(self) -> Posterior:
        """The latent process without its white noise, made of the attributes as they are now."""
        check_is_fitted(self, "L_")
        return self._process(covariance_of(self.kernel_, self.X_train_))

    def _process(self, covariance: Covariance) -> Posterior:
        roots = np.maximum(self.W_sr_, _LEAST_ROOT)
        A = InverseTriangular(self.L_ / roots[:, None])
        basis = Basis(covariance.kernel, self.X_train_)
        return Posterior(basis, (self.y_train_ - self.pi_)[:, None], A)

    def latent_mean_and_variance(self, X: Any) -> tuple[Floats, Floats]:
        """Return the mean and the variance of the latent function at the rows of X, each (n,)."""
        check_is_fitted(self, "L_")
        covariance = covariance_of(self.kernel_, X)
        mean, var = self._process(covariance).mean_and_var(X)
        return mean[:, 0], var[:, 0] + covariance.noise

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the second where the latent mean is above 0."""
        check_is_fitted(self, "L_")
        kernel = covariance_of(self.kernel_, X).kernel
        alpha = (self.y_train_ - self.pi_)[:, None]
        mean = Posterior(Basis(kernel, self.X_train_), alpha).mean(X)[:, 0]
        return np.asarray(np.where(mean > 0, self.classes_[1], self.classes_[0]))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of either class, (n, 2): the average over the latent function."""
        mean, var = self.latent_mean_and_variance(X)
        return link_probabilities([Logistic()], mean[:, None], var[:, None]).values
