"""From rows and a user's model to the objective of an iterative fit, and what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs

from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.iterative_options import Iterative, options_of
from mercer.estimators.memory import available_memory
from mercer.estimators.options import as_generator, require_number
from mercer.estimators.prepare_exact import begin, begin_at_defaults
from mercer.estimators.rows import Rows
from mercer.estimators.starting import Prepared
from mercer.evidence import Objective
from mercer.evidence.guarded import Fitted
from mercer.evidence.iterative import IterativeObjective
from mercer.inference._variance_bounds import VarianceBounds
from mercer.inference.duals import one_noise
from mercer.inference.iterative import (
    IterativeSolution,
    Settings,
    variance_bounds,
)
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = [
    "bounds_at",
    "certified_attributes",
    "iterative_again",
    "prepare_iterative",
    "settings_for",
    "warn_of_descent",
]


# The part of what is free that the kernel matrix may take, unless it is said.
_PART = 0.5
# A Gap (BKM 84) from which on the bounds differ by a factor of 3 or more, up to 2, where one is 0.
_NOTHING = 1.0


def settings_for(options: Iterative, n: int, searches: int = 1) -> Settings:
    """Return what the engine is told for n rows, in so many searches at once."""
    free = available_memory() if options.memory is None else None
    memory = np.inf if options.memory is None else float(options.memory)
    memory = memory if free is None else _PART * free
    stored = bool(8.0 * n**2 * searches <= memory)
    return Settings(options.tol, options.rank, options.n_probes, options.max_iter, stored)


def prepare_iterative(
    estimator: Any, kernel: Kernel | None, likelihood: Gaussian | None, mean: Mean, rows: Rows
) -> Prepared:
    """Return the objective of an iterative fit by a `GPRegressor`, at its start.

    The start is that of an exact fit.
    """
    begun = begin(estimator, kernel, likelihood, mean, rows)
    at_once = 1
    if begun.searched:
        at_once = min(effective_n_jobs(estimator.n_jobs), 1 + estimator.n_restarts)
    settings = settings_for(options_of(estimator.inference), len(rows.Y), at_once)
    # A generator of its own: that of random starts begins with the same random_state.
    seed = int(as_generator(estimator.random_state).integers(2**31))
    model = begun.kernel, begun.likelihood, begun.mean
    objective = IterativeObjective(*model, begun.data, settings, seed, begun.bounds)
    begin_at_defaults(objective, begun)
    return Prepared(objective, begun.undetermined, rows.multioutput)


def iterative_again(exact: Objective, options: Iterative, seed: int) -> IterativeObjective:
    """Return the iterative objective of the model and rows that an exact one has."""
    model = exact.kernel, exact.likelihood, exact.mean
    settings = settings_for(options, len(exact.data.Y))
    return IterativeObjective(*model, exact.data, settings, seed)


def certified_attributes(objective: IterativeObjective, fit: Fitted) -> dict[str, Any]:
    """Return what an iterative fit keeps beside that of others, by the names of attributes."""
    n, solution = len(objective.data.Y), fit.solution
    lower, upper, gap = solution.bounds
    # L is in units of the noise there; where rows differ, that is their harmonic mean
    noise, _ = one_noise(fit.likelihood.variances(n))
    return {
        "gap_": gap,
        "log_posterior_bounds_": (noise * lower, noise * upper),
        "log_marginal_likelihood_std_error_": solution.std_error,
        "n_solver_iter_": solution.iterations,
        "_seed": objective.seed,
    }


def bounds_at(estimator: Any, X: Any, tol: float) -> VarianceBounds:
    """Return bounds on the latent variances of a fitted estimator at new rows."""
    require_number("tol", tol)
    if not (0 < tol < np.inf):
        raise ValueError(f"tol must be positive, got {tol!r}")
    if estimator._pairwise:
        raise ValueError(
            "with a precomputed kernel variances are predicted from given rows of the matrix; "
            "predict(X, return_std=True) has them"
        )
    if estimator.mean_.estimate == "integrate":
        raise ValueError(
            "the bounds are for a mean that is known or estimated, and this one is integrated out; "
            "predict(X, return_std=True) has its variance"
        )
    X = estimator._new_inputs(X)
    objective = estimator._objective()
    problem = objective.estimated(estimator.kernel_, estimator.likelihood_, estimator.mean_)
    lower, upper, used = variance_bounds(problem, X, tol)
    squares, shaped = estimator._scale**2, estimator._shaped
    low, high = (shaped(side[:, None] * squares) for side in (lower, upper))
    return VarianceBounds(low, high, used)


def warn_of_descent(solution: IterativeSolution, options: Iterative) -> None:
    """Warn of conjugate gradients that have ended before their Gap was small enough."""
    if solution.status == "converged":
        return
    ended = "were interrupted" if solution.status == "interrupted" else "stopped"
    gap = solution.bounds.gap
    if gap >= _NOTHING:
        proved = "nothing is proved of the model by it, and predictions may be far off"
    elif gap > options.tol:
        proved = "the model is certified to the former (`gap_`)"
    else:
        proved = (
            f"but the log evidence is known to {solution.std_error:.3g} nats only "
            "(`log_marginal_likelihood_std_error_`)"
        )
    if solution.status == "interrupted":
        proved += ", and variances may be larger than they need be"
    warn(
        f"conjugate gradients {ended} after {solution.iterations} steps at a Gap of {gap:.3g}, "
        f"{options.tol:.3g} was wanted; {proved}. Raise rank or max_iter of Iterative(...), keep "
        "the noise from getting small beside the kernel's variance by bounds, as in "
        "Gaussian(Parameter(0.1, bounds=(0.01, 1.0))), or use inference='exact'",
        ConvergenceWarning,
    )
