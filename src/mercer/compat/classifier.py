"""scikit-learn's Gaussian process classifier on Mercer's engine for Laplace's method."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.gaussian_process.kernels import CompoundKernel
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.compat.binary import BinaryLaplace
from mercer.compat.fitting import HasEvidence
from mercer.compat.options import check_options, kind_of_rows
from mercer.compat.problems import joined, unfitted
from mercer.compat.storage import Stored
from mercer.posterior import Posterior, Predictive, Stacked
from mercer.registry import storable

__all__ = ["GaussianProcessClassifier"]

Floats = NDArray[np.float64]


@storable
class GaussianProcessClassifier(
    Stored,
    HasEvidence,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Gaussian process classification with scikit-learn's signature, attributes and meaning.

    A drop-in replacement for ``sklearn.gaussian_process.GaussianProcessClassifier``: kernels are
    scikit-learn's, the link is the logistic function, the posterior of the latent function is
    Laplace's approximation, and three classes or more are made of problems of two. For new code
    :class:`mercer.GPClassifier` is the better choice: it has other links and engines, a softmax
    over all classes, weights, and a default kernel that is fitted to the data.

    Parameters
    ----------
    kernel : scikit-learn kernel or None, default None
        The covariance of the latent function. None is the installed scikit-learn's: a constant
        times an RBF, both held at 1.
    optimizer : "fmin_l_bfgs_b", callable or None, default "fmin_l_bfgs_b"
        A callable is called as ``optimizer(obj_func, initial_theta, bounds=bounds)`` and returns
        the best theta and the least value; ``obj_func(theta, eval_gradient=True)`` is minus the log
        evidence. None keeps the hyperparameters.
    n_restarts_optimizer : int, default 0
        Further starts, drawn from the bounds as scikit-learn draws them.
    max_iter_predict : int, default 100
        Has no effect: the mode is always found, mostly in fewer than ten steps.
    warm_start : bool, default False
        Has no effect: within a search every evaluation starts from the mode of the one before,
        which changes nothing but the time it takes.
    copy_X_train : bool, default True
        Whether the training rows are copied, rather than referred to.
    random_state : int, RandomState or None, default None
        For the further starts.
    multi_class : {"one_vs_rest", "one_vs_one"}, default "one_vs_rest"
        Whether three classes or more are each told from all others, or from each other. Only the
        first has `predict_proba`.
    n_jobs : int or None, default None
        How many of these problems are fitted at the same time.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    n_classes_ : int
        Their number.
    kernel_ : scikit-learn kernel
        The kernel with the fitted hyperparameters; a `CompoundKernel` of several for three classes
        or more.
    base_estimator_ : estimator
        What does the work: for two classes it has `X_train_`, `y_train_`, `pi_`, `W_sr_` and
        `L_`, as scikit-learn's has; for more it is a `OneVsRestClassifier` or a
        `OneVsOneClassifier` of such ones.
    log_marginal_likelihood_value_ : float
        The log evidence of ``kernel_.theta``, averaged over the problems.
    posterior_ : Posterior
        For two classes: the latent process as a Mercer object, white noise left out, which can be
        pruned, and saved.
    predictive_ : Predictive
        The same; for three classes or more an output for each problem.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if they had any.

    See Also
    --------
    mercer.GPClassifier : the same model, and others, with Mercer's own interface.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, whatever the number of
    hyperparameters, and three n x n matrices; once for each problem. Kernels that
    :class:`mercer.compat.GaussianProcessRegressor` calls as they are, are called here too.

    Where it differs: `predict_proba` is the integral of the logistic function, for which
    scikit-learn puts five error functions, up to 4e-4 off. Newton's method has a line search and
    ends at the mode; scikit-learn's takes full steps and ends when the evidence falls, which for a
    kernel of large variance may be elsewhere, so that its search for hyperparameters fails.

    :func:`mercer.save` takes it, if the classes of the kernel are scikit-learn's own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from mercer.compat import GaussianProcessClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.3, "in", "out")
    >>> model = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y)
    >>> model.predict([[0.1, 0.2], [1.9, -1.5]])
    array(['in', 'out'], dtype='<U3')
    >>> bool(model.predict_proba([[0.1, 0.2]])[0, 0] > 0.8)
    True
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
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the latent functions and, unless `optimizer` is None, their hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Inputs.
        y : array-like of shape (n,)
            Labels.
        """
        check_options(self)
        labels: NDArray[Any]
        X, labels = validate_data(self, X, y, multi_output=False, **kind_of_rows(self.kernel))
        classes = np.unique(labels)
        if len(classes) == 1:
            raise ValueError(
                "GaussianProcessClassifier requires 2 or more distinct classes; got 1 class "
                f"(only class {classes[0]} is present)"
            )
        # all at once, after what may fail
        self.base_estimator_ = unfitted(self, len(classes)).fit(X, labels)
        self.classes_, self.n_classes_ = classes, len(classes)
        values = [part.log_marginal_likelihood() for part in self._parts()]
        self.log_marginal_likelihood_value_ = np.mean(values)
        return self

    def _parts(self) -> list[BinaryLaplace]:
        """Return the problems of two classes, one of them for two classes."""
        check_is_fitted(self, "base_estimator_")
        model = self.base_estimator_
        return [model] if self.n_classes_ == 2 else list(model.estimators_)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "base_estimator_")
        return validate_data(self, X, reset=False, **kind_of_rows(self.kernel))

    # --- predicting ---------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Where to predict.

        Returns
        -------
        ndarray of shape (n,)
        """
        X = self._checked(X)
        return np.asarray(self.base_estimator_.predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Where to predict.

        Returns
        -------
        ndarray of shape (n, C)
            A column for each of `classes_`.
        """
        if len(self._parts()) > 1 and self.multi_class == "one_vs_one":
            raise ValueError(
                "one_vs_one multi-class mode does not support predicting probability estimates. "
                "Use one_vs_rest mode instead."
            )
        return np.asarray(self.base_estimator_.predict_proba(self._checked(X)))

    def latent_mean_and_variance(self, X: Any) -> tuple[Floats, Floats]:
        """Return the mean and the variance of the latent function; for two classes only.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Where to predict.

        Returns
        -------
        latent_mean, latent_var : ndarray of shape (n,)
        """
        parts = self._parts()
        if len(parts) > 1:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for "
                f"binary classification, received {self.n_classes_} classes."
            )
        return parts[0].latent_mean_and_variance(self._checked(X))

    # --- what was fitted ----------------------------------------------------------------------

    @property
    def kernel_(self) -> Any:
        """The fitted kernel; for three classes or more, a `CompoundKernel` of them."""
        kernels = [part.kernel_ for part in self._parts()]
        return kernels[0] if len(kernels) == 1 else CompoundKernel(kernels)

    @property
    def posterior_(self) -> Posterior:
        """The latent process of two classes."""
        parts = self._parts()
        if len(parts) > 1:
            raise AttributeError(
                f"there are {self.n_classes_} classes, and a latent process for each problem of "
                "two: see predictive_"
            )
        return parts[0].posterior_

    @property
    def predictive_(self) -> Predictive:
        """The latent processes."""
        parts = [part.posterior_ for part in self._parts()]
        return parts[0] if len(parts) == 1 else Stacked(parts)

    def _evidence(self, theta: Floats, eval_gradient: bool, clone_kernel: bool) -> Any:
        parts = self._parts()
        if len(parts) == 1:
            return parts[0]._evidence(theta, eval_gradient, clone_kernel)
        if eval_gradient:
            raise NotImplementedError(
                "Gradient of log-marginal-likelihood not implemented for multi-class GPC."
            )
        size = parts[0].kernel_.n_dims
        if theta.shape not in ((size,), (size * len(parts),)):
            raise ValueError(
                f"Shape of theta must be either {size} or {size * len(parts)}. Obtained theta "
                f"with shape {theta.shape}."
            )
        thetas = [theta] * len(parts) if theta.size == size else np.split(theta, len(parts))
        pairs = zip(parts, thetas, strict=True)
        return np.mean([part._evidence(own, False, clone_kernel) for part, own in pairs])

    # --- saving -------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes, the problems of two in a list."""
        state = super().to_state()
        if hasattr(self, "base_estimator_"):
            state["fitted"]["base_estimator_"] = self._parts()
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        model = super().from_state(state)
        if hasattr(model, "base_estimator_"):
            model.base_estimator_ = joined(model, model.base_estimator_)
        return model
