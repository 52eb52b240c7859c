"""Sparse on-line Gaussian process classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from mercer.estimators.class_options import binary_likelihood
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.inputs import require_targets
from mercer.estimators.labels import checked_labels, codes_of, hard_targets, label_codes
from mercer.estimators.nested import column_names
from mercer.estimators.online_fit import LearnsOnline
from mercer.estimators.online_lift import require_lift
from mercer.estimators.online_options import is_complete, online_class_model, together
from mercer.estimators.online_prequential import classes_before
from mercer.estimators.online_start import Start, start_of_classes
from mercer.estimators.rows import Rows, checked_inputs, kept_weights
from mercer.evidence.optimum import Report
from mercer.inference.online import Before
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood, Softmax
from mercer.means import Mean
from mercer.posterior import Posterior
from mercer.registry import storable

__all__ = ["OnlineGPClassifier", "PrequentialClasses"]

Floats = NDArray[np.float64]

# What is said of other labels.
_ALL = (
    ", and stay so from the first rows on: name in `classes` all that may come, those without rows "
    "yet too"
)


class PrequentialClasses(NamedTuple):
    """What a model predicted of rows before it learned them.

    proba : (n, C) the probabilities of the classes
    log_density : (n,) the log of the probability of the row's own label

    They are NaN for a row of weight 0, and for the rows by which hyperparameters are chosen.
    """

    proba: Floats
    log_density: Floats


@storable
class OnlineGPClassifier(LearnsOnline, BayesianClassifier):
    """Gaussian process classification that learns rows one after another, in bounded memory.

    A latent function with a Gaussian process prior for two classes, and one for each of more
    against the rest, which a link turns into probabilities. The posterior so far is the prior of
    the next row, whose likelihood is projected on the nearest Gaussian process (SOGP 2.6), and all
    functions are kept by their moments at the same basis vectors, at most `max_basis`. If there are
    too many the one goes by which the function that loses most loses least (SOGP 4.8).

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel or None, default None
        The covariance of the latent functions, which share it; None is the default one of
        `GPClassifier`.
    likelihood : {"probit", "logistic"}, Probit or Logistic, default "probit"
        The link. `Probit` has the moments in closed form; ``Probit(0.0)`` is a step, the noise-free
        perceptron.
    max_basis, tol, novelty, criterion, n_init, forget, verbose
        As in `OnlineGPRegressor`, with a warning of losses a row and function.
    n_sweeps : int, default 1
        How often `fit` goes over the rows. It gains more than for a regression, since what a label
        says depends on what is known of the function.
    recycle : {"sites", "heuristic"}, default "sites"
        What the sweeps after the first do, as in `OnlineGPRegressor`. With room for all rows
        "sites" comes to the posterior of expectation propagation.
    mean, hyperprior, optimizer, n_restarts, max_iter, n_jobs, random_state
        As in `GPClassifier`, for the choice of hyperparameters.
    classes : array-like, default None
        All classes that there are. Without it those of y in `fit`, or what the first `partial_fit`
        is told.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, sorted, in the order of the columns of `predict_proba`.
    basis_, n_basis_, n_seen_, projection_loss_, status_, n_iter_ : as in `OnlineGPRegressor`
    log_evidence_ : float
        The log predictive density of all labels, each given the rows before it, added up: of the
        first pass, whatever `n_sweeps`. With more than two classes each is a label for every class,
        that class or not, and all of these are summed.
    kernel_, likelihood_, mean_ : the model, the same for all classes
        But for coefficients of the mean, of which each class has its own.
    posterior_, predictive_ : Posterior
        The process of the latent functions as it is now, one output for two classes, else C; made
        when it is asked for. Another of the same model may be assigned, and learning goes on
        from there.
    n_features_in_, feature_names_in_ : as in `GPClassifier`

    See Also
    --------
    SparseGPClassifier : for rows that are all there, with a basis that suits them better.
    OnlineGPRegressor : for targets that are numbers.

    Notes
    -----
    O(C m^2) time a row with m basis vectors (of two classes, C is 1), whatever has been seen, and
    2 C + 2 arrays of m x m. Use it for streams, and for more rows than fit into memory. The order
    of rows matters: what a label says is fixed when it comes, unless `n_sweeps` finds it again.

    Hyperparameters are those with the highest evidence, summed over the classes, of Laplace's
    method; for a step, of expectation propagation. `fit` takes max(n_init, 500) rows for that,
    half of them the first ones, half spread over all others. `partial_fit` starts at once with a
    kernel that is given, of which nothing is learned then; else rows wait until there are
    `n_init`, whatever the chunks they come in, and the first `n_init` choose it. Before that there
    are no predictions. Ctrl-C in a fit keeps what was learned.

    Under a step (``Probit(0.0)``) a label that contradicts all that is known is next to impossible,
    and yet learned, by a large change: a variance is never 0, so that nothing is quite certain.

    References
    ----------
    Csato and Opper, *Sparse on-line Gaussian processes*, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineGPClassifier
    >>> from mercer.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineGPClassifier(4.0 * RBF(1.0), max_basis=30, classes=["in", "out"])
    >>> for _ in range(10):
    ...     X = rng.uniform(-2, 2, (100, 2))
    ...     model = model.partial_fit(X, np.where(np.hypot(*X.T) < 1.3, "in", "out"))
    >>> model.predict([[0.1, 0.2], [1.9, -1.5]])
    array(['in', 'out'], dtype='<U3')
    >>> model.n_seen_, model.n_basis_
    (1000, 30)
    """

    _of_labels = True

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "probit",
        *,
        max_basis: int = 100,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        n_init: int = 100,
        n_sweeps: int = 1,
        recycle: str = "sites",
        forget: float = 0.0,
        mean: Any = "zero",
        hyperprior: str | None = "default",
        optimizer: Any = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 200,
        classes: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.max_basis = max_basis
        self.tol = tol
        self.novelty = novelty
        self.criterion = criterion
        self.n_init = n_init
        self.n_sweeps = n_sweeps
        self.recycle = recycle
        self.forget = forget
        self.mean = mean
        self.hyperprior = hyperprior
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.classes = classes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior | Sequence[Posterior],
        likelihood: Any,
        max_basis: int | None = None,
        *,
        classes: ArrayLike,
        lift: bool | str = False,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        forget: float = 0.0,
    ) -> Self:
        """Return a model that goes on from a posterior of latent functions.

        Parameters
        ----------
        posterior : Posterior or sequence of them
            Of one output for two classes, or of one for each of more, not coupled by a softmax: or
            one posterior for each class, as in `posteriors_` of ``multi_class="one_vs_rest"``. On
            one basis is kept what all have in common, so that kernel, mean and points must be the
            same in all; hyperparameters that were searched for each class are not.
        likelihood : {"probit", "logistic"}, Probit or Logistic, or a list of equal ones
            Of further labels: that of the model that has the posterior.
        max_basis : int, optional
            How many basis vectors there may be; as many as there are without it.
        classes : array-like
            The classes, in the order of the outputs; of two, the second is that of positive values.
        lift : {False, True, "scaled"}
            Whether a degenerate posterior, as that of a Laplacian process, is taken as one under
            the full kernel, or under a multiple of it that suits the function, to which rows can be
            added: without it those far from the basis teach nothing, see
            `OnlineGPRegressor.from_posterior`.
        tol, novelty, criterion, forget : as for the class
        """
        require_lift(lift)
        if isinstance(likelihood, Softmax):
            raise ValueError(
                "a softmax couples its functions, and on-line learning keeps one for each class "
                "against the rest: fit with multi_class='one_vs_rest' and go on from posteriors_, "
                "or begin with OnlineGPClassifier"
            )
        likelihood = _one_link(likelihood)
        link = binary_likelihood(likelihood)
        if isinstance(posterior, Posterior):
            whole = posterior
        else:
            whole = together(posterior, link)
        names = _class_names(classes)
        wanted = 2 if whole.n_outputs == 1 else whole.n_outputs
        if len(names) != wanted or not np.array_equal(names, np.asarray(classes)):
            raise ValueError(
                f"classes must name the {wanted} classes of this posterior, sorted, got {classes!r}"
            )
        options = {"tol": tol, "novelty": novelty, "criterion": criterion, "forget": forget}
        model = cls._from_posterior(
            whole, likelihood, link, max_basis, lift, options, classes=classes
        )
        model.classes_, model._multioutput = names, False
        return model

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew: choose hyperparameters, and learn all rows in their order.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,)
            Labels: text, whole numbers or booleans.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out. A
            weight above 100 is learned in 100 steps.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        classes : array-like, optional
            All classes that there are. The first call needs them, unless the constructor was given
            them.
        """
        self._take(X, y, sample_weight, classes=classes)
        return self

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PrequentialClasses:
        """Learn more rows as `partial_fit` does, and return what was predicted of each before.

        Returns
        -------
        PrequentialClasses
            `proba` and `log_density`; NaN where there was no model yet.
        """
        rows, before = self._take(X, y, sample_weight, classes=classes)
        n = len(rows.kept)
        proba, logs = np.full((n, len(self.classes_)), np.nan), np.full(n, np.nan)
        known = ~np.isnan(before.mean[:, 0])
        at = np.flatnonzero(rows.kept)[known]
        if at.size:
            some = Before(*(each[known] for each in before))
            proba[at], logs[at] = classes_before(self._links, some, rows.Y[known])
        return PrequentialClasses(proba, logs)

    def _rows(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        again: bool,
        some: bool,
        **options: Any,
    ) -> Rows:
        require_targets(self, y)
        known = again and "_process" in vars(self)
        kernel = self.kernel_ if known else self._model_of(X)[0]
        X = checked_inputs(self, X, kernel, again=again)
        labels = checked_labels(y)
        check_consistent_length(X, labels)
        weights, kept = kept_weights(sample_weight, len(labels), some)
        if some:  # of a fit, whose labels may name the classes
            given = self.classes
            found = hard_targets(labels[kept]).classes if given is None else _class_names(given)
            self.classes_ = found
        else:
            self._require_classes(options.get("classes"), again)
        codes = codes_of(labels[kept], self.classes_, int(np.sum(kept)), _ALL)
        Y = label_codes(len(self.classes_))[codes]
        return Rows(X[kept], Y, weights, kept, False)

    def _require_classes(self, classes: ArrayLike | None, again: bool) -> None:
        """Take the classes of the first call, or raise ValueError for others than these."""
        if not again:
            given = self.classes if classes is None else classes
            if given is None:
                raise ValueError(
                    "classes must be given to the first call of partial_fit, or to the "
                    "constructor: the first rows may not have all of them"
                )
            self.classes_ = _class_names(given)
        elif classes is not None and not np.array_equal(_class_names(classes), self.classes_):
            raise ValueError(
                f"classes are {self.classes_.tolist()} since the first call, got "
                f"{np.asarray(classes).tolist()}"
            )

    def _model_of(self, X: Any) -> tuple[Kernel | None, Likelihood, Mean]:
        """Return kernel, likelihood and mean, or say why they cannot be."""
        return online_class_model(self, X)

    def _complete(self, X: Any, outputs: int) -> Start | None:
        kernel, likelihood, mean = self._model_of(X)
        if not is_complete(kernel, likelihood):
            return None
        assert kernel is not None
        return Start(kernel, likelihood, mean, np.ones(outputs))

    def _chosen(self, X: Any, rows: Rows) -> Start:
        return start_of_classes(self, *self._model_of(X), rows, column_names(X))

    @property
    def _links(self) -> list[Likelihood]:
        """The likelihoods of labels -1 and 1, one for each function."""
        return [self.likelihood_] * len(self._require_begun().scale)


def _one_link(likelihood: Any) -> Any:
    """Return what a list of one likelihood for each function has in common, or what was given."""
    if not isinstance(likelihood, list | tuple):
        return likelihood
    if not likelihood or any(each != likelihood[0] for each in likelihood):
        raise ValueError(
            "likelihood must be one for all classes, or a list of equal ones, as likelihood_ of "
            f"multi_class='one_vs_rest' is, got {likelihood!r}"
        )
    return likelihood[0]


def _class_names(classes: Any) -> NDArray[Any]:
    """Return the classes, sorted, or say what is wrong with them."""
    names = np.asarray(classes)
    try:
        found = np.unique(names)
    except TypeError:
        found = names[:0]
    if names.ndim != 1 or len(found) != len(names) or len(found) < 2:
        raise ValueError(
            "classes must be two or more labels of one type, each named once, got "
            f"{names.tolist()!r}"
        )
    return found
