"""What a classifier keeps of the searches for its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from mercer.estimators.class_evidence import ClassEvidence
from mercer.estimators.class_options import soft_kind
from mercer.estimators.class_search import naming_the_classes
from mercer.estimators.classification import PreparedClasses
from mercer.estimators.preparation import naming_the_model
from mercer.estimators.rows import is_precomputed, kept_inputs
from mercer.estimators.search import history_of, warn_of_fit
from mercer.evidence import LatentObjective, Optimum, warn_of_search
from mercer.evidence.guarded import Fitted

__all__ = ["ClassFit", "of_parts"]

_Result = TypeVar("_Result")

# The worst that can be said of several searches comes first.
_STATUS = ("interrupted", "stopped", "converged", "fixed")


class ClassFit(ClassEvidence):
    """Adds the end of a fit to a classifier of latent functions."""

    history_: Any
    inference: str
    soft_labels: Any

    def _absent(self, name: str) -> str | None:
        if name == "posterior_" and "posteriors_" in self.__dict__:
            return (
                "there is no posterior_ where each class was fitted against the rest: posteriors_ "
                "is the list of them, in the order of classes_"
            )
        return None

    def _finish(
        self, prepared: PreparedClasses, optima: list[Optimum], columns: list[str] | None
    ) -> None:
        kind, classes = prepared.model.kind, prepared.targets.classes
        calls = [
            partial(_fitted, objective, optimum, columns)
            for objective, optimum in zip(prepared.objectives, optima, strict=True)
        ]
        fits = of_parts(prepared, calls)
        histories = [history_of(optimum) for optimum in optima]
        self._kind, self._pairwise = kind, is_precomputed(self)
        self._engine, self._soft = self.inference, soft_kind(self.soft_labels) is not None
        self.classes_ = classes
        if kind == "one_vs_rest":
            self.kernel_ = [fit.kernel for fit in fits]
            self.likelihood_ = [fit.likelihood for fit in fits]
            self.mean_ = [fit.mean for fit in fits]
            self.posteriors_, self.history_ = [fit.posterior for fit in fits], histories
            self.__dict__.pop("posterior_", None)
        else:
            self.kernel_, self.likelihood_, self.mean_, self.posterior_, *_ = fits[0]
            self.history_ = histories[0]
            self.__dict__.pop("posteriors_", None)
        self.X_train_ = kept_inputs(prepared.objectives[0].data.X, fits[0].posterior)
        self.y_train_ = prepared.targets.Y
        self.sample_weight_ = prepared.objectives[0].data.weights
        self._jitters = [float(fit.jitter) for fit in fits]
        self._starts = [objective.start for objective in prepared.objectives]
        self.jitter_ = max(self._jitters)
        self.log_marginal_likelihood_value_ = float(sum(fit.log_evidence for fit in fits))
        statuses = {optimum.status for optimum in optima}
        self.status_ = next(status for status in _STATUS if status in statuses)
        self.n_iter_ = max(1, *(optimum.n_iterations for optimum in optima))


def of_parts(prepared: PreparedClasses, calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Call for each part that was fitted by itself; warnings say for which class."""
    if prepared.model.kind == "one_vs_rest":
        return naming_the_classes(prepared.targets.classes.tolist(), calls)
    return [call() for call in calls]


def _fitted(objective: LatentObjective, optimum: Optimum, columns: list[str] | None) -> Fitted:
    """Return the model at the end of its search, and warn of both."""
    searched = optimum.status != "fixed"
    with naming_the_model(objective):
        if searched:
            warn_of_search(objective, optimum, columns)
        objective.hold_jitter(optimum.jitter)
        fit = objective.fitted(optimum.theta)
    warn_of_fit(objective, fit, searched)
    return fit
