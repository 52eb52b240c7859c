"""Sparse Gaussian process regression."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer import means
from mercer.errors import MercerWarning, warn
from mercer.estimators.nested import column_names
from mercer.estimators.preparation import all_or_nothing, naming_the_model
from mercer.estimators.prepare_sparse import PreparedSparse, prepare_sparse
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.regressor_evidence import FittedEvidence
from mercer.estimators.resolve import as_kernel, as_likelihood
from mercer.estimators.rows import checked_rows
from mercer.estimators.search import history_of, search, warn_of_fit
from mercer.estimators.sparse_options import block_labels, check_sparse_options
from mercer.estimators.state import StorableEstimator
from mercer.evidence import Data, Optimum
from mercer.evidence.optimum import Report
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference.approximations import approximation
from mercer.inference.sparse import SparseProblem, evidence_bounds, solve
from mercer.inference.sparse_predictive import augmented, nystrom, predictive
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import BlockPredictive, Predictive
from mercer.posterior.factors import frozen
from mercer.registry import storable

__all__ = ["SparseGPRegressor"]


@storable
class SparseGPRegressor(StorableEstimator, FittedEvidence, BayesianRegressor):
    """Gaussian process regression through m inducing variables, for many rows.

    y = m(x) + f(x) + noise as in `GPRegressor`; f reaches new points through its values u at m
    inducing inputs alone. The approximations differ in what they assume of f given u (UV Table 1,
    :func:`mercer.inference.approximations.table`), and share everything else.

    Parameters
    ----------
    kernel, likelihood, mean, hyperprior, optimizer, n_restarts, normalize_y, warm_start, n_jobs, \
random_state, verbose
        As in `GPRegressor`; the noise is Gaussian.
    approximation : {"vfe", "fitc", "pep", "pitc", "pic", "dtc", "sor", "nystrom", "sod"}, \
default "vfe"
        "vfe" maximises a lower bound on the exact evidence, and is the nearer to it the more
        inducing inputs there are; "fitc" lets the noise differ from row to row where u says little;
        "pep" stands between the two (see `power`). "pitc" and "pic" keep the covariance within
        blocks of rows, for new points too with "pic". "dtc" and "sor" keep none; the error bars of
        "sor" vanish far from the data. "nystrom" is no probabilistic model. "sod" is exact
        inference on a subset of the rows.
    n_inducing : int, default 300
        How many inducing inputs to choose, or rows of the subset.
    inducing : str or array of shape (m, d), default "kmeans"
        Where they start: a strategy of :func:`mercer.selection.select`, the inputs themselves, or
        "query", the points that `fit` is given as such. Of "sod" it is a strategy, and "kmeans"
        takes the row in the middle of each cluster.
    learn_inducing : bool, default True
        Whether they are moved together with the hyperparameters (UV 9). Those of "query" and "sod"
        stay, as do all rows where these are no more than `n_inducing`.
    power : float, default 0.5
        Of "pep": from 0, which is "vfe", to 1, which is "fitc".
    joint : {"exact", "independent"}, default "exact"
        Whether new points are independent of each other given u; with "fitc" that is FIC.
    augment : bool, default False
        Whether each new point joins the inducing inputs by itself (UV 8.1): better error bars, and
        O(n m) a point to predict.
    blocks : {"kmeans", "contiguous"}, default "kmeans"
        How "pitc" and "pic" cut the rows into blocks; `fit` may be given `groups` instead.
    max_iter : int, default 100
        Iterations of the optimiser for each start.

    Attributes
    ----------
    kernel_, likelihood_, mean_ : the fitted model
    posterior_ : Posterior
        The process over the inducing inputs: can be pruned and saved. With "pic", "nystrom" and
        `augment` new points need the training rows as well, and there is none.
    predictive_ : Predictive
        What predicts: `posterior_`, if that is all.
    inducing_ : ndarray of shape (m, d)
        The inducing inputs.
    evidence_bounds_ : tuple of two floats
        A lower and an upper bound on the exact log evidence of all rows at the fitted
        hyperparameters.
    unexplained_ : float
        The variance of the function that the inducing variables leave at a row, on average: the
        mean of the diagonal of K - Q.
    log_marginal_likelihood_value_ : float
        The evidence of the approximation, hyperpriors left out; with "vfe" the lower bound, with
        "sod" that of the subset.
    X_train_, y_train_, sample_weight_ : ndarray
        The rows that were fitted, read-only inputs; for "pitc" and "pic" block by block, for "sod"
        the subset.
    history_, status_, n_iter_, jitter_ : as in `GPRegressor`

    Notes
    -----
    O(n m^2) time an evaluation of the evidence and its gradient, and memory for the rows and a few
    blocks of them. Use it from some thousands of rows on; below, `GPRegressor` is exact.
    Predictions cost O(m) a point for the mean and O(m^2) for the standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SparseGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (2000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    >>> model = SparseGPRegressor(n_inducing=20, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
        *,
        approximation: str = "vfe",
        n_inducing: int = 300,
        inducing: Any = "kmeans",
        learn_inducing: bool = True,
        power: float = 0.5,
        joint: str = "exact",
        augment: bool = False,
        blocks: str = "kmeans",
        mean: Any = "constant",
        hyperprior: str | None = "default",
        optimizer: Any = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 100,
        normalize_y: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.approximation = approximation
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.learn_inducing = learn_inducing
        self.power = power
        self.joint = joint
        self.augment = augment
        self.blocks = blocks
        self.mean = mean
        self.hyperprior = hyperprior
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.normalize_y = normalize_y
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        query: Any = None,
    ) -> Self:
        """Fit the process and, unless `optimizer` is None, hyperparameters and inducing inputs.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        groups : array-like of shape (n,), optional
            The block that each row belongs to, for "pitc" and "pic".
        query : array-like of shape (m, d), optional
            The points to be predicted, as inducing inputs, with ``inducing="query"``.
        """
        check_sparse_options(self, groups, query)
        with all_or_nothing(self):
            kernel, noise = as_kernel(self.kernel, X)
            likelihood = as_likelihood(self.likelihood, noise)
            if not (likelihood is None or isinstance(likelihood, Gaussian)):
                raise ValueError(
                    f"SparseGPRegressor is for Gaussian noise, got {likelihood!r}; GPRegressor "
                    "takes other noise"
                )
            rows = checked_rows(self, X, y, sample_weight, kernel)
            # Predictions may go back to the rows, so nobody else is to have them.
            rows = rows._replace(X=frozen(np.array(rows.X)))
            labels = None if groups is None else block_labels(groups, rows.kept)
            mean = means.from_spec(self.mean)
            prepared = prepare_sparse(self, kernel, likelihood, mean, rows, labels, query)
            with naming_the_model(prepared.objective):
                self._finish(prepared, search(self, prepared, column_names(X)))
        return self

    def _finish(self, prepared: PreparedSparse, optimum: Optimum) -> None:
        objective, data = prepared.objective, prepared.objective.data
        objective.hold_jitter(optimum.jitter)
        fit = objective.fitted(optimum.theta)
        self.kernel_, self.likelihood_, self.mean_ = fit.kernel, fit.likelihood, fit.mean
        self.inference_, self._criterion = objective.inference, "evidence"
        self.inducing_ = fit.posterior.basis.points
        self.X_train_ = frozen(np.asarray(data.X))
        self.y_train_, self.sample_weight_ = data.Y, data.weights
        self._scale, self._multioutput = data.scale, prepared.multioutput
        self.jitter_ = fit.jitter
        self.log_marginal_likelihood_value_ = fit.log_evidence
        self.status_ = optimum.status
        self.n_iter_ = max(1, optimum.n_iterations)
        self.history_ = history_of(optimum)
        whole, kind = prepared.whole, prepared.whole.kind
        self._groups = whole.groups
        self._kind = (kind.name, kind.power, kind.test)
        if self.approximation == "sod":
            noise = whole.likelihood.with_theta(fit.likelihood.theta)
            problem = whole.problem(fit.kernel, noise, whole.inducing)
            left = solve(problem).statistics.residual
        else:
            problem = whole.problem(*whole.unpack(optimum.theta))
            left = fit.solution.statistics.residual
        self._predictive = self._beyond(problem, prepared.labels)
        vars(self).pop("posterior_", None)  # of a fit before
        if self._predictive is None or kind.test == "independent":
            self.posterior_ = fit.posterior
        warn_of_fit(objective, fit, searched=optimum.status != "fixed")
        self._certify(problem, whole.constant(), left / len(problem.Y))

    def _beyond(self, problem: SparseProblem, labels: Any) -> Predictive | None:
        """Return what predicts where the posterior over the inducing inputs is not all there is."""
        mean, scale = self.mean_, self._scale
        if self.augment:
            return augmented(problem, mean, scale)[0]
        if self.approximation == "nystrom":
            return nystrom(problem, mean, scale)[0]
        if problem.kind.test in ("independent", "blocks"):
            return predictive(problem, mean, scale, labels)[0]
        return None

    def _certify(self, problem: SparseProblem, constant: float, unexplained: float) -> None:
        """Bound the exact evidence, and warn where most of the signal is left unexplained."""
        lower, upper = evidence_bounds(problem, approximation("vfe"))
        lower, upper = float(lower + constant), float(upper + constant)
        self.evidence_bounds_ = lower, upper
        rows, m = len(problem.Y), len(self.inducing_)
        self.unexplained_ = float(unexplained)
        signal, noise = float(np.mean(self.kernel_.diag(problem.X))), float(np.mean(problem.noise))
        if self.unexplained_ > max(0.5 * signal, noise) and m < rows:
            named = isinstance(self.inducing, str) and self.inducing != "query"
            more = "Raise n_inducing, to" if named else "More of them would help,"
            warn(
                f"{m} inducing inputs leave {self.unexplained_ / signal:.0%} of the function's "
                f"variance unexplained; the exact log evidence is between {lower:.4g} and "
                f"{upper:.4g}. {more} {min(rows, 4 * m)} say",
                MercerWarning,
            )

    # --- predicting -----------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Predict the mean, and with it the standard deviation or the covariance.

        As :meth:`GPRegressor.predict`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Where to predict.
        return_std, return_cov, latent : bool, default False
            Whether to return standard deviations or the joint covariance too, and whether all is
            of the function alone, without noise.
        groups : array-like of shape (n,), optional
            The block of training rows that each point is joined to, with "pic": a label that `fit`
            was given. Without it that is the block whose centre is nearest.
        """
        model = self if groups is None else self._joined(groups)
        return super(SparseGPRegressor, model).predict(X, return_std, return_cov, latent)

    def _joined(self, groups: ArrayLike) -> Self:
        """Return the same model for new points that belong to these blocks."""
        predictive = self.predictive_
        if not isinstance(predictive, BlockPredictive):
            raise ValueError(
                "new points belong to groups of training rows with approximation='pic' alone, and "
                f"augment=False; this model is {self!r}"
            )
        twin = copy(self)
        twin._predictive = predictive.at(groups)
        return twin

    # --- what it says of itself -----------------------------------------------------------------

    @property
    def predictive_(self) -> Predictive:  # type: ignore[override]
        """The fitted process, as predictions ask it."""
        self._models()  # which raises where there is none
        return self.posterior_ if self._predictive is None else self._predictive

    def _objective(self) -> Any:
        self._models()
        if self.inference_ == "exact":
            return super()._objective()
        data = Data(self.X_train_, self.y_train_, self.sample_weight_, self._scale)
        name, power, test = self._kind
        kind = approximation(name, power, "independent" if test == "independent" else "exact")
        objective = SparseObjective(
            self.kernel_,
            self.likelihood_,
            self.mean_,
            data,
            InducingInputs(self.inducing_),
            kind,
            self._groups,
        )
        objective.jitter = self.jitter_
        return objective
