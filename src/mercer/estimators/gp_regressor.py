"""Exact Gaussian process regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer import means
from mercer.errors import JitterWarning, UndeterminedWarning, warn
from mercer.estimators.evidence import ExactEvidence
from mercer.estimators.inputs import require_numbers
from mercer.estimators.nested import column_names
from mercer.estimators.preparation import (
    Prepared,
    all_or_nothing,
    is_precomputed,
    naming_the_model,
    prepare_exact,
)
from mercer.estimators.regressor import BayesianRegressor, as_generator
from mercer.estimators.resolve import as_gaussian, as_kernel, check_options, require_mercer
from mercer.estimators.state import StorableEstimator
from mercer.evidence import Optimum, maximise, warn_if_miscalibrated, warn_of_search
from mercer.evidence.optimum import Lines, Report
from mercer.inference.exact import posterior
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import PrecomputedPredictive, Predictive, prior
from mercer.registry import storable

__all__ = ["GPRegressor"]


@storable
class GPRegressor(StorableEstimator, ExactEvidence, BayesianRegressor):
    """Exact Gaussian process regression with Gaussian noise.

    y = m(x) + f(x) + noise, f a Gaussian process with the kernel's covariance. Hyperparameters
    maximise the evidence (BKM 62), times their hyperpriors.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        The covariance of f, where the search for hyperparameters starts. None is a multiple of an
        RBF with one length scale a column, started, bounded and given hyperpriors in the units of
        the data. With "precomputed", X is the kernel matrix itself (see Notes).
    likelihood : Gaussian or None, default None
        The noise: None learns one variance; `Gaussian(variance)` starts there;
        `Gaussian(array)` holds known variances, one a row, or a whole noise covariance.
    inference : {"auto", "exact"}, default "auto"
        The engine. "auto" is exact for Gaussian noise.
    mean : {"constant", "linear", "zero"}, Mean or callable, default "constant"
        The mean function m(x). "constant" and "linear" are estimated; to integrate them out
        instead, give ``means.Constant(estimate="integrate")``.
    hyperprior : {"default", None}, default "default"
        Whether the default kernel's length scales have hyperpriors. A kernel of your own carries
        its own, and is not touched.
    objective : {"evidence", "loo"}, default "evidence"
        What the hyperparameters maximise: the evidence, or the leave-one-out log density.
    optimizer : {"lbfgs", None} or callable, default "lbfgs"
        None keeps the hyperparameters as given. A callable has scikit-learn's signature.
    n_restarts : int, default 0
        Random starts beside the first.
    max_iter : int, default 200
        Iterations of the optimiser for each start.
    normalize_y : bool, default False
        Whether a kernel of your own is in units of the targets' standard deviation.
    warm_start : bool, default False
        Whether a second `fit` starts from the hyperparameters of the one before.
    n_jobs : int or None, default None
        How many starts to run at once, each on a core and with a matrix of its own; negative ones
        as joblib's: -1 is one for each core.
    random_state : int, RandomState, Generator or None, default None
        For the random starts.
    verbose : bool, int or callable, default 0
        1 writes a line an evaluation to standard error. A callable is called after each one as
        ``verbose(start, count, value, best)``: the number of the start and of the evaluation
        there, both from 1, the value, and the best of that start so far.

    Attributes
    ----------
    kernel_, likelihood_, mean_ : the fitted model
        In the user's units; in units of each output's standard deviation with `normalize_y`, or
        for several outputs under the default kernel.
    posterior_, predictive_ : Posterior
        The fitted process: predicts, samples, can be pruned and saved.
    log_marginal_likelihood_value_ : float
        The log evidence, hyperpriors left out.
    history_ : dict
        "theta" (k, p) and "value" (k,): every evaluation of the search.
    status_ : str
        How the search for hyperparameters ended.
    n_iter_ : int
        Iterations of the optimiser at the start that won.
    jitter_ : float
        What had to be added to the diagonal; 0.0 nearly always.
    y_train_, sample_weight_ : ndarray of shape (n, P), and (n,) or None
        The targets and weights of the rows that were fitted, those of weight 0 left out.
    theta_ : ndarray of shape (p,)
        The fitted hyperparameters as one vector, logarithms where they are positive.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    mercer.kernels : what to compose kernels of.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, whatever the number of
    hyperparameters, and n^2 doubles of memory. Use it up to some ten thousand rows. Predictions
    cost O(n) a point for the mean and O(n^2) for the standard deviation.

    Several columns of targets are independent outputs that share the kernel and the noise, at the
    price of one factorisation. Under the default kernel that is one ratio of noise to signal for
    all. Where their error bars do not suit them all, a `CalibrationWarning` says which outputs are
    over- and under-confident; ``[clone(model).fit(X, y) for y in Y.T]`` gives each a kernel and a
    noise of its own.

    A single row, constant targets, or others that the mean explains without any remainder, say
    nothing about the scale of the process. Then the hyperparameters stay as they began, the default
    ones in units of the targets' size, and an `UndeterminedWarning` says so.

    With ``kernel="precomputed"`` the matrix given to `fit` is K(X, X) of shape (n, n). `predict`
    takes K(X_new, X), and for standard deviations one more column with k(x, x) of each new row, or
    for a covariance all of K(X_new, X_new) as further columns.

    An unfitted model predicts from its prior.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GPRegressor
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> model = GPRegressor().fit(X, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.1)
    True
    """

    likelihood_: Gaussian

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Gaussian | None = None,
        *,
        inference: str = "auto",
        mean: Any = "constant",
        hyperprior: str | None = "default",
        objective: str = "evidence",
        optimizer: Any = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 200,
        normalize_y: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.mean = mean
        self.hyperprior = hyperprior
        self.objective = objective
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.normalize_y = normalize_y
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the process and, unless `optimizer` is None, its hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        """
        check_options(self)
        with all_or_nothing(self):
            prepared = prepare_exact(self, X, y, sample_weight)
            with naming_the_model(prepared.objective):
                self._finish(prepared, self._search(prepared, column_names(X)))
        return self

    def _search(self, prepared: Prepared, columns: list[str] | None) -> Optimum:
        objective, reason = prepared.objective, prepared.undetermined
        if self.optimizer is None:
            # The factorisation that makes the posterior is all the work there is.
            return Optimum(objective.theta, np.nan, "fixed", "the hyperparameters were kept")
        if reason is not None and objective.theta.size:
            warn(
                f"{reason}, so the data say nothing about the scale of what deviates from the "
                "mean. The hyperparameters were kept as they began, and error bars reflect that "
                "start alone; if the start is what you know, say so with optimizer=None or "
                "Parameter(..., fixed=True)",
                UndeterminedWarning,
            )
            return Optimum(objective.theta, np.nan, "fixed", reason)
        optimum = maximise(
            objective,
            optimizer=self.optimizer,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            random_state=as_generator(self.random_state),
            report=self._report(),
        )
        objective.release()
        warn_of_search(objective, optimum, columns)
        return optimum

    def _report(self) -> Report | None:
        if callable(self.verbose):
            return self.verbose
        return Lines(1 + self.n_restarts) if self.verbose else None

    def _finish(self, prepared: Prepared, optimum: Optimum) -> None:
        objective = prepared.objective
        data = objective.data
        objective.hold_jitter(optimum.jitter)
        self.kernel_, self.likelihood_ = objective.unpack(optimum.theta)
        problem = objective.problem(self.kernel_, self.likelihood_)
        self.posterior_, solution = posterior(problem, objective.mean, data.scale)
        self.mean_ = (
            self.posterior_.mean_function
            if objective.mean.estimate != "integrate"
            else objective.mean
        )
        self.y_train_, self.sample_weight_ = data.Y, data.weights
        self._multioutput = prepared.multioutput
        self._pairwise, self._criterion = is_precomputed(self), objective.criterion
        self.jitter_ = solution.factor.jitter
        constant = objective.constant(self.likelihood_)
        self.log_marginal_likelihood_value_ = solution.log_evidence + constant
        self.status_ = optimum.status
        self.n_iter_ = max(1, optimum.n_iterations)
        thetas = np.array(optimum.thetas).reshape(len(optimum.values), optimum.theta.size)
        self.history_ = {"theta": thetas, "value": np.array(optimum.values)}
        if self.jitter_ > 0:
            warn(
                f"{self.jitter_:.3g} was added to the diagonal of the covariance to factorise it "
                "(kept as `jitter_`); rows may repeat with too little noise, or a length scale may "
                "be far longer than the data",
                JitterWarning,
            )
        if data.Y.shape[1] > 1 and optimum.status != "fixed":
            warn_if_miscalibrated(problem, solution, data.weights)

    # --- predicting ---------------------------------------------------------------------------

    @property
    def predictive_(self) -> Predictive:  # type: ignore[override]
        """The fitted process, as `predict` asks it: `posterior_`, unless precomputed."""
        return PrecomputedPredictive(self.posterior_) if self._pairwise else self.posterior_

    def _model(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        if not hasattr(self, "posterior_"):
            return self._prior(X)
        if self._pairwise:
            require_numbers(X)
            X = check_array(X, dtype=np.float64)
        elif self.kernel_.is_numeric:
            require_numbers(X)
            X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return self.predictive_, self.likelihood_, X

    def _prior(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        """Return the process before any data; the default kernel is a unit RBF then."""
        check_options(self)
        if is_precomputed(self):
            check_is_fitted(self, "posterior_")
        kernel, noise = as_kernel(self.kernel, X)
        kernel = 1.0 * RBF() if kernel is None else kernel
        require_mercer(kernel)
        if kernel.is_numeric:
            require_numbers(X)
            X = check_array(X, dtype=np.float64, order="C")
        likelihood = as_gaussian(self.likelihood, noise) or Gaussian(1.0)
        return prior(kernel, means.from_spec(self.mean), 1), likelihood, X

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: predicts unfitted; pairwise when precomputed."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.pairwise = is_precomputed(self)
        return tags
