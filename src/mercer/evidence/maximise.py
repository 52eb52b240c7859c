"""Maximising an objective: L-BFGS-B from several starts, with history, progress and Ctrl-C."""

from __future__ import annotations

import copy
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.compute import run_together
from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError

__all__ = ["Optimum", "maximise", "starts"]

Floats = NDArray[np.float64]

# In units of the log evidence for each unit of log-parameter: what is left to gain is far below
# what a standard error of the parameters is worth.
_GRADIENT_TOLERANCE = 1e-3
# The least relative gain of a step, in the same units divided by the first gradient's length.
_GAIN_TOLERANCE = 1e-8

Function = Callable[[Floats], tuple[float, Floats]]
#: As scikit-learn's: (function to minimise, start, bounds) -> (best theta, least value).
Optimizer = Callable[..., tuple[Floats, float]]


@dataclass
class Optimum:
    """Where a maximisation ended.

    theta, value : the best point seen, and the objective there
    status : "converged", "stopped" (budget or line search), "interrupted", "fixed" (nothing free)
    message : the optimiser's words
    thetas, values : every evaluation, in order
    n_iterations : of the optimiser, at the start that won
    """

    theta: Floats
    value: float
    status: str = "converged"
    message: str = ""
    thetas: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iterations: int = 0

    @property
    def n_evaluations(self) -> int:
        """How often the objective was evaluated."""
        return len(self.values)


class _Recorder:
    """Wraps an objective for a minimiser: negates, records, reports, and remembers the best."""

    def __init__(self, function: Function, verbose: int, label: str) -> None:
        self.function, self.verbose, self.label = function, verbose, label
        self.thetas: list[Floats] = []
        self.values: list[float] = []
        self.started = time.perf_counter()

    def __call__(self, theta: Floats, eval_gradient: bool = True) -> Any:
        value, gradient = self.function(theta)
        self.thetas.append(np.array(theta))
        self.values.append(value)
        if self.verbose:
            seconds = time.perf_counter() - self.started
            best = max(self.values)
            text = f"{self.label}evaluation {len(self.values)}: {value:.4f} (best {best:.4f})"
            sys.stderr.write(f"mercer: {text}, {seconds:.1f} s\n")
        return (-value, -gradient) if eval_gradient else -value

    def optimum(self, status: str, message: str, iterations: int | None = None) -> Optimum:
        best = int(np.argmax(self.values))
        iterations = len(self.values) if iterations is None else iterations
        found = self.thetas[best], self.values[best]
        return Optimum(*found, status, message, self.thetas, self.values, iterations)


def starts(objective: Any, n_restarts: int, rng: np.random.Generator) -> list[Floats]:
    """Return the objective's own start, and `n_restarts` random ones.

    These are drawn from around it (see `Parametrised.draw_theta`) and kept inside the bounds.
    """
    low, high = objective.bounds.T
    points = [objective.theta, *(objective.draw_theta(rng) for _ in range(n_restarts))]
    return [np.clip(point, low, high) for point in points]


def _lbfgs(function: _Recorder, start: Floats, bounds: Floats, max_iter: int) -> Optimum:
    """Run L-BFGS-B on the objective divided by the length of its first gradient.

    The first step of L-BFGS-B is the gradient itself, cut off by the bounds: with the gradients
    of a poor start, hundreds of units long, it lands in a corner of the box and stays there. In
    these units it is at most one unit of log-parameter long.
    """
    first: tuple[float, Floats] | None = function(start)
    assert first is not None
    unit = 1.0 / max(1.0, float(np.linalg.norm(first[1])))

    def scaled(theta: Floats) -> tuple[float, Floats]:
        nonlocal first
        if first is not None and np.array_equal(theta, start):
            value, gradient = first
            first = None
        else:
            value, gradient = function(theta)
        return unit * value, unit * gradient

    result = minimize(
        scaled,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={
            "maxiter": max_iter,
            "maxfun": 10 * max_iter,
            "ftol": _GAIN_TOLERANCE,
            "gtol": _GRADIENT_TOLERANCE * unit,
        },
    )
    # A line search that can do no better than rounding has converged for our purposes.
    inside = (result.x > bounds[:, 0]) & (result.x < bounds[:, 1])
    steepest = np.max(np.abs(np.asarray(result.jac)[inside]), initial=0.0) / unit
    flat = steepest <= 1e-4 * (1.0 + abs(result.fun) / unit)
    status = "converged" if result.success or (result.status == 2 and flat) else "stopped"
    return function.optimum(status, str(result.message), int(result.nit))


def _run(
    function: Function,
    start: Floats,
    bounds: Floats,
    optimizer: str | Optimizer,
    max_iter: int,
    verbose: int,
    label: str,
) -> Optimum:
    recorder = _Recorder(function, verbose, label)
    try:
        if callable(optimizer):
            theta, _ = optimizer(recorder, start, bounds=bounds)
            recorder(np.asarray(theta, dtype=float))
            return recorder.optimum("converged", "ended by the given optimizer")
        return _lbfgs(recorder, start, bounds, max_iter)
    except KeyboardInterrupt:
        if not recorder.values:
            raise
        return recorder.optimum("interrupted", "interrupted; the best point so far is kept")


def maximise(
    objective: Any,
    *,
    optimizer: str | Optimizer = "lbfgs",
    n_restarts: int = 0,
    max_iter: int = 200,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    verbose: int = 0,
) -> Optimum:
    """Maximise an objective over its bounds and return the best point of all starts.

    Parameters
    ----------
    objective : callable with `theta`, `bounds` and `parameter_names`
        theta -> (value, gradient).
    optimizer : "lbfgs" or callable
        A callable is used as scikit-learn uses one: ``optimizer(minimised, start, bounds=...)``.
    n_restarts : int
        How many random starts to try beside the objective's own.
    max_iter : int
        Iterations for each start.
    n_jobs : int, optional
        How many starts to run at once, each on a thread and a core of its own; -1 is one for each
        core, None one after the other.
    random_state : int, generator or None
        For the random starts.
    verbose : int
        1 writes a line an evaluation to standard error.

    Notes
    -----
    Ctrl-C ends the search and keeps the best point seen.
    """
    if objective.theta.size == 0:
        return Optimum(objective.theta, np.nan, "fixed", "there is nothing to optimise")
    rng = np.random.default_rng(random_state)
    points = starts(objective, n_restarts, rng)
    labels = [f"start {i + 1}/{len(points)}, " if n_restarts else "" for i in range(len(points))]
    arguments = (objective.bounds, optimizer, max_iter, verbose)
    threads = min(effective_n_jobs(n_jobs), len(points))
    if threads > 1:
        found = _together(objective, points, labels, threads, arguments)
    else:
        found = []
        for point, label in zip(points, labels, strict=True):
            found.append(_attempt(objective, point, *arguments, label))
            if found[-1] is not None and found[-1].status == "interrupted":
                break
    ended = [optimum for optimum in found if optimum is not None]
    if not ended:
        objective(points[0])  # to let the reason come out
        raise NotPositiveDefiniteError("no start of the optimisation could be evaluated")
    return _best(ended)


def _attempt(objective: Any, start: Floats, *arguments: Any) -> Optimum | None:
    """Run one start; None if the objective cannot be evaluated there."""
    try:
        return _run(objective, start, *arguments)
    except NotPositiveDefiniteError:
        return None


def _together(
    objective: Any,
    points: Sequence[Floats],
    labels: Sequence[str],
    threads: int,
    arguments: tuple[Any, ...],
) -> list[Optimum | None]:
    """Run the starts on several threads, each with a copy of the objective.

    The first start that can be evaluated is, beforehand: it decides what all of them share, such
    as jitter. Ctrl-C reaches only the caller's thread, which waits; it tells the others to stop,
    and they return the best they have.
    """
    known: dict[bytes, tuple[float, Floats]] = {}
    for point in points:
        try:
            known[point.tobytes()] = objective(point)
            break
        except NotPositiveDefiniteError:
            continue
    stop = threading.Event()

    def stoppable(function: Function) -> Function:
        def evaluate(theta: Floats) -> tuple[float, Floats]:
            if stop.is_set():
                raise KeyboardInterrupt
            return known.pop(theta.tobytes(), None) or function(theta)

        return evaluate

    def job(point: Floats, label: str) -> Callable[[], Optimum | None]:
        function = stoppable(copy.copy(objective))
        return lambda: _stopped(function, point, *arguments, label)

    jobs = [job(point, label) for point, label in zip(points, labels, strict=True)]
    previous = None
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        previous = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        return run_together(jobs, threads)
    finally:
        if in_main:
            signal.signal(signal.SIGINT, previous)


def _stopped(function: Function, start: Floats, *arguments: Any) -> Optimum | None:
    """As `_attempt`; None too for a start that was stopped before its first evaluation."""
    try:
        return _attempt(function, start, *arguments)
    except KeyboardInterrupt:
        return None


def _best(found: Sequence[Optimum]) -> Optimum:
    best = max(found, key=lambda o: o.value)
    best.thetas = [theta for o in found for theta in o.thetas]
    best.values = [value for o in found for value in o.values]
    if any(o.status == "interrupted" for o in found):
        best.status = "interrupted"
        warnings.warn(
            f"the fit was interrupted after {best.n_evaluations} evaluations; the best parameters "
            "so far are kept",
            ConvergenceWarning,
            stacklevel=3,
        )
    return best
