"""How expectation propagation comes to its sites: where they begin, and until when they move.

Not an engine; `ep` has the model and the notation, and `_propagation` the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._problem import LatentProblem
from mercer.inference._propagation import Moments, Propagation

__all__ = ["SiteState", "Solution", "check", "find_sites", "powers"]

Floats = NDArray[np.float64]
Sweep = Callable[[float], tuple[Floats, Floats]]

# Steps without progress, after which smaller ones are taken, down to this part of a whole one.
_PATIENCE = 5
_SMALLEST = 1.0 / 64.0
# So many times further from being right than once before, the sites have run away.
_LOST = 1e2


class SiteState(NamedTuple):
    """The sites of one evaluation, from which the next can start.

    precision : (n,) tau
    shift : (n,) nu, about the prior mean
    mean : (n,) that prior mean
    """

    precision: Floats
    shift: Floats
    mean: Floats


class Solution(NamedTuple):
    """What EP has found.

    log_evidence : float
    latent, variance : (n,) mean and variance of the latent values
    alpha : (n,) latent = prior mean + K alpha
    precision : (n,) S, that of all sites of a row together
    state : where to start the next evaluation from
    status : "converged", or "stopped" before the sites were right
    n_iterations : steps or sweeps that were made
    residual : what `tol` is compared with
    jitter : what was added to the diagonal of K, that of the problem included
    """

    log_evidence: float
    latent: Floats
    variance: Floats
    alpha: Floats
    precision: Floats
    state: SiteState
    status: Literal["converged", "stopped"]
    n_iterations: int
    residual: float
    jitter: float


def check(
    problem: LatentProblem,
    power: float | None,
    damping: float,
    tol: float,
    max_iterations: int,
) -> None:
    """Raise ValueError for options that are none, or a likelihood that lacks what is needed."""
    for name, value in (("power", 1.0 if power is None else power), ("damping", damping)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}")
    if max_iterations < 0 or max_iterations != int(max_iterations):
        raise ValueError(f"max_iterations must be a whole number, got {max_iterations!r}")
    if problem.likelihood.missing("smoothed"):  # then it comes of the density
        problem.require("expectation propagation", "log_density")


def powers(problem: LatentProblem, power: float | None) -> Floats:
    """Return eta of each row, (n,): the power that is asked for, or else the default."""
    if power is not None:
        return np.full(problem.n, float(power))
    return np.where(problem.likelihood.log_concave_at(problem.y), 1.0, 0.5)


def find_sites(
    work: Propagation,
    start: SiteState | None,
    damping: float,
    tol: float,
    max_iterations: int,
    sweep: Sweep | None = None,
) -> tuple[Solution, Moments]:
    """Move the sites until they are right; return the solution, and the moments there.

    All of them at once, or by `sweep`: from a step to the sites after a pass over the rows.
    """
    ahead = start is None and sweep is None and max_iterations > 0
    _begin(work, start, damping if ahead else 0.0)
    moments, residual, iteration = _settle(work, sweep, damping, tol, int(ahead), max_iterations)
    q, prior_mean = work.q, work.problem.mean
    right = residual <= tol and bool(np.all(work.matched(moments)[2] | ~work.some))
    solution = Solution(
        log_evidence=work.log_evidence(moments),
        latent=prior_mean + q.mean,
        variance=q.var,
        alpha=q.alpha,
        precision=q.sites.precision,
        state=SiteState(work.tau, work.nu, prior_mean),
        status="converged" if right else "stopped",
        n_iterations=iteration,
        residual=residual,
        jitter=work.jitter,
    )
    return solution, moments


def _begin(work: Propagation, start: SiteState | None, step: float) -> None:
    """Take the first sites: those of another evaluation as far as they serve, or flat ones.

    Flat ones are moved by `step` at once, since their marginals are the prior's.
    """
    n, tau, nu = work.problem.n, work.tau, work.nu
    if start is not None:
        tau, nu, mean = (np.asarray(v, dtype=float) for v in start)
        if not (tau.shape == nu.shape == mean.shape == (n,)):
            raise ValueError(
                f"start must have the sites of {n} rows, got shapes {tau.shape}, {nu.shape} and "
                f"{mean.shape}"
            )
        nu = nu - tau * (work.problem.mean - mean)  # about another prior mean
        step = 1.0
    elif step:
        tau, nu, _ = work.matched(work.prior_moments())
    work.go(tau, nu, step)


def _settle(
    work: Propagation, sweep: Sweep | None, damping: float, tol: float, done: int, limit: int
) -> tuple[Moments, float, int]:
    """Move the sites until they are right; return the moments there, residual and iterations.

    Where they do not settle the steps become smaller. Where they never do, those that were
    nearest to being right are taken.
    """
    step, least, stalled = damping, np.inf, 0
    best, nearest = (work.tau, work.nu), np.inf
    iteration, moving = done, True
    while True:
        m = work.moments()
        parts = work.residual(m)
        residual = max(parts)
        if residual < nearest:
            best, nearest = (work.tau, work.nu), residual
        if residual <= tol or iteration >= limit:
            break
        stalled = 0 if residual < (1.0 - 0.1 * step) * least else stalled + 1
        least = min(least, residual)
        lost = not moving or residual > _LOST * nearest
        if stalled == _PATIENCE or lost:
            if step <= _SMALLEST:
                break
            step, stalled = max(0.5 * step, _SMALLEST), 0
            if lost:
                work.go(*best, 1.0)
                m = work.moments()
                parts = work.residual(m)
            least = max(parts)
        iteration += 1
        if sweep is not None:
            moving = work.go(*sweep(step), 1.0)
            continue
        if step == 1.0:
            m = work.move_means(m, parts)
        tau, nu, _ = work.matched(m)
        moving = work.go(tau, nu, step)
    if nearest < residual:
        work.go(*best, 1.0)
        m = work.moments()
        residual = max(work.residual(m))
    return m, residual, iteration
