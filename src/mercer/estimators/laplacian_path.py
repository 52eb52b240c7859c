"""Penalties along a path, and what each predicts of rows that were held out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference import laplacian
from mercer.inference._expansion_choice import NoiseModel, held_out
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._margin_calibration import calibrate

__all__ = ["Path", "scored_path"]

Floats = NDArray[np.float64]

# Penalties to a decade; how many a path begins with, and is prolonged by while the best is among
# the last ones.
_DECADE, _BEGIN, _MORE, _LAST = 5, 11, 6, 4


class Path(NamedTuple):
    """A path of solutions of each fold.

    penalties : (q,) descending
    values : (q,) the mean log density of held-out rows; -infinity where a fold needs more functions
        than may be in use
    active : (q,) functions in use, the mean over the folds
    mean : (q, n) the function at each row, from the fold that does not have it
    solutions : for each fold those of all penalties, none if it was left out
    seen : (n,) whether a row was predicted
    is_whole : whether no interrupt has left folds out
    """

    penalties: Floats
    values: Floats
    active: Floats
    mean: Floats
    solutions: list[list[Expansion]]
    seen: NDArray[np.bool_]
    is_whole: bool = True

    @property
    def best(self) -> int:
        """The number of the best penalty, the largest of those that are as good.

        A value that is no number counts as -infinity.
        """
        return int(np.argmax(np.where(np.isnan(self.values), -np.inf, self.values)))


def scored_path(
    problem: ExpansionProblem,
    targets: Any,
    model: NoiseModel,
    options: Any,
    most: float,
    tol: float,
    given: float | None = None,
) -> Path:
    """Return the path from the largest penalty down, as far as predictions get better.

    `most` is the penalty at which no function is in use; with `given` there is that one alone.
    """
    work = _Work(problem, targets, model, options, tol)
    if given is not None:
        work.prolong(np.array([given]))
        return work.path()
    limit = int(options.n_penalties)
    penalties = most * 10.0 ** (-np.arange(limit) / _DECADE)
    work.prolong(penalties[:_BEGIN])
    while True:
        path = work.path()
        count = len(path.penalties)
        if count == limit or not path.is_whole or path.best < count - _LAST:
            return path
        work.prolong(penalties[count : count + _MORE])


class _Work:
    """Paths of all folds, which can be prolonged."""

    def __init__(
        self, problem: ExpansionProblem, targets: Any, model: NoiseModel, options: Any, tol: float
    ) -> None:
        self.problem, self.targets, self.model = problem, targets, model
        self.options, self.tol = options, tol
        self.penalties = np.empty(0)
        n, folds = problem.n, targets.folds
        self.logs, self.mean = np.empty((0, n)), np.empty((0, n))
        self.active = np.empty(0)
        count = int(np.max(folds)) + 1
        self.solutions: list[list[Expansion]] = [[] for _ in range(count)]
        self.used = [fold for fold in range(count) if self._tells(folds != fold)]
        self.is_whole = True

    def _tells(self, rest: NDArray[np.bool_]) -> bool:
        """Whether rows can be learned from: of two classes, if they have labels."""
        y = self.targets.y[rest]
        return not self.problem.loss.is_of_labels or bool(np.ptp(y) > 0)

    def prolong(self, penalties: Floats) -> None:
        """Solve all folds for further penalties, less than those before.

        An interrupt leaves the folds that were not done; if none was, all is as it was before.
        """
        shape = len(penalties), self.problem.n
        logs, mean, active = np.full(shape, -np.inf), np.zeros(shape), np.zeros(len(penalties))
        done: list[int] = []
        try:
            for fold in self.used:
                test = np.flatnonzero(self.targets.folds == fold)
                train = self.problem.rows(np.flatnonzero(self.targets.folds != fold))
                own = self._solved(train, penalties, self.solutions[fold])
                found = held_out(self.problem, test, train, own, penalties, self.model)
                logs[:, test], mean[:, test] = found.logs, found.mean
                active += found.active
                self.solutions[fold] += own
                done.append(fold)
        except KeyboardInterrupt:
            self.is_whole = False
            if not done and not len(self.penalties):
                raise
            if not done:
                return
            self.used = done
        self.penalties = np.concatenate([self.penalties, penalties])
        self.logs, self.mean = np.vstack([self.logs, logs]), np.vstack([self.mean, mean])
        self.active = np.concatenate([self.active, active / len(done)])

    def _solved(
        self, train: ExpansionProblem, penalties: Floats, before: list[Expansion]
    ) -> list[Expansion]:
        options = self.options
        out = laplacian.path(
            train,
            penalties,
            tol=self.tol,
            prior=options.prior,
            start=before[-1] if before else None,
            max_active=options.max_active,
        )
        if out[-1].status == "interrupted":
            raise KeyboardInterrupt
        return out

    def path(self) -> Path:
        """Return what there is."""
        targets, model = self.targets, self.model
        seen = np.isin(targets.folds, self.used)
        weights = targets.weights[seen]
        if targets.is_margin:
            y = targets.y[seen]
            values = [calibrate(model.now, f[seen], y, weights).value for f in self.mean]
        else:
            values = self.logs[:, seen] @ weights / np.sum(weights)
        solutions = [own if fold in self.used else [] for fold, own in enumerate(self.solutions)]
        judged = np.where(self._has_room(), np.asarray(values), -np.inf)
        record = self.penalties, judged, self.active, self.mean, solutions
        return Path(*record, seen, self.is_whole)

    def _has_room(self) -> NDArray[np.bool_]:
        """Return for each penalty whether `max_active` has not cut off the solution of a fold."""
        if self.options.max_active is None:
            return np.ones(len(self.penalties), dtype=bool)
        statuses = [[one.status for one in self.solutions[fold]] for fold in self.used]
        return np.asarray(np.all(np.array(statuses) == "certified", axis=0))
