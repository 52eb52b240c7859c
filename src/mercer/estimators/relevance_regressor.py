"""Regression by a relevance vector machine."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import means
from mercer.estimators.expansion_process import single
from mercer.estimators.laplacian_rows import Merged, merged
from mercer.estimators.options import require_flag
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.prepare_exact import outputs_in_units
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.relevance_frame import Frame, Model
from mercer.estimators.relevance_options import (
    as_kernels,
    check_relevance_options,
    degrees_of,
    hyperprior_of,
    known_noise,
    noise_prior_of,
)
from mercer.estimators.relevance_outliers import outlier_weights
from mercer.estimators.relevance_process import RelevanceProcess, median_variance
from mercer.estimators.relevance_warnings import warn_of_many
from mercer.estimators.rows import Rows, checked_rows, is_precomputed
from mercer.evidence.defaults import output_units
from mercer.evidence.optimum import Report
from mercer.evidence.relevance_engines import Numbers
from mercer.evidence.relevance_search import Ended
from mercer.inference._expansion_posterior import expansion_posterior
from mercer.inference.relevance import ALGORITHMS
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, StudentT
from mercer.posterior import AugmentedExpansion, Posterior
from mercer.registry import storable

__all__ = ["RelevanceVectorRegressor"]

Floats = NDArray[np.float64]

# Targets at the most, where they are not brought to units of their own; the inverse is the least.
_LARGEST = 1e40


@storable
class RelevanceVectorRegressor(RelevanceProcess, BayesianRegressor):
    """Regression by a kernel expansion of few terms, each with a prior variance of its own.

    y = m(x) + sum_j weight_j k(x, x_j) + e, with weight_j ~ N(0, 1/s_j) and noise e ~ N(0, v). The
    precisions s_j and the noise are those of the highest evidence (BKM 127, 132); most s_j are
    infinite there, and their functions are left out. Those that stay, mostly fewer than the support
    vectors of a support vector machine, are the relevance vectors. The kernel need not be a Mercer
    kernel: any function will do, and several kernels at once.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, list of these, "precomputed" or None, default None
        k. None is an `RBF` with a length scale a column. With a list there are sections of each at
        every centre. Parameters of kernels are found from the values that they have, unless they
        are fixed or `optimizer` is None.
    hyperprior : {None, "flat"} or a hyperprior of mercer.priors, default None
        The density of each ln s_j, such as ``GammaPrecision(a, b)``; flat without it. Precisions
        are in units of the targets, of their standard deviation with `normalize_y` or the default
        kernel.
    algorithm : {"fast", "fixed_point", "em", "greedy", "variational"}, default "fast"
        How the evidence is maximised, see Notes.
    noise : float, optional
        The variance v of the noise; without it, it is learned.
    noise_prior : (float, float), optional
        Shape and rate of a Gamma density of 1/v, as the rate in units of the targets' variance;
        flat in ln v without it.
    robust : bool, float or "flat", default False
        Whether each row has a noise variance of its own (BKM 126), which makes the noise Student's
        t: of 4 degrees of freedom with True, or of as many as the number says. "flat" gives these
        variances no density at all; the evidence has no bound then but by a floor. By the algorithm
        "fast" alone.
    augment : bool, default False
        Whether a function centred at each point to be predicted is added to the model (UV 8.1,
        10.2), see Notes.
    centres : array-like of shape (m, d), optional
        The x_j; the training inputs without it. With no rows there are `functions` alone.
    functions : callable, optional
        functions(X) gives further basis functions at the rows of X, shape (n, q), to choose from. A
        model that is to be saved needs a function with a name.
    mean : None, "zero", "constant", "linear", Mean or callable, default "constant"
        m(x). Its coefficients never leave the model; they have precisions of their own, about their
        least-squares values.
    learn_centres : bool, default False
        Whether the centres of functions in the model move, by the evidence (UV section 10.2).
    optimizer : {"lbfgs", None}, default "lbfgs"
        None keeps the parameters of the kernel.
    n_restarts : int, default 0
        Further random starts of the search for these, beside several widths.
    max_iter : int, default 100
        Iterations of that search from each start at the most.
    max_steps : int, optional
        Steps of the algorithm at the most; as many as it takes without it.
    tol : float, default 1e-2
        Steps that gain less evidence, in nats, are not looked for.
    normalize_y : bool, default False
        Whether noise and precisions are in units of the standard deviation of each target.
    random_state : int, RandomState, Generator or None, default 0
        Draws the rows by which a kernel is chosen, and random starts.
    verbose : bool, int or callable, default 0
        1 writes a line for each stage of a fit and each evaluation of the search. A function is
        told of each: the start and the count of evaluations, both from 1, the value, and the best
        so far.

    Attributes
    ----------
    relevance_ : ndarray of shape (k, d)
        The relevance vectors: centres of the kernel sections that are kept. A list for several
        kernels, and for several targets.
    relevance_indices_ : ndarray
        Which rows of X, or of `centres`, they are, or were before they moved; lists likewise.
    function_indices_ : ndarray
        Which of `functions` are kept; a list for several targets.
    weights_, precisions_ : ndarray
        Posterior means of the coefficients, and s_j, in the targets' units: kernel sections first,
        kernel by kernel, then `functions`. Lists for several targets.
    n_relevance_ : int
        How many functions are kept, added over the targets; those of the mean do not count.
    noise_variance_ : float or ndarray of shape (P,)
        v in the targets' units; of `robust` noise the squared scale of Student's t.
    outlier_weights_ : ndarray of shape (n,) or (n, P)
        After a robust fit v over the variance of each row: small at outliers, 0 for rows of
        weight 0.
    kernel_, likelihood_, mean_ : the fitted model
        A list of kernels where several were given. Noise is in units of ``predictive_.scale``.
    log_marginal_likelihood_value_ : float
        The log evidence (BKM 127), added over the targets; the bound of "variational", which under
        flat hyperpriors of precisions or noise lacks constants: compare it with bounds alone then.
    posterior_, predictive_ : Posterior
        The process, degenerate: linear in the functions. Of several targets there is a list
        `posteriors_`. With `augment` what predicts is `predictive_`.
    history_ : dict
        "theta" and "value" (penalised evidence, hyperpriors of the kernel included) of each
        evaluation of the search, and "steps": that after each step of the last fit, of the first
        target. "objective" names the values, and "status" says how the search of kernels and
        centres ended: as `status_`, which is of the last fit, or "fixed" if there was none.
    n_iter_ : int
        Steps of the last fit.
    status_ : str
        "converged", "stopped" after `max_steps`, or "interrupted".
    n_features_in_, feature_names_in_ : as in `GPRegressor`

    See Also
    --------
    RelevanceVectorClassifier : for labels.
    LaplacianProcessRegressor : sparse by another prior, with a proof of its optimum.
    SparseGPRegressor : few basis functions under a Gaussian process prior, whose error bars are
        sound far from data.

    Notes
    -----
    "fast" adds, changes and removes single functions by what gains most evidence. With n rows, m
    functions to choose from and k in the model a step takes O(k m), and one that adds a function a
    pass over the columns, O(n m d); memory is (n + m) k numbers, and n m where these take at most
    half a gigabyte. The others keep all functions and their Gram matrix, O(n m^2 + m^3) to begin
    with: "fixed_point" is (BKM 134, 135), "em" the slow and sure form of it, "greedy" goes through
    the functions as (BKM 6.3) describes, "variational" integrates over precisions and noise too.
    Predictions cost O(k) a point, standard deviations O(k^2).

    The penalised evidence never decreases along a fit. It has local optima, above all in the width
    of the functions: several widths are tried, and from the best two, and that of most functions,
    length scales go up the evidence by its gradient, functions held, in turn with the choice of
    functions. Functions that are narrow enough for single rows always have more evidence, even on
    noise, and so models are compared by their evidence less two nats for each function. More than
    1000 rows are sampled for that, and the length scales then moved on by all of them. Length
    scales of the default kernel have the hyperprior of `GPRegressor`, and begin with those that a
    Gaussian process has on a sample, times several factors.

    The model is a Gaussian process with covariance sum_j k(x, x_j) k(x', x_j)/s_j (UV Remark 15),
    which is 0 far from all relevance vectors: error bars shrink there to those of noise and mean,
    where they should grow, and `predict` warns of such points. `augment` adds the function
    k(., x) for a point x, with the median of the prior variances of those that are kept. It keeps
    the training rows and costs O(n k) a point, and points have no joint distribution. Of several
    kernels the first is added.

    Where the functions can follow the targets exactly, the evidence may be highest at next to no
    noise: it ends at 1e-8 of the targets' variance, with a warning.

    References
    ----------
    Smola and Schoelkopf, *Bayesian kernel methods*, 2003, section 6.

    Tipping and Faul, *Fast marginal likelihood maximisation for sparse Bayesian models*, 2003.

    Rasmussen and Quinonero-Candela, *Healing the relevance vector machine by augmentation*, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RelevanceVectorRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-10, 10, (200, 1))
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(200)
    >>> model = RelevanceVectorRegressor().fit(X, y)
    >>> model.n_relevance_ < 12, bool(0.007 < model.noise_variance_ < 0.013)
    (True, True)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0] - 1.0) < 0.1), bool(0.08 < std[0] < 0.13)
    (True, True)

    With several kernels, one of them no covariance, and outliers:

    >>> from mercer.kernels import RBF, Tanh
    >>> y[::20] += 3.0
    >>> model = RelevanceVectorRegressor([RBF(2.0), Tanh(0.5)], robust=True, optimizer=None)
    >>> model = model.fit(X, y)
    >>> bool(np.max(model.outlier_weights_[::20]) < 0.1)
    True
    """

    posterior_: Any

    def __init__(
        self,
        kernel: Any = None,
        *,
        hyperprior: Any = None,
        algorithm: str = "fast",
        noise: float | None = None,
        noise_prior: Any = None,
        robust: Any = False,
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
        normalize_y: bool = False,
        random_state: Any = 0,
        verbose: bool | int | Report = 0,
    ) -> None:
        self.kernel = kernel
        self.hyperprior = hyperprior
        self.algorithm = algorithm
        self.noise = noise
        self.noise_prior = noise_prior
        self.robust = robust
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
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose kernel parameters that are left open, and fit the machine.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs; with ``kernel="precomputed"`` the kernel matrix (n, n).
        y : array-like of shape (n,) or (n, P)
            Targets. Each column has functions, precisions and noise of its own, and all share the
            kernel.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out.
        """
        self._check_options()
        with all_or_nothing(self):
            model, rows = self._prepared(X, y, sample_weight)
            frame, end, beta = self._fit_relevance(model)
            self._keep_all(frame, end, beta, rows)
            warn_of_many(frame, end, bool(self.robust), self.noise is not None)
        return self

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
    ) -> Any:
        """Predict the mean, and with it the standard deviation or the covariance.

        As in `GPRegressor`. Points far from every relevance vector, where error bars are too small,
        are warned of unless ``augment=True``.
        """
        found = super().predict(X, return_std, return_cov, latent)
        if return_std or return_cov:
            self._warn_of_far(X)
        return found

    def _check_options(self) -> None:
        check_relevance_options(self, ALGORITHMS)
        require_flag("normalize_y", self.normalize_y)
        noise_prior_of(self.noise_prior)
        known_noise(self.noise, None)
        if degrees_of(self.robust)[0] and self.algorithm != "fast":
            raise ValueError(
                f"robust={self.robust!r} goes with algorithm='fast' alone, got {self.algorithm!r}"
            )

    def _prepared(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Model, Rows]:
        """Return the model and its rows, checked, and these as they were given."""
        precomputed = is_precomputed(self)
        kernels: tuple[Kernel, ...] | None
        kernels, known = (None, None) if precomputed else as_kernels(self.kernel, X)
        mean = means.from_spec(self.mean)
        rows = checked_rows(self, X, y, sample_weight, None if kernels is None else kernels[0])
        if precomputed:
            matrix, numbers = over_row_numbers(rows.X, rows.kept, mean)
            kernels, rows = (matrix,), rows._replace(X=numbers)
        self._multioutput = rows.multioutput
        limit = {} if kernels is None or self.normalize_y else {"limit": _LARGEST}
        scale, _, mean = outputs_in_units(rows, mean, self.normalize_y, False, **limit)
        if kernels is None and not self.normalize_y:
            fixed = mean.estimate is not None
            residual = rows.Y if fixed else rows.Y - mean(rows.X, rows.Y.shape[1])
            scale = output_units(rows.Y, residual, rows.weights)
        own = merged(
            rows.X,
            rows.Y / scale,
            rows.weights,
            np.flatnonzero(rows.kept),
            None if kernels is None else kernels[0],
        )
        noise = known_noise(self.noise, known)
        shape, rate = noise_prior_of(self.noise_prior)
        heavy, degrees = degrees_of(self.robust)

        def engine(some: Merged, offset: Floats, always: int) -> Numbers:
            return Numbers(
                some.Y,
                offset,
                None if np.all(some.weights == 1.0) else some.weights,
                hyperprior_of(self.hyperprior),
                always,
                self.algorithm,
                None if noise is None else noise / scale**2,
                shape,
                rate / scale**2,
                heavy,
                degrees,
                self.max_steps,
            )

        return Model(own, kernels, mean, scale, False, engine), rows

    # --- what it leaves -----------------------------------------------------------------------

    def _keep_all(self, frame: Frame, end: Ended, beta: Floats, rows: Rows) -> None:
        """Set the fitted attributes."""
        kept = self._keep(frame, end)
        model, scale = frame.model, frame.model.scale
        one = not self._multioutput
        fits = [machine.fit for machine in end.machines]
        noise = scale**2 * [machine.scale for machine in end.machines]
        # units in which the noise of all outputs is that of the first
        units = np.sqrt(noise / noise[0]) * (scale[0] if self.normalize_y else 1.0)
        posteriors, weights, precisions, coefficients = [], [], [], []
        for p, (fit, own) in enumerate(zip(fits, kept, strict=True)):
            coef, k = np.array(fit.mean), own.n_relevance
            coef[k:] += beta[:, p]
            ratio, fixed = float(units[p] / scale[p]), frame.fixed_mean(p)
            posteriors.append(
                expansion_posterior(own.basis, coef, fit.spread, ratio, fixed, float(units[p]))
            )
            weights.append(scale[p] * coef[:k])
            precisions.append(fit.precisions[:k] / scale[p] ** 2)
            coefficients.append(scale[p] * coef[k:])
        augmented = None
        if self.augment:
            augmented = [
                self._augment(frame, end, p, posterior) for p, posterior in enumerate(posteriors)
            ]
        self.weights_ = single(weights)
        self.precisions_ = single(precisions)
        self.noise_variance_ = float(noise[0]) if one else noise
        heavy, degrees = degrees_of(self.robust)
        v = float(noise[0] / units[0] ** 2)
        self.likelihood_ = Gaussian(v)
        self.__dict__.pop("outlier_weights_", None)
        if heavy:
            found = outlier_weights(model.rows, rows, scale, end.machines)
            self.outlier_weights_ = found[:, 0] if one else found
            if degrees is not None:
                self.likelihood_ = StudentT(degrees, float(np.sqrt(v)))
        self.mean_ = model.mean
        if kept[0].n_mean:
            self.mean_ = model.mean.with_coefficients(np.column_stack(coefficients))
        total = float(np.sum(model.rows.weights))
        evidence = sum(fit.log_evidence for fit in fits) - total * np.sum(np.log(scale))
        self.log_marginal_likelihood_value_ = float(evidence)
        self._keep_relevance(model.rows.X, posteriors, augmented, kept)

    def _augment(
        self, frame: Frame, end: Ended, p: int, posterior: Posterior
    ) -> AugmentedExpansion:
        """Return the posterior to which functions at points are added."""
        rows, fit = frame.model.rows, end.machines[p].fit
        ratio = float(frame.model.scale[p] / posterior.scale[0])
        precision = rows.weights / (np.asarray(fit.noise) * ratio**2)
        left = (rows.Y[:, p] - fit.latent) * ratio
        variance = median_variance(fit, end.functions, float(np.var(rows.Y[:, p])) or 1.0)
        return AugmentedExpansion(
            posterior, rows.X, precision * left, precision, variance * ratio**2
        )
