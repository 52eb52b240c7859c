"""A kernel expansion with the penalty that was chosen for it, its noise and its error bars."""

from __future__ import annotations

import numpy as np

from mercer.evidence.expansion_targets import Chosen, Fitted, Options, Targets
from mercer.evidence.optimum import tell
from mercer.inference import laplacian
from mercer.inference._calibration import size_of
from mercer.inference._columns import Columns
from mercer.inference._expansion_noise import NoiseModel, unit_of
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_spread import calibrated_spread, posterior_spread, ridge_of
from mercer.likelihoods import Likelihood
from mercer.priors import FeatureSelection

__all__ = ["COARSE", "fit_targets", "solve_for"]

#: The tolerance of solutions that serve the choice of a penalty, or of noise, alone.
COARSE = 1e-4


def solve_for(problem: ExpansionProblem, lam: float, options: Options) -> Expansion:
    """Return the solution for a penalty, and tell of what is found on the way."""
    report = options.report

    def told(found: Expansion) -> None:
        tell(report, f"{len(found.indices)} functions in use, gap {found.gap:.3g}")

    return laplacian.solve(
        problem,
        options.prior,
        lam,
        tol=options.tol,
        max_active=options.max_active,
        report=told if report is not None else None,
    )


def fit_targets(columns: Columns, targets: Targets, options: Options, chosen: Chosen) -> Fitted:
    """Return the function with the penalty that was chosen, fitted to all rows."""
    now, penalty = chosen.now, chosen.penalty
    model = targets.model(options, now)
    held = options.prior is FeatureSelection
    if targets.shapes_the_loss and not held:
        # noise of these very rows first, so that what is minimised has the noise that is kept
        problem = targets.problem(columns, now)
        quick = options._replace(tol=max(options.tol, COARSE), report=None)
        solution = solve_for(problem, penalty, quick)
        if solution.status == "interrupted":  # what there is, under the noise it was found with
            return _fitted(targets, options, chosen, problem, solution, now, penalty)
        now = _likelihood(model, problem, solution, penalty)
        scale = model.scale(now, penalty)
        model, held = targets.model(options, now), True
        penalty = model.penalty(scale)
    problem = targets.problem(columns, targets.minimised(now))
    solution = solve_for(problem, penalty, options)
    likelihood = now if held else _likelihood(model, problem, solution, penalty)
    return _fitted(
        targets, options, chosen._replace(now=now), problem, solution, likelihood, penalty
    )


def _fitted(
    targets: Targets,
    options: Options,
    chosen: Chosen,
    problem: ExpansionProblem,
    solution: Expansion,
    likelihood: Likelihood,
    penalty: float,
) -> Fitted:
    """Return a solution as a function, with the spread of its coefficients."""
    model = targets.model(options, chosen.now)
    scale = 1.0 / penalty if targets.is_margin else model.scale(likelihood, penalty)
    unit = 1.0 if targets.is_margin else unit_of(likelihood)
    coef = np.concatenate([solution.coef, solution.beta])
    if chosen.calibration is not None:
        size = size_of(solution.latent, problem.weights, options.prior)
        calibration = chosen.calibration.of(size)
        if chosen.is_borrowed:
            labels = problem.loss.y, problem.weights
            calibration = calibration.sharing(likelihood, solution.latent, *labels)
        chosen = chosen._replace(calibration=calibration)
        coef = calibration.slope * coef
        spread = calibrated_spread(
            problem, solution, likelihood, options.prior, penalty, calibration
        )
    else:
        ridge = ridge_of(options.prior, scale, len(solution.indices), problem.n_free)
        spread = posterior_spread(problem, solution, likelihood, ridge)
    nats = solution.objective / unit, solution.dual / unit
    return Fitted(solution, likelihood, scale, coef, spread, chosen, *nats)


def _likelihood(
    model: NoiseModel, problem: ExpansionProblem, solution: Expansion, penalty: float
) -> Likelihood:
    """Return the likelihood of a solution, or what there is where no freedom is left to tell it."""
    found = model.of(problem, solution, penalty)
    if found is None:  # as many coefficients as rows, or rows of little weight
        return model.now if len(solution.indices) else model.of_all(problem, solution)
    return found
