"""What the drop-ins share: hyperparameters that are found by the evidence, and the evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.compat.covariance import Covariance, covariance_of
from mercer.compat.search import lbfgs, warn_at_bounds
from mercer.estimators.memory import require_memory

__all__ = ["Fits", "HasEvidence"]

Floats = NDArray[np.float64]


class HasEvidence(ABC):
    """Adds `log_marginal_likelihood` to a class with `_evidence`, which is it at some theta."""

    log_marginal_likelihood_value_: Any

    def log_marginal_likelihood(
        self,
        theta: ArrayLike | None = None,
        eval_gradient: bool = False,
        clone_kernel: bool = True,
    ) -> Any:
        """Return the log evidence at theta, and its gradient if asked.

        That of several outputs is their sum, that of several problems of two classes their average.

        Parameters
        ----------
        theta : array of shape (p,), optional
            Hyperparameters, as ``kernel_.theta``; the fitted ones without it. Three classes or more
            also take those of one problem, for all of them.
        eval_gradient : bool, default False
            Whether to return the gradient too; it needs a theta, and no more than two classes.
        clone_kernel : bool, default True
            Whether `kernel_` is left alone. False moves it to theta.

        Returns
        -------
        value : float
            Of a regressor, -inf where the matrix cannot be factorised.
        gradient : ndarray of shape (p,), if `eval_gradient`
        """
        if theta is not None:
            return self._evidence(np.asarray(theta, dtype=float), eval_gradient, clone_kernel)
        check_is_fitted(self, "log_marginal_likelihood_value_")
        if eval_gradient:
            raise ValueError("Gradient can only be evaluated for theta!=None")
        return self.log_marginal_likelihood_value_

    @abstractmethod
    def _evidence(self, theta: Floats, eval_gradient: bool, clone_kernel: bool) -> Any:
        """Return the log evidence at theta, and its gradient if asked."""


class Fits(HasEvidence):
    """Adds the fit of a kernel, as the options ask for it, to a class with `_objective`."""

    optimizer: Any
    n_restarts_optimizer: int
    copy_X_train: bool
    random_state: Any
    kernel_: Any
    X_train_: Any
    y_train_: NDArray[Any]

    @abstractmethod
    def _objective(self, theta: Floats, eval_gradient: bool = True) -> Any:
        """Return minus the log evidence, and its gradient; `kernel_` is moved to theta."""

    def _fit_kernel(
        self,
        kernel: Any,
        X: Any,
        y: NDArray[Any],
        *,
        matrices: float,
        what: str = "an exact fit",
        classes: bool = False,
    ) -> None:
        """Keep the rows, and the kernel at the hyperparameters that are the best for them.

        `matrices` is how many of n x n numbers a translated kernel needs; `what` needs them, in
        words, and `classes` says whether it is a classifier. What is refused changes nothing.
        """
        rng = check_random_state(self.random_state)
        if covariance_of(kernel, X).translation is None:
            matrices += 2.0 + kernel.n_dims
        require_memory(len(y), matrices, what=what, classes=classes)
        searches = self.optimizer is not None and kernel.n_dims > 0
        if searches and self.n_restarts_optimizer > 0 and not np.all(np.isfinite(kernel.bounds)):
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds "
                "are finite."
            )
        self._forget()
        self.kernel_ = kernel
        self.X_train_, self.y_train_ = (np.copy(X), np.copy(y)) if self.copy_X_train else (X, y)
        if searches:
            kernel.theta = self._search(rng)
            warn_at_bounds(kernel)

    def _forget(self) -> None:
        """Drop what a search would start from, of an earlier fit."""

    def _search(self, rng: np.random.RandomState) -> Floats:
        """Return the theta of the least value that all starts have found."""
        bounds = self.kernel_.bounds
        drawn = [self._drawn_start(rng, bounds) for _ in range(self.n_restarts_optimizer)]
        starts = [self.kernel_.theta, *drawn]
        ends = [self._constrained_optimization(self._objective, s, bounds) for s in starts]
        return np.asarray(min(ends, key=lambda end: end[1])[0], dtype=float)

    def _drawn_start(self, rng: np.random.RandomState, bounds: Floats) -> Floats:
        return np.asarray(rng.uniform(*bounds.T))

    def _constrained_optimization(
        self, obj_func: Any, initial_theta: Floats, bounds: Floats
    ) -> tuple[Floats, float]:
        """Run one start. The name is scikit-learn's: classes derived from it override this."""
        if callable(self.optimizer):
            theta, least = self.optimizer(obj_func, initial_theta, bounds=bounds)
            return theta, least
        is_definite = covariance_of(self.kernel_, self.X_train_).is_definite
        return lbfgs(obj_func, initial_theta, bounds, again=is_definite)

    def _covariance(self, theta: Floats, clone_kernel: bool) -> Covariance:
        """Return the covariance at theta, `kernel_` being moved there unless it is cloned."""
        if clone_kernel:
            kernel = self.kernel_.clone_with_theta(theta)
        else:
            kernel = self.kernel_
            kernel.theta = theta
        return covariance_of(kernel, self.X_train_)
