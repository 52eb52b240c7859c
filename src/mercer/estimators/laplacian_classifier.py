"""Classification by kernel expansions with a factorising prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from mercer import means
from mercer.estimators.class_options import class_kernel
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.inputs import require_targets
from mercer.estimators.labels import checked_labels, codes_of, hard_targets, label_codes
from mercer.estimators.laplacian_frame import Frame, Model
from mercer.estimators.laplacian_options import class_loss
from mercer.estimators.laplacian_process import LaplacianProcess
from mercer.estimators.laplacian_rows import merged
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.rows import checked_inputs, is_precomputed, kept_weights
from mercer.evidence.expansion_targets import Fitted
from mercer.evidence.optimum import Report
from mercer.likelihoods import Likelihood
from mercer.posterior import Posterior
from mercer.registry import storable

__all__ = ["LaplacianProcessClassifier"]

Floats = NDArray[np.float64]


@storable
class LaplacianProcessClassifier(LaplacianProcess, BayesianClassifier):
    """Classification by sparse kernel expansions whose coefficients have a factorising prior.

    f(x) = m(x) + sum_j coef_j k(x, x_j) as in `LaplacianProcessRegressor`, with labels in the place
    of numbers: one function for two classes, and one for each of more against the rest, whose
    probabilities are then made to add up to 1. What is minimised is the logistic loss, the margin
    loss of support vector machines, or its square.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        As in `LaplacianProcessRegressor`; all classes share it. The relative length scales of the
        default one are those of Gaussian process classification of at most 300 rows.
    likelihood : {"logistic", "soft_margin", "quadratic_soft_margin"} or Logistic
        What a label y, -1 or 1, costs: log(1 + exp(-y f)), which is the default, (1 - y f)_+, or
        the square of that.
    prior, prior_scale, centres, functions, mean, tol, max_active, n_folds, n_penalties, \
optimizer, n_restarts, max_iter, random_state, verbose
        As in `LaplacianProcessRegressor`. Folds have their share of each class, and what is
        compared is the log probability of held-out labels.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns of `predict_proba`.
    likelihood_ : Logistic or Probit
        The link: `Probit` with "quadratic_soft_margin".
    calibration_ : ndarray of shape (P, 2) or None
        Slope and offset of each function's margins, which are part of `posterior_` already; None
        with "logistic", but for the prior "feature_selection".
    kernel_, mean_, prior_, coef_, basis_indices_, function_indices_, n_active_, objective_, \
dual_objective_, gap_, status_, posterior_, predictive_, path_, history_, n_iter_
        As in `LaplacianProcessRegressor`, lists for several classes where those are for several
        targets. `coef_` and the objectives are those of what is minimised. Where functions separate
        the labels the objective falls towards 0, and so `status_` is "certified" too if it is above
        the dual one by no more than 1e-9 of what it is at f = 0, or 1e-6 `tol` of that, with all
        weights at the least of them; or if each row's loss is no more of its own there.
    n_features_in_, feature_names_in_ : as in `GPClassifier`

    See Also
    --------
    LaplacianProcessRegressor : for numbers; it has the method, its cost and how choices are made.
    GPClassifier : Gaussian process classification.

    Notes
    -----
    The margin losses are no likelihoods. Their probabilities come from margins of held-out rows, to
    which a slope and an offset are fitted (BKM 2.2): of the logistic function with "soft_margin",
    of the probit with "quadratic_soft_margin", the links with the same asymptotes. Coefficients and
    error bars of `posterior_` are in the units of that link. Error bars are its curvature around
    margins that are calibrated as if they were certain; slope and offset are then fitted to the
    averages over them, which are the probabilities that held-out rows are judged by and
    `predict_proba` returns. "soft_margin" is a linear programme, whose solution is often the
    sparsest.

    Probabilities are averages of the link over the error bars, as those of `GPClassifier`. Far from
    all data they go back to those of the mean.

    The penalty of "feature_selection" does not grow with coefficients. Where labels can be told
    apart no function is the most probable one under it: coefficients grow as far as rounding lets
    them, and with them error bars. So under that prior latent values of "logistic" are calibrated
    too, as margins are.

    References
    ----------
    Smola and Schoelkopf, *Bayesian kernel methods*, 2003, sections 2.2 and 5.

    Platt, *Probabilistic outputs for support vector machines*, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LaplacianProcessClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where(np.sum(X**2, axis=1) > 1.4, "outside", "inside")
    >>> model = LaplacianProcessClassifier().fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    >>> model.n_active_ < 30, model.predict_proba(X).shape
    (True, (200, 2))
    """

    posterior_: Any

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "logistic",
        *,
        prior: str = "laplacian",
        prior_scale: float | None = None,
        centres: Any = None,
        functions: Any = None,
        mean: Any = "constant",
        tol: float = 1e-6,
        max_active: int | None = None,
        n_folds: int = 5,
        n_penalties: int = 30,
        optimizer: str | None = "search",
        n_restarts: int = 0,
        max_iter: int = 50,
        random_state: Any = 0,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.prior = prior
        self.prior_scale = prior_scale
        self.centres = centres
        self.functions = functions
        self.mean = mean
        self.tol = tol
        self.max_active = max_active
        self.n_folds = n_folds
        self.n_penalties = n_penalties
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _keep_outputs(self, frame: Frame, fits: list[Fitted]) -> list[Posterior]:
        """Keep link and calibration, and return the posterior of each function."""
        self.likelihood_ = fits[0].likelihood
        calibrations = [fit.chosen.calibration for fit in fits]
        self.calibration_ = None
        if any(c is not None for c in calibrations):
            # of a class that no row could be held out of, margins are as they are
            self.calibration_ = np.array([(1.0, 0.0) if c is None else c[:2] for c in calibrations])
        return [frame.posterior(fit, p) for p, fit in enumerate(fits)]

    def _prepared(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Model:
        """Return the model and its rows, checked."""
        loss = class_loss(self.likelihood)
        require_targets(self, y)
        precomputed = is_precomputed(self)
        kernel = None if precomputed else class_kernel(self.kernel, X)
        mean = means.from_spec(self.mean)
        X = checked_inputs(self, X, kernel)
        labels = checked_labels(y)
        check_consistent_length(X, labels)
        weights, kept = kept_weights(sample_weight, len(labels))
        self.classes_ = hard_targets(labels[kept]).classes
        codes = codes_of(labels[kept], self.classes_, int(np.sum(kept)))
        Y = label_codes(len(self.classes_))[codes]
        if precomputed:
            kernel, X = over_row_numbers(X, kept, mean)
        elif not np.all(kept):
            X = X[kept]
        rows = merged(X, Y, weights, np.flatnonzero(kept), kernel)
        return Model(rows, kernel, mean, loss, np.ones(Y.shape[1]))

    @property
    def _links(self) -> list[Likelihood]:
        """The likelihoods of labels -1 and 1, one for each function."""
        self._models()  # which raises where there is none
        return [self.likelihood_] * len(self._posteriors())
