"""What relevance vector machines for numbers and for labels share: one fit, and what it leaves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.expansion_options import check_centres, check_symmetry
from mercer.estimators.options import as_generator
from mercer.estimators.process import FittedProcess
from mercer.estimators.relevance_frame import Frame, Model, Relevant
from mercer.estimators.rows import is_precomputed
from mercer.estimators.sampled_widths import sampled_widths
from mercer.estimators.search import report_of
from mercer.estimators.state import StorableEstimator
from mercer.evidence.defaults import default_kernel, spread
from mercer.evidence.optimum import Report, tell
from mercer.evidence.relevance_functions import Dictionary
from mercer.evidence.relevance_search import Ended, Search, width_starts
from mercer.kernels import Kernel
from mercer.posterior import (
    AugmentedExpansion,
    Posterior,
    PrecomputedPredictive,
    Predictive,
    Stacked,
)
from mercer.posterior.nearness import far_from, reach_of

__all__ = ["RelevanceProcess", "median_variance"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows by which kernels are chosen, at the most; rounds on all of them after that; starts that are
# gone on with; and length scales that are tried, in units of those that a search begins with.
_ROWS, _ROUNDS, _TRIES = 1000, 2, 2
_FACTORS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
# Nats that a step of the sparse algorithm must gain while kernels are looked for, and those that a
# model is charged for each of its functions where kernels are compared.
_COARSE, _CHARGE = 0.3, 2.0
# The worst that can be said of several functions comes first.
_STATUS = ("interrupted", "stopped", "converged")


class RelevanceProcess(StorableEstimator, FittedProcess):
    """Adds the fit of relevance vector machines to an estimator. It stands before other bases."""

    algorithm: str
    augment: bool
    centres: Any
    functions: Any
    learn_centres: bool
    optimizer: str | None
    n_restarts: int
    max_iter: int
    max_steps: int | None
    tol: float
    random_state: Any
    # Whether targets are labels, and whether some may be far from all others.
    _has_labels: bool = False
    robust: Any = False
    # Whether a search goes on from the start of most functions too.
    _rich: bool = False
    _augmented: list[AugmentedExpansion] | None
    _reach: list[Floats | None]

    def _fit_relevance(self, model: Model) -> tuple[Frame, Ended, Floats]:
        """Choose what is left open, and fit a machine to each column of targets.

        Returned are the functions, where all has ended, and the coefficients (r, P) about which
        those of the mean have their priors.
        """
        report = report_of(self)
        rng = as_generator(self.random_state)
        rows = model.rows
        none = self.centres is not None and len(self.centres) == 0
        kernels = model.kernels
        numeric = kernels is None or kernels[0].is_numeric
        widths = spread(rows.X, rows.weights) if numeric and not is_precomputed(self) else None
        whole = True
        if kernels is None:
            own, whole = self._begun(model, rng, report)
            kernels = (own,)
        if self.learn_centres and widths is None:
            raise ValueError(f"learn_centres=True needs inputs of numbers, got {kernels[0]!r}")
        for kernel in kernels:
            check_centres(self.centres, rows.X, kernel)
        kernels = tuple(kernel.anchored(rows.X) for kernel in kernels)
        for kernel in kernels:
            check_symmetry(kernel, rows.X)
        frame = Frame(model, kernels, self.centres, self.functions)
        beta = frame.coefficients(rows)
        searches = self.optimizer is not None and not none and whole
        searches = searches and any(kernel.theta.size for kernel in kernels)
        searches = searches and bool(np.any(rows.Y != frame.offset(rows, beta)))
        search: Search | None = None
        start: Ended | None = None
        with warnings.catch_warnings():  # those of models on the way are of no use
            warnings.simplefilter("ignore", MercerWarning)
            if searches:
                frame, search, start = self._chosen(frame, beta, widths, rng, report)
            if self.learn_centres and (start is None or start.status != "interrupted"):
                start = self._moved(frame, beta, widths, start, report)
        functions = frame.dictionary(rows) if start is None else start.functions
        columns, engine = functions.columns(), frame.engine(rows, beta)
        tell(report, f"solving for {columns.size} functions at {len(rows.Y)} rows")
        begun = None if start is None else start.machines
        found = engine.solve(columns, begun, float(self.tol), final=True)
        statuses = {machine.fit.status for machine in found}
        if start is not None and start.status == "interrupted":
            statuses.add("interrupted")
        status = next(each for each in _STATUS if each in statuses)
        value = functions.log_prior + sum(machine.fit.objective for machine in found)
        self.history_ = {
            "theta": np.empty((0, functions.theta.size)),
            "value": np.empty(0),
            "steps": np.asarray(found[0].fit.history),
        }
        if search is not None:
            self.history_["theta"] = np.array(search.thetas)
            self.history_["value"] = np.array(search.values)
        if start is not None and start.status == "stopped":
            warn(
                f"the search for hyperparameters stopped early (max_iter={self.max_iter} "
                "iterations were made); raise max_iter",
                ConvergenceWarning,
            )
        if status == "interrupted":
            warn("the fit was interrupted; the best model so far is kept", ConvergenceWarning)
        return frame, Ended(functions, found, value, value, status), beta

    def _default_kernel(self, widths: Floats) -> Kernel:
        """Return the kernel where none is given, from the deviations of the columns."""
        return default_kernel(widths, 1.0).kernel

    def _begun(
        self, model: Model, rng: np.random.Generator, report: Report | None
    ) -> tuple[Kernel, bool]:
        """Return the default kernel where a search begins, and whether there is to be one."""
        rows = model.rows
        kernel = self._default_kernel(spread(rows.X, rows.weights))
        varies = bool(np.any(np.ptp(rows.Y, axis=0)))
        if self.optimizer is None or not varies:
            return kernel, True
        tell(report, "choosing relative length scales")
        if self._has_labels:  # which may be distributions over classes
            rows = rows._replace(Y=np.where(rows.Y > 0, 1.0, -1.0))
        kind = self._has_labels, bool(self.robust)
        start, whole = sampled_widths(self, rows, model.mean, *kind, rng)
        return kernel.with_theta(start.theta), whole

    # --- the kernels --------------------------------------------------------------------------

    def _chosen(
        self,
        frame: Frame,
        beta: Floats,
        widths: Floats | None,
        rng: np.random.Generator,
        report: Report | None,
    ) -> tuple[Frame, Search, Ended]:
        """Return the model with parameters of its kernels, from a search by some of the rows."""
        rows = frame.model.rows
        some = rows.some(_ROWS, rng)
        if not np.all(np.ptp(some.Y, axis=0)):  # a class is not among them
            some = rows
        units = np.ones(1) if widths is None else widths
        bounds = [kernel.with_bounds_from(units, 1.0).bounds for kernel in frame.kernels]
        limits = np.concatenate(bounds)
        tell(report, f"choosing the kernel by {len(some.Y)} rows")
        engine = frame.engine(some, beta)
        search = Search(
            engine,
            limits,
            max(float(self.tol), _COARSE),
            _CHARGE,
            int(self.max_iter),
            report=report,
        )
        functions = frame.dictionary(some)
        starts = width_starts(functions, _FACTORS)
        for _ in range(self.n_restarts):
            drawn = [kernel.draw_theta(rng) for kernel in frame.kernels]
            starts.insert(0, np.concatenate(drawn))
        end = search.best_of(functions, starts, _TRIES + self.n_restarts, self._rich)
        frame = frame.with_kernels(end.functions.kernels)
        if len(some.Y) == len(rows.Y):
            return frame, search, end
        begun, functions = frame.carried(some, rows, end.machines), frame.dictionary(rows)
        if end.status == "interrupted":
            return frame, search, end._replace(functions=functions, machines=begun)
        search.machines = frame.engine(rows, beta)
        whole = search.solved(functions, begun)
        if whole.status != "interrupted":
            whole = search.climb(whole, _ROUNDS)
        return frame.with_kernels(whole.functions.kernels), search, whole

    def _moved(
        self,
        frame: Frame,
        beta: Floats,
        widths: Floats | None,
        start: Ended | None,
        report: Report | None,
    ) -> Ended:
        """Return the model with centres that were moved, and the kernels with them."""
        rows = frame.model.rows
        limits = np.concatenate([kernel.bounds for kernel in frame.kernels])
        if self.optimizer is None:  # which holds the parameters
            limits = np.repeat(np.concatenate([k.theta for k in frame.kernels])[:, None], 2, axis=1)
        elif widths is not None:
            own = [kernel.with_bounds_from(widths, 1.0).bounds for kernel in frame.kernels]
            limits = np.concatenate(own)
        engine, tol = frame.engine(rows, beta), float(self.tol)
        search = Search(engine, limits, tol, 0.0, int(self.max_iter), True, widths, report=report)
        if start is None:
            start = search.solved(frame.dictionary(rows), None)
        if start.status == "interrupted":
            return start
        tell(report, "moving centres")
        return search.climb(start)

    # --- what it leaves -----------------------------------------------------------------------

    def _keep(self, frame: Frame, end: Ended) -> list[Relevant]:
        """Set the fitted attributes that do not depend on what the targets are."""
        functions, fits = end.functions, [machine.fit for machine in end.machines]
        kept = [frame.relevant(functions, fit.indices) for fit in fits]
        numbers = frame.numbers(frame.model.rows)
        one = len(kept) == 1
        indices = [_single([numbers[own] for own in each.sections]) for each in kept]
        inputs = [
            _single([functions.centres_of(k)[own] for k, own in enumerate(each.sections)])
            for each in kept
        ]
        self.kernel_ = _single(list(functions.kernels))
        self._pairwise = is_precomputed(self)
        self.relevance_indices_ = indices[0] if one else indices
        self.relevance_ = inputs[0] if one else inputs
        self.function_indices_ = kept[0].functions if one else [each.functions for each in kept]
        counts = [len(fit.indices) - each.n_mean for fit, each in zip(fits, kept, strict=True)]
        self.n_relevance_ = sum(counts)
        self.status_ = end.status
        self.n_iter_ = max(1, sum(int(fit.n_iterations) for fit in fits))
        return kept

    def _keep_posteriors(
        self,
        rows: Any,
        posteriors: list[Posterior],
        augmented: list[AugmentedExpansion] | None,
        kept: list[Relevant],
    ) -> None:
        """Keep the posterior, or those of several functions side by side."""
        for name in ("posterior_", "posteriors_", "_augmented", "_reach"):
            self.__dict__.pop(name, None)
        self._augmented = augmented
        if augmented is None and len(posteriors) == 1:
            self.posterior_ = posteriors[0]
        elif augmented is None:
            self.posteriors_ = posteriors
        self._reach = [None] * len(posteriors)
        if augmented is None and not self._pairwise:
            # Functions of the caller's own may say something anywhere.
            self._reach = [
                None if len(own.functions) else reach_of(posterior, rows, own.n_sections)
                for posterior, own in zip(posteriors, kept, strict=True)
            ]

    def _absent(self, name: str) -> str | None:
        if name in ("posterior_", "posteriors_") and self.__dict__.get("_augmented") is not None:
            return (
                "with augment=True new points need the training rows too, and there is no "
                "posterior_: predictive_ is what predicts. augment=False has one"
            )
        if name == "posterior_" and "posteriors_" in self.__dict__:
            return (
                "there is no posterior_ of several functions, which have basis functions of their "
                "own: posteriors_ is the list of them, one an output or a class"
            )
        return None

    @property
    def _has_parts(self) -> bool:
        """False: kernels in a list belong to one model."""
        return False

    @property
    def _kernels(self) -> list[Kernel]:
        return self.kernel_ if isinstance(self.kernel_, list) else [self.kernel_]

    @property
    def theta_(self) -> Floats:
        """The fitted hyperparameters [kernel_, likelihood_, mean_] as one flat vector."""
        _, likelihood, mean = self._models()[0]
        parts = [*self._kernels, likelihood, mean]
        return np.concatenate([part.theta for part in parts])

    def _new_inputs(self, X: Any) -> Any:
        self._models()  # which raises where there is none
        return self._checked_inputs(X, self._kernels[0])

    def _posteriors(self) -> list[Posterior]:
        if self._augmented is not None:
            return [member.posterior for member in self._augmented]
        several = "posteriors_" in self.__dict__
        return self.posteriors_ if several else [self.posterior_]

    @property
    def predictive_(self) -> Predictive:
        """The fitted process, as predictions ask it; several functions side by side."""
        self._models()  # which raises where there is none
        members: list[Predictive] = list(self._posteriors())
        if self._augmented is not None:
            members = list(self._augmented)
        elif self._pairwise:
            members = [PrecomputedPredictive(posterior) for posterior in self._posteriors()]
        return members[0] if len(members) == 1 else Stacked(members)

    def _warn_of_far(self, X: Any) -> None:
        """Warn of points at which error bars are those of the noise, or of the mean, alone."""
        X = self._new_inputs(X)
        far = 0
        for posterior, reach in zip(self._posteriors(), self._reach, strict=True):
            if reach is not None and len(X):
                far = max(far, far_from(posterior, X, reach))
        if far:
            warn(
                f"{far} of {len(X)} points are far from every relevance vector, where none of the "
                "functions says anything: error bars there are too small. augment=True has them "
                "grow as a Gaussian process does, for n times the cost",
                MercerWarning,
            )


def _single(parts: list[Any]) -> Any:
    """Return one thing as it is, and several as a list."""
    return parts[0] if len(parts) == 1 else parts


def median_variance(fit: Any, functions: Dictionary, fallback: float) -> float:
    """Return the median of the prior variances of the kernel sections that are kept."""
    sections = fit.indices < sum(functions.sizes)
    return float(np.median(1.0 / fit.precisions[sections])) if np.any(sections) else fallback
