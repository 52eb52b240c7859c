"""Gaussian process classification."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from mercer.estimators.class_fit import ClassFit
from mercer.estimators.class_options import check_class_options
from mercer.estimators.class_search import search_classes
from mercer.estimators.classification import prepare_classes
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.nested import column_names
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.state import StorableEstimator
from mercer.evidence.optimum import Report
from mercer.registry import storable

__all__ = ["GPClassifier"]


@storable
class GPClassifier(StorableEstimator, ClassFit, BayesianClassifier):
    """Gaussian process classification into two classes or more.

    Latent functions with Gaussian process priors, which a link turns into the probabilities of the
    classes (BKM 14 to 17, 54). Their posterior is approximated by a Gaussian; hyperparameters
    maximise the evidence that goes with it, times their hyperpriors.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        The covariance of the latent functions, where the search for hyperparameters starts. None
        is a multiple of an RBF with one length scale a column, started, bounded and given
        hyperpriors in the units of the data. With "precomputed", X is the kernel matrix itself
        (see Notes).
    likelihood : {"logistic", "probit", "softmax"}, Logistic, Probit or Softmax, default "logistic"
        The link. "softmax" has a function for each class; the others one for two classes.
    inference : {"laplace", "ep", "vi", "bounds", "map"}, default "laplace"
        How the posterior is approximated: a Gaussian at its mode, with its curvature; expectation
        propagation, whose probabilities are the most exact; the Gaussian nearest in KL(q, p);
        bounds on the logistic function (BKM 76), which that alone has; or "map", the mode at the
        hyperparameters that "laplace" finds, which has no evidence of its own. With a softmax of
        three classes or more "laplace" moves the mean from the mode to the middle of the posterior,
        to first order, by which probabilities are less even; "map" stays at the mode.
    multi_class : {"auto", "softmax", "one_vs_rest"}, default "auto"
        What is done with three classes or more. "softmax" has coupled functions that share their
        hyperparameters, by Laplace's method. "one_vs_rest" has each class against all others as a
        problem of its own, with its own hyperparameters, whose probabilities are then made to add
        up to 1. "auto" is the first with logistic links and "laplace" or "map", else the second.
    soft_labels : bool, "cross_entropy" or "mixture", default False
        Whether y is a matrix with the probability of each class in a column. True is
        "cross_entropy": the probabilities are shares of many labels. "mixture": one label is
        right, and these are the odds for it (BKM 57), by which an even row says nothing.
    classes : array-like of C names, default None
        What the columns of y are called, with `soft_labels`. By default as a frame calls them, or
        by numbers from 0. A frame that has these names in another order is matched by name.
    mean : {"zero", "constant", "linear"}, Mean or callable, default "zero"
        The mean of the latent functions. "constant" and "linear" are searched for with the
        hyperparameters.
    hyperprior : {"default", None}, default "default"
        Whether the default kernel has hyperpriors: of length scales ones that fall where they are
        short, which keeps columns of little use from being fitted to chance, and are level where
        they are long; of the variance an exponential one with a mean of three times the start.
        Without that the variance has no end where the classes can be separated. A kernel of your
        own carries its own, and is not touched.
    optimizer : {"lbfgs", None} or callable, default "lbfgs"
        None keeps the hyperparameters as given. A callable has scikit-learn's signature.
    n_restarts : int, default 0
        Random starts beside the first.
    max_iter : int, default 200
        Iterations of the optimiser for each start.
    warm_start : bool, default False
        Whether a second `fit` starts from the hyperparameters of the one before.
    n_jobs : int or None, default None
        How many starts to run at once, or with "one_vs_rest" how many classes, each on a core;
        negative ones as joblib's: -1 is one for each core.
    random_state : int, RandomState, Generator or None, default None
        For the random starts.
    verbose : bool, int or callable, default 0
        1 writes a line an evaluation to standard error. A callable is called after each one as
        ``verbose(start, count, value, best)``; see :class:`GPRegressor`. With "one_vs_rest" the
        starts of the second class are counted on from those of the first.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns of `predict_proba`.
    kernel_, likelihood_, mean_ : the fitted model
        With "one_vs_rest" lists, with one for each class.
    posterior_ : Posterior
        The fitted process of the latent functions: of one output for two classes, of C that are
        coupled by a softmax. With "one_vs_rest" there is a list `posteriors_` instead.
    predictive_ : Predictive
        The same, as `predict_proba` asks it; with "one_vs_rest" all of them side by side.
    log_marginal_likelihood_value_ : float
        The log evidence by the engine, hyperpriors left out; with "one_vs_rest" summed over the
        classes, and NaN with "map".
    history_ : dict
        "theta" (k, p) and "value" (k,): every evaluation of the search; a list of them with
        "one_vs_rest".
    status_ : str
        How the search for hyperparameters ended, the worst if there were several.
    n_iter_ : int
        Iterations of the optimiser at the start that won, the most if there were several.
    jitter_ : float
        What had to be added to the diagonal of the covariance, the most; 0.0 nearly always.
    X_train_ : ndarray of shape (n, d), or what the kernel takes
        The inputs of the rows that were fitted, those of weight 0 left out, read-only; in one piece
        of memory with the basis points of the posterior where these are the same. With
        "precomputed", the numbers of the rows of the matrix.
    y_train_, sample_weight_ : ndarray of shape (n, C), and (n,) or None
        The distributions over the classes, ones and zeros for labels, and the weights of the rows
        that were fitted, those of weight 0 left out.
    theta_ : ndarray of shape (p,)
        The fitted hyperparameters as one vector, logarithms where they are positive.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    SparseGPClassifier : for more rows.
    GPRegressor : for targets that are numbers.
    mercer.kernels : what to compose kernels of.

    Notes
    -----
    O(n^3) time an evaluation of the evidence and its gradient, some three times that of a
    regression, and three n x n matrices; C times as much for C classes, of which a softmax has
    2C + 4 matrices at once. Use it up to some thousand rows. Predictions cost O(C n^2) a point.

    The variance of the latent functions counts: probabilities are averages over them, nearer to
    even odds where little is known, and not the link of their mean.

    With ``kernel="precomputed"`` the matrix given to `fit` is K(X, X) of shape (n, n). `predict`
    and `predict_proba` take K(X_new, X) with one more column, k(x, x) of each new row.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GPClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.3, "in", "out")
    >>> model = GPClassifier().fit(X, y)
    >>> model.predict([[0.1, 0.2], [1.9, -1.5]])
    array(['in', 'out'], dtype='<U3')
    >>> bool(model.predict_proba([[0.1, 0.2]])[0, 0] > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "logistic",
        *,
        inference: str = "laplace",
        multi_class: str = "auto",
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
        self.multi_class = multi_class
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

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the latent functions and, unless `optimizer` is None, their hyperparameters.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,), or (n, C) with `soft_labels`
            Labels, which are text, whole numbers or booleans, or the probabilities of the classes.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        """
        check_class_options(self)
        with all_or_nothing(self):
            prepared = prepare_classes(self, X, y, sample_weight)
            optima = search_classes(self, prepared.objectives)
            self._finish(prepared, optima, column_names(X))
        return self
