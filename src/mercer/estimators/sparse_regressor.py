"""Sparse Gaussian process regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import means
from mercer.errors import MercerWarning, warn
from mercer.estimators.nested import column_names
from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_count,
    require_flag,
)
from mercer.estimators.preparation import all_or_nothing, naming_the_model
from mercer.estimators.prepare_sparse import PreparedSparse, kind_of, prepare_sparse
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.regressor_evidence import FittedEvidence
from mercer.estimators.resolve import as_kernel, as_likelihood
from mercer.estimators.rows import checked_rows
from mercer.estimators.search import history_of, search, warn_of_fit
from mercer.estimators.state import StorableEstimator
from mercer.evidence import Data, Optimum
from mercer.evidence.optimum import Report
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference.approximations import APPROXIMATIONS, approximation
from mercer.inference.sparse import evidence_bounds
from mercer.inference.sparse_predictive import augmented, nystrom, predictive
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Predictive
from mercer.registry import storable
from mercer.selection import STRATEGIES

__all__ = ["SparseGPRegressor"]

Floats = NDArray[np.float64]

_NAMES = (*APPROXIMATIONS, "nystrom")


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
    approximation : {"vfe", "fitc", "pep", "pitc", "pic", "dtc", "sor", "nystrom"}, default "vfe"
        "vfe" maximises a lower bound on the exact evidence, and is the nearer to it the more
        inducing inputs there are; "fitc" lets the noise differ from row to row where u says little;
        "pep" stands between the two (see `power`). "pitc" and "pic" keep the covariance within
        blocks of rows, for new points too with "pic". "dtc" and "sor" keep none; the error bars of
        "sor" vanish far from the data. "nystrom" is no probabilistic model.
    n_inducing : int, default 300
        How many inducing inputs to choose.
    inducing : str or array of shape (m, d), default "kmeans"
        Where they start: a strategy of :func:`mercer.selection.select`, the inputs themselves, or
        "query", the points that `fit` is given as such.
    learn_inducing : bool, default True
        Whether they are moved together with the hyperparameters (UV 9).
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
        The process over the inducing inputs: can be pruned and saved.
    predictive_ : Predictive
        What predicts: `posterior_`, unless new points need the training rows.
    inducing_ : ndarray of shape (m, d)
        The inducing inputs.
    evidence_bounds_ : tuple of two floats
        A lower and an upper bound on the exact log evidence at the fitted hyperparameters.
    log_marginal_likelihood_value_ : float
        The evidence of the approximation, hyperpriors left out; with "vfe" the lower bound.
    X_train_, y_train_, sample_weight_ : ndarray
        The rows that were fitted; for "pitc" and "pic" block by block.
    history_, status_, n_iter_, jitter_ : as in `GPRegressor`

    Notes
    -----
    O(n m^2) time an evaluation of the evidence and its gradient, and memory for the rows and a few
    blocks of them. Use it from some thousands of rows on; below, `GPRegressor` is exact.
    Predictions cost O(m) a point for the mean and O(m^2) for the standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.sparse_regressor import SparseGPRegressor
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
        self._check(groups, query)
        with all_or_nothing(self):
            kernel, noise = as_kernel(self.kernel, X)
            likelihood = as_likelihood(self.likelihood, noise)
            if not (likelihood is None or isinstance(likelihood, Gaussian)):
                raise ValueError(
                    f"SparseGPRegressor is for Gaussian noise, got {likelihood!r}; GPRegressor "
                    "takes other noise"
                )
            rows = checked_rows(self, X, y, sample_weight, kernel)
            labels = None if groups is None else _labels(groups, rows.kept)
            mean = means.from_spec(self.mean)
            prepared = prepare_sparse(self, kernel, likelihood, mean, rows, labels, query)
            with naming_the_model(prepared.objective):
                self._finish(prepared, search(self, prepared, column_names(X)))
        return self

    def _check(self, groups: Any, query: Any) -> None:
        require_choice("approximation", self.approximation, _NAMES)
        require_choice("blocks", self.blocks, ("kmeans", "contiguous"))
        require_count("n_inducing", self.n_inducing, 1)
        for name in ("learn_inducing", "augment", "normalize_y"):
            require_flag(name, getattr(self, name))
        if isinstance(self.inducing, str):
            require_choice("inducing", self.inducing, (*STRATEGIES, "query"))
        kind = kind_of(self)  # which checks power and joint
        check_search_options(self)
        queried = isinstance(self.inducing, str) and self.inducing == "query"
        if queried != (query is not None):
            raise ValueError(
                "inducing='query' and fit(X, y, query=...) go together: the points to be predicted "
                "are the inducing inputs then"
            )
        if groups is not None and kind.training != "blocks":
            raise ValueError(
                f"groups are blocks of rows, which approximation={self.approximation!r} does not "
                "have; use 'pitc' or 'pic'"
            )
        if self.augment and (self.approximation == "nystrom" or self.joint != "exact"):
            raise ValueError("augment=True goes with neither 'nystrom' nor joint='independent'")

    def _finish(self, prepared: PreparedSparse, optimum: Optimum) -> None:
        objective, data = prepared.objective, prepared.objective.data
        objective.hold_jitter(optimum.jitter)
        fit = objective.fitted(optimum.theta)
        self.kernel_, self.likelihood_, self.mean_ = fit.kernel, fit.likelihood, fit.mean
        self.posterior_, self.inference_ = fit.posterior, objective.inference
        self.inducing_ = fit.posterior.basis.points
        self.X_train_, self.y_train_, self.sample_weight_ = data.X, data.Y, data.weights
        self._scale, self._labels = data.scale, prepared.labels
        self._groups, self._name = objective.groups, self.approximation
        self._kind = (objective.kind.name, objective.kind.power, objective.kind.test)
        self._multioutput = prepared.multioutput
        self.jitter_ = fit.jitter
        self.log_marginal_likelihood_value_ = fit.log_evidence
        self.status_ = optimum.status
        self.n_iter_ = max(1, optimum.n_iterations)
        self.history_ = history_of(optimum)
        problem = objective.problem(*objective.unpack(optimum.theta))
        self._predictive = fit.posterior
        if self.augment:
            self._predictive = augmented(problem, self.mean_, data.scale)[0]
        elif self.approximation == "nystrom":
            self._predictive = nystrom(problem, self.mean_, data.scale)[0]
        elif objective.kind.test not in ("exact", "deterministic"):
            self._predictive = predictive(problem, self.mean_, data.scale, prepared.labels)[0]
        lower, upper = evidence_bounds(problem, approximation("vfe"))
        constant = objective.constant()
        self.evidence_bounds_ = (float(lower + constant), float(upper + constant))
        self.unexplained_ = float(fit.solution.statistics.residual / len(data.Y))
        warn_of_fit(objective, fit, searched=optimum.status != "fixed")
        self._warn_of_few()

    def _warn_of_few(self) -> None:
        """Warn where the inducing inputs leave most of the signal unexplained."""
        signal = float(np.mean(self.kernel_.diag(self.X_train_)))
        noise = float(np.mean(self.likelihood_.variances(len(self.y_train_))))
        lower, upper = self.evidence_bounds_
        rows, m = len(self.y_train_), len(self.inducing_)
        if self.unexplained_ > max(0.5 * signal, noise) and m < rows:
            warn(
                f"{m} inducing inputs leave {self.unexplained_ / signal:.0%} of the function's "
                f"variance unexplained; the exact log evidence is between {lower:.4g} and "
                f"{upper:.4g}. Raise n_inducing, to {min(rows, 4 * m)} say",
                MercerWarning,
            )

    # --- what it says of itself -----------------------------------------------------------------

    @property
    def predictive_(self) -> Predictive:  # type: ignore[override]
        """The fitted process, as predictions ask it."""
        self._models()  # which raises where there is none
        return self._predictive

    def _objective(self) -> SparseObjective:  # type: ignore[override]
        self._models()
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


def _labels(groups: ArrayLike, kept: NDArray[np.bool_]) -> NDArray[Any]:
    labels = np.asarray(groups)
    if labels.shape != kept.shape:
        raise ValueError(
            f"groups must have a label for each of {kept.size} rows, got shape {labels.shape}"
        )
    return labels[kept]
