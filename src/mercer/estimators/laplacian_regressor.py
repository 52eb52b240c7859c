"""Regression by a kernel expansion with a factorising prior: a Laplacian process."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import means
from mercer.estimators.laplacian_frame import Frame, Model
from mercer.estimators.laplacian_options import noise_spec
from mercer.estimators.laplacian_outputs import ratio_of, require_one_zone, shares_its_shape
from mercer.estimators.laplacian_process import LaplacianProcess
from mercer.estimators.laplacian_rows import merged
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.prepare_exact import outputs_in_units
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.resolve import as_kernel, as_likelihood
from mercer.estimators.rows import checked_rows, is_precomputed
from mercer.evidence.expansion_targets import Fitted
from mercer.evidence.optimum import Report
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Posterior
from mercer.registry import storable

__all__ = ["LaplacianProcessRegressor"]

Floats = NDArray[np.float64]

# Targets must not be larger: squares of variances are formed.
_LARGEST = 1e70


@storable
class LaplacianProcessRegressor(LaplacianProcess, BayesianRegressor):
    """Regression by a sparse kernel expansion whose coefficients have a factorising prior.

    y ~ p(y | f(x)) with f(x) = m(x) + sum_j coef_j k(x, x_j) over the training inputs, or over
    centres or functions that are given, and independent priors on the coefficients. Under the
    Laplacian prior, p(coef) proportional to exp(-abs(coef)/s), most coefficients of the mode are 0
    (BKM 102, 109). It is found by an active-set method that computes the columns that can enter
    alone, and how near it is to the optimum is proved by a duality gap. The kernel need not be a
    Mercer kernel, nor symmetric: any function of two inputs will do, as ``Callable(f,
    is_mercer=False)``. A "precomputed" matrix may be indefinite, but must be symmetric.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, "precomputed" or None, default None
        k. None is an `RBF` with a length scale a column, in proportion to each other as a Gaussian
        process on a sample of at most 500 rows has them. The parameters of any other kernel are
        searched from the values that it has, unless they are fixed or `optimizer` is None; so is a
        factor to all length scales of the default one.
    likelihood : Likelihood or None, default None
        The noise: `Gaussian`, `Laplace`, `Huber` or `EpsilonInsensitive`; None is Gaussian. A value
        that is given is kept, what is left open (``Gaussian()``, ``Laplace()``) is estimated, with
        a given `prior_scale` too. A WhiteKernel in a kernel of scikit-learn's is noise to be
        estimated, whatever its start and bounds, or known noise if it is fixed.
    prior : {"laplacian", "weight_decay", "feature_selection"}, default "laplacian"
        The prior of the coefficients, see :mod:`mercer.priors`. "weight_decay" has no zeros and is
        for some thousands of rows; "feature_selection" is sparser than "laplacian", from whose mode
        it goes on to a local one.
    prior_scale : float, optional
        s, the unit of the coefficients. Without it, it is chosen with the noise. Beside one that is
        far too large kernel and noise are chosen badly: give them too then.
    centres : array-like of shape (m, d), optional
        The x_j; the training inputs without it. With no rows there are `functions` alone.
    functions : callable, optional
        functions(X) gives further basis functions at the rows of X, shape (n, q). A model that is
        to be saved needs a function with a name.
    mean : None, "zero", "constant", "linear", Mean or callable, default "constant"
        m(x). Its coefficients have no prior, and error bars of their own.
    tol : float, default 1e-6
        The duality gap to prove, in units of the objective.
    max_active : int, optional
        How many functions may be in use; not with "weight_decay". Prior scales for which a fold
        needs more are not chosen, nor one for which all rows do.
    n_folds : int, default 5
        Folds of the cross-validation by which prior scale, noise and kernel are chosen. Rows of
        equal inputs stay together.
    n_penalties : int, default 30
        Penalties on a path at the most, five to a decade from the one on at which all coefficients
        are 0. A path ends sooner where held-out rows are predicted worse.
    optimizer : {"search", None}, default "search"
        None keeps the parameters of the kernel.
    n_restarts : int, default 0
        Further random starts of the search.
    max_iter : int, default 50
        Kernels that a search tries from each start at the most.
    normalize_y : bool, default False
        Whether noise and prior scale are in units of the standard deviation of each target.
    random_state : int, RandomState, Generator or None, default 0
        Draws the folds and samples.
    verbose : bool, int or callable, default 0
        1 writes a line for each stage of a fit and each kernel that is tried. A function is told of
        each kernel: the start and the count of kernels there, both from 1, the value, and the best
        so far.

    Attributes
    ----------
    kernel_, likelihood_, mean_ : the fitted model
    prior_ : mercer.priors.CoefficientPrior
        The prior with its scale, with `normalize_y` in units of the target's standard deviation; a
        list with one for each of several targets.
    coef_ : ndarray of shape (k,)
        The coefficients that are not 0, in the targets' units; a list for several targets, as are
        the next two.
    basis_indices_ : ndarray
        The rows of X, or of `centres`, whose kernel sections are in use.
    function_indices_ : ndarray
        Which of `functions` are in use; their coefficients come last in `coef_`.
    n_active_ : int
        How many functions are in use, added over the targets.
    objective_, dual_objective_ : float
        Minus the log posterior of the coefficients in nats, without normalising constants
        (BKM 102), and the lower bound on its minimum that is proved.
    gap_ : float
        The difference of both, in units of the first. With "feature_selection" it is that of the
        last convex problem: the mode is a local one.
    status_ : str
        "certified" if the gap is at most `tol`, or the objective no more than rounding makes of
        nothing, whatever part of that the gap is; else "stopped"; "interrupted" after Ctrl-C, if it
        was while kernels or penalties were compared too: the gap is that of the model as it is.
    posterior_, predictive_ : Posterior
        The process, degenerate: linear in the functions in use. Of several targets there is a list
        `posteriors_`, and `predictive_` has them side by side.
    path_ : dict
        "penalty", "value" (the mean log density of held-out rows, -infinity where they need more
        than `max_active`, or rounding leaves no proof) and "n_active" along the path on which the
        penalty was chosen; None if it was given, if nothing could be told of it, which is warned
        of, or if it was taken from another function's after Ctrl-C. Labels that are calibrated have
        one of a given penalty too.
    history_ : dict
        "theta" and "value" of each kernel that was tried; "objective" names the values. "status"
        is how that search ended: "converged", "stopped" after `max_iter`, "interrupted", or "fixed"
        if there was none. (`status_` is of the coefficients.)
    n_iter_ : int
        Their number.
    n_features_in_, feature_names_in_ : as in `GPRegressor`

    See Also
    --------
    LaplacianProcessClassifier : for labels.
    SparseGreedyGPRegressor : as few functions as a tolerance needs, under a Gaussian process prior.

    Notes
    -----
    A pass over all columns, O(n m d) for n rows and m centres, prices what may enter. There are few
    of them, and no matrix of n x m is formed. With k functions in use a fit takes O(n k^2) beside
    that, and n k doubles. Predictions cost O(k) a point, standard deviations O(k^2). Use it where a
    small expansion is wanted, many rows are there, or the kernel is no covariance; the error bars
    of a Gaussian process are better founded.

    Error bars take the functions in use for given, drop the others, and replace the prior by its
    tangent: the covariance of coefficients is (Phi'W Phi)^-1 with W the curvature of minus the log
    likelihood, 1/v for Gaussian noise of variance v (BKM 111 and 112, which lack the factor v).
    `Huber` noise has the curvature of its middle. `Laplace` and `EpsilonInsensitive` noise has none
    but in its kinks; the Fisher information stands in, which makes it the asymptotic covariance of
    the estimate. Weight decay adds its own curvature. Far from all data the function is its mean
    with the error bars of that alone: they do not grow as those of a Gaussian process do.

    Noise and prior scale that are left open are chosen along the whole regularisation path: each
    fold is solved for all penalties at once, noise is estimated from the fold's residuals (by n - k
    degrees of freedom) and the penalty is taken under which held-out rows have the highest density,
    error bars included. More than 5000 rows are sampled for that, more than 1000 to compare
    kernels. With the noise given the prior scale alone is chosen, and the other way round: noise is
    the penalty times a given prior scale, and at least that of the residuals where no function is
    in use. There is a warning if the last penalty of the path makes it too large; where the kernel
    is searched too, a scale that is far too large leads to one that is too wide, without a
    warning. Several targets share the kernel and have all else of their own; their noise is in
    units of ``predictive_.scale``.

    Ctrl-C ends the search with the best kernel so far, if there is one, the cross-validation with
    the folds that are done, and the solver with what it has and the gap that is proved for it.

    References
    ----------
    Smola and Schoelkopf, *Bayesian kernel methods*, 2003, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LaplacianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-4, 4, (200, 1))
    >>> y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(200)
    >>> model = LaplacianProcessRegressor().fit(X, y)
    >>> model.n_active_ < 25, bool(model.gap_ <= 1e-6)
    (True, True)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0] - 1.0) < 0.15), bool(0.08 < std[0] < 0.15)
    (True, True)

    With any kernel, here one that is no covariance, and noise with outliers:

    >>> from mercer.kernels import Tanh
    >>> from mercer.likelihoods import Laplace
    >>> model = LaplacianProcessRegressor(Tanh(1.0, 0.5), Laplace(), optimizer=None).fit(X, y)
    >>> model.likelihood_.scale > 0
    True
    """

    posterior_: Any

    _conformance_exemptions = {  # noqa: RUF012
        "rule_linear_in_the_targets": "a mode under a Laplacian prior is not linear in them"
    }

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
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
        normalize_y: bool = False,
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
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: takes several outputs, if their noise differs by a factor."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = shares_its_shape(self.likelihood)
        return tags

    def _keep_outputs(self, frame: Frame, fits: list[Fitted]) -> list[Posterior]:
        """Keep the noise, and return the posteriors in units in which all outputs have the same."""
        noises = [fit.likelihood for fit in fits]
        self.likelihood_ = noises[0] if self._known is None else self._known
        del self._known
        return [
            frame.posterior(fit, p, ratio_of(noises[p], noises[0])) for p, fit in enumerate(fits)
        ]

    def _prepared(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Model:
        """Return the model and its rows, checked."""
        precomputed = is_precomputed(self)
        kernel, noise = (None, None) if precomputed else as_kernel(self.kernel, X)
        given = as_likelihood(self.likelihood, noise, "LaplacianProcessClassifier")
        is_open = noise is not None and noise.is_free  # a WhiteKernel's, of which that is a start
        spec = noise_spec(None if is_open else given)
        mean = means.from_spec(self.mean)
        rows = checked_rows(self, X, y, sample_weight, kernel)
        if precomputed:
            kernel, numbers = over_row_numbers(rows.X, rows.kept, mean)
            rows = rows._replace(X=numbers)
        self._multioutput = rows.multioutput
        scale, _, mean = outputs_in_units(rows, mean, self.normalize_y, False, _LARGEST)
        variances, self._known = None, None
        if isinstance(spec, Gaussian) and isinstance(spec.noise, np.ndarray):
            spec = spec.subset(rows.kept) if not np.all(rows.kept) else spec
            spec = spec if rows.weights is None else spec.weighted(rows.weights)
            variances, self._known = spec.variances(len(rows.Y)), spec
        own = merged(
            rows.X, rows.Y / scale, rows.weights, np.flatnonzero(rows.kept), kernel, variances
        )
        require_one_zone(spec, rows.Y.shape[1])
        return Model(own, kernel, mean, lambda spread: Noise(spec, spread), scale)
