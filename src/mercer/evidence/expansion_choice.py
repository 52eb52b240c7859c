"""The penalty of a kernel expansion, and its noise: by what they predict of held-out rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UndeterminedWarning, warn
from mercer.evidence.expansion_fit import COARSE, fit_targets, solve_for
from mercer.evidence.expansion_targets import Chosen, Options, Targets
from mercer.inference._columns import Columns
from mercer.inference._expansion_path import Comparison, Path, descending, scored_path
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._first_penalty import first_penalty, rounding_of_first, slope_bound
from mercer.inference._largest_penalty import loss_without_functions
from mercer.inference._margin_calibration import is_calibrated
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Likelihood
from mercer.priors import FeatureSelection, Laplacian

__all__ = ["TIES", "are_tied", "choose", "larger", "tells"]

Floats = NDArray[np.float64]

# Estimates of noise that shapes the loss, each from the residuals of the one before, and the
# change that is none.
_ROUNDS, _SAME = 4, 0.02
# Equal targets that are tied, as part of all.
_TIED = 0.05
#: What to say where they hold the median, or most of it.
TIES = (
    "so many targets are the same that by absolute distances no function is nearer to them than a "
    "constant is: none was fitted. Gaussian noise goes by averages, and tells more of such "
    "targets; so does GPRegressor(likelihood=Poisson()) of counts"
)


def choose(columns: Columns, targets: Targets, options: Options, judge: bool = False) -> Chosen:
    """Return the penalty under which held-out rows are predicted best, and the noise with it.

    One that follows from a given noise and prior scale is returned as it is. If `judge`, it is for
    the value alone: there is one for that too, and no warning where nothing can be told. Ctrl-C
    leaves what is best by the folds that are done; before there is one it is raised.
    """
    now, noise = targets.begun(), targets.noise
    is_open = isinstance(noise, Noise) and (noise.is_open or noise.shapes_the_loss)
    loss = targets.problem(columns, targets.minimised(now)).loss
    calibrated = is_calibrated(loss, options.prior) and (targets.is_margin or targets.can_be_split)
    if options.prior_scale is not None and not is_open and not (judge or calibrated):
        return Chosen(targets.model(options, now).penalty(options.prior_scale), now)
    if options.prior is FeatureSelection and isinstance(noise, Noise) and is_open:
        # Its penalty depends on the unit of the loss: the noise is that of the Laplacian prior.
        plain, now = _noise_of_laplacian(columns, targets, options)
        if not plain.is_whole or (plain.path is not None and not plain.is_known):
            return plain._replace(now=now)  # of noise that tells nothing no penalty follows
        held = replace(targets, noise=replace(noise, spec=now))
        return choose(columns, held, options, judge)
    settles = options.settles and isinstance(noise, Noise) and noise.shapes_the_loss
    chosen = _chosen(columns, targets, options, now, judge)
    for _ in range(_ROUNDS - 1 if settles else 0):
        if not chosen.is_whole:
            break
        problem = targets.problem(columns, now)
        solution = solve_for(problem, chosen.penalty, options._replace(tol=COARSE))
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
    options = options._replace(prior=Laplacian, prior_scale=None, report=None)
    chosen = choose(columns, targets, options, judge=True)
    fit = fit_targets(columns, targets, options, chosen)
    whole = chosen.is_whole and fit.solution.status != "interrupted"
    return chosen._replace(is_whole=whole), fit.likelihood


def tells(columns: Columns, targets: Targets, options: Options) -> bool:
    """Whether rows can be held out, and there is something in the others to predict them from."""
    problem = targets.problem(columns, targets.minimised(targets.begun()))
    return _untold(targets, problem, options, _first(problem, options) is None) is None


def _first(problem: ExpansionProblem, options: Options) -> float | None:
    """Return the penalty at which a path begins, None if that is rounding."""
    most = first_penalty(problem, options.prior)
    return most if most > rounding_of_first(problem, options.prior) else None


def _untold(
    targets: Targets, problem: ExpansionProblem, options: Options, is_rounding: bool
) -> str | None:
    """Return why nothing can be told of a penalty, and what to give; None if something can.

    `is_rounding` says whether the penalty at which a path would begin is no more than that.
    """
    otherwise = "Give kernel, likelihood and prior_scale to have it otherwise"
    if not problem.loss.is_of_labels and not np.any(Reduced(problem).problem.loss.y):
        return (
            "the targets are constant, or the mean passes through all of them: no function was "
            f"fitted, and their noise is the least there can be. {otherwise}"
        )
    if targets.can_be_split and not is_rounding:
        return None
    within = problem.loss.zone > 0 and not loss_without_functions(problem) > 0
    if targets.can_be_split and within:
        zone, remedy = "epsilon of EpsilonInsensitive", "give a smaller epsilon"
        if isinstance(targets.noise, Noise) and targets.noise.shapes_the_loss:
            zone, remedy = f"{zone} is left open, and the one that was found", "give epsilon"
            if options.max_active is not None:
                zone += f" with max_active={options.max_active}"
                remedy = "raise max_active, or give epsilon"
        return (
            f"{zone} is so wide that the mean alone is near enough to all targets: there was "
            f"nothing to compare penalties by, and few functions or none are in use; {remedy}"
        )
    if targets.can_be_split and problem.loss.kind == "linear" and are_tied(problem.loss.y, _TIED):
        if problem.loss.is_of_labels:
            return (
                "one class is the likelier one everywhere, so that a soft margin gains nothing by "
                "any function: none was fitted, and probabilities are the shares of the classes. "
                "likelihood='logistic' tells more of rare classes"
            )
        return TIES
    return (
        "the rows are too few, or too much alike, to hold some of them out and predict these from "
        "the others: no function was fitted to them, and what there is of noise is what it began "
        f"with. {otherwise}"
    )


def are_tied(y: Floats, part: float = 0.5) -> bool:
    """Whether more than this part of the targets are the same."""
    return bool(np.max(np.unique(y, return_counts=True)[1]) > part * len(y))


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
    most = _first(problem, options)
    untold = _untold(targets, problem, options, most is None)
    if untold is not None:
        if not judge:
            warn(untold, UndeterminedWarning)
        # as good as any other that leaves nothing in use, be it by rounding
        given = given or most or max(problem.loss.unit, slope_bound(problem))
        # latent values are calibrated all the same
        if not (is_calibrated(problem.loss, options.prior) and targets.can_be_split):
            return Chosen(given, now, is_known=False)
    if given is None:
        assert most is not None  # as nothing could be told of it otherwise
        penalties = descending(most, options.n_penalties)
    else:
        penalties = np.array([given])
    if options.like is not None:
        return _at_place_of(options.like, penalties, now)
    by = Comparison(problem, targets.folds, targets.weights, model, COARSE, options.max_active)
    path = scored_path(by, penalties)
    found = _at(path, path.best, now)
    if not np.any(np.isfinite(path.values)):
        # where functions are too few for the only penalty it is taken, margins calibrated, as it is
        found = found._replace(value=-np.inf, is_known=not path.has_room)
    return found if untold is None else found._replace(path=None, is_known=False)


def _at(path: Path, q: int, now: Likelihood) -> Chosen:
    """Return a penalty of a path, and what goes with it."""
    calibration = None if path.calibrations is None else path.calibrations[q]
    found = float(path.penalties[q]), now, float(path.values[q]), path, calibration
    return Chosen(*found, is_whole=path.is_whole)


def _at_place_of(like: Chosen, penalties: Floats, now: Likelihood) -> Chosen:
    """Return the penalty that is where another is on its path, margins calibrated as there."""
    place = 0 if like.path is None else int(np.argmin(np.abs(like.path.penalties - like.penalty)))
    penalty = float(penalties[min(place, len(penalties) - 1)])
    return Chosen(penalty, now, calibration=like.calibration, is_whole=False)


def _alike(a: Likelihood, b: Likelihood) -> bool:
    """Whether two likelihoods of one kind have all but the same parameters."""
    # a threshold is given, and has no units
    one, other = (
        np.array([float(p.value) for name, p in x.parameters.items() if name != "threshold"])
        for x in (a, b)
    )
    size = np.max(np.abs(one), initial=0.0)
    return bool(np.all(np.abs(one - other) <= _SAME * size))
