"""Sparse Gaussian process regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer import means
from mercer.estimators.joined import JoinedPredictions
from mercer.estimators.nested import column_names
from mercer.estimators.preparation import all_or_nothing, naming_the_model
from mercer.estimators.prepare_sparse import prepare_sparse
from mercer.estimators.resolve import as_kernel, as_likelihood
from mercer.estimators.rows import checked_rows
from mercer.estimators.search import report_of, search
from mercer.estimators.sparse_fit import SparseFit
from mercer.estimators.sparse_latent import prepare_sparse_latent
from mercer.estimators.sparse_options import block_labels, check_sparse_options, latent_engine
from mercer.estimators.state import StorableEstimator
from mercer.evidence.optimum import Report
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior.factors import frozen
from mercer.registry import storable

__all__ = ["SparseGPRegressor"]


@storable
class SparseGPRegressor(StorableEstimator, SparseFit, JoinedPredictions):
    """Gaussian process regression through m inducing variables, for many rows.

    y ~ p(y | m(x) + f(x)) as in `GPRegressor`; f reaches new points through its values u at m
    inducing inputs alone. The approximations differ in what they assume of f given u (UV Table 1,
    :func:`mercer.inference.table`), and share everything else.

    Parameters
    ----------
    kernel, likelihood, mean, hyperprior, optimizer, n_restarts, normalize_y, warm_start, n_jobs, \
random_state, verbose
        As in `GPRegressor`. Noise other than Gaussian, and counts, go with "fitc", "dtc" and "sor".
        ``verbose=1`` writes a line for each stage of a fit as well.
    inference : {"auto", "laplace", "ep"}, default "auto"
        The engine. "auto" is the closed form for Gaussian noise, Laplace's method for `StudentT`,
        `Poisson` and `Custom`, and expectation propagation for other noise.
    approximation : {"auto", "vfe", "fitc", "pep", "pitc", "pic", "dtc", "sor", "nystrom", "sod"}, \
default "auto"
        "auto" is "pic" for Gaussian noise, under the hyperparameters of an exact fit to 2000 of the
        rows, its variances to the scale that all rows give them, and "fitc" with an engine for
        other noise. It is "vfe" where blocks of rows do not go with what is asked for: inducing
        inputs that are moved, or the points to be predicted; `augment`; ``joint="independent"``;
        inputs that are not numbers.
        "vfe" maximises a lower bound on the exact evidence, and is the nearer to it the more
        inducing inputs there are; "fitc" lets the noise differ from row to row where u says little;
        "pep" stands between the two (see `power`). "pitc" and "pic" keep the covariance within
        blocks of rows, for new points too with "pic". "dtc" and "sor" keep none; the error bars of
        "sor" vanish far from the data. "nystrom" is no probabilistic model. "sod" is exact
        inference on a subset of the rows, in which none counts more than once.
    n_inducing : int, optional
        How many inducing inputs to choose, or rows of the subset; 500 by default, but that "auto"
        with up to 2000 rows takes all of them and is exact. Blocks have about as many rows. Where
        `inducing` is an array or "query" these are as many as they are, and it says how large
        blocks are alone.
    inducing : str or array of shape (m, d), default "kmeans"
        Where they start: a strategy of :func:`mercer.selection.select`, the inputs themselves, or
        "query", the points that `fit` is given as such. Of "sod" it is a strategy, and "kmeans"
        takes the row in the middle of each cluster.
    learn_inducing : bool, optional
        Whether they are moved together with the hyperparameters (UV 9). By default they are, but
        not where "auto" is "pic", nor by "fitc" with `augment`. Those of "query" and "sod" stay, as
        do all rows where these are no more than `n_inducing`. The evidence of "fitc" fits them to
        chance where rows are few, below some thousands.
    power : float, default 0.5
        Of "pep": from 0, which is "vfe", to 1, which is "fitc".
    joint : {"exact", "independent"}, default "exact"
        Whether new points are independent of each other given u; with "fitc" that is FIC.
    augment : bool, default False
        Whether each new point joins the inducing inputs by itself (UV 8.1): better densities, most
        where m is small, and O(n m) a point to predict. Not so with "fitc", or "pep" of a power
        near 1, and inducing inputs that are moved: intervals are far too narrow then, and may be
        with those that stay where m is small (the guide has the figures).
    blocks : {"kmeans", "contiguous"}, default "kmeans"
        How "pitc" and "pic" cut the rows into blocks; `fit` may be given `groups` instead.
    max_iter : int, default 200
        Iterations of the optimiser for each start. When inducing inputs are moved a search ends
        before, once ten iterations gain less than 0.1 in log evidence; one that does not get there
        warns and says what the last ten gained, and its end is still a good one.

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
    approximation_, inference_ : str
        The approximation and the engine that were taken: "sparse" is the closed form, and "exact"
        that of "sod".
    evidence_bounds_ : tuple of two floats
        With Gaussian noise, a lower and an upper bound on the exact log evidence of all rows at the
        fitted hyperparameters.
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
    blocks of them. Use it from some thousands of rows on; below, `GPRegressor` is exact. Searches
    on all rows, which every approximation but "auto" and "sod" makes, start from an exact fit to
    500 to 2000 of them, the more the larger n m^2 is.
    Predictions cost O(m) a point for the mean and O(m^2) for the standard deviation. Other noise
    takes a few to some dozens of times as long, and memory for an n x m matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SparseGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (800, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(800)
    >>> model = SparseGPRegressor(n_inducing=20, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True

    Counts:

    >>> from mercer.likelihoods import Poisson
    >>> counts = rng.poisson(np.exp(1 + np.sin(X[:, 0])))
    >>> rates = SparseGPRegressor(likelihood=Poisson(), n_inducing=20, learn_inducing=False)
    >>> bool(abs(rates.fit(X, counts).predict([[1.5]])[0] - np.exp(1 + np.sin(1.5))) < 1)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
        *,
        inference: str = "auto",
        approximation: str = "auto",
        n_inducing: int | None = None,
        inducing: Any = "kmeans",
        learn_inducing: bool | None = None,
        power: float = 0.5,
        joint: str = "exact",
        augment: bool = False,
        blocks: str = "kmeans",
        mean: Any = "constant",
        hyperprior: str | None = "default",
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
        report = report_of(self)
        with all_or_nothing(self):
            kernel, noise = as_kernel(self.kernel, X)
            likelihood = as_likelihood(self.likelihood, noise, "SparseGPClassifier")
            inference = latent_engine(self, likelihood, groups)
            rows = checked_rows(self, X, y, sample_weight, kernel)
            # Predictions may go back to the rows, so nobody else is to have them.
            rows = rows._replace(X=frozen(np.array(rows.X)))
            mean = means.from_spec(self.mean)
            if inference is None:
                assert likelihood is None or isinstance(likelihood, Gaussian)
                labels = None if groups is None else block_labels(groups, rows.kept)
                prepared = prepare_sparse(
                    self, kernel, likelihood, mean, rows, labels=labels, query=query, report=report
                )
            else:
                model = kernel, likelihood, mean
                prepared = prepare_sparse_latent(
                    self, *model, rows, inference, query=query, report=report
                )
            objective = prepared.objective
            with naming_the_model(objective):
                names = column_names(X)
                optimum = search(self, objective, prepared.undetermined, names, report)
                self._finish(*prepared.completed(optimum), report)
        return self
