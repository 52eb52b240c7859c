"""Gaussian process classification of rows of which some have no label."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.class_options import check_class_options
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.gp_classifier import GPClassifier
from mercer.estimators.nested import column_names
from mercer.estimators.options import require_choice, require_count
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.process import coupled_moments, latent_moments
from mercer.estimators.rows import is_precomputed
from mercer.estimators.state import StorableEstimator
from mercer.estimators.transductive_fit import Transduction, transduce
from mercer.estimators.transductive_rows import PartRows, part_rows
from mercer.evidence.optimum import Report
from mercer.likelihoods import Probit, Softmax
from mercer.likelihoods.class_probabilities import (
    Probabilities,
    link_probabilities,
    softmax_probabilities,
)
from mercer.registry import storable

__all__ = ["TransductiveGPClassifier"]

Floats = NDArray[np.float64]

# What is handed on to the classifier that searches the hyperparameters.
_SHARED = (
    "kernel",
    "likelihood",
    "mean",
    "hyperprior",
    "optimizer",
    "n_restarts",
    "max_iter",
    "warm_start",
    "n_jobs",
    "random_state",
    "verbose",
)


@storable
class TransductiveGPClassifier(StorableEstimator, BayesianClassifier):
    """Gaussian process classification of rows of which some have no label.

    The labels that are missing are found together with the latent functions (BKM 58 to 61): those
    with which the functions can be smooth, and far from even odds, at all rows. Boundaries between
    classes move to where there are few rows, whether these have labels or not. That helps where
    classes are groups that hang together, and does harm where they overlap.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        The covariance of the latent functions, as that of :class:`GPClassifier`. It matters more
        than there: labels spread over distances that its length scale says.
    likelihood : {"logistic", "probit", "softmax"}, Logistic, Probit or Softmax, default "logistic"
        The link. Three classes or more have a softmax, which "logistic" stands for.
    method : {"em", "joint"}, default "em"
        "em" maximises the joint density of the missing labels and the functions (BKM 58, 59), in
        turn. "joint" maximises (BKM 61), where minus the entropy of a label stands for its log
        probability: rows near to a boundary push it away less than by "em".
    labels : {"annealed", "hard"}, default "annealed"
        What "em" has for labels on the way. "annealed" are distributions, first nearly as uncertain
        as the functions make them and then harder and harder. "hard" are the most probable labels
        from the beginning: faster, and often nothing but what the rows with labels say. At the end
        they are hard in both cases.
    unlabeled : any, default -1
        The mark in y of rows that have no label. None and NaN stand for any missing value. Where no
        row is marked there is a warning: this is then :class:`GPClassifier`, and for three classes
        or more that with inference="map".
    mean : {"zero", "constant", "linear"}, Mean or callable, default "zero"
        The mean of the latent functions, as that of :class:`GPClassifier`.
    hyperprior : {"default", None}, default "default"
        Whether the default kernel has hyperpriors.
    optimizer : {"lbfgs", None} or callable, default "lbfgs"
        None keeps the hyperparameters as given.
    n_sweeps : int, default 5
        How often, at most, hyperparameters are chosen anew with the labels of all rows held, and
        labels are found anew with these. 0 leaves it at those of the rows with labels.
    n_restarts, max_iter, warm_start, n_jobs, random_state, verbose
        Of the search for hyperparameters, as those of :class:`GPClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns of `predict_proba`.
    transduction_ : ndarray of shape (n,)
        The label of each row given to `fit`: its own, or what was found.
    label_distributions_ : ndarray of shape (n, C)
        The probabilities of the classes at the latent functions that were found; a one and zeros
        where a label was given. They tell how near a row is to a boundary, but not how well that is
        known: `predict_proba` does.
    description_length_ : float
        Minus the objective in nats, the length of a code for the missing labels and the functions,
        given the labels there are (BKM after 61). Without ln det(2 pi K)/2: lengths can be compared
        between solutions with the same hyperparameters, such as those of "hard" and "annealed"
        labels.
    kernel_, likelihood_, mean_ : the fitted model
    posterior_ : Posterior
        The fitted process of the latent functions: one for two classes, or C coupled ones.
    predictive_ : Predictive
        The same, as `predict_proba` asks it.
    history_ : dict
        "temperature" and "value" (k,): the objective after each step of the last search for labels.
        At one temperature it never falls. "objective" names it, and "status" is "converged", or
        "stopped" where that search ended short of a maximum.
    n_sweeps_ : int
        How often hyperparameters were chosen with the labels of all rows held.
    status_ : str
        How the last search for hyperparameters ended; "fixed" if there was none.
    n_iter_ : int
        Its iterations.
    jitter_ : float
        What had to be added to the diagonal of the covariance; 0.0 nearly always.
    theta_ : ndarray of shape (p,)
        The fitted hyperparameters as one vector, logarithms where they are positive.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    GPClassifier : for rows that all have labels.
    mercer.inference.transductive : the engine.

    Notes
    -----
    **EM with soft labels would be of no use.** Where a missing label is replaced by its own
    probabilities, as (BKM 59) has it, the expected slope of the log likelihood is 0, and the
    functions come to rest where they would be without the row. The paper says that the maxima of
    (BKM 61) are the same; they are not. Hence the labels of "em" are harder than their
    probabilities.

    Hyperparameters are those that maximise the evidence of the rows with labels; then, in turn, of
    all rows with the labels that were found (BKM 3.6). Wrong labels may confirm themselves this
    way. With few labels it is better to give a kernel and ``optimizer=None``: a length scale well
    below the width of the gap between the classes.

    The posterior takes the labels that were found as if they had been given, so that
    `predict_proba` is more certain than it should be.

    O(n^3) time and three n x n matrices, n counting all rows; 2C + 4 of them for C classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from mercer import GPClassifier, TransductiveGPClassifier
    >>> from mercer.kernels import RBF
    >>> X, y = make_moons(200, noise=0.1, random_state=1)
    >>> some = np.where(np.arange(200) % 40 == 0, y, -1)  # five rows keep their labels
    >>> alone = GPClassifier(4.0 * RBF(0.25), optimizer=None).fit(X[some >= 0], y[some >= 0])
    >>> int(np.sum(alone.predict(X) != y))
    36
    >>> model = TransductiveGPClassifier(4.0 * RBF(0.25), optimizer=None).fit(X, some)
    >>> int(np.sum(model.transduction_ != y))
    0
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "logistic",
        *,
        method: str = "em",
        labels: str = "annealed",
        unlabeled: Any = -1,
        mean: Any = "zero",
        hyperprior: str | None = "default",
        optimizer: Any = "lbfgs",
        n_sweeps: int = 5,
        n_restarts: int = 0,
        max_iter: int = 200,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.method = method
        self.labels = labels
        self.unlabeled = unlabeled
        self.mean = mean
        self.hyperprior = hyperprior
        self.optimizer = optimizer
        self.n_sweeps = n_sweeps
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the missing labels, the latent functions and the hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs of all rows.
        y : array-like of shape (n,)
            Labels, which are text, whole numbers or booleans, and the mark `unlabeled` where there
            is none.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out. The
            label of a row that is left out is predicted.
        """
        classifier = self._classifier()
        check_class_options(classifier)
        require_choice("method", self.method, ("em", "joint"))
        require_choice("labels", self.labels, ("annealed", "hard"))
        require_count("n_sweeps", self.n_sweeps, 0)
        with all_or_nothing(self):
            held = self._classifier(optimizer=None, warm_start=False)
            rows = part_rows(self, held, X, y, sample_weight)
            found = transduce(self, classifier, rows, column_names(X))
            self._finish(rows, found)
        return self

    def _classifier(self, **options: Any) -> GPClassifier:
        """Return the classifier that would be fitted if all rows had labels."""
        shared = {name: getattr(self, name) for name in _SHARED} | options
        return GPClassifier(**shared)

    def _finish(self, rows: PartRows, found: Transduction) -> None:
        solution, optimum = found.solution, found.optimum
        self._kind, self._pairwise = rows.kind, is_precomputed(self)
        self.classes_ = rows.classes
        self.kernel_, self.likelihood_, self.mean_ = found.model
        self.posterior_ = found.posterior
        self.label_distributions_ = np.empty((len(rows.kept), len(rows.classes)))
        self.label_distributions_[rows.kept] = solution.probabilities
        codes = np.empty(len(rows.kept), dtype=np.intp)
        codes[rows.kept] = solution.labels
        if not np.all(rows.kept):
            left_out = self._averages(rows.inputs[~rows.kept]).values
            self.label_distributions_[~rows.kept] = left_out
            codes[~rows.kept] = np.argmax(left_out, axis=1)
        self.transduction_ = self.classes_[codes]
        self.description_length_ = -solution.objective
        self.history_ = {
            "temperature": solution.temperatures,
            "value": solution.values,
            "objective": "negative description length at each temperature",
            "status": solution.status,
        }
        self.n_sweeps_, self.jitter_ = found.n_sweeps, float(solution.jitter)
        self.status_, self.n_iter_ = optimum.status, max(1, optimum.n_iterations)

    # --- predicting ---------------------------------------------------------------------------

    def _averages(self, inputs: Any) -> Probabilities:
        """Return the probabilities of rows as the kernel takes them."""
        if isinstance(self.likelihood_, Softmax):
            return softmax_probabilities(*coupled_moments(self.posterior_, inputs))
        return link_probabilities(self._links, *latent_moments(self.posterior_, inputs))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: what "probit" cannot do beside the others."""
        tags = super().__sklearn_tags__()
        is_probit = isinstance(self.likelihood, Probit) or str(self.likelihood) == "probit"
        tags.classifier_tags.multi_class = not is_probit
        return tags
