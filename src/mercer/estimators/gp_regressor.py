"""Exact Gaussian process regression."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer import means
from mercer.errors import ConvergenceWarning, JitterWarning, NotPositiveDefiniteError
from mercer.estimators.preparation import exact_objective, is_precomputed
from mercer.estimators.regressor import BayesianRegressor, as_generator
from mercer.estimators.resolve import (
    as_gaussian,
    as_kernel,
    require_choice,
    require_count,
    require_mercer,
)
from mercer.estimators.state import StorableEstimator
from mercer.evidence import (
    CRITERIA,
    Data,
    Objective,
    Optimum,
    hessian,
    maximise,
    standard_errors,
    warn_at_bounds,
    warn_if_unrelated,
)
from mercer.evidence.defaults import default_starts
from mercer.inference.exact import leave_one_out, posterior
from mercer.kernels import RBF, Precomputed
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import PrecomputedPredictive, Predictive, prior
from mercer.registry import storable

__all__ = ["GPRegressor", "LeaveOneOut"]

Floats = NDArray[np.float64]


class LeaveOneOut(NamedTuple):
    """Each row predicted from all the others, at the fitted hyperparameters.

    mean, std : the prediction of a new observation at the row
    log_density : the log density of the row's target under it
    """

    mean: Floats
    std: Floats
    log_density: Floats

    def __repr__(self) -> str:
        return f"LeaveOneOut({len(self.mean)} rows, log_density {self.log_density.sum():.4g})"


@storable
class GPRegressor(StorableEstimator, BayesianRegressor):
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
        How many starts to run at once, each on a core and with a matrix of its own; -1 is one for
        each core.
    random_state : int, RandomState, Generator or None, default None
        For the random starts.
    verbose : int, default 0
        1 writes a line an evaluation to standard error.

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
        "theta" (k, p) and "value" (k,): every evaluation of the objective.
    status_ : str
        How the search for hyperparameters ended.
    n_iter_ : int
        Iterations of the optimiser at the start that won.
    jitter_ : float
        What had to be added to the diagonal; 0.0 nearly always.
    n_features_in_ : int
        The number of columns.

    See Also
    --------
    mercer.kernels : what to compose kernels of.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, whatever the number of
    hyperparameters, and n^2 doubles of memory. Use it up to some ten thousand rows. Predictions
    cost O(n) a point for the mean and O(n^2) for the standard deviation.

    Several columns of targets are independent outputs that share the kernel and the noise, at the
    price of one factorisation.

    With ``kernel="precomputed"`` the matrix given to `fit` is K(X, X) of shape (n, n). `predict`
    takes K(X_new, X), and for standard deviations one more column with k(x, x) of each new row, or
    for a covariance all of K(X_new, X_new) as further columns.

    An unfitted model predicts from its prior.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GPRegressor
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = GPRegressor().fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.01)
    True
    """

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
        verbose: int = 0,
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

    likelihood_: Gaussian

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
        self._check_options()
        objective = exact_objective(self, X, y, sample_weight)
        try:
            optimum = self._search(objective)
            self._finish(objective, optimum)
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                f"the covariance of the targets cannot be factorised under {objective.kernel!r} "
                f"with {objective.likelihood!r}: {error}. Likely causes: repeated rows with "
                "too little noise, a length scale far longer than the data, or a kernel that is "
                "not positive semi-definite. Try more noise, or scale the inputs"
            ) from error
        return self

    def _check_options(self) -> None:
        require_choice("inference", self.inference, ("auto", "exact"))
        require_choice("hyperprior", self.hyperprior, ("default", None))
        require_choice("objective", self.objective, CRITERIA)
        if not callable(self.optimizer):
            require_choice("optimizer", self.optimizer, ("lbfgs", None))
        for name, least in (("n_restarts", 0), ("max_iter", 1), ("verbose", 0)):
            require_count(name, getattr(self, name), least)
        if self.n_jobs is not None and self.n_jobs != -1:
            require_count("n_jobs", self.n_jobs, 1)
        for name in ("normalize_y", "warm_start"):
            require_choice(name, getattr(self, name), (True, False))
        as_generator(self.random_state)

    def _search(self, objective: Objective) -> Optimum:
        if self.optimizer is None:
            # The factorisation that makes the posterior is all the work there is.
            return Optimum(objective.theta, np.nan, "fixed", "the hyperparameters were kept")
        if self.kernel is None and not (self.warm_start and hasattr(self, "kernel_")):
            objective.begin_at_best(default_starts(objective.kernel))
        optimum = maximise(
            objective,
            optimizer=self.optimizer,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            random_state=as_generator(self.random_state),
            verbose=self.verbose,
        )
        objective.release()
        if optimum.status == "stopped":
            warnings.warn(
                f"the search for hyperparameters stopped early ({optimum.message}); raise "
                "max_iter, or give starts and bounds that suit the data",
                ConvergenceWarning,
                stacklevel=3,
            )
        warn_at_bounds(objective, optimum.theta)
        kernel, _ = objective.unpack(optimum.theta)
        if kernel.is_numeric and not isinstance(kernel, Precomputed):
            warn_if_unrelated(kernel, objective.data.X)
        return optimum

    def _finish(self, objective: Objective, optimum: Optimum) -> None:
        data = objective.data
        self.kernel_, self.likelihood_ = objective.unpack(optimum.theta)
        problem = objective.problem(self.kernel_, self.likelihood_)
        self.posterior_, solution = posterior(problem, objective.mean, data.scale)
        self.mean_ = (
            self.posterior_.mean_function
            if objective.mean.estimate != "integrate"
            else objective.mean
        )
        self.y_train_, self.sample_weight_ = data.Y, data.weights
        self._pairwise, self._criterion = is_precomputed(self), objective.criterion
        self.jitter_ = solution.factor.jitter
        constant = objective.constant(self.likelihood_)
        self.log_marginal_likelihood_value_ = solution.log_evidence + constant
        self.status_ = optimum.status
        self.n_iter_ = max(1, optimum.n_iterations)
        thetas = np.array(optimum.thetas).reshape(len(optimum.values), optimum.theta.size)
        self.history_ = {"theta": thetas, "value": np.array(optimum.values)}
        if self.jitter_ > 0:
            warnings.warn(
                f"{self.jitter_:.3g} was added to the diagonal of the covariance to factorise it "
                "(kept as `jitter_`); rows may repeat with too little noise, or a length scale may "
                "be far longer than the data",
                JitterWarning,
                stacklevel=4,
            )

    # --- predicting ---------------------------------------------------------------------------

    @property
    def predictive_(self) -> Predictive:  # type: ignore[override]
        """The fitted process, as `predict` asks it: `posterior_`, unless precomputed."""
        return PrecomputedPredictive(self.posterior_) if self._pairwise else self.posterior_

    def _model(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        if not hasattr(self, "posterior_"):
            return self._prior(X)
        if self._pairwise:
            X = check_array(X, dtype=np.float64)
        elif self.kernel_.is_numeric:
            X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return self.predictive_, self.likelihood_, X

    def _prior(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        """Return the process before any data; the default kernel is a unit RBF then."""
        self._check_options()
        if is_precomputed(self):
            check_is_fitted(self, "posterior_")
        kernel, noise = as_kernel(self.kernel, X)
        kernel = 1.0 * RBF() if kernel is None else kernel
        require_mercer(kernel)
        if kernel.is_numeric:
            X = check_array(X, dtype=np.float64, order="C")
        likelihood = as_gaussian(self.likelihood, noise) or Gaussian(1.0)
        return prior(kernel, means.from_spec(self.mean), 1), likelihood, X

    # --- the evidence -------------------------------------------------------------------------

    def _objective(self) -> Objective:
        """Return the objective of the last fit, at its optimum."""
        check_is_fitted(self, "posterior_")
        points = self.posterior_.basis.points
        data = Data(points, self.y_train_, self.sample_weight_, self.posterior_.scale)
        objective = Objective(self.kernel_, self.likelihood_, self.mean_, data, self._criterion)
        objective.jitter = self.jitter_
        return objective

    @property
    def theta_(self) -> Floats:
        """The fitted hyperparameters [kernel_, likelihood_, mean_] as one flat vector."""
        return np.concatenate([self.kernel_.theta, self.likelihood_.theta, self.mean_.theta])

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence at theta, and its gradient if asked for.

        Parameters
        ----------
        theta : array of shape (p,), optional
            [kernel_, likelihood_, mean_], as `theta_`; the fitted one without it.
        eval_gradient : bool, default False
            Whether to return the gradient too.
        """
        objective = self._objective()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else np.asarray(theta, dtype=float)
        if theta.shape != self.theta_.shape:
            raise ValueError(f"theta must have shape {self.theta_.shape}, got {theta.shape}")
        split = theta.size - self.mean_.theta.size
        mean = None
        if self.mean_.estimate != "integrate":
            mean = self.mean_.with_theta(theta[split:])
        value, gradient = objective.log_evidence(theta[:split], mean, eval_gradient)
        return (value, gradient) if eval_gradient else value

    def loo(self) -> LeaveOneOut:
        """Predict each training row from all the others, in closed form.

        Equal to refitting without the row at the fitted hyperparameters, coefficients of the mean
        found again. Two cases are not the same as refitting: a row whose noise variance was given
        is predicted with that variance, and where a noise covariance was given the noise of the
        other rows tells of the row's own. Rows of weight 0 are no training rows. O(n^3) time, once.

        Returns
        -------
        LeaveOneOut
            `mean`, `std` and `log_density`, each of shape (n,) or (n, P).
        """
        objective = self._objective()
        problem = objective.problem(self.kernel_, self.likelihood_)
        left = leave_one_out(problem, self.sample_weight_)
        scale = self.posterior_.scale
        mean = self.y_train_ + (left.mean - problem.Y) * scale
        std = np.sqrt(left.variance)[:, None] * scale
        density = norm.logpdf(self.y_train_, mean, std)
        return LeaveOneOut(self._shaped(mean), self._shaped(std), self._shaped(density))

    def standard_errors(self) -> dict[str, float]:
        """Return the standard error of each free hyperparameter, by name, in units of `theta_`.

        From the curvature of the objective at its optimum; 2p evaluations. For a positive
        hyperparameter it is the error of its logarithm: 0.1 is about ten per cent.
        """
        names, errors = self._objective().parameter_names, standard_errors(self.hessian())
        return dict(zip(names, errors.tolist(), strict=True))

    def hessian(self) -> Floats:
        """Return the second derivatives of what was maximised, hyperpriors included, at the fit.

        Over [kernel_, likelihood_], in units of `theta_`; 2p evaluations.
        """
        objective = self._objective()
        return hessian(objective.evaluate, objective.theta)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: predicts unfitted; pairwise when precomputed."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.pairwise = is_precomputed(self)
        return tags
