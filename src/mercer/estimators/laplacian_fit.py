"""Fitting one function of a Laplacian process: its penalty, its noise, its coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UndeterminedWarning, warn
from mercer.evidence.optimum import Report, tell
from mercer.inference import laplacian
from mercer.inference._columns import Columns
from mercer.inference._expansion_choice import (
    NoiseModel,
    margin_spread,
    pieces_of,
    posterior_spread,
    ridge_of,
)
from mercer.inference._expansion_path import Comparison, Path, descending, scored_path
from mercer.inference._expansion_posterior import Spread
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._margin_calibration import Calibration
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Gaussian, Likelihood, Logistic, Probit

__all__ = ["Chosen", "Fitted", "Options", "Targets", "choose", "fit_targets", "larger", "tells"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Estimates of noise that shapes the loss, each from the residuals of the one before, and the
# change that is none.
_ROUNDS, _SAME = 4, 0.02
# The tolerance of solutions that serve the choice of a penalty alone.
_COARSE = 1e-4
# A slope along a function that is no more than this part of what its rows could give is rounding.
_ROUNDING = 1e-12


class Options(NamedTuple):
    """What is asked of a fit.

    prior, prior_scale : as the estimator has them
    tol : the gap to prove
    max_active : how many functions may be in use, None for any number
    n_penalties : on a path, at the most
    report : whom to tell of stages
    settles : whether noise that shapes the loss is found in turn with the penalty, or is what it
        begins with
    """

    prior: str
    prior_scale: float | None
    tol: float
    max_active: int | None
    n_penalties: int
    report: Report | None = None
    settles: bool = True


@dataclass(frozen=True)
class Targets:
    """One column of targets, with its rows.

    y : (n,) numbers, or labels -1 and 1
    weights : (n,) powers of the likelihood
    mean, H : (n,) the fixed part of the function, and (n, r) functions without a penalty
    folds : (n,) numbers from 0
    noise : Noise of numbers, or the name of what is minimised for labels
    variances : (n,) of known noise, or None
    """

    y: Floats
    weights: Floats
    mean: Floats
    H: Floats | None
    folds: Indices
    noise: Noise | str
    variances: Floats | None = None

    def problem(self, columns: Columns, now: Likelihood | str) -> ExpansionProblem:
        """Return the problem of these targets for functions at their rows."""
        known = now if self.variances is None else Gaussian(self.variances)
        weights = None if np.all(self.weights == 1.0) else self.weights
        return ExpansionProblem.of(columns, known, self.y, self.mean, self.H, weights)

    def model(self, options: Options, now: Likelihood) -> NoiseModel:
        """Return the likelihood of solutions, `now` being that which is minimised."""
        noise = self.noise if isinstance(self.noise, Noise) else None
        return NoiseModel(noise, now, options.prior, options.prior_scale, self.variances)

    def begun(self) -> Likelihood:
        """Return the likelihood to begin with: with starts for what is open, or the link."""
        if isinstance(self.noise, Noise):
            if self.variances is not None:
                return Gaussian(float(1.0 / np.mean(1.0 / self.variances)))
            return self.noise.begun()
        return Probit() if self.noise == "quadratic_soft_margin" else Logistic()

    @property
    def is_margin(self) -> bool:
        """Whether what is minimised is no likelihood."""
        return isinstance(self.noise, str) and self.noise != "logistic"

    @property
    def can_be_split(self) -> bool:
        """Whether rows can be held out, and others are left that tell something."""
        folds = np.unique(self.folds)
        if not isinstance(self.noise, str):
            return len(folds) > 1
        return any(np.ptp(self.y[self.folds != fold], axis=0) for fold in folds if len(folds) > 1)

    def minimised(self, now: Likelihood) -> Likelihood | str:
        """Return what the loss is made of."""
        return self.noise if isinstance(self.noise, str) and self.is_margin else now


class Chosen(NamedTuple):
    """A penalty, and what goes with it.

    penalty : in units of the loss
    now : the likelihood whose loss is minimised
    value : of held-out rows, the mean log density; NaN if nothing was chosen
    path : where it was chosen, None if it was given
    calibration : of margins, from held-out rows
    is_known : whether there was something to choose by, or all was given
    is_whole : whether no interrupt has ended the choice
    """

    penalty: float
    now: Likelihood
    value: float = np.nan
    path: Path | None = None
    calibration: Calibration | None = None
    is_known: bool = True
    is_whole: bool = True


class Fitted(NamedTuple):
    """A function that was fitted.

    solution : the coefficients and what is proved of them
    likelihood : the noise, or the link
    scale : of the prior
    coef : (k + r,) coefficients in the likelihood's units, those without a penalty last
    spread : of these
    chosen : the penalty, and where it comes from
    objective, dual : in nats
    """

    solution: Expansion
    likelihood: Likelihood
    scale: float
    coef: Floats
    spread: Spread
    chosen: Chosen
    objective: float
    dual: float


def choose(columns: Columns, targets: Targets, options: Options, judge: bool = False) -> Chosen:
    """Return the penalty under which held-out rows are predicted best, and the noise with it.

    One that follows from a given noise and prior scale is returned as it is. If `judge`, it is for
    the value alone: there is one for that too, and no warning where nothing can be told.
    """
    now, noise = targets.begun(), targets.noise
    is_open = isinstance(noise, Noise) and (noise.is_open or noise.shapes_the_loss)
    if options.prior_scale is not None and not is_open and not (judge or targets.is_margin):
        return Chosen(targets.model(options, now).penalty(options.prior_scale), now)
    if options.prior == "feature_selection" and isinstance(noise, Noise) and is_open:
        # Its penalty depends on the unit of the loss: the noise is that of the Laplacian prior.
        plain, now = _noise_of_laplacian(columns, targets, options)
        if not plain.is_whole:
            return plain._replace(now=now)
        held = replace(targets, noise=replace(noise, spec=now))
        return choose(columns, held, options, judge)
    settles = options.settles and isinstance(noise, Noise) and noise.shapes_the_loss
    chosen = _chosen(columns, targets, options, now, judge)
    for _ in range(_ROUNDS - 1 if settles else 0):
        if not chosen.is_whole:
            break
        problem = targets.problem(columns, now)
        solution = _solve(problem, chosen.penalty, options._replace(tol=_COARSE))
        found = targets.model(options, now).of(problem, solution, chosen.penalty)
        if solution.status == "interrupted":
            return chosen._replace(is_whole=False)
        if found is None or _alike(found, now) or chosen.path is None:
            break
        now = found
        chosen = _chosen(columns, targets, options, now, judge)
    return chosen


def _noise_of_laplacian(
    columns: Columns, targets: Targets, options: Options
) -> tuple[Chosen, Likelihood]:
    """Return what is chosen under a Laplacian prior, and the noise that is estimated."""
    options = options._replace(prior="laplacian", prior_scale=None, report=None)
    chosen = choose(columns, targets, options, judge=True)
    fit = fit_targets(columns, targets, options, chosen)
    whole = chosen.is_whole and fit.solution.status != "interrupted"
    return chosen._replace(is_whole=whole), fit.likelihood


def tells(columns: Columns, targets: Targets, prior: str) -> bool:
    """Whether rows can be held out, and there is something in the others to predict them from."""
    problem = targets.problem(columns, targets.minimised(targets.begun()))
    return _untold(targets, problem, prior, _most(problem, prior)) is None


def _untold(targets: Targets, problem: ExpansionProblem, prior: str, most: float) -> str | None:
    """Return why nothing can be told of a penalty; None if something can."""
    if not problem.loss.is_of_labels and not np.any(Reduced(problem).problem.loss.y):
        return (
            "the targets are constant, or the mean passes through all of them: no function was "
            "fitted, and their noise is the least there can be"
        )
    if targets.can_be_split and most > _rounding(problem, prior):
        return None
    return (
        "the rows are too few, or too much alike, to hold some of them out and predict these from "
        "the others: no function was fitted to them, and what there is of noise is what it began "
        "with"
    )


def larger(chosen: Chosen) -> Chosen | None:
    """Return the next larger penalty of the path on which one was chosen; None if there is none."""
    path = chosen.path
    if path is None or not np.any(path.penalties > chosen.penalty):
        return None
    return _at(path, int(np.flatnonzero(path.penalties > chosen.penalty)[-1]), chosen.now)


def _chosen(
    columns: Columns, targets: Targets, options: Options, now: Likelihood, judge: bool = False
) -> Chosen:
    problem = targets.problem(columns, targets.minimised(now))
    model = targets.model(options, now)
    noise, given = targets.noise, None
    if options.prior_scale is not None and not (isinstance(noise, Noise) and noise.is_open):
        given = model.penalty(options.prior_scale)
    most = _most(problem, options.prior)
    untold = _untold(targets, problem, options.prior, most)
    if untold is not None:
        if not judge:
            text = f"{untold}. Give kernel, likelihood and prior_scale to have it otherwise"
            warn(text, UndeterminedWarning)
        if not most > _rounding(problem, options.prior):
            most = problem.loss.unit  # as good as any other that leaves nothing in use
        return Chosen(given or most, now, is_known=False)
    penalties = descending(most, options.n_penalties) if given is None else np.array([given])
    by = Comparison(problem, targets.folds, targets.weights, model, _COARSE, options.max_active)
    path = scored_path(by, penalties)
    if not np.any(np.isfinite(path.values)):
        penalty = float(path.penalties[path.best])
        return Chosen(penalty, now, -np.inf, path, None, False, path.is_whole)
    return _at(path, path.best, now)


def _at(path: Path, q: int, now: Likelihood) -> Chosen:
    """Return a penalty of a path, and what goes with it."""
    calibration = None if path.calibrations is None else path.calibrations[q]
    found = float(path.penalties[q]), now, float(path.values[q]), path, calibration
    return Chosen(*found, is_whole=path.is_whole)


def _most(problem: ExpansionProblem, prior: str) -> float:
    """Return the penalty at which a path begins: nothing is in use, or next to nothing."""
    if prior != "weight_decay":
        return laplacian.largest_penalty(problem)
    # lam^2/unit theta^2 outweighs the loss along all functions
    weights = problem.weighted(np.ones(problem.n))
    trace = _typical_curvature(problem) * sum(
        float(np.sum(weights[rows] @ Phi**2)) for rows, Phi in _sections(problem)
    )
    return float(np.sqrt(trace * problem.loss.unit))


def _typical_curvature(problem: ExpansionProblem) -> float:
    """Return the curvature of the loss at a row, or what stands for it if there are kinks."""
    loss = problem.loss
    if loss.kind != "linear":
        return loss.greatest_curvature
    if loss.is_of_labels:
        return 1.0
    root = np.sqrt(problem.weighted(np.ones(problem.n)))
    r = root * (loss.y - problem.mean)
    if problem.H is not None:
        A = root[:, None] * problem.H
        r = r - A @ np.linalg.lstsq(A, r, rcond=None)[0]
    size = float(np.sum(root * np.abs(r))) / float(np.sum(root**2))
    return 1.0 / size if size > 0 else 1.0


def _rounding(problem: ExpansionProblem, prior: str) -> float:
    """Return what a penalty at which a path begins is above, if it is not rounding."""
    if prior == "weight_decay":  # where that does not depend on the targets
        return 0.0
    low, high = problem.loss.reach()
    size = np.abs(problem.loss.y) + np.abs(problem.mean)
    size = problem.weighted(np.minimum(size, np.maximum(-low, high)))
    slopes = sum(size[rows] @ np.abs(Phi) for rows, Phi in _sections(problem))
    return _ROUNDING * float(np.max(slopes, initial=0.0))


def _sections(problem: ExpansionProblem) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows, and all functions with a prior there."""
    size = problem.columns.size
    for rows, Phi in pieces_of(problem, np.arange(size))():
        yield rows, Phi[:, :size]


def _alike(a: Likelihood, b: Likelihood) -> bool:
    """Whether two likelihoods of one kind have all but the same parameters."""
    # a threshold is given, and has no units
    one, other = (
        np.array([float(p.value) for name, p in x.parameters.items() if name != "threshold"])
        for x in (a, b)
    )
    size = np.max(np.abs(one), initial=0.0)
    return bool(np.all(np.abs(one - other) <= _SAME * size))


def _solve(problem: ExpansionProblem, lam: float, options: Options) -> Expansion:
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
    held = options.prior == "feature_selection"
    if isinstance(targets.noise, Noise) and targets.noise.shapes_the_loss and not held:
        # noise of these very rows first, so that what is minimised has the noise that is kept
        problem = targets.problem(columns, now)
        quick = options._replace(tol=max(options.tol, _COARSE), report=None)
        solution = _solve(problem, penalty, quick)
        if solution.status == "interrupted":  # what there is, under the noise it was found with
            return _fitted(targets, options, chosen, problem, solution, now, penalty)
        now = _likelihood(model, problem, solution, penalty)
        scale = model.scale(now, penalty)
        model, held = targets.model(options, now), True
        penalty = model.penalty(scale)
    problem = targets.problem(columns, targets.minimised(now))
    solution = _solve(problem, penalty, options)
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
    unit = 1.0 if targets.is_margin else replace(model, now=likelihood).unit
    coef = np.concatenate([solution.coef, solution.beta])
    if chosen.calibration is not None:
        coef = chosen.calibration.slope * coef
        spread = margin_spread(problem, solution, model, penalty, chosen.calibration)
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
