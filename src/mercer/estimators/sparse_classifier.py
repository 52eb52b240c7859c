"""Sparse Gaussian process classification."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.class_fit import ClassFit, of_parts
from mercer.estimators.class_options import check_class_options
from mercer.estimators.class_search import search_classes
from mercer.estimators.classification import BegunClasses, PreparedClasses, begin_classes
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.nested import column_names
from mercer.estimators.options import as_generator, require_choice, require_count, require_flag
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.sparse_latent import LatentStart, sparse_latent, unexplained_by
from mercer.estimators.sparse_options import LATENT_APPROXIMATIONS, check_inducing_options
from mercer.estimators.state import StorableEstimator
from mercer.evidence import LatentObjective, Optimum
from mercer.evidence.engines import SPARSE_ENGINES
from mercer.evidence.optimum import Report
from mercer.evidence.sparse import InducingInputs
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.inference._approximations import approximation
from mercer.likelihoods import Softmax
from mercer.registry import storable

__all__ = ["SparseGPClassifier"]


@storable
class SparseGPClassifier(StorableEstimator, ClassFit, BayesianClassifier):
    """Gaussian process classification through m inducing variables, for many rows.

    As `GPClassifier`, but latent functions reach new points through their values u at m inducing
    inputs alone (UV Table 1, :func:`mercer.inference.table`). Of three classes or
    more each is held against the rest, with hyperparameters and inducing inputs of its own, and
    the probabilities are then made to add up to 1.

    Parameters
    ----------
    kernel, soft_labels, classes, mean, hyperprior, optimizer, n_restarts, warm_start, n_jobs, \
random_state, verbose
        As in `GPClassifier`; the kernel has inputs. `random_state` is for the inducing inputs too.
    likelihood : {"logistic", "probit"}, Logistic or Probit, default "logistic"
        The link.
    inference : {"laplace", "ep", "bounds"}, default "laplace"
        How the posterior is approximated: as in `GPClassifier`.
    approximation : {"fitc", "dtc", "sor"}, default "fitc"
        What is assumed of a latent function given u. "fitc" keeps the variances of the rows,
        "dtc" and "sor" none of what u does not explain; probabilities by "sor" are too sure far
        from the data.
    n_inducing : int, default 200
        How many inducing inputs to choose. It counts for nothing where `inducing` is an array or
        "query".
    inducing : str or array of shape (m, d), default "kmeans"
        Where they start: a strategy of :func:`mercer.selection.select`, the inputs themselves, or
        "query", the points that `fit` is given as such. Strategies that look at targets take
        labels for numbers, -1 and 1.
    learn_inducing : bool, default False
        Whether they are moved together with the hyperparameters (UV 9). The evidence of "fitc"
        then fits them to chance where rows are few: of 1,000 rows predictions get worse. It helps
        where n_inducing has to be small; more of them that stay help more, for the same time. Those
        of "query" stay, as do all rows where these are no more than `n_inducing`.
    max_iter : int, default 200
        Iterations of the optimiser for each start; see `SparseGPRegressor`.

    Attributes
    ----------
    inducing_ : ndarray of shape (m, d)
        The inducing inputs; with three classes or more a list, with those of each class.
    unexplained_ : float
        The variance of the latent function that the inducing variables leave at a row, on average:
        the mean of the diagonal of K - Q; a list likewise. A warning says where that is most of it.
    classes_, kernel_, likelihood_, mean_, posterior_, posteriors_, predictive_, \
log_marginal_likelihood_value_, history_, status_, n_iter_, jitter_, X_train_, y_train_, \
sample_weight_, theta_
        As in `GPClassifier`. The evidence is that under the sparse prior, or the bound on it by
        "bounds"; `theta_` is without the inducing inputs, with which `history_` goes on where they
        are learned.

    See Also
    --------
    GPClassifier : without inducing inputs, for up to some thousand rows.
    SparseGPRegressor : for targets that are numbers.

    Notes
    -----
    O(n m^2) time a step of the engine, of which an evaluation of the evidence takes a few, and
    O(n m) memory; C times the time for C classes. Predictions cost O(m^2) a point and class. Use
    it from some thousand rows on; below, `GPClassifier` is about as fast, and has a softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SparseGPClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.3, "in", "out")
    >>> model = SparseGPClassifier(n_inducing=20, random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.2], [1.9, -1.5]])
    array(['in', 'out'], dtype='<U3')
    >>> model.inducing_.shape
    (20, 2)
    """

    # of three classes or more; there is no other way
    multi_class = "one_vs_rest"

    inducing_: Any
    unexplained_: Any

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "logistic",
        *,
        inference: str = "laplace",
        approximation: str = "fitc",
        n_inducing: int = 200,
        inducing: Any = "kmeans",
        learn_inducing: bool = False,
        soft_labels: bool | str = False,
        classes: Any = None,
        mean: Any = "zero",
        hyperprior: str | None = "default",
        optimizer: Any = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 200,
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
        self.soft_labels = soft_labels
        self.classes = classes
        self.mean = mean
        self.hyperprior = hyperprior
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, query: Any = None
    ) -> Self:
        """Fit the latent functions and, unless `optimizer` is None, what there is to search.

        That is hyperparameters, and with `learn_inducing` inducing inputs.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,), or (n, C) with `soft_labels`
            Labels, which are text, whole numbers or booleans, or the probabilities of the classes.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        query : array-like of shape (m, d), optional
            The points to be predicted, as inducing inputs, with ``inducing="query"``.
        """
        self._check(query)
        with all_or_nothing(self):
            begun = begin_classes(self, X, y, sample_weight, dense=False)
            kind = approximation(self.approximation)
            seed = as_generator(self.random_state).integers(2**63)  # whatever the order of classes
            starts = self._starts_of(begun)
            searches = len(starts) if len(starts) > 1 else 1 + self.n_restarts
            objectives = [
                sparse_latent(self, start, kind, query, np.random.default_rng(seed), searches)
                for start in starts
            ]
            optima = search_classes(self, objectives)
            prepared = PreparedClasses(begun.model, begun.targets, [*objectives])
            self._finish(prepared, optima, column_names(X))
            calls = [
                partial(unexplained_by, self, objective, optimum.theta)
                for objective, optimum in zip(objectives, optima, strict=True)
            ]
            left = of_parts(prepared, calls)
            self.unexplained_ = left if self._has_parts else left[0]
        return self

    def _check(self, query: Any) -> None:
        require_choice("inference", self.inference, tuple(SPARSE_ENGINES))
        require_choice("approximation", self.approximation, LATENT_APPROXIMATIONS)
        require_count("n_inducing", self.n_inducing, 1)
        require_flag("learn_inducing", self.learn_inducing)
        check_inducing_options(self, query)
        check_class_options(self)
        named = isinstance(self.likelihood, str) and self.likelihood == "softmax"
        if named or isinstance(self.likelihood, Softmax):
            raise ValueError(
                "a softmax couples the latent functions of the classes, and inducing inputs go "
                "with one function at a time; give likelihood='logistic' or 'probit', by which "
                "each class is held against the rest, or use GPClassifier"
            )

    def _starts_of(self, begun: BegunClasses) -> list[LatentStart]:
        """Return the parts at their starts; labels stand for latent values of -1 and 1."""
        columns = range(len(begun.targets.classes)) if len(begun.objectives) > 1 else [1]
        last = self._points() if begun.warm else [None] * len(begun.objectives)
        return [
            LatentStart(
                objective,
                2.0 * begun.targets.Y[:, column] - 1.0,
                begun.variance,
                begun.default,
                begun.widths,
                begun.searched,
                own,
            )
            for objective, column, own in zip(begun.objectives, columns, last, strict=True)
        ]

    def _points(self) -> list[Any]:
        """Return the inducing inputs of each part."""
        return self.inducing_ if self._has_parts else [self.inducing_]

    def _finish(
        self, prepared: PreparedClasses, optima: list[Optimum], columns: list[str] | None
    ) -> None:
        super()._finish(prepared, optima, columns)
        points = [posterior.basis.points for posterior in self._posteriors()]
        self.inducing_ = points if self._has_parts else points[0]
        self._approximation = self.approximation

    def _as_fitted(self, objectives: list[LatentObjective]) -> list[LatentObjective]:
        kind = approximation(self._approximation)
        return [
            SparseLatentObjective.of(objective, InducingInputs(points), kind)
            for objective, points in zip(objectives, self._points(), strict=True)
        ]
