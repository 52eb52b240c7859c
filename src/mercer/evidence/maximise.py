"""Maximising an objective: L-BFGS-B from several starts, with Ctrl-C."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from mercer.compute import heard, run_together
from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError, warn
from mercer.evidence.optimum import Function, Optimum, Recorder, Report
from mercer.evidence.searchable import Searchable
from mercer.evidence.starts import starts
from mercer.linalg import JITTERS

__all__ = ["ITERATIONS", "lbfgs", "maximise"]

Floats = NDArray[np.float64]

# In units of the log evidence for each unit of log-parameter: what is left to gain is far below
# what a standard error of the parameters is worth.
GRADIENT_TOLERANCE = 1e-3
# A search ends at a step that gains less than `ftol` times the value or the first gradient's
# length, whichever is larger. It is the first of these, or the second divided by that length if
# that is less: a start of next to no noise among many rows has gradients of 1e10.
GAIN_TOLERANCE, LEAST_GAIN = 1e-8, 1e-4
# Pairs of steps and gradients kept: more than L-BFGS-B's ten, as an evaluation costs far more than
# they do. Fits of a dozen parameters then take a tenth to a quarter fewer evaluations.
_PAIRS = 30
# What to do where the covariance is too near to singular for the search to go on.
_MORE_NOISE = (
    "the best point is kept; fix a parameter, or give narrower bounds, noise a higher lower one"
)

# Over so many iterations the least gain is taken that an objective wants.
ITERATIONS = 10

#: As scikit-learn's: (function to minimise, start, bounds) -> (best theta, least value).
Optimizer = Callable[..., tuple[Floats, float]]
#: Why a start has no end.
Failure = NotPositiveDefiniteError | KeyboardInterrupt


def lbfgs(function: Recorder, start: Floats, bounds: Floats, max_iter: int) -> Optimum:
    """Run L-BFGS-B on the objective divided by the length of its first gradient.

    The first step of L-BFGS-B is the gradient itself, cut off by the bounds: with the gradients
    of a poor start, hundreds of units long, it lands in a corner of the box and stays there. In
    these units it is at most one unit of log-parameter long.

    It moves along the directions that the objective names, which are the components of theta where
    these have bounds. It ends too where iterations no longer gain what the objective wants. Ctrl-C
    is the caller's to take.
    """
    steps = function.directions
    within = steps.along(start)
    first: tuple[float, Floats] | None = function(start)
    assert first is not None
    unit = 1.0 / max(1.0, float(np.linalg.norm(steps.pull(first[1]))))

    def scaled(along: Floats) -> tuple[float, Floats]:
        nonlocal first
        if first is not None and np.array_equal(along, within):
            value, gradient = first
            first = None
        else:
            value, gradient = function(steps.theta(along))
        return unit * value, unit * steps.pull(gradient)

    heights: list[float] = []

    def gain() -> float | None:  # of the last iterations, if there were so many
        return heights[-1] - heights[-1 - ITERATIONS] if len(heights) > ITERATIONS else None

    def is_idle() -> bool:
        gained = gain()
        return gained is not None and gained < function.least_gain

    def end_if_idle(intermediate_result: OptimizeResult) -> None:
        heights.append(-float(intermediate_result.fun) / unit)
        if is_idle():
            raise StopIteration

    result = minimize(
        scaled,
        within,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=end_if_idle,
        options={
            "maxiter": max_iter,
            "maxfun": 10 * max_iter,
            "maxcor": _PAIRS,
            "ftol": min(GAIN_TOLERANCE, LEAST_GAIN * unit),
            "gtol": GRADIENT_TOLERANCE * unit,
        },
    )
    optimum = function.optimum("stopped", str(result.message), int(result.nit))
    # A line search that can do no better than rounding has converged for our purposes.
    if result.success or (result.status == 2 and optimum.is_flat):
        optimum.status = "converged"
    elif is_idle():
        optimum.status = "converged"
        optimum.message = f"{ITERATIONS} iterations gained less than {function.least_gain:g}"
    elif result.status == 2 and function.is_estimate():
        optimum.status = "converged"
        # value and gradient are estimates of their own, which differ by more than is left to gain
        optimum.message = "the line search found nothing better within the error of the estimates"
    elif result.status == 2:
        optimum.message = (
            "the line search found nothing better: rounding limits this fit, or the gradient of a "
            "kernel of your own is wrong"
        )
        optimum.remedy = _MORE_NOISE
    else:
        optimum.gain = gain()
    return optimum


def _run(
    recorder: Recorder, start: Floats, bounds: Floats, optimizer: str | Optimizer, max_iter: int
) -> Optimum:
    recorder.begin()
    try:
        if callable(optimizer):
            theta, _ = optimizer(recorder, start, bounds=bounds)
            recorder(np.asarray(theta, dtype=float))
            return recorder.optimum("converged", "ended by the given optimizer")
        return lbfgs(recorder, start, bounds, max_iter)
    except KeyboardInterrupt:
        if not recorder.values:
            raise
        return recorder.optimum("interrupted", "interrupted; the best point so far is kept")


def maximise(
    objective: Searchable,
    *,
    optimizer: str | Optimizer = "lbfgs",
    n_restarts: int = 0,
    max_iter: int = 200,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    report: Report | None = None,
) -> Optimum:
    """Maximise an objective over its bounds and return the best point of all starts.

    Parameters
    ----------
    objective : Objective, or another Searchable
        theta -> (value, gradient), and what a search needs beside that.
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
    report : callable, optional
        Called after each evaluation as ``report(start, count, value, best)``: the number of the
        start and of the evaluation there, both from 1, the value, and the best of that start so
        far. It is called on the thread that runs the start.

    Notes
    -----
    Ctrl-C ends the search and keeps the best point seen.

    An objective may say, given the best end of all starts, where to search once more.

    A search that runs up against matrices that cannot be factorised, rather than to where the
    objective is flat, goes on from its best point with the jitter that they need.
    """
    if objective.theta.size == 0:
        return Optimum(objective.theta, np.nan, "fixed", "there is nothing to optimise")
    rng = np.random.default_rng(random_state)
    points = starts(objective, n_restarts, rng)
    arguments = (objective.bounds, optimizer, max_iter)
    threads = min(effective_n_jobs(n_jobs), len(points))
    found: list[Optimum | Failure] = []
    if threads > 1:
        found = _together(objective, points, threads, arguments, report)
    else:
        for number, point in enumerate(points, 1):
            recorder = _recorder(objective, objective, report, number)
            found.append(_attempt(objective, recorder, point, *arguments))
            if _is_interrupted(found[-1]):
                break
    ended = [end for end in found if isinstance(end, Optimum)]
    if not ended:
        raise [end for end in found if not isinstance(end, Optimum)][-1]
    best = _best(ended)
    if any(map(_is_interrupted, found)):
        best.status = "interrupted"
    again = objective.again
    further = None if again is None or best.status == "interrupted" else again(best)
    if further is not None:
        recorder = _recorder(objective, objective, report, len(points) + 1)
        end = _attempt(objective, recorder, further, *arguments)
        best = _best([best, end]) if isinstance(end, Optimum) else best
        if _is_interrupted(end):
            best.status = "interrupted"
    if best.status == "interrupted":
        warn(
            f"the fit was interrupted after {best.n_evaluations} evaluations; the best parameters "
            "so far are kept",
            ConvergenceWarning,
        )
    return best


def _is_interrupted(end: Optimum | Failure) -> bool:
    if isinstance(end, Optimum):
        return end.status == "interrupted"
    return isinstance(end, KeyboardInterrupt)


def _recorder(
    objective: Searchable, function: Function, report: Report | None, number: int
) -> Recorder:
    directions, gain = objective.directions, getattr(objective, "least_gain", 0.0)

    def is_estimate() -> bool:  # which may be known after an evaluation only
        return bool(getattr(objective, "is_estimate", False))

    return Recorder(function, objective.bounds, report, number, directions, gain, is_estimate)


def _attempt(
    objective: Searchable, recorder: Recorder, start: Floats, *arguments: Any
) -> Optimum | Failure:
    """Run one start of the objective, as the recorder sees it; the error if there is no value.

    Jitter is held during a search, so that the objective stays continuous, and a step into
    matrices that cannot be factorised turns back. Only a search that ends at their edge is worth
    more of it. Of several ends the best is kept, and the objective as it was for the next start.
    """
    try:
        found = [_run(recorder, start, *arguments)]
    except (NotPositiveDefiniteError, KeyboardInterrupt) as error:  # before its first value
        return error
    held = found[0].jitter = objective.jitter
    for _ in JITTERS[1:]:
        last = found[-1]
        if not objective.failed or last.is_flat or last.status == "interrupted":
            break
        last.status, last.message = "stopped", "beyond it the covariance cannot be factorised"
        last.remedy, last.gain = _MORE_NOISE, None
        try:
            if not objective.take_jitter():
                break
            found.append(_run(recorder, last.theta, *arguments))
        except KeyboardInterrupt:
            last.status = "interrupted"
            break
        found[-1].jitter = objective.jitter
    objective.hold_jitter(held)
    return _best(found)


def _together(
    objective: Searchable,
    points: Sequence[Floats],
    threads: int,
    arguments: tuple[Any, ...],
    report: Report | None,
) -> list[Optimum | Failure]:
    """Run the starts on several threads, each with a copy of the objective.

    The first start that has a value decides beforehand what all of them share, such as jitter.
    Ctrl-C reaches only the caller's thread, which waits; it tells the others to stop, and they
    return the best they have.
    """
    for point in points:
        if np.isfinite(objective.value(point)):
            break
    stop = threading.Event()

    def job(point: Floats, number: int) -> Callable[[], Optimum | Failure]:
        own = copy.copy(objective)

        def evaluate(theta: Floats) -> tuple[float, Floats]:
            if stop.is_set():
                raise KeyboardInterrupt
            return own(theta)

        def run() -> Optimum | Failure:
            recorder = _recorder(own, evaluate, report, number)
            return _attempt(own, recorder, point, *arguments)

        return run

    jobs = [job(point, number) for number, point in enumerate(points, 1)]
    with heard(stop):
        return run_together(jobs, threads)


def _best(found: Sequence[Optimum]) -> Optimum:
    """Return the highest of several ends, with the evaluations of all."""
    best = max(found, key=lambda o: o.value)
    best.thetas = [theta for o in found for theta in o.thetas]
    best.values = [value for o in found for value in o.values]
    if any(o.status == "interrupted" for o in found):
        best.status = "interrupted"
    return best
