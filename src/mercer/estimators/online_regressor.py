"""Sparse on-line Gaussian process regression."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.nested import column_names
from mercer.estimators.online_fit import LearnsOnline
from mercer.estimators.online_lift import require_lift
from mercer.estimators.online_options import (
    Asked,
    is_complete,
    regression_model,
    require_counts,
    require_moments,
    require_one_noise,
    require_posterior,
)
from mercer.estimators.online_prequential import numbers_before
from mercer.estimators.online_start import Start, start_of_regression
from mercer.estimators.options import require_flag
from mercer.estimators.regressor import BayesianRegressor
from mercer.estimators.resolve import as_kernel, chosen_engine
from mercer.estimators.rows import Rows, checked_rows
from mercer.evidence.optimum import Report
from mercer.inference.online import Before
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.means import Mean
from mercer.posterior import Posterior
from mercer.registry import storable

__all__ = ["OnlineGPRegressor", "Prequential"]

Floats = NDArray[np.float64]


class Prequential(NamedTuple):
    """What a model predicted of rows before it learned them.

    mean, std : (n,) or (n, P) of the observation at the row, as `predict` gives them
    log_density : (n,) of what was then observed, all outputs together, whatever the row's weight

    They are NaN for a row of weight 0, and for the rows by which hyperparameters are chosen.
    """

    mean: Floats
    std: Floats
    log_density: Floats


@storable
class OnlineGPRegressor(LearnsOnline, BayesianRegressor):
    """Gaussian process regression that learns rows one after another, in bounded memory.

    y ~ p(y | m(x) + f(x)) as in `GPRegressor`. The posterior so far is the prior of the next row,
    whose likelihood is projected on the nearest Gaussian process (SOGP 2.6), and the function is
    kept by its moments at no more than `max_basis` inputs, the basis vectors. A row that these all
    but determine changes the moments there; any other becomes a basis vector, and if there are too
    many the one goes that costs least. With Gaussian noise and room for all rows the result is
    exact.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel or None, default None
        The covariance of f; None is the default one of `GPRegressor`.
    likelihood : Likelihood or None, default None
        The noise: None learns one Gaussian variance. Any of `mercer.likelihoods` that is of
        numbers; what is left open of it is learned too. Known variances are given as
        ``sample_weight=1/variance`` with ``Gaussian(Parameter(1.0, fixed=True))``: `fit` would
        learn a variance that is not fixed. Predictions, those of `learn` too, are of rows of weight
        1, and so of variance 1: ask for ``latent=True``, and add the variance that a new row has.
    max_basis : int, default 100
        How many basis vectors there may be. A warning says so if they are much too few: if about
        the last thousand rows have each lost 0.3 nats and more. Inputs that move on, such as time,
        fill any basis; they want `forget`.
    tol : float, default 1e-6
        What a row must add to become a basis vector: the part of its prior variance that the others
        leave, where less than 1e-8 counts as 1e-8; with ``novelty="mean"`` the change of the mean
        if it were left out, in units of the function's standard deviation.
    novelty : {"geometry", "mean"}, default "geometry"
        By what a row is taken for new: (SOGP 3.14), or (SOGP 3.13).
    criterion : {"kl", "mean"}, default "kl"
        Which basis vector goes: the one that the process as a whole, by its divergence, or the mean
        (SOGP 3.18) loses least by.
    n_init : int, default 100
        How many rows `partial_fit` waits for where the model is not all given; they choose its
        hyperparameters. 100 are few for four columns or more: give 500.
    n_sweeps : int, default 1
        How often `fit` goes over the rows.
    recycle : {"sites", "heuristic"}, default "sites"
        What the sweeps after the first do: "sites" holds the basis and finds what each row says
        again, given all others, by sparse expectation propagation; with Gaussian noise one of them
        gives the posterior of FITC on this basis, and with other noise there is a warning if they
        end before these have settled. "heuristic" shows the rows again as if they
        were new (the paper's way), by which they count twice, and error bars are too narrow.
    forget : float, default 0.0
        The part of what is known that is lost with each row, for functions that drift: as if the
        covariance of rows t steps apart were multiplied by (1 - forget)^(t/2).
    mean, hyperprior, optimizer, n_restarts, max_iter, normalize_y, n_jobs, random_state
        As in `GPRegressor`, for the choice of hyperparameters. Coefficients of the mean are
        estimated there and then held; they are not integrated out.
    verbose : bool, int or callable, default 0
        As in `GPRegressor`; 1 also tells how many rows a `fit` has learned.

    Attributes
    ----------
    basis_ : ndarray of shape (m, d)
        The basis vectors.
    n_basis_ : int
        Their number.
    n_seen_ : int
        How many rows have been learned, or skipped with a warning, those of weight 0 left out;
        while rows wait for `n_init`, how many do.
    projection_loss_ : float
        What all projections and removals have cost, in nats: the sum of their divergences.
    log_evidence_ : float
        The log predictive density of all rows, each given those before it, added up: of the first
        pass, whatever `n_sweeps`. Exact for Gaussian noise if the basis never was too small.
    kernel_, likelihood_, mean_ : the model
    posterior_, predictive_ : Posterior
        The process as it is now, made when it is asked for. Another of the same model may be
        assigned, from which learning then goes on.
    status_ : str
        "complete", or "interrupted" if Ctrl-C ended a fit.
    n_iter_ : int
        Iterations of the search for hyperparameters.
    n_features_in_, feature_names_in_ : as in `GPRegressor`

    See Also
    --------
    SparseGPRegressor : for rows that are all there, with a basis that suits them better.
    OnlineGPClassifier : for labels.

    Notes
    -----
    O(m^2) time a row with m basis vectors, whatever has been seen, and some m x m arrays: tens of
    thousands of rows a second with m = 100. Use it for streams, and for more rows than fit into
    memory. A model of fixed rows is better fitted by `SparseGPRegressor`, whose basis is chosen
    for all of them. The order of rows matters where the basis is too small, or the noise is not
    Gaussian.

    `fit` starts anew. Hyperparameters are those with the highest evidence on max(n_init, 500)
    rows: half of them the first ones, one after the other, since what is fast shows there, and
    half spread over all others, since rows may be sorted. With ``optimizer=None`` they are as
    given, but for what is left open. Then all rows are learned in their order. Ctrl-C in a fit
    keeps what was learned.

    Other values of `max_basis`, `tol`, `novelty`, `criterion` and `forget` that `set_params` gives
    to a model that has begun are obeyed from the next rows on, and a basis that is too large then
    is pruned. Kernel, likelihood and mean stay those it has begun with.

    `partial_fit` goes on. Where kernel and likelihood are given it starts at once, with these as
    they are: nothing is learned of them, and coefficients of a mean that are not given are 0. Where
    one is left open (a kernel or a likelihood of None, ``Gaussian()``, ``normalize_y``) rows wait
    until there are `n_init`, whatever the chunks they come in, and the first `n_init` choose the
    model as in `fit`; before that there are no predictions. A row at a time or all at once gives
    the same.

    References
    ----------
    Csato and Opper, *Sparse on-line Gaussian processes*, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineGPRegressor
    >>> from mercer.kernels import RBF
    >>> from mercer.likelihoods import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineGPRegressor(RBF(1.0), Gaussian(0.01), max_basis=20)
    >>> for _ in range(10):
    ...     X = rng.uniform(0, 6, (100, 1))
    ...     y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100)
    ...     model = model.partial_fit(X, y)
    >>> model.n_seen_, model.n_basis_ <= 20
    (1000, True)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True

    On from a posterior of any kind:

    >>> from mercer import GPRegressor
    >>> whole = GPRegressor(RBF(1.0), Gaussian(0.01)).fit(X, y)
    >>> going = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_, max_basis=20)
    >>> before = going.learn([[3.0]], [np.sin(3.0)])
    >>> bool(abs(before.mean[0] - np.sin(3.0)) < 0.1)
    True
    """

    _of_labels = False

    def __init__(
        self,
        kernel: Any = None,
        likelihood: Likelihood | None = None,
        *,
        max_basis: int = 100,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        n_init: int = 100,
        n_sweeps: int = 1,
        recycle: str = "sites",
        forget: float = 0.0,
        mean: Any = "constant",
        hyperprior: str | None = "default",
        optimizer: Any = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 200,
        normalize_y: bool = False,
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
        self.normalize_y = normalize_y
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        likelihood: Likelihood,
        max_basis: int | None = None,
        *,
        lift: bool | str = False,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        forget: float = 0.0,
    ) -> Self:
        """Return a model that goes on from a posterior.

        Parameters
        ----------
        posterior : Posterior
            Of any method, with outputs that are not coupled. Points that others all but determine
            are left out, and one of more than `max_basis` is pruned: by the least divergence,
            added over outputs, as `Posterior.prune` does, whatever the criterion for later rows.
            It does not know the names of its columns: those of the first rows that are learned are
            taken, whose columns must be in the order of the fit.
        likelihood : Likelihood
            Of further rows, in the units of `posterior.scale`: the `likelihood_` of the model. That
            of FITC can be too small, by what its prior takes for the function's own variance, and
            error bars are then too narrow: look at it, or take VFE's.
        max_basis : int, optional
            How many basis vectors there may be; as many as there are without it.
        lift : {False, True, "scaled"}
            A degenerate posterior (SoR, relevance vectors, Laplacian processes) is linear in its
            basis, and only its weights are updated. Rows where all its functions are next to 0, as
            those of a stream that leaves the region of the first ones, teach it nothing, and its
            error bars there stay those of the mean. With True it is taken as one under the full
            kernel instead, that of DTC, to whose basis rows can be added; that asks for a Mercer
            kernel. With "scaled" the kernel is multiplied by the variance under which the function
            is likeliest: for relevance vectors and Laplacian processes, whose kernels have no say
            in how large functions are. Give `max_basis` with either: without it there is room for
            the points that there are.
        tol, novelty, criterion, forget : as for the class
            They and `max_basis` can do nothing for a degenerate posterior that is not lifted, and
            must be left out there.
        """
        require_posterior(posterior)
        if getattr(likelihood, "is_of_labels", True):
            raise ValueError(
                "likelihood must be that of further rows, such as likelihood_ of the model that "
                f"has the posterior, got {likelihood!r}"
            )
        if not is_complete(posterior.kernel, likelihood):
            raise ValueError(
                f"{likelihood!r} has parameters that are not chosen yet, and here nothing chooses "
                "them: give likelihood_ of the model that has the posterior"
            )
        require_one_noise(likelihood)
        require_lift(lift)
        options = {"tol": tol, "novelty": novelty, "criterion": criterion, "forget": forget}
        model = cls._from_posterior(posterior, likelihood, likelihood, max_basis, lift, options)
        model._multioutput = posterior.n_outputs > 1
        return model

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew: choose hyperparameters, and learn all rows in their order.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,) or (n, P)
            Targets. Several columns share the basis and, being under Gaussian noise, the variances.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out. Under
            Gaussian noise a row is learned once, with the variance divided by its weight, which is
            the row so often up to what projections and removals cost. Under other noise a weight
            above 100 is learned in 100 steps.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows. The arguments are those of `fit`; Notes say when learning starts."""
        self._take(X, y, sample_weight)
        return self

    def learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Prequential:
        """Learn more rows as `partial_fit` does, and return what was predicted of each before.

        Returns
        -------
        Prequential
            `mean`, `std` and `log_density`; NaN where there was no model yet.
        """
        require_moments(vars(self).get("likelihood_", self.likelihood))
        rows, before = self._take(X, y, sample_weight)
        n, outputs = len(rows.kept), rows.Y.shape[1]
        found = np.full((n, outputs), np.nan), np.full((n, outputs), np.nan), np.full(n, np.nan)
        known = ~np.isnan(before.mean[:, 0])
        at = np.flatnonzero(rows.kept)[known]
        if at.size:
            some, scale = Before(*(each[known] for each in before)), self._process.scale
            said = numbers_before(self.likelihood_, scale, some, rows.Y[known])
            for out, values in zip(found, said, strict=True):
                out[at] = values
        mean, std, logs = found
        return Prequential(self._shaped(mean), self._shaped(std), logs)

    def _rows(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        again: bool,
        some: bool,
        **options: Any,
    ) -> Rows:
        known = again and "_process" in vars(self)
        kernel = self.kernel_ if known else as_kernel(self.kernel, X)[0]
        rows = checked_rows(self, X, y, sample_weight, kernel, again, some)
        require_counts(self.likelihood_ if known else self.likelihood, rows.Y)
        if not again:
            self._model_of(X, rows.Y.shape[1])
        return rows

    def _model_of(self, X: Any, outputs: int) -> tuple[Kernel | None, Likelihood | None, Mean]:
        """Return kernel, likelihood and mean, or say why they cannot be."""
        require_flag("normalize_y", self.normalize_y)
        model = regression_model(self, X)
        chosen_engine(Asked(self), model[1])  # which refuses what does not go together
        if outputs > 1 and not (model[1] is None or isinstance(model[1], Gaussian)):
            raise ValueError(
                f"y has {outputs} columns, and under {type(model[1]).__name__} noise outputs do "
                "not share a covariance. Learn one model an output"
            )
        return model

    def _complete(self, X: Any, outputs: int) -> Start | None:
        kernel, likelihood, mean = self._model_of(X, outputs)
        if self.normalize_y or not is_complete(kernel, likelihood):
            return None
        assert kernel is not None
        assert likelihood is not None
        return Start(kernel, likelihood, mean, np.ones(outputs))

    def _chosen(self, X: Any, rows: Rows) -> Start:
        model = self._model_of(X, rows.Y.shape[1])
        return start_of_regression(self, *model, rows, column_names(X))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: takes several outputs under Gaussian noise."""
        tags = super().__sklearn_tags__()
        gaussian = self.likelihood is None or isinstance(self.likelihood, Gaussian)
        tags.target_tags.multi_output = gaussian
        return tags
