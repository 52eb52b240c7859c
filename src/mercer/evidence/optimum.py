"""What a search has seen, and where it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.directions import Directions

__all__ = ["Again", "Function", "Lines", "Optimum", "Recorder", "Report", "tell"]

Floats = NDArray[np.float64]

Function = Callable[[Floats], tuple[float, Floats]]
#: Told of each evaluation: the start and the count of evaluations there, both from 1, the value,
#: and the best value of that start so far.
Report = Callable[[int, int, float, float], None]


@dataclass
class Optimum:
    """Where a maximisation ended.

    theta, value : the best point seen, and the objective there
    status : "converged", "stopped" (budget or line search), "interrupted", "fixed" (nothing free)
    message, remedy : the optimiser's words, and what to do where it stopped
    thetas, values : every evaluation, in order
    n_iterations : of the optimiser, at the start that won
    slope : of the objective at theta, along the steepest direction that is not at a bound
    jitter : with which the objective was evaluated there; None if it never was
    gain : of the last ten iterations, where the budget ended a search that had them; None otherwise
    """

    theta: Floats
    value: float
    status: str = "converged"
    message: str = ""
    thetas: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iterations: int = 0
    slope: float = 0.0
    jitter: float | None = None
    remedy: str = "raise max_iter, or give starts and bounds that suit the data"
    gain: float | None = None

    @property
    def is_flat(self) -> bool:
        """Whether a line search could gain nothing but rounding."""
        return self.slope <= 1e-4 * (1.0 + abs(self.value))

    @property
    def n_evaluations(self) -> int:
        """How often the objective was evaluated."""
        return len(self.values)


#: Where to search once more, given where all starts have ended; None for nowhere.
Again = Callable[[Optimum], Floats | None]


@dataclass(frozen=True)
class Lines:
    """A report that writes a line an evaluation, and a line a stage of a fit, to standard error.

    n_starts : how many starts there are, as far as that is known beforehand
    began : when, by `time.perf_counter`
    """

    n_starts: int = 1
    began: float = field(default_factory=time.perf_counter)

    def __call__(self, start: int, count: int, value: float, best: float) -> None:
        """Write a line."""
        starts = max(self.n_starts, start)
        label = f"start {start}/{starts}, " if starts > 1 else ""
        self.write(f"{label}evaluation {count}: {value:.4f} (best {best:.4f})")

    def write(self, text: str) -> None:
        """Write this, and how long it has been."""
        seconds = time.perf_counter() - self.began
        sys.stderr.write(f"mercer: {text}, {seconds:.1f} s\n")


def tell(report: Report | None, stage: str) -> None:
    """Tell of what a fit does next, where lines are written; other reports know evaluations."""
    if isinstance(report, Lines):
        report.write(stage)


class Recorder:
    """Wraps an objective for a minimiser: negates, records, reports, and remembers the best.

    A start may take several searches, one after the other. `begin` opens a new record for each;
    what is reported goes on through all of them. `least_gain` is what ten iterations must gain for
    a search to go on. `is_estimate` says whether values and gradients are estimates, which differ
    by their errors.
    """

    def __init__(
        self,
        function: Function,
        bounds: Floats,
        report: Report | None = None,
        start: int = 1,
        directions: Directions | None = None,
        least_gain: float = 0.0,
        is_estimate: Callable[[], bool] = lambda: False,
    ) -> None:
        self.function, self.bounds, self.least_gain = function, bounds, least_gain
        self.is_estimate = is_estimate
        self.directions = Directions(len(bounds)) if directions is None else directions
        self.report, self.start = report, start
        self.count, self.best = 0, -np.inf  # of all searches
        self.begin()

    def begin(self) -> None:
        """Open the record of another search."""
        self.thetas: list[Floats] = []
        self.values: list[float] = []
        self.gradient = np.empty(0)  # at the best of them

    def __call__(self, theta: Floats, eval_gradient: bool = True) -> Any:
        """Return what is to be minimised, and its gradient."""
        value, gradient = self.function(theta)
        if not self.values or value > max(self.values):
            self.gradient = gradient
        self.thetas.append(np.array(theta))
        self.values.append(value)
        self.count, self.best = self.count + 1, max(self.best, value)
        if self.report is not None:
            self.report(self.start, self.count, value, self.best)
        return (-value, -gradient) if eval_gradient else -value

    def optimum(self, status: str, message: str, iterations: int | None = None) -> Optimum:
        """Return the best point of this search so far."""
        best = int(np.argmax(self.values))
        iterations = len(self.values) if iterations is None else iterations
        theta, value = self.thetas[best], self.values[best]
        inside = (theta > self.bounds[:, 0]) & (theta < self.bounds[:, 1])
        along = self.directions.pull(self.gradient)
        slope = float(np.max(np.abs(along[inside]), initial=0.0))
        return Optimum(theta, value, status, message, self.thetas, self.values, iterations, slope)
