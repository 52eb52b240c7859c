"""scikit-learn's Gaussian process regressor on Mercer's exact engine."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from mercer.compat.covariance import covariance_of
from mercer.compat.fitting import Fits
from mercer.compat.options import check_options, kernel_or_default, kind_of_rows
from mercer.compat.prediction import Predicts
from mercer.compat.storage import Stored
from mercer.errors import NotPositiveDefiniteError
from mercer.registry import storable

__all__ = ["GaussianProcessRegressor"]

Floats = NDArray[np.float64]


@storable
class GaussianProcessRegressor(
    Stored,
    Fits,
    Predicts,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Gaussian process regression with scikit-learn's signature, attributes and meaning.

    A drop-in replacement for ``sklearn.gaussian_process.GaussianProcessRegressor``: kernels are
    scikit-learn's, `theta` is in its order, `alpha` is left out of the predicted spread and a
    `WhiteKernel` is part of it. For new code :class:`mercer.GPRegressor` is the better choice: it
    learns the noise and the mean, and says whether a spread is that of the function or of a new
    observation.

    Parameters
    ----------
    kernel : scikit-learn kernel or None, default None
        The covariance of the process. None is a constant times an RBF, which the installed version
        of scikit-learn keeps as it is (before 1.9) or fits.
    alpha : float or array of shape (n,), default 1e-10
        Added to the diagonal of the kernel matrix of the training rows. A list will do for the
        array, which scikit-learn refuses.
    optimizer : "fmin_l_bfgs_b", callable or None, default "fmin_l_bfgs_b"
        A callable is called as ``optimizer(obj_func, initial_theta, bounds=bounds)`` and returns
        the best theta and the least value; ``obj_func(theta, eval_gradient=True)`` is minus the log
        evidence. None keeps the hyperparameters.
    n_restarts_optimizer : int, default 0
        Further starts, log-uniform within the bounds.
    normalize_y : bool, default False
        Whether the targets are centred and divided by their standard deviation inside.
    copy_X_train : bool, default True
        Whether the training rows are copied, rather than referred to.
    n_targets : int or None, default None
        The number of outputs of the prior that an unfitted model predicts from.
    random_state : int, RandomState or None, default None
        For the further starts.

    Attributes
    ----------
    X_train_, y_train_ : ndarray
        The training rows; the targets after `normalize_y`.
    kernel_ : scikit-learn kernel
        The kernel with the fitted hyperparameters.
    L_ : ndarray of shape (n, n)
        The lower Cholesky factor of the training rows' covariance.
    alpha_ : ndarray of shape (n,) or (n, P)
        The coefficients of the kernel sections.
    log_marginal_likelihood_value_ : float
        The log evidence of ``kernel_.theta``.
    posterior_ : Posterior
        The fitted process as a Mercer object, white noise left out: can be pruned, and saved.
    predictive_ : Posterior
        The same, by the name that all of Mercer's models have.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if they had any.

    See Also
    --------
    mercer.GPRegressor : the same model with Mercer's own interface.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, whatever the number of
    hyperparameters, and n^2 doubles of memory. That holds for kernels made of scikit-learn's own
    classes. Classes of your own, kernels over other objects than vectors, `PairwiseKernel`,
    `ExpSineSquared` on several columns, and white noise times another kernel are called as they
    are, with an n x n x p array of derivatives. Below some hundred rows the two libraries take
    about the same time.

    Where it differs: a search that fails, on a matrix that rounding keeps from being factorised or
    after a first step that is far too long, is taken up again where scikit-learn's ends; samples
    come from a Cholesky factor, so that for the same seed they are other draws from the same
    distribution; an unfitted model keeps its shapes for a single row; `alpha` is never written to.

    :func:`mercer.save` takes it, if the classes of the kernel are scikit-learn's own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from mercer.compat import GaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    >>> model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1)).fit(X, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 3 * std[0])
    True
    >>> bool(model.kernel_.k2.noise_level < 0.05)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the process and, unless `optimizer` is None, its hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d), or list of objects
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Targets.
        """
        check_options(self)
        kernel = kernel_or_default(self.kernel)
        targets: NDArray[Any]
        X, targets = validate_data(
            self, X, y, multi_output=True, y_numeric=True, **kind_of_rows(kernel)
        )
        n, outputs = len(targets), targets.shape[1] if targets.ndim == 2 else 1
        if self.n_targets not in (None, outputs):
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {outputs} != {self.n_targets}."
            )
        if np.ndim(self.alpha) and len(self.alpha) not in (1, n):
            raise ValueError(
                "alpha must be a scalar or an array with same number of entries as y. "
                f"({len(self.alpha)} != {n})"
            )
        mean, width = np.zeros(outputs), np.ones(outputs)
        if self.normalize_y:
            mean, width = np.mean(targets, axis=0), np.std(targets, axis=0)
            # a constant target has no width but rounding
            width = np.where(width > 10 * np.finfo(float).eps * np.abs(mean), width, 1.0)[()]
            targets = np.asarray((targets - mean) / width)
        self._fit_kernel(kernel, X, targets, matrices=1.0)
        self._y_train_mean, self._y_train_std = mean, width
        self._factorise()
        return self

    def _objective(self, theta: Floats, eval_gradient: bool = True) -> Any:
        found = self.log_marginal_likelihood(theta, eval_gradient, clone_kernel=False)
        return (-found[0], -found[1]) if eval_gradient else -found

    def _factorise(self) -> None:
        """Set what predictions need, at the fitted hyperparameters."""
        try:
            covariance = covariance_of(self.kernel_, self.X_train_)
            solution = covariance.solve(*self._rows())
        except NotPositiveDefiniteError as error:
            raise np.linalg.LinAlgError(
                f"The kernel, {self.kernel_}, is not returning a positive definite matrix. Try "
                "gradually increasing the 'alpha' parameter of your GaussianProcessRegressor "
                f"estimator. ({error})"
            ) from error
        self.L_ = solution.factor.L
        for j in range(1, len(self.L_)):  # the engine leaves anything above the diagonal
            self.L_[:j, j] = 0.0
        self.alpha_ = solution.alpha.reshape(self.y_train_.shape)
        self.log_marginal_likelihood_value_ = np.float64(solution.log_evidence)

    def _rows(self) -> tuple[Any, Floats, Floats]:
        """Return the inputs, the targets (n, P), and what is added to the diagonal (n,)."""
        n = len(self.y_train_)
        alpha = np.broadcast_to(np.asarray(self.alpha, dtype=float), (n,))
        return self.X_train_, np.asarray(self.y_train_, dtype=float).reshape(n, -1), alpha

    def _evidence(self, theta: Floats, eval_gradient: bool, clone_kernel: bool) -> Any:
        covariance = self._covariance(theta, clone_kernel)
        try:
            if eval_gradient:
                value, gradient = covariance.evidence(*self._rows())
                return np.float64(value), gradient
            return np.float64(covariance.solve(*self._rows()).log_evidence)
        except NotPositiveDefiniteError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: predicts unfitted."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
