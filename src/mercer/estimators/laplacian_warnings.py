"""What a Laplacian process warns of: functions that are none or too many, outliers, no proof."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, UndeterminedWarning, warn
from mercer.estimators.expansion_process import named_outputs
from mercer.estimators.laplacian_frame import Frame
from mercer.estimators.laplacian_options import PRIORS
from mercer.evidence.expansion_outliers import is_louder, poor_because_of_others
from mercer.evidence.expansion_targets import Fitted
from mercer.evidence.expansion_untold import TIES, hold_the_median
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Laplace
from mercer.likelihoods.spread import far_from_others
from mercer.priors import WeightDecay

__all__ = ["warn_of_expansion", "warn_of_status"]

# Functions are many where they are more than this part of the rows; of fewer rows than these nobody
# expects much.
_MANY, _FEW = 0.5, 20

_HEAVIER = "RelevanceVectorRegressor(robust=True), or GPRegressor(likelihood=StudentT())"
# Absolute distances stand outliers that are not too far out.
_LAPLACE = "likelihood=Laplace() if they are ten times as far out or so, else "


def warn_of_expansion(own: Any, frame: Frame, fits: list[Fitted]) -> None:
    """Warn of functions that tell of nothing, or of outliers and single rows alone.

    Parameters
    ----------
    own : the estimator
    frame, fits : its model, and a fit to each column of targets
    """
    shrinks = PRIORS[own.prior] is WeightDecay  # all coefficients, and none of them counts for one
    known = [p for p, fit in enumerate(fits) if fit.chosen.untold is None]
    classes = getattr(own, "classes_", None)
    _warn_of_untold(fits, classes)
    empty = [p for p in known if not len(fits[p].solution.indices)]
    drowned = [p for p in known if _warn_of_outliers(frame, fits, p, p in empty)]
    others = [p for p in known if p not in drowned]
    if not (shrinks or isinstance(frame.model.noise, str)):
        _warn_of_many(frame, [fits[p] for p in others])
    if own.prior_scale is not None and any(
        _is_loud(frame, fits[p], p, 0 if shrinks else len(fits[p].coef)) for p in others
    ):
        warn(
            "prior_scale is so large that there is less noise than a path of "
            f"n_penalties={own.n_penalties} reaches: noise and error bars are too large. "
            "Give likelihood too, a smaller prior_scale or none, or raise n_penalties",
            MercerWarning,
        )
    empty = [p for p in empty if p not in drowned]
    rows = frame.model.rows
    absolute = own.prior_scale is None and isinstance(own.likelihood, Laplace | EpsilonInsensitive)
    tied = [p for p in empty if absolute and hold_the_median(rows.Y[:, p], rows.weights)]
    _warn_of_each(dict.fromkeys(tied, TIES), len(fits), classes)
    empty = [p for p in empty if p not in tied]
    if empty:
        which = "" if len(fits) == 1 else f" for {named_outputs(empty, classes)}"
        what = (
            "targets beyond their mean" if classes is None else "labels beyond how frequent each is"
        )
        gaussian = own.likelihood is None or isinstance(own.likelihood, Gaussian)
        outliers = (
            "; outliers may hide it, which likelihood=Laplace() tolerates" if gaussian else ""
        )
        warn(
            f"all coefficients{which} are 0: nothing in the inputs was found to tell of the "
            f"{what}. If there is more to them, try another kernel, or a larger prior_scale"
            f"{outliers}",
            MercerWarning,
        )
    short = [fit.spread for fit in fits if fit.spread.factor is not None]
    lost = [s for s in short if s.factor is not None and s.rank < s.factor.n_columns]
    if lost:
        warn(
            f"the rows determine only {lost[0].rank} of {lost[0].factor.n_columns} "  # type: ignore[union-attr]
            "coefficients; the others have no error bars. Functions may repeat each other",
            MercerWarning,
        )


def _warn_of_untold(fits: list[Fitted], classes: NDArray[Any] | None) -> None:
    """Warn of penalties of which nothing could be told."""
    why = {p: fit.chosen.untold for p, fit in enumerate(fits) if fit.chosen.untold is not None}
    _warn_of_each(why, len(fits), classes)


def _warn_of_each(why: dict[int, str], count: int, classes: NDArray[Any] | None) -> None:
    """Warn for each text once, and of which of so many functions it is said."""
    for text in dict.fromkeys(why.values()):
        which = [p for p in why if why[p] == text]
        rest = "" if classes is None else " against the rest"
        whose = "" if count == 1 else f"for {named_outputs(which, classes)}{rest}: "
        warn(f"{whose}{text}", UndeterminedWarning)


def warn_of_status(own: Any, fits: list[Fitted]) -> None:
    """Warn of what was not proved."""
    if all(fit.solution.status == "certified" for fit in fits):
        return
    status, remedy = "interrupted", "fit again to have it whole"
    if all(fit.solution.status != "interrupted" for fit in fits):
        status, remedy = "stopped", "raise tol"
        if own.max_active is not None:
            remedy = "raise max_active, or tol"
        elif own.gap_ >= 1.0:  # the solver gave up before there was a proof of anything
            remedy = "standardise columns far from 0, or try "
            remedy += "a smaller prior_scale, or another kernel or likelihood"
    shown = f"{own.gap_:.3g}"
    if float(shown) <= own.tol < own.gap_:
        shown = f"just above that, {own.gap_:.9g}"
    warn(
        f"the fit was {status}: tol is {own.tol:g}, and the gap that is proved is {shown}; "
        f"{remedy}",
        ConvergenceWarning,
    )


def _warn_of_outliers(frame: Frame, fits: list[Fitted], p: int, is_empty: bool) -> bool:
    """Warn if function p, or its noise, is one of targets far out, and return whether it is."""
    fit, rows = fits[p], frame.model.rows
    which = "" if len(fits) == 1 else f" of output {p}"
    drowned = frame.drowned(fit, p)
    is_gaussian = isinstance(fit.likelihood, Gaussian)
    if drowned is not None and (is_empty or not is_gaussian):
        warn(
            f"the noise{which} is that of outliers: {drowned}. Whatever the inputs tell of the "
            f"others hardly counts beside it ({len(fit.solution.indices)} functions are in use). "
            "Leave these rows out, or take noise with heavier tails: "
            f"{_LAPLACE if is_gaussian else ''}{_HEAVIER}",
            MercerWarning,
        )
        return True
    if not is_gaussian or rows.variances is not None or (is_empty and not frame.is_open):
        return False
    y = rows.Y[:, p]
    near = ~far_from_others(y, rows.weights)
    if near.all():
        return False
    f, w = fit.solution.latent[near], rows.weights[near]
    poor = poor_because_of_others(fit.likelihood, y[near], f, w, frame.is_open)
    if poor is None:
        return False
    how = "the Gaussian noise is theirs" if poor == "noise" else "the fit follows these"
    warn(
        f"some targets{which} are far from all others, and {how}: predictions and error bars of "
        "the others are poor. Leave them out, or take noise with heavier tails: "
        f"{_LAPLACE}{_HEAVIER}",
        MercerWarning,
    )
    return True


def _is_loud(frame: Frame, fit: Fitted, p: int, k: int) -> bool:
    """Whether noise that was estimated is far above what function p, of k coefficients, leaves."""
    if not frame.is_open:
        return False
    rows = frame.model.rows
    return is_louder(fit.likelihood, rows.Y[:, p] - fit.solution.latent, rows.weights, k)


def _warn_of_many(frame: Frame, fits: list[Fitted]) -> None:
    """Warn of functions that are so many that they follow single rows."""
    n, most = len(frame.model.rows.Y), max((len(fit.coef) for fit in fits), default=0)
    if n < _FEW or most <= _MANY * n:
        return
    noise = "Give the noise if it is known, or"
    if not frame.is_open:
        size = "variance" if isinstance(fits[0].likelihood, Gaussian) else "scale"
        noise = f"Try a larger noise {size}, or"
    warn(
        f"{most} functions follow {n} rows, so that hardly anything tells noise from the function, "
        f"and error bars say little. {noise} a wider kernel (one length scale for all columns, if "
        "it has several), or try GPRegressor",
        MercerWarning,
    )
