"""Looking for the hyperparameters of a `GPRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import ConvergenceWarning, JitterWarning, UndeterminedWarning, warn
from mercer.estimators.regressor import as_generator
from mercer.estimators.starting import Prepared
from mercer.evidence import (
    LatentObjective,
    Objective,
    Optimum,
    ascend,
    engines_that_take,
    maximise,
    warn_if_miscalibrated,
    warn_of_search,
)
from mercer.evidence.guarded import Fitted
from mercer.evidence.optimum import Lines, Report

__all__ = ["search", "warn_of_fit"]


def search(estimator: Any, prepared: Prepared, columns: list[str] | None) -> Optimum:
    """Return where the search ends that an estimator asks for; `columns` are the inputs' names."""
    objective, reason = prepared.objective, prepared.undetermined
    if estimator.optimizer is None:
        # The factorisation that makes the posterior is all the work there is.
        return Optimum(objective.theta, np.nan, "fixed", "the hyperparameters were kept")
    if reason is not None and objective.theta.size:
        warn(
            f"{reason}, so the data say nothing about the scale of what deviates from the "
            "mean. The hyperparameters were kept as they began, and error bars reflect that "
            "start alone; if the start is what you know, say so with optimizer=None or "
            "Parameter(..., fixed=True)",
            UndeterminedWarning,
        )
        return Optimum(objective.theta, np.nan, "fixed", reason)
    report = _report(estimator)
    joint = estimator.objective == "joint"
    if isinstance(objective, LatentObjective) and joint:
        optimum = ascend(objective, max_iter=estimator.max_iter, report=report)
    else:
        optimum = maximise(
            objective.judge() if isinstance(objective, LatentObjective) else objective,
            optimizer=estimator.optimizer,
            n_restarts=estimator.n_restarts,
            max_iter=estimator.max_iter,
            n_jobs=estimator.n_jobs,
            random_state=as_generator(estimator.random_state),
            report=report,
        )
    objective.release()
    warn_of_search(objective, optimum, columns)
    if joint:
        _warn_of_shrinking(objective, optimum)
    return optimum


def _warn_of_shrinking(objective: Objective | LatentObjective, optimum: Optimum) -> None:
    """Warn of a kernel that the joint density of function and hyperparameters has led to a bound.

    It grows without limit as the process shrinks to its mean, or becomes infinitely smooth.
    """
    low, high = objective.bounds[: objective.kernel.theta.size].T
    theta = optimum.theta[: objective.kernel.theta.size]
    if np.any((theta <= low) | (theta >= high)):
        warn(
            "objective='joint' has led the kernel to a bound, where the function is lost: the "
            "joint density of function and hyperparameters has no maximum inside. Use "
            "objective='evidence', or bound and fix the kernel's parameters",
            ConvergenceWarning,
        )


def _report(estimator: Any) -> Report | None:
    if callable(estimator.verbose):
        told: Report = estimator.verbose
        return told
    return Lines(1 + estimator.n_restarts) if estimator.verbose else None


def warn_of_fit(objective: Objective | LatentObjective, fit: Fitted, searched: bool) -> None:
    """Warn of jitter, of an engine that has not settled, and of outputs that do not go together."""
    if fit.jitter > 0:
        warn(
            f"{fit.jitter:.3g} was added to the diagonal of the covariance to factorise it "
            "(kept as `jitter_`); rows may repeat with too little noise, or a length scale may "
            "be far longer than the data",
            JitterWarning,
        )
    if getattr(fit.solution, "status", "converged") == "stopped":
        warn(
            f"inference={objective.inference!r} stopped before it had settled on the latent "
            f"function of {fit.likelihood!r}; take predictions with care, and try another engine "
            f"of {', '.join(map(repr, engines_that_take(fit.likelihood)))}",
            ConvergenceWarning,
        )
    if isinstance(objective, Objective) and objective.data.Y.shape[1] > 1 and searched:
        problem = objective.problem(fit.kernel, fit.likelihood)
        warn_if_miscalibrated(problem, fit.solution, objective.data.weights)
