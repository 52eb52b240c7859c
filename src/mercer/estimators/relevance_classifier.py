"""Classification by relevance vector machines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from mercer import means
from mercer.estimators.class_options import binary_likelihood
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.expansion_process import single
from mercer.estimators.inputs import require_targets
from mercer.estimators.labels import checked_labels, codes_of, hard_targets, label_codes
from mercer.estimators.laplacian_rows import Merged, merged
from mercer.estimators.options import require_choice
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.relevance_frame import Frame, Model, Relevant
from mercer.estimators.relevance_options import (
    as_kernels,
    check_relevance_options,
    class_weights,
    hyperprior_of,
)
from mercer.estimators.relevance_process import RelevanceProcess, median_variance
from mercer.estimators.rows import checked_inputs, is_precomputed, kept_weights
from mercer.evidence.optimum import Report
from mercer.evidence.relevance_engines import Machines
from mercer.evidence.relevance_label_engines import Classes, Labels
from mercer.evidence.relevance_search import Ended
from mercer.inference import relevance_classes
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood, Logistic, Softmax
from mercer.posterior import AugmentedExpansion, Posterior
from mercer.registry import storable

__all__ = ["RelevanceVectorClassifier"]

Floats = NDArray[np.float64]


@storable
class RelevanceVectorClassifier(RelevanceProcess, BayesianClassifier):
    """Classification by kernel expansions of few terms, each with a prior variance of its own.

    f(x) = m(x) + sum_j weight_j k(x, x_j) as in `RelevanceVectorRegressor`, with labels in the
    place of numbers: one function for two classes, and for more one each, fitted against the rest
    or all together. The posterior of the weights is Laplace's approximation, a normal distribution
    around their mode, by whose evidence the precisions are found (BKM 136 to 139). Probabilities
    are averages over it.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, list of these, "precomputed" or None, default None
        As in `RelevanceVectorRegressor`; all classes share it.
    likelihood : {"logistic", "probit"}, Logistic or Probit, default "logistic"
        The probability of a label given the function.
    hyperprior : {None, "flat"} or a hyperprior of mercer.priors, default None
        The density of each ln s_j; flat without it.
    algorithm : {"fast", "fixed_point", "em"}, default "fast"
        As in `RelevanceVectorRegressor`; several classes together are fitted by "fast" alone.
    multi_class : {"one_vs_rest", "multinomial"}, default "one_vs_rest"
        Of more than two classes: a machine for each, whose probabilities are made to add up to 1,
        or one of all, the softmax of C functions that share their relevance vectors.
    class_weight : None, "balanced" or dict, default None
        Weights of the rows of each class, beside `sample_weight`: by class, 1 where one is left
        out, or with "balanced" such that all classes weigh the same together.
    augment, centres, functions, mean, learn_centres, optimizer, n_restarts, max_iter, max_steps, \
tol, random_state, verbose
        As in `RelevanceVectorRegressor`. Coefficients of the mean have their priors about 0.
        `augment` goes with "one_vs_rest".

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns of `predict_proba`.
    weights_ : ndarray of shape (k,), list of these, or ndarray of shape (k, C)
        Modes of the coefficients, for two classes, one against the rest, and "multinomial".
    relevance_, relevance_indices_, function_indices_, precisions_, n_relevance_, kernel_, \
likelihood_, mean_, posterior_, predictive_, history_, n_iter_, status_
        As in `RelevanceVectorRegressor`, lists for one class against the rest where those are for
        several targets. "multinomial" has one `posterior_`, of coupled outputs.
    log_marginal_likelihood_value_ : float
        Laplace's approximation to the log evidence, added over the machines.
    n_features_in_, feature_names_in_ : as in `GPClassifier`

    See Also
    --------
    RelevanceVectorRegressor : for numbers; it has the method, and how kernels are chosen.
    GPClassifier : Gaussian process classification, with more functions and better probabilities.

    Notes
    -----
    With n rows, m functions to choose from and k in the model each change of the model takes
    O(n m k) and a few of Newton's steps of O(n k^2); for C classes together it is O(n k^2 C^2). Use
    it where predictions are to be fast, or the kernel is no covariance.

    Where functions separate the classes nothing bounds their weights but a floor of the precisions,
    which lets each function move f by ten (times the noise of `Probit`), the root mean square over
    the rows: how sure probabilities are comes from there. A hyperprior that is not flat, such as
    ``GammaPrecision(1.0, 1.0)``, says it otherwise.

    Far from all relevance vectors probabilities go back to those of the mean, as if that were
    certain, and `predict_latent` warns of such points when it is asked for standard deviations.
    `augment` heals that as it does for regression: the error bars of f grow, and probabilities go
    towards 1/2.

    References
    ----------
    Smola and Schoelkopf, *Bayesian kernel methods*, 2003, section 6.4.

    Tipping, *Sparse Bayesian learning and the relevance vector machine*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RelevanceVectorClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> noisy = np.sum(X**2, axis=1) + 0.3 * rng.standard_normal(200)
    >>> y = np.where(noisy > 1.4, "outside", "inside")
    >>> model = RelevanceVectorClassifier().fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    >>> model.n_relevance_ < 10, model.predict_proba(X).shape
    (True, (200, 2))
    """

    posterior_: Any

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Any = "logistic",
        *,
        hyperprior: Any = None,
        algorithm: str = "fast",
        multi_class: str = "one_vs_rest",
        class_weight: Any = None,
        augment: bool = False,
        centres: Any = None,
        functions: Any = None,
        mean: Any = "constant",
        learn_centres: bool = False,
        optimizer: str | None = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 100,
        max_steps: int | None = None,
        tol: float = 1e-2,
        random_state: Any = 0,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.hyperprior = hyperprior
        self.algorithm = algorithm
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.augment = augment
        self.centres = centres
        self.functions = functions
        self.mean = mean
        self.learn_centres = learn_centres
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.max_steps = max_steps
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose kernel parameters that are left open, and fit a machine or several.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs; with ``kernel="precomputed"`` the kernel matrix (n, n).
        y : array-like of shape (n,)
            Labels: text, whole numbers or booleans.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        """
        check_relevance_options(self, relevance_classes.ALGORITHMS)
        require_choice("multi_class", self.multi_class, ("one_vs_rest", "multinomial"))
        link = binary_likelihood(self.likelihood)
        with all_or_nothing(self):
            model = self._prepared(X, y, sample_weight, link)
            frame, end, _ = self._fit_relevance(model)
            self._keep_all(frame, end, link)
        return self

    def predict_latent(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Any:
        """Predict the latent functions, of which the probabilities are made.

        As in `GPClassifier`. Points far from every relevance vector, where error bars are too
        small, are warned of unless ``augment=True``.
        """
        found = super().predict_latent(X, return_std, return_cov)
        if return_std or return_cov:
            self._warn_of_far(X)
        return found

    def _prepared(self, X: Any, y: Any, sample_weight: ArrayLike | None, link: Likelihood) -> Model:
        """Return the model and its rows, checked."""
        require_targets(self, y)
        precomputed = is_precomputed(self)
        kernels: tuple[Kernel, ...] | None
        kernels, noise = (None, None) if precomputed else as_kernels(self.kernel, X)
        if noise is not None:
            raise ValueError(
                "the kernel has a WhiteKernel, the noise of a regression; labels have none but "
                "what their likelihood gives them: leave it out"
            )
        mean = means.from_spec(self.mean)
        X = checked_inputs(self, X, None if kernels is None else kernels[0])
        labels = checked_labels(y)
        check_consistent_length(X, labels)
        weights, kept = kept_weights(sample_weight, len(labels))
        self.classes_ = hard_targets(labels[kept]).classes
        codes = codes_of(labels[kept], self.classes_, int(np.sum(kept)))
        C = len(self.classes_)
        self._together = self.multi_class == "multinomial" and C > 2
        self._check_together(link)
        Y = np.eye(C)[codes] if self._together else label_codes(C)[codes]
        if precomputed:
            matrix, X = over_row_numbers(X, kept, mean)
            kernels = (matrix,)
        elif not np.all(kept):
            X = X[kept]
        weights = class_weights(self.class_weight, self.classes_, codes, weights)
        first = None if kernels is None else kernels[0]
        rows = merged(X, Y, weights, np.flatnonzero(kept), first)
        hyperprior = hyperprior_of(self.hyperprior)

        def engine(some: Merged, offset: Floats, always: int) -> Machines:
            own = None if np.all(some.weights == 1.0) else some.weights
            if self._together:
                return Classes(some.Y, offset, own, hyperprior, always, self.max_steps)
            model = some.Y, offset, own, hyperprior, link, always
            return Labels(*model, self.algorithm, self.max_steps)

        return Model(rows, kernels, mean, np.ones(Y.shape[1]), True, engine)

    def _check_together(self, link: Likelihood) -> None:
        """Raise ValueError for what does not go with classes that are fitted together."""
        if not self._together:
            return
        for wrong, what in (
            (self.algorithm != "fast", f"algorithm={self.algorithm!r}"),
            (not isinstance(link, Logistic), f"likelihood={self.likelihood!r}"),
            (bool(self.augment), "augment=True"),
        ):
            if wrong:
                raise ValueError(
                    f"multi_class='multinomial' is fitted by 'fast' with the logistic likelihood, "
                    f"and is not augmented: {what} goes with 'one_vs_rest'"
                )

    # --- what it leaves -----------------------------------------------------------------------

    def _keep_all(self, frame: Frame, end: Ended, link: Likelihood) -> None:
        """Set the fitted attributes."""
        kept = self._keep(frame, end)
        fits = [machine.fit for machine in end.machines]
        posteriors = [
            relevance_classes.posterior(
                fit, own.basis, frame.fixed_mean(None if self._together else p)
            )
            for p, (fit, own) in enumerate(zip(fits, kept, strict=True))
        ]
        pairs = [(fit, own.n_relevance) for fit, own in zip(fits, kept, strict=True)]
        self.weights_ = single([fit.mean[:k] for fit, k in pairs])
        self.precisions_ = single([fit.precisions[:k] for fit, k in pairs])
        self.likelihood_ = Softmax(len(self.classes_)) if self._together else link
        self.mean_ = self._mean_of(frame, posteriors, kept)
        self.log_marginal_likelihood_value_ = float(sum(fit.log_evidence for fit in fits))
        augmented = None
        if self.augment:
            augmented = [
                self._augment(frame, end, p, own, link) for p, own in enumerate(posteriors)
            ]
        self._keep_relevance(frame.model.rows.X, posteriors, augmented, kept)

    def _mean_of(self, frame: Frame, posteriors: list[Posterior], kept: list[Relevant]) -> Any:
        """Return the mean with the coefficients that were found."""
        r = kept[0].n_mean
        if not r:
            return frame.model.mean
        columns = [posterior.alpha[-r:] for posterior in posteriors]
        return frame.model.mean.with_coefficients(np.hstack(columns))

    def _augment(
        self, frame: Frame, end: Ended, p: int, posterior: Posterior, link: Likelihood
    ) -> AugmentedExpansion:
        """Return the posterior to which functions at points are added."""
        rows, fit = frame.model.rows, end.machines[p].fit
        pull, bend, _ = link.derivatives(rows.Y[:, p], fit.latent)
        variance = median_variance(fit, end.functions, 1.0)
        curvature = np.maximum(-rows.weights * bend, 0.0)
        return AugmentedExpansion(posterior, rows.X, rows.weights * pull, curvature, variance)

    @property
    def _links(self) -> list[Likelihood]:
        """The likelihoods of labels -1 and 1, one for each function."""
        self._models()  # which raises where there is none
        return [self.likelihood_] * len(self._posteriors())
