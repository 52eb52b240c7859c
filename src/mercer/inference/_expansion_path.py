"""Penalties along a path, and what each predicts of rows that were held out.

A penalty is judged by the mean log density of held-out rows, with what a fit would predict them by:
noise and error bars of the fold, or, for margins and others that `is_calibrated` names, a
calibration to the held-out rows of all folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference import laplacian
from mercer.inference._calibration import (
    Calibration,
    calibrate,
    is_calibrated,
    narrowing,
    size_of,
)
from mercer.inference._expansion_choice import held_out, held_out_functions
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_spread import calibrated_spread
from mercer.priors import Laplacian

__all__ = ["Comparison", "Path", "descending", "ends_in_rounding", "scored_path"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Penalties to a decade; how many a path begins with, and is prolonged by while the best is among
# the last ones.
_DECADE, _BEGIN, _MORE, _LAST = 5, 11, 6, 4
# Values of all functions at the rows of all folds, up to which solvers are kept.
_KEPT = 20_000_000


@dataclass(frozen=True)
class Comparison:
    """What penalties are compared by.

    problem : of all rows
    folds : (n,) numbers from 0
    weights : (n,) powers of the likelihood, by which rows that are held out count
    model : the likelihood of a solution; the link, for labels
    tol : the gap of solutions that serve to compare
    max_active : how many functions may be in use, None for any number
    """

    problem: ExpansionProblem
    folds: Indices
    weights: Floats
    model: NoiseModel
    tol: float
    max_active: int | None = None


class Path(NamedTuple):
    """A path of solutions of each fold.

    penalties : (q,) descending
    values : (q,) the mean log density of held-out rows; -infinity where a fold needs more functions
        than may be in use
    active : (q,) functions in use, the mean over the folds
    calibrations : of latent values at each penalty; None where these are not calibrated
    is_whole : whether no interrupt has left folds or penalties out
    has_room : whether the functions that may be in use are enough for one of the penalties
    """

    penalties: Floats
    values: Floats
    active: Floats
    calibrations: list[Calibration] | None = None
    is_whole: bool = True
    has_room: bool = True

    @property
    def best(self) -> int:
        """The number of the best penalty, the largest of those that are as good.

        A value that is no number counts as -infinity.
        """
        return int(np.argmax(np.where(np.isnan(self.values), -np.inf, self.values)))


def scored_path(by: Comparison, penalties: Floats) -> Path:
    """Return the path along penalties that descend, as far as predictions get better.

    Ctrl-C ends it with the folds, or the penalties, that are done; before there are any it is
    raised.
    """
    work = _Work(by)
    with laplacian.blas_of(by.problem, by.model.prior):
        work.prolong(penalties[:_BEGIN])
        while True:
            path = work.path()
            count = len(path.penalties)
            if count == len(penalties) or not path.is_whole or path.best < count - _LAST:
                return path
            work.prolong(penalties[count : count + _MORE])


def descending(most: float, count: int) -> Floats:
    """Return so many penalties from the largest down, five to a decade."""
    return np.asarray(most * 10.0 ** (-np.arange(count) / _DECADE))


def ends_in_rounding(problem: ExpansionProblem, prior: laplacian.Prior) -> bool:
    """Whether a path has no penalties beyond those of which the gap can be proved.

    Those of squares and Huber's loss have not: the gap grows as the penalty falls, with the
    rounding of residuals beside it, until solutions are anything. Elsewhere a gap may be missing
    for other reasons.
    """
    loss = problem.loss
    return prior is Laplacian and loss.kind in ("squares", "quadratic") and not loss.is_of_labels


class _Work:
    """Paths of all folds, which can be prolonged."""

    def __init__(self, by: Comparison) -> None:
        self.by = by
        folds = by.folds
        self.penalties, self.values, self.active = np.empty((3, 0))
        self.calibrations: list[Calibration] = []
        count = int(np.max(folds)) + 1
        self.solutions: list[list[Expansion]] = [[] for _ in range(count)]
        self.solvers: dict[int, laplacian.Solver] = {}
        self.used = [fold for fold in range(count) if self._tells(folds != fold)]
        self.is_whole = True

    @property
    def _calibrates(self) -> bool:
        loss = self.by.problem.loss
        return is_calibrated(loss.is_of_labels, loss.is_likelihood, self.by.model.prior)

    def _tells(self, rest: NDArray[np.bool_]) -> bool:
        """Whether rows can be learned from: of two classes, if they have labels."""
        loss = self.by.problem.loss
        return not loss.is_of_labels or bool(np.ptp(loss.y[rest]) > 0)

    def prolong(self, penalties: Floats) -> None:
        """Solve all folds for further penalties, less than those before.

        An interrupt leaves out the folds that were not done, or the penalties whose margins were
        not calibrated. If there were penalties before, all is as it was: means over some of the
        folds are not to be compared with those over all.
        """
        by, problem = self.by, self.by.problem
        shape = len(penalties), problem.n
        logs, mean, active = np.full(shape, -np.inf), np.zeros(shape), np.zeros(len(penalties))
        done: list[int] = []
        try:
            for fold in self.used:
                test = np.flatnonzero(by.folds == fold)
                train = problem.rows(np.flatnonzero(by.folds != fold))
                own = self._solved(fold, train, penalties)
                found = held_out(problem, test, train, own, penalties, by.model)
                logs[:, test] = found.logs
                sizes = [self._size(train, solution) for solution in own]
                mean[:, test] = found.mean / np.array(sizes)[:, None]
                active += found.active
                self.solutions[fold] += own
                done.append(fold)
        except KeyboardInterrupt:
            self.is_whole = False
            if len(self.penalties):
                return
            if not done:
                raise
            self.used = done
        seen = np.isin(by.folds, self.used)
        weights = by.weights[seen]
        values = logs[:, seen] @ weights / np.sum(weights)
        if self._calibrates:
            values = self._calibrated(penalties, mean, seen)
            if not len(values) and not len(self.penalties):
                raise KeyboardInterrupt
        count = len(values)
        self.values = np.concatenate([self.values, values])
        self.penalties = np.concatenate([self.penalties, penalties[:count]])
        self.active = np.concatenate([self.active, (active / len(done))[:count]])

    def _solved(self, fold: int, train: ExpansionProblem, penalties: Floats) -> list[Expansion]:
        """Return solutions of a fold; what they are made of is kept for the next, if it is small.

        Where it is not they begin with the last solution of the fold.
        """
        by, before = self.by, self.solutions[fold]
        solver = self.solvers.get(fold)
        if solver is None:
            start = before[-1] if before else None
            solver = laplacian.Solver(train, by.model.prior, by.tol, start, by.max_active)
            if by.problem.n * by.problem.columns.size * len(self.used) <= _KEPT:
                self.solvers[fold] = solver
        out = solver.path(penalties)
        if any(one.status == "interrupted" for one in out):  # of squares the last comes first
            raise KeyboardInterrupt
        return out

    def _size(self, train: ExpansionProblem, solution: Expansion) -> float:
        """Return by what a function is divided: 1 where latent values are not calibrated."""
        if not self._calibrates:
            return 1.0
        return size_of(solution.latent, train.weights, self.by.model.prior)

    def _calibrated(self, penalties: Floats, mean: Floats, seen: NDArray[np.bool_]) -> Floats:
        """Calibrate latent values (q, n) of held-out rows, and return what they are worth then.

        That is the mean log probability of labels as predictions have them, averages over error
        bars included. After an interrupt there are fewer values than penalties.
        """
        by, values = self.by, []
        y, weights, link = by.problem.loss.y[seen], by.weights[seen], by.model.now
        first = len(self.calibrations)
        try:
            for q, lam in enumerate(penalties):
                f = mean[q, seen]
                bars = calibrate(link, f, y, weights)
                var = self._variances(first + q, float(lam), Calibration(*bars, bars))[seen]
                own = Calibration(*calibrate(link, f, y, weights, narrowing(link, var)), bars)
                logs = link.log_predictive(y, own.latent(f), var)
                values.append(float(weights @ logs / np.sum(weights)))
                self.calibrations.append(own)
        except KeyboardInterrupt:
            self.is_whole = False
        return np.array(values)

    def _variances(self, q: int, lam: float, calibration: Calibration) -> Floats:
        """Return the variances (n,) of latent values of held-out rows at one of the penalties."""
        by, problem = self.by, self.by.problem
        out = np.zeros(problem.n)
        for fold in self.used:
            test = np.flatnonzero(by.folds == fold)
            train = problem.rows(np.flatnonzero(by.folds != fold))
            model, solution = by.model, self.solutions[fold][q]
            own = calibration.of(self._size(train, solution))
            spread = calibrated_spread(train, solution, model.now, model.prior, lam, own)
            out[test] = spread.var(held_out_functions(problem, test, solution.indices))
        return out

    def path(self) -> Path:
        """Return what there is."""
        certified = self._are_certified()
        judged, room = self.values, self.by.max_active is None or bool(np.any(certified))
        if self.by.max_active is not None:
            judged = np.where(certified, self.values, -np.inf)
        elif ends_in_rounding(self.by.problem, self.by.model.prior) and np.any(certified):
            last = np.flatnonzero(certified)[-1]
            judged = np.where(np.arange(len(certified)) <= last, self.values, -np.inf)
        calibrations = self.calibrations if self._calibrates else None
        return Path(self.penalties, judged, self.active, calibrations, self.is_whole, room)

    def _are_certified(self) -> NDArray[np.bool_]:
        """Return for each penalty whether the solutions of all folds are."""
        count = len(self.penalties)
        statuses = [[one.status for one in self.solutions[fold][:count]] for fold in self.used]
        return np.asarray(np.all(np.array(statuses) == "certified", axis=0))
