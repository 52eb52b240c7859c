"""The penalty of a kernel expansion, and its noise: by what they predict of held-out rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.expansion_fit import COARSE, fit_targets, solve_for
from mercer.evidence.expansion_targets import Chosen, Options, Targets
from mercer.evidence.expansion_untold import why_none_compared, why_untold
from mercer.inference._columns import Columns
from mercer.inference._expansion_noise import unit_of
from mercer.inference._expansion_path import (
    Comparison,
    Path,
    descending,
    ends_in_rounding,
    scored_path,
)
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._first_penalty import first_penalty, rounding_of_first, slope_bound
from mercer.likelihoods import Gaussian, Likelihood
from mercer.priors import FeatureSelection, Laplacian, WeightDecay

__all__ = ["choose", "larger", "tells"]

Floats = NDArray[np.float64]

# Estimates of noise that shapes the loss, each from the residuals of the one before, and the
# change that is none.
_ROUNDS, _SAME = 4, 0.02
# Noise of a feature selection that is less than this part of what it began with is tried for it.
_LESS = 0.9
# The gap of solutions along a path that ends where rounding leaves no proof (`ends_in_rounding`):
# less than the default tol, so that the fit to all rows, which are more, has its certificate.
_PROVED = 1e-7


def choose(columns: Columns, targets: Targets, options: Options, judge: bool = False) -> Chosen:
    """Return the penalty under which held-out rows are predicted best, and the noise with it.

    One that follows from a given noise and prior scale is returned as it is, unless latent values
    are calibrated, or, if `judge`, a value is asked for it. Ctrl-C leaves what is best by the folds
    that are done; before there is one it is raised.
    """
    now, is_open = targets.begun(), targets.has_open_unit or targets.shapes_the_loss
    is_asked = judge or targets.calibrates(options.prior)
    if options.prior_scale is not None and not is_open and not is_asked:
        return Chosen(targets.model(options, now).penalty(options.prior_scale), now)
    if options.prior is FeatureSelection and is_open:
        # Its penalty depends on the unit of the loss: the noise is that of the Laplacian prior.
        plain, now = _noise_of_laplacian(columns, targets, options)
        if not plain.is_whole or (plain.path is not None and plain.untold):
            return plain._replace(now=now)  # of noise that tells nothing no penalty follows
        try:
            return _with_own_noise(columns, targets, options, now, judge)
        except KeyboardInterrupt:  # before there is anything to compare
            return plain._replace(now=now, is_whole=False)
    settles = options.settles and targets.shapes_the_loss
    chosen = _chosen(columns, targets, options, now)
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
        chosen = _chosen(columns, targets, options, now)
    return chosen


def _with_own_noise(
    columns: Columns, targets: Targets, options: Options, now: Likelihood, judge: bool
) -> Chosen:
    """Return what is chosen under feature selection, which does not shrink what it keeps.

    Where there is little noise, that of a Laplacian prior, `now`, is far more. What residuals leave
    is taken in its place if held-out rows are predicted better by it: functions that follow single
    rows leave next to none.
    """
    chosen = choose(columns, targets.with_noise(spec=now), options, judge)
    if not options.settles or options.prior_scale is not None or not isinstance(now, Gaussian):
        return chosen
    for _ in range(_ROUNDS):
        if not chosen.is_whole or chosen.path is None:
            break
        problem = targets.problem(columns, now)
        solution = solve_for(problem, chosen.penalty, options._replace(tol=COARSE, report=None))
        if solution.status == "interrupted":
            return chosen._replace(is_whole=False)
        own = targets.model(options, now).of(problem, solution, chosen.penalty)
        if not isinstance(own, Gaussian) or unit_of(own) > _LESS * unit_of(now):
            break
        try:
            new = choose(columns, targets.with_noise(spec=own), options, judge)
        except KeyboardInterrupt:  # before there is anything new
            return chosen._replace(is_whole=False)
        if not new.is_whole:
            return chosen._replace(is_whole=False)
        if not new.value > chosen.value:
            break
        now, chosen = own, new
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
    return why_untold(targets, problem, options, _first(problem, options) is None) is None


def _first(problem: ExpansionProblem, options: Options) -> float | None:
    """Return the penalty at which a path begins, None if that is rounding."""
    most = first_penalty(problem, options.prior)
    return most if most > rounding_of_first(problem, options.prior) else None


def larger(chosen: Chosen) -> Chosen | None:
    """Return the next larger penalty of the path on which one was chosen; None if there is none."""
    path = chosen.path
    if path is None or not np.any(path.penalties > chosen.penalty):
        return None
    return _at(path, int(np.flatnonzero(path.penalties > chosen.penalty)[-1]), chosen.now)


def _chosen(columns: Columns, targets: Targets, options: Options, now: Likelihood) -> Chosen:
    problem = targets.problem(columns, targets.minimised(now))
    model = targets.model(options, now)
    given = None
    if options.prior_scale is not None and not targets.has_open_unit:
        given = model.penalty(options.prior_scale)
    most = _first(problem, options)
    why = why_untold(targets, problem, options, most is None)
    if given is not None:
        penalties = np.array([given])
    elif why is None and most is not None:
        penalties = _path(problem, options, most)
    else:  # as good as any other that leaves nothing in use, be it by rounding
        penalties = np.array([most or max(problem.loss.unit, slope_bound(problem))])
    # where nothing can be told of penalties latent values are calibrated all the same
    if why is not None and not (targets.calibrates(options.prior) and targets.can_be_split):
        return Chosen(float(penalties[0]), now, untold=why)
    if options.like is not None:
        return _at_place_of(options.like, penalties, now)
    tol = _PROVED if ends_in_rounding(problem, options.prior) else COARSE
    by = Comparison(problem, targets.folds, targets.weights, model, tol, options.max_active)
    path = scored_path(by, penalties)
    found = _at(path, path.best, now)
    if why is not None:
        return found._replace(path=None, untold=why)
    if not np.any(np.isfinite(path.values)):
        # where functions are too few for the only penalty it is taken, margins calibrated, as it is
        why = why_none_compared(targets.weights) if path.has_room else None
        found = found._replace(value=-np.inf, untold=why)
    return found


def _path(problem: ExpansionProblem, options: Options, most: float) -> Floats:
    """Return penalties of a path that begins where nothing is in use, in any fold."""
    if problem.loss.kind != "linear" or options.prior is WeightDecay:
        return descending(most, options.n_penalties)
    penalties = descending(most, options.n_penalties - 1)
    # Ties at the median that leave the first penalty of all rows small are not all in a fold, whose
    # own may be far larger.
    return np.concatenate([[max(2.0 * most, slope_bound(problem))], penalties])


def _at(path: Path, q: int, now: Likelihood) -> Chosen:
    """Return a penalty of a path, and what goes with it."""
    calibration = None if path.calibrations is None else path.calibrations[q]
    found = float(path.penalties[q]), now, float(path.values[q]), path, calibration
    return Chosen(*found, is_whole=path.is_whole)


def _at_place_of(like: Chosen, penalties: Floats, now: Likelihood) -> Chosen:
    """Return the penalty that is where another is on its path, margins calibrated as there."""
    place = 0 if like.path is None else int(np.argmin(np.abs(like.path.penalties - like.penalty)))
    penalty = float(penalties[min(place, len(penalties) - 1)])
    calibration = like.calibration
    return Chosen(penalty, now, calibration=calibration, is_whole=False, is_borrowed=True)


def _alike(a: Likelihood, b: Likelihood) -> bool:
    """Whether two likelihoods of one kind have all but the same parameters."""
    # a threshold is given, and has no units
    one, other = (
        np.array([float(p.value) for name, p in x.parameters.items() if name != "threshold"])
        for x in (a, b)
    )
    size = np.max(np.abs(one), initial=0.0)
    return bool(np.all(np.abs(one - other) <= _SAME * size))
