"""Rules for likelihoods: expected values, gradients in the parameters, starts and flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods import Likelihood
from mercer.testing.compare import close, expect, frozen, refused, slope
from mercer.testing.likelihood_case import LikelihoodCase, gives
from mercer.testing.rules import Rules

__all__ = ["LIKELIHOOD_PARAMETERS"]

Floats = NDArray[np.float64]

LIKELIHOOD_PARAMETERS: Rules[LikelihoodCase] = Rules()

_FLAGS = (
    "is_log_concave",
    "has_curvature",
    "is_positive",
    "is_unimodal",
    "adds_noise",
    "is_symmetric",
    "counts_events",
    "is_of_labels",
)
_ENGINES = ("laplace", "ep", "vi")
# How far y is from f, in `steps`: from the tip of a density into its tails, on both sides.
_AWAY = np.concatenate([-(2.0 ** np.arange(20.0, -11.0, -1.0)), 2.0 ** np.arange(-10.0, 21.0)])


def _is_positive(case: LikelihoodCase) -> str:
    return "" if case.likelihood.is_positive else "its density is 0 at some f"


def _learns(case: LikelihoodCase) -> str:
    return "" if case.likelihood.theta.size else "it has no free parameters"


# ---------------------------------------------------------------------- expected log densities


@LIKELIHOOD_PARAMETERS.add()
def rule_expected(case: LikelihoodCase) -> None:
    """`expected` is E[log p(y | f)] with its derivatives, refused where the density can be 0."""
    it, (y, mean, var) = case.likelihood, case.gaussians
    if not it.is_positive:
        refused("what is minus infinity", lambda: it.expected(y, mean, var), "density 0")
        return
    got = it.expected(y, mean, var)
    expect(len(got) == 3, "three arrays", got)
    value, first, second = case.log_moments()
    where = f"for y = {y[:3]}, ..."
    size = float(np.max(np.abs(second), initial=1.0))
    close(f"E[log p] {where}", got[0], value, 1e-6, 1e-6)
    close(f"dE/d mean {where}", got[1] * np.sqrt(var), first, 1e-6, 1e-7 * size)
    close(f"dE/d var {where}", got[2] * 2.0 * var, second, 1e-6, 1e-7 * size)


@LIKELIHOOD_PARAMETERS.add(_is_positive)
def rule_expected_without_variance(case: LikelihoodCase) -> None:
    """With a variance of 0, `expected` is log p, its first derivative and half its second."""
    it, zero = case.likelihood, np.zeros(case.f.size)
    got = it.expected(case.y, case.f, zero)
    close("E[log p]", got[0], it.log_density(case.y, case.f), 1e-10, 1e-12)
    if not it.missing("derivatives"):
        first, second, _ = it.derivatives(case.y, case.f)
        close("dE/d mean", got[1], first, 1e-9, 1e-12)
        close("dE/d var", got[2], 0.5 * second, 1e-9, 1e-12)


# --------------------------------------------------------------- gradients in its own parameters


def _pulls(
    case: LikelihoodCase, what: str, got: Floats, values: Callable[[Likelihood], Floats]
) -> None:
    """Hold a pull to differences of the sum of `values`, which has what the pull weighs."""
    it = case.likelihood
    expect(np.shape(got) == it.theta.shape, f"{what} of shape {it.theta.shape}", got)
    size = float(np.sum(np.abs(values(it)))) + 1.0
    # A long step: the values may be sums of differences themselves.
    wanted = slope(lambda theta: float(np.sum(values(it.with_theta(theta)))), it.theta, 1e-3)
    close(f"{what} in {', '.join(it.parameter_names)}", got, wanted, 1e-4, 2e-5 * size)


@LIKELIHOOD_PARAMETERS.add(_learns, gives("derivatives"))
def rule_pull_derivatives(case: LikelihoodCase) -> None:
    """`pull_derivatives` is d/dtheta of sum(g0 log p + g1 d1 + g2 d2)."""
    y, f = case.y, case.f
    # in units in which the three are of a size
    g = np.random.default_rng(5).normal(size=(3, f.size)) * case.steps ** np.arange(3)[:, None]

    def values(it: Likelihood) -> Floats:
        first, second, _ = it.derivatives(y, f)
        return np.stack([g[0] * it.log_density(y, f), g[1] * first, g[2] * second])

    got = case.likelihood.pull_derivatives(y, f, *g)
    _pulls(case, "pull_derivatives", got, values)
    for i, part in enumerate(np.eye(3)[:, :, None] * g):
        got = case.likelihood.pull_derivatives(y, f, *part)
        _pulls(case, f"pull_derivatives of g{i} alone", got, partial(_part, values, i))


def _part(values: Callable[[Likelihood], Floats], i: int, it: Likelihood) -> Floats:
    return np.asarray(values(it)[i])


@LIKELIHOOD_PARAMETERS.add(_learns)
def rule_pull_smoothed(case: LikelihoodCase) -> None:
    """`pull_smoothed` is d/dtheta of sum(g log Z), variances of 0 included."""
    y, mean, var = _with_certain(case)
    g = np.random.default_rng(6).normal(size=y.size)
    got = case.likelihood.pull_smoothed(y, mean, var, g)
    _pulls(case, "pull_smoothed", got, lambda it: g * it.smoothed(y, mean, var)[0])


@LIKELIHOOD_PARAMETERS.add(_learns, _is_positive)
def rule_pull_expected(case: LikelihoodCase) -> None:
    """`pull_expected` is d/dtheta of sum(g E[log p]), variances of 0 included."""
    y, mean, var = _with_certain(case)
    g = np.random.default_rng(7).normal(size=y.size)
    got = case.likelihood.pull_expected(y, mean, var, g)
    _pulls(case, "pull_expected", got, lambda it: g * it.expected(y, mean, var)[0])


def _with_certain(case: LikelihoodCase) -> tuple[Floats, Floats, Floats]:
    """Return the `gaussians`, and those without variance unless p may jump to 0 beside them."""
    certain = case.y, case.f, np.zeros(case.f.size)
    if not case.likelihood.is_positive:
        return case.gaussians
    y, mean, var = (np.concatenate(p) for p in zip(case.gaussians, certain, strict=True))
    return y, mean, var


# --------------------------------------------------------------------------------------- starts


@LIKELIHOOD_PARAMETERS.add()
def rule_initial(case: LikelihoodCase) -> None:
    """`initial` gives each observation a latent value of its own at which it can happen."""
    y = frozen(case.y)
    start = case.likelihood.initial(y)
    expect(np.shape(start) == y.shape, f"a start of shape {y.shape}", start)
    expect(np.all(np.isfinite(start)), "finite starts", start)
    expect(not np.shares_memory(start, y), "starts in memory of their own", "a view of y")
    log_p = case.likelihood.log_density(y, start)
    expect(np.all(np.isfinite(log_p)), "a positive density at the start", log_p)


@LIKELIHOOD_PARAMETERS.add()
def rule_begun(case: LikelihoodCase) -> None:
    """`begun` keeps what was given, adds bounds around it, and may be said twice."""
    it, y = case.likelihood, frozen(case.y)
    begun = it.begun(y)
    expect(type(begun) is type(it), f"a {type(it).__name__}", begun)
    expect(list(begun.parameters) == list(it.parameters), "the same parameters", begun.parameters)
    for name, given in it.parameters.items():
        new = begun.parameters[name]
        kept = given.replace(bounds=new.bounds if given.bounds is None else given.bounds)
        expect(new == kept, f"{name} as it was given, {given!r}", new)
        if given.bounds is None and given.is_free:
            low, high = new.theta_bounds.T
            inside = np.all((low <= new.theta) & (new.theta <= high))
            expect(inside, f"bounds of {name} that hold {given!r}", new.bounds)
    expect(begun.begun(y) == begun, "nothing new from a second time", begun.begun(y))
    twice = it.begun(np.repeat(y, 2))
    weighted = it.begun(y, np.full(y.size, 2.0))
    close("bounds with weights of 2", weighted.bounds, twice.bounds, 1e-9)


# ---------------------------------------------------------------------------------------- flags


def _walks(case: LikelihoodCase) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield which observation it is, even grids of f, and its log p on each."""
    for i, (y, f, step) in enumerate(zip(case.y, case.f, case.steps, strict=True)):
        for width in (1.0, step):
            grid = f + width * np.linspace(-8.0, 8.0, 129)
            with np.errstate(all="ignore"):
                yield i, grid, case.likelihood.log_density(np.full(grid.size, y), grid)


@LIKELIHOOD_PARAMETERS.add()
def rule_flags(case: LikelihoodCase) -> None:
    """What the flags promise of log p holds on grids of f, and of y around f."""
    it = case.likelihood
    for name in _FLAGS:
        expect(isinstance(getattr(it, name), bool), f"{name} True or False", getattr(it, name))
    engine = it.preferred_inference
    names = " or ".join(map(repr, _ENGINES))
    expect(engine in _ENGINES, f"preferred_inference to be {names}", engine)
    concave = np.asarray(it.log_concave_at(frozen(case.y)))
    truths = concave.dtype == bool and concave.shape == case.y.shape
    expect(truths, f"log_concave_at to be True or False for each of {case.y.size} y", concave)
    for i, grid, log_p in _walks(case):
        finite = np.isfinite(log_p)
        if it.is_positive:
            expect(np.all(finite), "a density above 0, as is_positive says", log_p)
        walk = log_p[finite]
        rounding = 1e-12 * float(np.max(np.abs(walk), initial=1.0))
        steps = np.diff(walk)
        if it.is_log_concave or concave[i]:
            says = "is_log_concave" if it.is_log_concave else f"log_concave_at({case.y[i]:g})"
            where = f"log p to be concave in f around {grid[64]:g}, as {says} says"
            expect(np.all(np.diff(steps) <= 4.0 * rounding), where, np.diff(steps))
        if it.is_unimodal:
            up = steps[np.abs(steps) > rounding] > 0
            where = f"one peak in f around {grid[64]:g}, as is_unimodal says"
            expect(not np.any(up[1:] & ~up[:-1]), where, walk)
    _of_noise(case)
    if it.counts_events:
        f = np.sort(case.f)
        none = it.log_density(np.zeros(f.size), f)
        expect(np.all(np.diff(none) <= 0), "log p(0 | f) to fall, as counts_events says", none)


def _of_noise(case: LikelihoodCase) -> None:
    """Hold `adds_noise` and `is_symmetric` to log p for y on either side of f."""
    it, f = case.likelihood, case.f[:, None]
    if not (it.adds_noise or it.is_symmetric):
        return
    y = f + case.steps[:, None] * _AWAY
    with np.errstate(all="ignore"):
        log_p = it.log_density(y, f)
        if it.adds_noise:
            # at the distance that rounding has left
            alone = it.log_density(y - f, np.zeros_like(f))
            what = "log p(y | f), which is log p(y - f | 0) as adds_noise says"
            close(what, log_p, alone, 1e-6, 1e-6)
    if it.is_symmetric:
        what = "log p(f + t | f), which is log p(f - t | f) as is_symmetric says"
        close(what, log_p, log_p[:, ::-1], 1e-8, 1e-8)


@LIKELIHOOD_PARAMETERS.add(gives("derivatives"))
def rule_curvature(case: LikelihoodCase) -> None:
    """`has_curvature` says whether the second derivative is other than 0 anywhere."""
    it, y = case.likelihood, case.y[:, None]
    f = case.f[:, None] + case.steps[:, None] * np.linspace(-3.0, 3.0, 31)
    second = it.derivatives(np.broadcast_to(y, f.shape), f)[1]
    some = bool(np.any(second != 0.0))
    wanted = f"has_curvature = {some}, the second derivative being {'not ' if some else ''}0"
    expect(it.has_curvature == some, wanted, it.has_curvature)
