"""Looking for hyperparameters, and what to say of what was found."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mercer.errors import (
    ConvergenceWarning,
    JitterWarning,
    MercerWarning,
    UndeterminedWarning,
    warn,
)
from mercer.estimators.options import as_generator
from mercer.evidence import (
    LatentObjective,
    Optimum,
    ascend,
    engines_that_take,
    maximise,
    warn_of_search,
)
from mercer.evidence.guarded import Fitted, Guarded
from mercer.evidence.optimum import Lines, Report

__all__ = [
    "history_of",
    "maximise_for",
    "report_of",
    "search",
    "warn_of_fit",
    "warn_of_jitter",
    "warn_of_unexplained",
]

Floats = NDArray[np.float64]

# Jitter of inducing variables that matters, in units of the noise variance.
_BLURRED = 1e-3


def search(
    estimator: Any,
    objective: Guarded,
    undetermined: str | None,
    columns: list[str] | None,
    report: Report | None,
) -> Optimum:
    """Return where the search ends that a regressor asks for.

    `undetermined` says why the targets say nothing about it, None if they do; `columns` are the
    inputs' names; `report` is told of each evaluation.
    """
    if estimator.optimizer is None:
        # The factorisation that makes the posterior is all the work there is.
        return Optimum(objective.theta, np.nan, "fixed", "the hyperparameters were kept")
    if undetermined is not None and objective.theta.size:
        warn(
            f"{undetermined}, so the data say nothing about the scale of what deviates from the "
            "mean. The hyperparameters were kept as they began, and error bars reflect that "
            "start alone; if the start is what you know, say so with optimizer=None or "
            "Parameter(..., fixed=True)",
            UndeterminedWarning,
        )
        return Optimum(objective.theta, np.nan, "fixed", undetermined)
    joint = getattr(estimator, "objective", "evidence") == "joint"
    if joint:  # which goes with inference="map" alone
        mode = cast(LatentObjective, objective)
        optimum = ascend(mode, max_iter=estimator.max_iter, report=report)
    else:
        rng = as_generator(estimator.random_state)
        optimum = maximise_for(estimator, objective, rng, report, estimator.n_jobs)
    objective.release()
    warn_of_search(objective, optimum, columns)
    if joint:
        _warn_of_shrinking(objective, optimum)
    return optimum


def _warn_of_shrinking(objective: Guarded, optimum: Optimum) -> None:
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


def maximise_for(
    estimator: Any,
    objective: Guarded,
    rng: np.random.Generator,
    report: Report | None,
    n_jobs: int | None,
) -> Optimum:
    """Maximise an objective by the optimiser and from the starts that an estimator asks for."""
    return maximise(
        objective.judge(),
        optimizer=estimator.optimizer,
        n_restarts=estimator.n_restarts,
        max_iter=estimator.max_iter,
        n_jobs=n_jobs,
        random_state=rng,
        report=report,
    )


def report_of(estimator: Any, parts: int = 1) -> Report | None:
    """Return whom to tell of each evaluation, in a search of so many parts; None for nobody."""
    if callable(estimator.verbose):
        told: Report = estimator.verbose
        return told
    return Lines(parts * (1 + estimator.n_restarts)) if estimator.verbose else None


def history_of(optimum: Optimum) -> dict[str, Floats]:
    """Return every evaluation of a search: "theta" (k, p) and "value" (k,)."""
    thetas = np.array(optimum.thetas).reshape(len(optimum.values), optimum.theta.size)
    return {"theta": thetas, "value": np.array(optimum.values)}


def warn_of_fit(objective: Guarded, fit: Fitted, searched: bool) -> None:
    """Warn of jitter, of an engine that has not settled, and of outputs that do not go together."""
    if hasattr(objective, "inducing"):
        _warn_of_blurred(fit)
    else:
        warn_of_jitter(fit.jitter)
    # conjugate gradients have words of their own
    latent = objective.inference != "iterative"
    if latent and getattr(fit.solution, "status", "converged") == "stopped":
        sparse = hasattr(objective, "inducing")
        taken = engines_that_take(fit.likelihood, sparse)
        others = [engine for engine in taken if engine != objective.inference]
        instead = f"engine of {', '.join(map(repr, others))}" if others else "kernel"
        warn(
            f"inference={objective.inference!r} stopped before it had settled on the latent "
            f"function of {fit.likelihood!r}; take predictions with care, and try another "
            f"{instead}",
            ConvergenceWarning,
        )
    if searched:
        objective.warn_of_outputs(fit)


def _warn_of_blurred(fit: Fitted) -> None:
    """Warn of jitter on inducing variables that is not small beside the noise.

    It leaves as much of the function unexplained at each row, which is nothing to a model that
    leaves more by itself.
    """
    noise = getattr(fit.likelihood, "new_variance", 1.0)
    if fit.jitter > _BLURRED * noise:
        warn(
            f"{fit.jitter:.3g} was added to the diagonal of the inducing variables' covariance to "
            f"factorise it (kept as `jitter_`), beside noise of variance {noise:.3g}; inducing "
            "inputs may coincide, or be too many for a length scale far longer than the data",
            JitterWarning,
        )


def warn_of_jitter(jitter: float) -> None:
    """Warn of what had to be added to the covariance, if anything."""
    if jitter > 0:
        warn(
            f"{jitter:.3g} was added to the diagonal of the covariance to factorise it (kept as "
            "`jitter_`); rows may repeat, or a length scale may be far longer than the data",
            JitterWarning,
        )


def warn_of_unexplained(
    estimator: Any, left: float, signal: float, noise: float, m: int, rows: int, more: str = ""
) -> None:
    """Warn where m inducing variables leave most of a function's variance at the rows unexplained.

    `left` is that, of `signal`; what is less than the noise does not count. `more` is to be said of
    it too.
    """
    if left <= max(0.5 * signal, noise) or m >= rows:
        return
    named = isinstance(estimator.inducing, str) and estimator.inducing != "query"
    advice = "Raise n_inducing, to" if named else "More of them would help,"
    warn(
        f"{m} inducing inputs leave {left / signal:.0%} of the function's variance unexplained"
        f"{more}. {advice} {min(rows, 4 * m)} say",
        MercerWarning,
    )
