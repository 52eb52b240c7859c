"""Regression by a committee of Gaussian processes, each of a part of the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import means
from mercer.compute import thread_count
from mercer.estimators.inducing import member_numbers, require_columns
from mercer.estimators.memory import require_memory
from mercer.estimators.nested import column_names
from mercer.estimators.options import (
    as_generator,
    check_search_options,
    require_choice,
    require_count,
    require_flag,
)
from mercer.estimators.preparation import all_or_nothing, naming_the_model
from mercer.estimators.prepare_exact import Begun, begin, begin_at_defaults
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.regressor_evidence import FittedEvidence
from mercer.estimators.resolve import as_kernel, as_likelihood
from mercer.estimators.rows import checked_rows, is_precomputed, kept_inputs
from mercer.estimators.search import report_of, search, warn_of_jitter
from mercer.estimators.state import StorableEstimator
from mercer.evidence import Data, Optimum
from mercer.evidence.committee import CommitteeObjective
from mercer.evidence.optimum import Report
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Basis, CommitteePredictive, Posterior, Predictive, joint_committee
from mercer.posterior.committee import RULES
from mercer.registry import storable

__all__ = ["BayesianCommitteeRegressor"]

Floats = NDArray[np.float64]

# Rows of a member, where the number of members is left open.
_ROWS = 500


@storable
class BayesianCommitteeRegressor(StorableEstimator, FittedEvidence, BayesianRegressor):
    """Gaussian process regression by a committee: each member knows a part of the rows.

    y = m(x) + f(x) + noise as in `GPRegressor`. The n rows are cut into M parts of about b = n/M;
    each member is the exact process of its part, under one kernel, one noise and one mean. These
    maximise the sum of the members' log evidences, as if the parts were independent. What the
    members say of a new point is brought together by the rule `combine`
    (:class:`mercer.posterior.CommitteePredictive`).

    Parameters
    ----------
    kernel, likelihood, mean, hyperprior, optimizer, n_restarts, normalize_y, warm_start, n_jobs, \
random_state, verbose
        As in `GPRegressor`; the noise is Gaussian, and coefficients of the mean are estimated from
        all rows together, not integrated out.
    n_members : int or None, default None
        How many members there are, no more than rows. None is one for each 500 rows.
    combine : {"gpoe", "rbcm", "bcm"}, default "gpoe"
        How members are brought together. "gpoe", the generalised product of experts, averages what
        they know: error bars are seldom too small, and may be too large. "rbcm", the robust
        Bayesian committee machine, counts a member by what it has learnt at the point, and "bcm",
        the Bayesian committee machine, counts all fully: means are often better, and both can be
        far too sure. A member that is alone is taken as it is.
    blocks : {"random", "kmeans"}, default "random"
        How the rows are cut, by their values and whatever their order; rows that repeat stay
        together. "random" gives every member a sparse view of the whole, in parts of equal size.
        "kmeans" gives each a region, of at most 2b rows, where it sees short length scales; there
        may be some more or fewer members then. It suits "rbcm" and "bcm"; with "gpoe" members that
        know nothing of a point weaken those that do.
    max_iter : int, default 100
        Iterations of the optimiser for each start.

    Attributes
    ----------
    kernel_, likelihood_, mean_ : the fitted model
    members_ : list of Posterior
        The process of each part of the rows.
    assignment_ : ndarray of shape (n,)
        The member that each row of `X_train_` belongs to.
    predictive_ : CommitteePredictive
        What predicts; the member itself if there is one.
    query_, query_mean_, query_cov_ : ndarray of shape (q, d), (q,) or (q, P), (q, q) or (q, q, P)
        The points that `fit` was given as the query, and mean and covariance of the function there.
        None without a query.
    log_marginal_likelihood_value_ : float
        The sum of the members' log evidences, hyperpriors left out.
    X_train_, y_train_, sample_weight_ : ndarray
        The rows that were fitted.
    history_, status_, n_iter_, jitter_ : as in `GPRegressor`

    See Also
    --------
    mercer.GPRegressor : exact, for up to some ten thousand rows.

    Notes
    -----
    O(n b^2) time an evaluation of the evidence and its gradient, and n b doubles for the fitted
    members; members are worked on at once, on all cores. Predictions cost O(n) a point for the mean
    alone or O(n b) with the standard deviation, as every member is asked: that is more than with
    inducing inputs.

    Use it from some ten thousand rows on where a function is too rough for a few hundred inducing
    inputs, or where there are many inputs. Do not use it where a sparse model explains the data,
    which predicts faster and has one joint distribution; nor where joint covariances or samples of
    many points are wanted, which a committee that answers point by point does not have.

    Tresp's own form is joint over the points that are asked for: `predict_joint`, or `fit` with a
    `query`. Given the function there the members are taken to be independent, which makes it PITC
    with these points as inducing inputs; the more there are, the nearer it is to the exact process.
    It has rule "bcm", and costs O(M q^3 + n b q) for q points.

    References
    ----------
    Tresp, *A Bayesian committee machine*, 2000. Cao and Fleet, *Generalized product of experts*,
    2014. Deisenroth and Ng, *Distributed Gaussian processes*, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import BayesianCommitteeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (400, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> model = BayesianCommitteeRegressor(n_members=4, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    >>> mean, cov = model.predict_joint([[1.5], [1.6]])
    >>> cov.shape
    (2, 2)
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
        *,
        n_members: int | None = None,
        combine: str = "gpoe",
        blocks: str = "random",
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
        self.n_members = n_members
        self.combine = combine
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
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, query: Any = None
    ) -> Self:
        """Fit the members and, unless `optimizer` is None, their hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        query : array-like of shape (q, d), optional
            Points at which the joint committee is wanted at once: `query_mean_`, `query_cov_`.
        """
        self._check()
        with all_or_nothing(self):
            kernel, noise = as_kernel(self.kernel, X)
            likelihood = as_likelihood(self.likelihood, noise, "SparseGPClassifier")
            if not (likelihood is None or isinstance(likelihood, Gaussian)):
                raise ValueError(
                    f"BayesianCommitteeRegressor is for Gaussian noise, got {likelihood!r}; "
                    "SparseGPRegressor and GPRegressor take other noise"
                )
            rows = checked_rows(self, X, y, sample_weight, kernel)
            begun = begin(self, kernel, likelihood, means.from_spec(self.mean), rows)
            if query is not None:  # before a long fit rather than after it
                require_columns("query", query, begun)
                self._checked_inputs(query, begun.kernel)
            objective = self._objective_of(begun)
            with naming_the_model(objective):
                names = column_names(X)
                optimum = search(self, objective, begun.undetermined, names, report_of(self))
                self._finish(objective, optimum, rows.multioutput)
                self._ask(query)
        return self

    def _check(self) -> None:
        if self.n_members is not None:
            require_count("n_members", self.n_members, 1)
        require_choice("combine", self.combine, RULES)
        require_choice("blocks", self.blocks, ("random", "kmeans"))
        require_flag("normalize_y", self.normalize_y)
        check_search_options(self)
        if is_precomputed(self):
            raise ValueError(
                "BayesianCommitteeRegressor takes inputs, not kernel matrices; use GPRegressor for "
                "kernel='precomputed'"
            )

    def _objective_of(self, begun: Begun) -> CommitteeObjective:
        """Return the objective of a fit, at its start: that of `GPRegressor`."""
        count = None if self.n_members is None else int(self.n_members)
        regions, rng = self.blocks == "kmeans", as_generator(self.random_state)
        assignment = member_numbers(begun, count, _ROWS, regions, rng)
        sizes = np.bincount(assignment)
        # the factors that are kept, and what threads work on
        matrices = float(np.sum((sizes / sizes.max()) ** 2)) + min(thread_count(), len(sizes))
        require_memory(int(sizes.max()), matrices, "fitting a committee with its largest member")
        model = begun.kernel, begun.likelihood, begun.mean
        objective = CommitteeObjective(*model, begun.data, assignment, begun.bounds)
        begin_at_defaults(objective, begun)
        return objective

    def _finish(self, objective: CommitteeObjective, optimum: Optimum, multioutput: bool) -> None:
        objective.hold_jitter(optimum.jitter)
        fit, data = objective.fitted(optimum.theta), objective.data
        self._keep(objective, fit, optimum, multioutput)
        self.members_, self.assignment_ = fit.members, objective.assignment
        self.__dict__.pop("posterior_", None)  # put in the place of members of a fit before
        self.X_train_ = kept_inputs(data.X, fit.members[0])
        self._rule, self._scale = self.combine, data.scale
        warn_of_jitter(fit.jitter)

    def _ask(self, query: Any) -> None:
        """Keep the joint committee at the points that `fit` was given."""
        self.query_ = self.query_mean_ = self.query_cov_ = None
        if query is not None:
            self.query_ = self._new_inputs(query)
            self.query_mean_, self.query_cov_ = self.predict_joint(query, latent=True)

    # --- predicting -----------------------------------------------------------------------------

    def _absent(self, name: str) -> str | None:
        if name == "posterior_" and "members_" in self.__dict__:
            return (
                "there is no posterior_ of a committee: members_ is the list of its members', and "
                "predictive_ what predicts; SparseGPRegressor with approximation='vfe' has one"
            )
        return None

    def _prior(self) -> Posterior:
        """Return the process that members share, before any data."""
        nothing = np.zeros((0, len(self._scale)))
        return Posterior(Basis(self.kernel_), nothing, mean=self.mean_, scale=self._scale)

    @property
    def predictive_(self) -> Predictive:
        """The committee, as predictions ask it, or a `posterior_` that was put in its place."""
        self._models()  # which raises where there is none
        if "posterior_" in self.__dict__:
            return self.posterior_
        if len(self.members_) == 1:
            return self.members_[0]
        return CommitteePredictive(self.members_, self._prior(), self._rule)

    def predict_joint(self, X: Any, latent: bool = False) -> tuple[Floats, Floats]:
        """Predict all rows of X together, by Tresp's committee.

        Members are taken to be independent given the function at these points, whatever `combine`
        is: what is said of one depends on which others are asked for with it.

        Parameters
        ----------
        X : array-like of shape (q, d)
            The query, without repeated rows.
        latent : bool, default False
            Whether the covariance is that of the underlying function; by default it is that of new
            observations.

        Returns
        -------
        mean : ndarray of shape (q,) or (q, P)
        cov : ndarray of shape (q, q) or (q, q, P)
        """
        X = self._new_inputs(X)
        mean, cov = joint_committee(self.members_, self._prior(), X)
        if not latent:
            each = np.arange(len(mean))
            cov[each, each] += self.likelihood_.new_variance * self._scale**2
        return self._shaped(mean), self._shaped(cov)

    def _objective(self) -> CommitteeObjective:
        self._models()
        data = Data(self.X_train_, self.y_train_, self.sample_weight_, self._scale)
        model = self.kernel_, self.likelihood_, self.mean_
        objective = CommitteeObjective(*model, data, self.assignment_)
        objective.jitter = self.jitter_
        return objective
