"""Gaussian process regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import means
from mercer.estimators.inputs import require_numbers
from mercer.estimators.iterative_fit import CERTIFIED, FittedIteratively, tell_of_solve
from mercer.estimators.iterative_options import Iterative
from mercer.estimators.nested import column_names
from mercer.estimators.preparation import all_or_nothing, naming_the_model, prepare
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.regressor_evidence import FittedEvidence
from mercer.estimators.resolve import (
    as_kernel,
    as_likelihood,
    check_options,
    chosen_engine,
    require_mercer,
)
from mercer.estimators.rows import is_precomputed, kept_inputs
from mercer.estimators.search import report_of, search, warn_of_fit
from mercer.estimators.starting import Prepared
from mercer.estimators.state import StorableEstimator
from mercer.evidence import Optimum
from mercer.evidence.optimum import Report
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Predictive, prior
from mercer.registry import storable

__all__ = ["GPRegressor"]

# Two targets whose spread is 1, as `Likelihood.begun` measures it.
_UNIT_TARGETS = np.array([-0.6744897501960817, 0.6744897501960817])


@storable
class GPRegressor(StorableEstimator, FittedIteratively, FittedEvidence, BayesianRegressor):
    """Gaussian process regression, with Gaussian or any other noise, and with counts.

    y ~ p(y | m(x) + f(x)), f a Gaussian process with the kernel's covariance and p the likelihood.
    With Gaussian noise inference is exact; another likelihood has the engine that suits it.
    Hyperparameters maximise the evidence (BKM 62), times their hyperpriors.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        The covariance of f, where the search for hyperparameters starts (a free variance beyond
        1e4 times or below 1e-4 times that of the targets is moved there). ``1.0 * RBF()`` learns
        the size of the functions; that of ``RBF()`` stays 1, and targets far larger are taken for
        noise (a warning says so), unless `normalize_y` puts them into its units. None is a multiple
        of an RBF with one length scale a column, started, bounded and given hyperpriors in the
        units of the data. With "precomputed", X is the kernel matrix itself (see Notes).
    likelihood : Likelihood or None, default None
        The noise: None learns one Gaussian variance; `Gaussian(variance)` starts there;
        `Gaussian(array)` holds known variances, one a row, or a whole noise covariance.
        `StudentT()`, `Laplace()`, `Huber()` and `EpsilonInsensitive()` are not led astray by
        outliers; what is left open of them starts from the data. `Poisson()` is for counts,
        `MixtureNoise` for several kinds of errors, `Custom` for a density of your own.
    inference : {"auto", "exact", "iterative", "laplace", "ep", "vi", "map"} or Iterative
        The engine, "auto" by default: exact for Gaussian noise; variational inference for
        `Poisson`; Laplace's method for `StudentT` and `Custom`; expectation propagation for other
        noise, that without curvature among it (:func:`mercer.evidence.best_engine` has the
        reasons). "map" finds the most probable function, at the hyperparameters that "auto" would
        find. It has no evidence of its own, and error bars that tell little. "iterative" is for
        Gaussian noise and more rows than "exact" can take (see Notes); `Iterative` has its options.
    mean : {"constant", "linear", "zero"}, Mean or callable, default "constant"
        The mean function m(x), of f: with `Poisson`, of the logarithm of the rate. "constant" and
        "linear" are estimated; to integrate them out instead, give
        ``means.Constant(estimate="integrate")``, which exact inference takes.
    hyperprior : {"default", None}, default "default"
        Whether the default kernel's length scales have hyperpriors. A kernel of your own carries
        its own, and is not touched.
    objective : {"evidence", "loo", "joint"}, default "evidence"
        What the hyperparameters maximise: the evidence; the leave-one-out log density, which goes
        with exact inference; or, with "map", the joint density of function and hyperparameters,
        in turn (BKM 3.6). That has no maximum where the process may shrink or become ever
        smoother, so it wants a kernel with bounds or hyperpriors that hold it.
    optimizer : {"lbfgs", None} or callable, default "lbfgs"
        None keeps the hyperparameters as given. A callable has scikit-learn's signature.
    n_restarts : int, default 0
        Random starts beside the first; objective="joint" takes none. With exact inference the
        default kernel has one more, of much noise, if all have led to next to none.
    max_iter : int, default 200
        Iterations of the optimiser for each start.
    normalize_y : bool, default False
        Whether a kernel of your own is in units of the targets' standard deviation; with exact
        inference.
    warm_start : bool, default False
        Whether a second `fit` starts from the hyperparameters of the one before.
    n_jobs : int or None, default None
        How many starts to run at once, each on a core and with a matrix of its own; negative ones
        as joblib's: -1 is one for each core.
    random_state : int, RandomState, Generator or None, default None
        For the random starts, and for the probes of "iterative".
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
    inference_ : str
        The engine that was taken.
    log_marginal_likelihood_value_ : float
        The log evidence, hyperpriors left out: exact, the engine's approximation, with "vi" a
        lower bound, with "iterative" an estimate. NaN with "map".
    gap_, log_posterior_bounds_ : float, and (float, float)
        With "iterative", what is proved of the fitted function: the Gap (BKM 84), and between what
        the minimum of L (BKM 78) lies, as `mercer.certificate` has them. They bound its log
        posterior, not the evidence.
    log_marginal_likelihood_std_error_ : float
        With "iterative", how well the log evidence is known: the standard error from its probes, 0
        where there was nothing to estimate, and a bound on what the solver has left out.
    n_solver_iter_ : int
        With "iterative", the steps of conjugate gradients at the fit.
    history_ : dict
        "theta" (k, p) and "value" (k,): every evaluation of the search.
    status_ : str
        How the search for hyperparameters ended.
    n_iter_ : int
        Iterations of the optimiser at the start that won.
    jitter_ : float
        What had to be added to the diagonal; 0.0 nearly always.
    X_train_ : ndarray of shape (n, d), or what the kernel takes
        The inputs of the rows that were fitted, those of weight 0 left out, read-only; in one piece
        of memory with the basis points of the posterior where these are the same. With
        "precomputed", the numbers of the rows of the matrix.
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
    SparseGPRegressor : for more rows.
    mercer.kernels : what to compose kernels of.
    mercer.likelihoods : the kinds of noise.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, whatever the number of
    hyperparameters, and n^2 doubles of memory. Use it up to some ten thousand rows. Predictions
    cost O(n) a point for the mean and O(n^2) for the standard deviation. The engines other than
    the exact one take from a few to some dozens of times as long, and three to five times the
    memory.

    With ``inference="iterative"`` an evaluation takes some dozens of products with the kernel
    matrix, O(n^2) time each, and a preconditioner of O(n rank^2): faster than the exact one from
    some thousand rows on, where the length scales are not so short, or the noise so small, that a
    low rank says little. The fitted mean is that of conjugate gradients, and comes with a
    certificate (Gibbs and MacKay; BKM 80). Evidence and gradient are estimated by random probes,
    the same ones during a search. Variances of predictions are conservative: never below the exact
    ones, and larger by what the preconditioner leaves out; `predict_variance_bounds` has them to
    any digits, at the price of a solve for each row. There is no leave-one-out.

    Several columns of targets are independent outputs that share the kernel and the noise, at the
    price of one factorisation; outside exact and iterative inference there is one column. Under the
    default kernel that is one ratio of noise to signal for all. Where their error bars do not suit
    them all, a `CalibrationWarning` says which outputs are over- and under-confident;
    ``[clone(model).fit(X, y) for y in Y.T]`` gives each a kernel and a noise of its own.

    A single row, constant targets, others that the mean explains without any remainder, or counts
    that are all 0 say nothing about the scale of the process. Then the hyperparameters stay as they
    began, the default ones in units of the targets' size, and an `UndeterminedWarning` says so.

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

    Every tenth target is wrong:

    >>> from mercer.likelihoods import Laplace
    >>> wrong = np.where(np.arange(30) % 10 == 5, y + 5.0, y)
    >>> robust = GPRegressor(likelihood=Laplace()).fit(X, wrong)
    >>> bool(abs(robust.predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
        *,
        inference: str | Iterative = "auto",
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
            prepared = prepare(self, X, y, sample_weight)
            objective = prepared.objective
            with naming_the_model(objective):
                names = column_names(X)
                report = report_of(self)
                optimum = search(self, objective, prepared.undetermined, names, report)
                if objective.inference == "iterative":
                    tell_of_solve(objective, report)
                self._finish(prepared, optimum)
        return self

    def _finish(self, prepared: Prepared, optimum: Optimum) -> None:
        objective = prepared.objective
        objective.hold_jitter(optimum.jitter)
        fit = objective.fitted(optimum.theta)
        self._keep(objective, fit, optimum, prepared.multioutput)
        self.posterior_, self._scale = fit.posterior, fit.posterior.scale
        self.X_train_ = kept_inputs(objective.data.X, fit.posterior)
        self._pairwise = is_precomputed(self)
        self._criterion, self._start = objective.criterion, objective.start
        for name in CERTIFIED:  # of a fit before
            self.__dict__.pop(name, None)
        if objective.inference == "iterative":
            self._finish_iterative(objective, fit)
        warn_of_fit(objective, fit, searched=optimum.status != "fixed")

    # --- predicting ---------------------------------------------------------------------------

    def _model(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        if not hasattr(self, "posterior_"):
            return self._prior(X)
        return super()._model(X)

    def _prior(self, X: Any) -> tuple[Predictive, Likelihood, Any]:
        """Return the process before any data.

        The default kernel is a unit RBF then, and noise of a scale that was left open is that for
        targets of unit spread.
        """
        check_options(self)
        if is_precomputed(self):
            check_is_fitted(self, "posterior_")
        kernel, noise = as_kernel(self.kernel, X)
        kernel = 1.0 * RBF() if kernel is None else kernel
        require_mercer(kernel)
        if kernel.is_numeric:
            require_numbers(X)
            X = check_array(X, dtype=np.float64, order="C")
        likelihood = as_likelihood(self.likelihood, noise)
        chosen_engine(self, likelihood)  # which refuses pairs that do not go together
        likelihood = Gaussian(1.0) if likelihood is None else likelihood.begun(_UNIT_TARGETS)
        return prior(kernel, means.from_spec(self.mean), 1), likelihood, X

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: predicts unfitted."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
