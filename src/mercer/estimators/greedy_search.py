"""The hyperparameters of a greedy fit: the search for them, and what Ctrl-C leaves of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.greedy_options import most_of
from mercer.estimators.greedy_problem import MergedRows, engine_of, objective_of
from mercer.estimators.prepare_exact import Begun
from mercer.estimators.prepare_sparse import by_sample
from mercer.estimators.search import maximise_for, search
from mercer.evidence import Optimum
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import SparseObjective

__all__ = ["Search"]

# Basis functions of the searches for hyperparameters at the most: an evaluation takes O(n m^2).
_SEARCHED = 500
# The tolerance with which these are chosen, as a part of that which is to be proved: the evidence
# asks for more of the variance to be explained than the mean does.
_FINER = 0.1
# Searches at the most, each on rows chosen under what the last one found, and what another choice
# must gain in log evidence for there to be another search.
_ROUNDS, _GAIN = 3, 0.1


class Search:
    """The search for hyperparameters: those that maximise DTC's evidence, rows chosen in turn.

    Ctrl-C ends it once there was an evaluation of any of its objectives, and `begun` has the best
    hyperparameters so far.
    """

    def __init__(
        self,
        estimator: Any,
        begun: Begun,
        seed: int,
        rng: np.random.Generator,
        columns: list[str] | None,
        report: Report | None,
    ) -> None:
        self.estimator, self.begun, self.seed, self.rng = estimator, begun, seed, rng
        self.columns, self.report = columns, report
        self._optimum: Optimum | None = None

    def run(self) -> Optimum:
        """Return where it ended."""
        if not self.begun.warm:
            # If this is broken off before it has a value, there is nothing to keep.
            self.begun, broken = by_sample(self.begun, _SEARCHED, self.rng, self.report)
            if broken:
                return self._interrupted()
        try:
            return self._rounds()
        except KeyboardInterrupt:
            if self.begun.warm and self._optimum is None:
                raise  # the last fit is what there is
            warn(
                "the search was interrupted; the best hyperparameters so far are kept",
                ConvergenceWarning,
            )
            return self._interrupted()

    def _interrupted(self) -> Optimum:
        if self._optimum is not None:
            return replace(self._optimum, status="interrupted")
        begun = self.begun
        theta = np.concatenate([begun.kernel.theta, begun.likelihood.theta])
        return Optimum(theta, np.nan, "interrupted", "interrupted; the best so far is kept")

    def _rounds(self) -> Optimum:
        estimator, report = self.estimator, self.report
        objective = _chosen(estimator, self.begun, self.seed, report)
        optimum = search(estimator, objective, self.begun.undetermined, self.columns, report)
        self._take(objective, optimum)
        for _ in range(_ROUNDS - 1):
            if optimum.status == "interrupted":
                break
            objective = _chosen(estimator, self.begun, self.seed, report)
            if not objective.value(objective.theta) > optimum.value + _GAIN:
                break
            another = maximise_for(estimator, objective, self.rng, report, estimator.n_jobs)
            objective.release()
            optimum = replace(
                another,
                thetas=[*optimum.thetas, *another.thetas],
                values=[*optimum.values, *another.values],
                n_iterations=optimum.n_iterations + another.n_iterations,
            )
            self._take(objective, optimum)
        return optimum

    def _take(self, objective: SparseObjective, optimum: Optimum) -> None:
        kernel, likelihood, _ = objective.unpack(optimum.theta)
        begun = self.begun._replace(kernel=kernel, likelihood=likelihood)
        self.begun, self._optimum = begun, optimum


def _chosen(estimator: Any, begun: Begun, seed: int, report: Report | None) -> SparseObjective:
    """Return DTC's objective on rows that may do; KeyboardInterrupt if the choice is broken off."""
    rows = MergedRows.of(begun)
    engine = engine_of(estimator, begun, rows, rows.start(), seed)
    most = min(most_of(estimator, len(rows.X)), _SEARCHED)
    tell(report, f"choosing rows for a search, {most} at the most")
    solution = engine.grow(_FINER * float(estimator.tol), most, certify=False)
    if solution.status == "interrupted":
        raise KeyboardInterrupt
    return objective_of(begun, rows.first[solution.indices])
