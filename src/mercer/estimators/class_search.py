"""Searching the hyperparameters of a classifier's parts, one after the other or at once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs

from mercer.compute import heard, run_together
from mercer.errors import BoundWarning, MercerWarning, UndeterminedWarning, warn
from mercer.estimators.options import as_generator
from mercer.estimators.search import maximise_for, report_of
from mercer.evidence import LatentObjective, Optimum

__all__ = ["naming_the_classes", "search_classes"]

_Result = TypeVar("_Result")


def search_classes(estimator: Any, objectives: Sequence[LatentObjective]) -> list[Optimum]:
    """Return where the hyperparameters of each objective are best.

    Of several objectives `n_jobs` are searched at once, each on a core of its own; of one that many
    starts. Ctrl-C ends the searches and keeps what they have: those that had not begun keep their
    starts. There is a warning where no class has two rows, from which something could be learned.
    """
    if estimator.optimizer is None:
        kept = "the hyperparameters were kept"
        return [Optimum(o.theta, np.nan, "fixed", kept) for o in objectives]
    if objectives[0].theta.size:
        _warn_if_single(objectives)
    rng = as_generator(estimator.random_state)
    report = report_of(estimator, len(objectives))
    if len(objectives) == 1:
        return [maximise_for(estimator, objectives[0], rng, report, estimator.n_jobs)]
    seeds = rng.integers(2**63, size=len(objectives))
    threads = min(effective_n_jobs(estimator.n_jobs), len(objectives))
    stop = threading.Event()

    def job(number: int) -> Callable[[], Optimum]:
        objective = objectives[number]

        def watched(start: int, count: int, value: float, best: float) -> None:
            if report is not None:
                report(number * (1 + estimator.n_restarts) + start, count, value, best)
            if stop.is_set():
                raise KeyboardInterrupt  # which a search takes as its end

        def run() -> Optimum:
            if stop.is_set():
                return Optimum(objective.theta, np.nan, "interrupted", "before it was searched")
            own = np.random.default_rng(seeds[number])
            return maximise_for(estimator, objective, own, watched, None)

        return run

    jobs = [job(number) for number in range(len(objectives))]
    with heard(stop):
        return run_together(jobs, threads) if threads > 1 else [run() for run in jobs]


def _warn_if_single(objectives: Sequence[LatentObjective]) -> None:
    Y = np.hstack([objective.data.Y for objective in objectives])  # the same in all rows of a class
    weights = objectives[0].data.weights
    # weights of less than 1 say that a row counts for less, not that it is not there
    counted_once = weights is None or np.all(weights <= 1.0)
    is_hard = np.all(np.isin(Y, (-1.0, 0.0, 1.0)))
    if counted_once and is_hard and len(np.unique(Y, axis=0)) == len(Y):
        warn(
            "no class has more than one row with a label, which says little of how the classes go "
            "with the inputs: probabilities mean little, be they even or certain. Give more of "
            "them, or what you know as a kernel with optimizer=None",
            UndeterminedWarning,
        )


def naming_the_classes(
    labels: Sequence[Any], calls: Sequence[Callable[[], _Result]]
) -> list[_Result]:
    """Call for each class against the rest, and then warn: once of what several have in common.

    All that stands at bounds is in one warning. What is not Mercer's own is passed on as it is.
    """
    results, said = [], dict[tuple[type[Warning], str], list[str]]()
    for label, call in zip(labels, calls, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MercerWarning)
            results.append(call())
        for warning in caught:
            who = said.setdefault((warning.category, str(warning.message)), [])
            if repr(label) not in who:
                who.append(repr(label))
    bounds = []
    for (category, text), who in said.items():
        names = f"class {who[0]}" if len(who) == 1 else f"classes {', '.join(who)}"
        own = f"{names} against the rest: {text}"
        if issubclass(category, BoundWarning):
            bounds.append(own)
        else:
            warn(own if issubclass(category, MercerWarning) else text, category)
    if bounds:
        warn(". ".join(bounds), BoundWarning)
    return results
