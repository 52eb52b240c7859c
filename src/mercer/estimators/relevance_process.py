"""What relevance vector machines for numbers and for labels share: one fit, and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.expansion_process import ExpansionProcess, single
from mercer.estimators.relevance_frame import Frame, Model, Relevant
from mercer.estimators.relevance_kernel import choose_kernels
from mercer.estimators.relevance_warnings import warn_if_empty, warn_of_far
from mercer.estimators.rows import is_precomputed
from mercer.estimators.search import report_of
from mercer.evidence.optimum import tell
from mercer.evidence.relevance_functions import Dictionary
from mercer.evidence.relevance_search import Ended
from mercer.kernels import Kernel
from mercer.posterior import AugmentedExpansion, Posterior, Predictive, Stacked
from mercer.posterior.nearness import far_from, reach_of

__all__ = ["RelevanceProcess", "median_variance"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The worst that can be said of several functions comes first.
_STATUS = ("interrupted", "stopped", "converged")


class RelevanceProcess(ExpansionProcess):
    """Adds the fit of relevance vector machines to an estimator. It stands before other bases."""

    max_iter: int
    tol: float
    classes_: NDArray[Any]  # of labels
    _augmented: list[AugmentedExpansion] | None
    _reach: list[Floats | None]

    def _fit_relevance(self, model: Model) -> tuple[Frame, Ended, Floats]:
        """Choose what is left open, and fit a machine to each column of targets.

        Returned are the functions, where all has ended, and the coefficients (r, P) about which
        those of the mean have their priors.
        """
        report, rows = report_of(self), model.rows
        frame, beta, search, start, is_whole = choose_kernels(self, model, report)
        varies = bool(np.any(rows.Y != frame.offset(rows, beta)))
        functions = frame.dictionary(rows) if start is None else start.functions
        columns, engine = functions.columns(), frame.engine(rows, beta)
        tell(report, f"solving for {columns.size} functions at {len(rows.Y)} rows")
        begun = None if start is None else start.machines
        found = engine.solve(columns, begun, float(self.tol), final=True)
        statuses = {machine.fit.status for machine in found}
        if not is_whole:
            statuses.add("interrupted")
        status = next(each for each in _STATUS if each in statuses)
        value = functions.log_prior + sum(machine.fit.objective for machine in found)
        self.history_ = {
            "theta": np.empty((0, functions.theta.size)),
            "value": np.empty(0),
            "steps": np.asarray(found[0].fit.history),
            "objective": "penalised log evidence and hyperpriors",
            "status": "fixed" if start is None else start.status,
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
        elif varies and columns.size:
            classes = self.classes_ if model.has_labels else None
            warn_if_empty(frame, functions, found, classes)
        return frame, Ended(functions, found, value, value, status), beta

    # --- what it leaves -----------------------------------------------------------------------

    def _keep(self, frame: Frame, end: Ended) -> list[Relevant]:
        """Set the fitted attributes that do not depend on what the targets are."""
        functions, fits = end.functions, [machine.fit for machine in end.machines]
        kept = [frame.relevant(functions, fit.indices) for fit in fits]
        numbers = frame.numbers(frame.model.rows)
        indices = [single([numbers[own] for own in each.sections]) for each in kept]
        inputs = [
            single([functions.centres_of(k)[own] for k, own in enumerate(each.sections)])
            for each in kept
        ]
        self.kernel_ = single(list(functions.kernels))
        self._pairwise = is_precomputed(self)
        self.relevance_indices_ = single(indices)
        self.relevance_ = single(inputs)
        self.function_indices_ = single([each.functions for each in kept])
        self.n_relevance_ = sum(each.n_relevance for each in kept)
        self.status_ = end.status
        self.n_iter_ = max(1, sum(int(fit.n_iterations) for fit in fits))
        return kept

    def _keep_relevance(
        self,
        rows: Any,
        posteriors: list[Posterior],
        augmented: list[AugmentedExpansion] | None,
        kept: list[Relevant],
    ) -> None:
        """Keep what predicts, and what tells how far its functions reach."""
        self._augmented = augmented
        self._reach = [None] * len(posteriors)
        if augmented is not None:
            for name in ("posterior_", "posteriors_"):
                self.__dict__.pop(name, None)
            return
        self._keep_posteriors(posteriors)
        if not self._pairwise:
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
        return super()._absent(name)

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
        return super()._posteriors()

    @property
    def predictive_(self) -> Predictive:
        """The fitted process, as predictions ask it; several functions side by side."""
        self._models()  # which raises where there is none
        if self._augmented is None:
            return super().predictive_
        return self._augmented[0] if len(self._augmented) == 1 else Stacked(self._augmented)

    def _warn_of_far(self, X: Any) -> None:
        """Warn of points at which error bars are those of the noise, or of the mean, alone."""
        X = self._new_inputs(X)
        far = 0
        for posterior, reach in zip(self._posteriors(), self._reach, strict=True):
            if reach is not None and len(X):
                far = max(far, far_from(posterior, X, reach))
        warn_of_far(far, len(X))


def median_variance(fit: Any, functions: Dictionary, fallback: float) -> float:
    """Return the median of the prior variances of the kernel sections that are kept."""
    sections = fit.indices < sum(functions.sizes)
    return float(np.median(1.0 / fit.precisions[sections])) if np.any(sections) else fallback
