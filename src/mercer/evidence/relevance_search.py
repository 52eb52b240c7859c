"""Parameters of kernels, and centres, by the evidence of relevance vectors (UV section 10.2).

Which functions are in the model is decided by the sparse algorithm; with these held the evidence is
smooth in the parameters of the kernels and in the centres, and L-BFGS-B goes up it, precisions and
noise following. Both are done in turn, each from where the other has ended, so that the penalised
evidence never decreases. It has many local optima in the width of the functions: the sparse
algorithm is run at several of these first, and the best of them are gone on with.

The evidence alone is no judge of widths. Functions so narrow that each is of one row have
precisions that follow single targets, and more evidence than noise has: n of them gain 0.6 n nats
on targets that are nothing but noise. Models are compared by their evidence less a charge for each
function: as by Akaike's criterion, a nat for its precision and one for its centre, or by Schwarz's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.maximise import lbfgs
from mercer.evidence.optimum import Recorder, Report, tell
from mercer.evidence.relevance_engines import Machine, Machines
from mercer.evidence.relevance_functions import Dictionary

__all__ = ["Ended", "Search", "width_starts"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Iterations that the parameters move before the functions are looked at again; rounds of both at
# the most; and what a round must gain for the next, in nats.
_ITERATIONS, _ROUNDS, _GAIN = 12, 12, 0.1
# Widths are gone through from wide to narrow functions, up to models with this part of the rows, or
# two in a row that score so much less than the best.
_MANY, _WORSE = 1.0 / 3.0, 20.0
# A climb ends where the score is below the best by the charge of so many functions.
_LOST = 10.0
# What a value that cannot be had counts below the start.
_PENALTY = 1e4


class Ended(NamedTuple):
    """Where a search has ended.

    functions : with the parameters and centres that were found
    machines : models of all targets
    value : penalised evidence, hyperpriors of the kernels included
    score : the same less what the functions are charged
    status : "converged", "stopped" after so many iterations as there may be, or "interrupted"
    """

    functions: Dictionary
    machines: list[Machine]
    value: float
    score: float
    status: str = "converged"


@dataclass
class Search:
    """A search, and what it has seen.

    machines : the engine with its targets
    bounds : (p, 2) of the kernels' parameters
    tol : nats that a step of the sparse algorithm must gain
    charge : nats for each function, where models are compared
    max_iter : iterations in the parameters from a start at the most
    centres : whether centres move too
    widths : (d,) units of the columns of the inputs, in which they do
    report : whom to tell of evaluations
    """

    machines: Machines
    bounds: Floats
    tol: float
    charge: float
    max_iter: int
    centres: bool = False
    widths: Floats | None = None
    report: Report | None = None
    thetas: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    start: int = 1

    def best_of(
        self,
        functions: Dictionary,
        starts: Sequence[Floats],
        narrowing: Sequence[Floats],
        tries: int,
        rich: bool = False,
    ) -> Ended:
        """Return the best end of so many starts that score highest, and that of most functions.

        The last, if `rich`: many functions can tell of columns that few cannot, but take longer.
        All of `starts` are tried; then `narrowing`, from wide functions to narrow ones, until there
        are too many of these, or two in a row are much worse than others of them.
        """
        begun: list[Ended] = []
        n = len(functions.X)
        stopped = False
        for theta in [*starts, *narrowing]:
            try:
                at = self.solved(functions.with_theta(np.clip(theta, *self.bounds.T)), None)
            except KeyboardInterrupt:
                if not begun:
                    raise
                stopped = True
                break
            begun.append(at)
            if at.status == "interrupted":
                break
            ordered = begun[len(starts) :]
            if len(ordered) < 2:
                continue
            many = max(len(machine.fit.indices) for machine in at.machines) > _MANY * n
            top = max(end.score for end in ordered)
            if many or all(end.score < top - _WORSE for end in ordered[-2:]):
                break
        begun.sort(key=lambda end: -end.score)
        others = [end for end in begun[tries:] if rich and _count(end.machines) <= _MANY * n]
        others.sort(key=lambda end: -_count(end.machines))
        best = begun[0]
        if stopped or any(end.status == "interrupted" for end in begun):
            return best._replace(status="interrupted")
        for number, begin in enumerate([*begun[:tries], *others[:1]]):
            self.start = number + 1
            end = self.climb(begin)
            if number == 0 or end.score > best.score:
                best = end
            if end.status == "interrupted":
                return best._replace(status="interrupted")
        return best

    def solved(self, functions: Dictionary, start: Sequence[Machine] | None) -> Ended:
        """Return what the sparse algorithm makes of functions as they are."""
        found = self.machines.solve(functions.columns(), start, self.tol)
        value = functions.log_prior + sum(machine.fit.objective for machine in found)
        status = "converged"
        if any(machine.fit.status == "interrupted" for machine in found):
            status = "interrupted"
        try:
            self._seen(functions.theta, value)
        except KeyboardInterrupt:  # whoever is told may be who interrupts
            status = "interrupted"
        return Ended(functions, found, value, value - self.charge * _count(found), status)

    def _seen(self, theta: Floats, value: float) -> None:
        self.thetas.append(np.array(theta))
        self.values.append(float(value))
        if self.report is not None:
            self.report(self.start, len(self.values), value, max(self.values))

    def climb(self, at: Ended, rounds: int = _ROUNDS) -> Ended:
        """Move parameters and choose functions in turn, until that gains little.

        The evidence never decreases; of all that is passed the best by its score is returned.
        """
        left, best = self.max_iter, at
        for _ in range(rounds):
            if left < 1:
                return best._replace(status="stopped")
            try:
                moved, start, taken = self._move(at, min(left, _ITERATIONS))
                left -= taken
                end = self.solved(moved, start)
            except KeyboardInterrupt:
                return best._replace(status="interrupted")
            tell(self.report, f"{_count(end.machines)} functions, evidence {end.value:.4f}")
            gain = end.value - at.value
            if gain > 0:
                at = end
                best = end if end.score > best.score else best
            if end.status == "interrupted":
                return best._replace(status="interrupted")
            if gain < _GAIN or at.score < best.score - _LOST * self.charge:
                break
        return best

    def _move(self, at: Ended, iterations: int) -> tuple[Dictionary, list[Machine], int]:
        """Move parameters, and centres, with the functions held."""
        functions, machines = at.functions, at.machines
        indices = np.unique(np.concatenate([machine.fit.indices for machine in machines]))
        sections = functions.split(indices)[0]
        p = functions.theta.size
        units = np.ones(1) if self.widths is None else self.widths
        points = [functions.centres_of(k)[own] for k, own in enumerate(sections)]
        shapes = [np.shape(own) for own in points] if self.centres else []
        first = [functions.theta, *(np.ravel(own / units) for own in points if self.centres)]
        best: tuple[float, Dictionary, list[Machine]] | None = None

        def moved(u: Floats) -> Dictionary:
            new = functions.with_theta(u[:p])
            if not self.centres:
                return new
            ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]) + p
            own = [
                u[a:b].reshape(shape) * units
                for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
            ]
            return new.with_centres(indices, own)

        def value(u: Floats) -> tuple[float, Floats]:
            nonlocal best
            new = moved(u)
            Phi = new.columns().take(indices)
            found = self.machines.held(Phi, indices, machines)
            if found is None or not np.isfinite(found[0]):
                return at.value - _PENALTY, np.zeros(u.size)
            total = found[0] + new.log_prior
            theta, centres = new.pull(indices, found[1], self.centres)
            gradient = [theta + new.log_prior_gradient]
            gradient += [np.ravel(own * units) for own in centres if self.centres]
            if best is None or total > best[0]:
                best = total, new, found[2]
            self._seen(u[:p], total)
            return total, np.concatenate(gradient)

        u = np.concatenate(first)
        bounds = np.full((u.size, 2), [-np.inf, np.inf])
        bounds[:p] = self.bounds
        end = lbfgs(Recorder(value, bounds), u, bounds, iterations)
        if best is None:
            return functions, machines, end.n_iterations
        return best[1], best[2], end.n_iterations


def _count(machines: Sequence[Machine]) -> int:
    return sum(len(machine.fit.indices) for machine in machines)


def width_starts(functions: Dictionary, factors: Sequence[float]) -> list[Floats]:
    """Return the parameters with all length scales times each of the factors, the widest first.

    Without length scales they are as they are.
    """
    names = [name for kernel in functions.kernels for name in kernel.parameter_names]
    width = np.array(["length_scale" in name for name in names], dtype=bool)
    if not np.any(width):
        return [functions.theta]
    return [functions.theta + np.log(factor) * width for factor in sorted(factors, reverse=True)]
