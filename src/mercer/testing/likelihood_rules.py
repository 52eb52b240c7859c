"""Rules for likelihoods: densities, derivatives, smoothed values, predictions and samples."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import loops
from mercer.linalg.smoothing import SITES
from mercer.testing.compare import brief, close, expect, frozen, identical, refused
from mercer.testing.likelihood_case import LikelihoodCase, gives
from mercer.testing.rules import Rules

__all__ = ["LIKELIHOOD"]

Floats = NDArray[np.float64]

LIKELIHOOD: Rules[LikelihoodCase] = Rules()

_LEVELS = np.array([0.025, 0.5, 0.9])
_DRAWS = 20_000


@LIKELIHOOD.add()
def rule_shapes(case: LikelihoodCase) -> None:
    """Arguments broadcast against each other; results have their common shape, () included."""
    it, y, f = case.likelihood, case.y, case.f
    k = f.size
    calls: dict[str, Any] = {
        "log_density": lambda y, m, v: it.log_density(y, m),
        "smoothed": lambda y, m, v: it.smoothed(y, m, v)[0],
        "log_predictive": it.log_predictive,
    }
    if not it.missing("derivatives"):
        calls["derivatives"] = lambda y, m, v: it.derivatives(y, m)[2]
    if not it.missing("conditional_mean", "conditional_var"):
        calls["predictive_mean"] = lambda y, m, v: it.predictive_mean(m, v)
        calls["predictive_var"] = lambda y, m, v: it.predictive_var(m, v)
    for name, call in calls.items():
        for shape, args in (
            ((k,), (y, f, np.ones(k))),
            ((), (y[0], f[0], 1.0)),
            ((k, 2), (y[:, None], f[:, None], np.array([0.5, 1.0]))),
        ):
            got = call(*args)
            wanted = (k, 1) if shape == (k, 2) and name in ("log_density", "derivatives") else shape
            expect(np.shape(got) == wanted, f"{name} of shape {wanted}", np.asarray(got))


@LIKELIHOOD.add()
def rule_density_integrates_to_one(case: LikelihoodCase) -> None:
    """p(y | f) integrates, or sums, to 1 over y."""
    got = [case.expectation_over_y(f, np.ones_like) for f in case.f]
    close("the integral of the density over y", got, np.ones(case.f.size), 0.0, 1e-6)


@LIKELIHOOD.add(gives("derivatives"))
def rule_derivatives(case: LikelihoodCase) -> None:
    """`derivatives` are the first three of log p(y | f) in f."""
    it, y, f = case.likelihood, case.y, case.f
    up_f, down_f = f + 1e-5 * case.steps, f - 1e-5 * case.steps
    given = it.derivatives(y, f)
    expect(len(given) == 3, "three derivatives", given)
    up, down = it.derivatives(y, up_f), it.derivatives(y, down_f)
    lower_up = (it.log_density(y, up_f), up[0], up[1])
    lower_down = (it.log_density(y, down_f), down[0], down[1])
    for order, got, a, b in zip(("1st", "2nd", "3rd"), given, lower_up, lower_down, strict=True):
        size = float(np.max(np.abs(a), initial=1.0)) / float(np.min(case.steps))
        wanted = (a - b) / (up_f - down_f)
        close(f"the {order} derivative at f = {f}", got, wanted, 1e-5, 1e-8 * size)


@LIKELIHOOD.add(gives("fisher", "derivatives"))
def rule_fisher(case: LikelihoodCase) -> None:
    """`fisher` is the expected square of the first derivative: the expected curvature."""
    it = case.likelihood

    def square(f: float, y: Floats) -> Floats:
        return np.asarray(it.derivatives(y, np.full(y.size, f))[0] ** 2)

    wanted = [case.expectation_over_y(f, partial(square, f)) for f in case.f]
    close(f"fisher at f = {case.f}", it.fisher(case.f), np.array(wanted), 1e-5)


@LIKELIHOOD.add(gives("conditional_mean", "conditional_var"))
def rule_conditional_moments(case: LikelihoodCase) -> None:
    """`conditional_mean` and `conditional_var` are those of the density."""
    it = case.likelihood
    mean, var = it.conditional_mean(case.f), it.conditional_var(case.f)
    for i, (f, centre) in enumerate(zip(case.f, mean, strict=True)):
        if not np.isfinite(centre):
            continue
        width = np.sqrt(var[i]) if np.isfinite(var[i]) else 1.0
        off = case.expectation_over_y(f, partial(_deviation, centre, 1))
        atol = 1e-6 * width + 1e-12 * abs(centre)
        close(f"E[y | f = {f:g}]", centre, centre + off, 0.0, atol)
        if np.isfinite(var[i]):
            wanted = case.expectation_over_y(f, partial(_deviation, centre, 2))
            close(f"Var[y | f = {f:g}]", var[i], wanted, 1e-5)


def _deviation(centre: float, power: int, y: Floats) -> Floats:
    return np.asarray((y - centre) ** power)


@LIKELIHOOD.add(gives("conditional_cdf"))
def rule_conditional_cdf(case: LikelihoodCase) -> None:
    """`conditional_cdf` is the probability of an observation at most y, by the density."""
    it = case.likelihood
    for f in case.f:
        y, wanted = case.distribution(f)
        if case.outcomes is None:  # not where only rounding is left of a tail
            y, wanted = (a[(wanted > 1e-9) & (wanted < 1.0 - 1e-9)] for a in (y, wanted))
        got = it.conditional_cdf(y, np.full(y.size, f))
        close(f"P(Y <= y | f = {f:g}) for y = {brief(y)}", got, wanted, 0.0, 1e-7)
        expect(np.all((got >= 0) & (got <= 1)), "probabilities between 0 and 1", got)


@LIKELIHOOD.add()
def rule_smoothed(case: LikelihoodCase) -> None:
    """`smoothed` is log Z = log E[p(y | f)] and its two derivatives in the mean (SOGP 2.7)."""
    it = case.likelihood
    y, mean, var = case.gaussians
    sd = np.sqrt(var)
    log_z, first, second = case.tilted()
    second = second - first**2 - 1.0
    got = it.smoothed(y, mean, var)
    expect(len(got) == 3, "three arrays", got)
    where = f"for y = {y[:3]}, ..."
    close(f"log Z {where}", got[0], log_z, 1e-9, 1e-6)
    close(f"d log Z/d mean {where}", got[1] * sd, first, 1e-6, 1e-6)
    close(f"d^2 log Z/d mean^2 {where}", got[2] * var, second, 1e-6, 1e-6)


@LIKELIHOOD.add()
def rule_smoothed_without_variance(case: LikelihoodCase) -> None:
    """With a variance of 0, `smoothed` is log p and its derivatives at the mean."""
    it, zero = case.likelihood, np.zeros(case.f.size)
    got = it.smoothed(case.y, case.f, zero)
    close("log Z", got[0], it.log_density(case.y, case.f), 1e-10, 1e-12)
    if not it.missing("derivatives"):
        for value, wanted in zip(got[1:], it.derivatives(case.y, case.f)[:2], strict=True):
            close("its derivative", value, wanted, 1e-9, 1e-12)


def _is_compiled(case: LikelihoodCase) -> str:
    if case.likelihood.compiled_site() is None:
        return "its averages are not compiled"
    return "" if loops().__name__.endswith("_compiled") else "the compiled loops cannot be used"


@LIKELIHOOD.add(_is_compiled)
def rule_compiled_site(case: LikelihoodCase) -> None:
    """The compiled averages that `compiled_site` names are those of `smoothed`."""
    from mercer.linalg._smoothing import smoothed

    it = case.likelihood
    name, parameters = it.compiled_site() or ("", np.empty(0))
    expect(name in SITES, f"one of {SITES}", name)
    sd = np.sqrt(case.gaussians[2])
    rows = zip(*(a.tolist() for a in case.gaussians), strict=True)
    got = np.array([smoothed(SITES.index(name), parameters, *row) for row in rows]).T
    for what, value, wanted, unit in zip(
        ("log Z", "d log Z/d mean", "d^2 log Z/d mean^2"),
        got,
        it.smoothed(*case.gaussians),
        (np.ones_like(sd), sd, sd**2),
        strict=True,
    ):
        close(f"the compiled {what}", value * unit, wanted * unit, 1e-8, 1e-8)


@LIKELIHOOD.add()
def rule_log_predictive(case: LikelihoodCase) -> None:
    """`log_predictive` is the logarithm of E[p(y | f)] over the Gaussian."""
    got = case.likelihood.log_predictive(*case.gaussians)
    close("log_predictive", got, case.tilted()[0], 1e-9, 1e-6)


def _has_moments(case: LikelihoodCase) -> str:
    finite = np.all(np.isfinite(case.likelihood.conditional_var(case.f)))
    return "" if finite else "its observations have no variance"


@LIKELIHOOD.add(gives("conditional_mean", "conditional_var"), _has_moments)
def rule_predictive_moments(case: LikelihoodCase) -> None:
    """`predictive_mean` and `predictive_var` are those of a new observation."""
    it = case.likelihood
    _, mean, var = case.gaussians
    first = case.expectation_over_f(lambda f, y: it.conditional_mean(f))
    square = case.expectation_over_f(lambda f, y: it.conditional_mean(f) ** 2)
    within = case.expectation_over_f(lambda f, y: it.conditional_var(f))
    wanted = within + square - first**2
    close("predictive_mean", it.predictive_mean(mean, var), first, 1e-6, 1e-8)
    close("predictive_var", it.predictive_var(mean, var), wanted, 1e-6, 1e-8)


@LIKELIHOOD.add(gives("conditional_cdf"))
def rule_predictive_cdf(case: LikelihoodCase) -> None:
    """`predictive_cdf` is the probability of a new observation at most y."""
    it = case.likelihood
    wanted = case.expectation_over_f(lambda f, y: it.conditional_cdf(np.full(f.size, y), f))
    close("predictive_cdf", it.predictive_cdf(*case.gaussians), wanted, 0.0, 1e-6)


@LIKELIHOOD.add(gives("conditional_cdf"))
def rule_quantile(case: LikelihoodCase) -> None:
    """`quantile` is the least y that a new observation is at most with that probability."""
    it = case.likelihood
    _, mean, var = case.gaussians
    m, v = mean[:, None], var[:, None]
    q = it.quantile(m, v, _LEVELS)
    expect(q.shape == (mean.size, 3), f"quantiles of shape {(mean.size, 3)}", q)
    expect(np.all(np.diff(q, axis=1) >= 0), "quantiles that grow with the level", q)
    at = it.predictive_cdf(q, m, v)
    if case.outcomes is None:
        close("predictive_cdf at the quantiles", at, np.broadcast_to(_LEVELS, q.shape), 0.0, 1e-7)
        return
    below = it.predictive_cdf(q - 1e-6 * (1.0 + np.abs(q)), m, v)
    ok = (at >= _LEVELS - 1e-8) & (below <= _LEVELS + 1e-8)
    expect(np.all(ok), "the distribution function to cross each level at its quantile", q)


@LIKELIHOOD.add(gives("sample"))
def rule_samples(case: LikelihoodCase) -> None:
    """`sample` draws from the density, the same for the same generator, and keeps f."""
    it = case.likelihood
    f = frozen(np.repeat(case.f[:, None], _DRAWS, axis=1))
    draws = it.sample(f, np.random.default_rng(1))
    expect(draws.shape == f.shape, f"draws of shape {f.shape}", draws)
    identical("draws of the same seed", it.sample(f, np.random.default_rng(1)), draws)
    other = it.sample(f, np.random.default_rng(2))
    expect(not np.array_equal(draws, other), "another seed to give other draws", draws)
    for value, row in zip(case.f, draws, strict=True):
        at, wanted = case.distribution(value)
        some = np.unique(np.searchsorted(wanted, np.linspace(0.05, 0.95, 19)).clip(0, at.size - 1))
        empirical = np.searchsorted(np.sort(row), at[some], side="right") / _DRAWS
        # 4.5 standard deviations of a frequency of one half
        what = f"frequencies of draws up to {brief(at[some])} at f = {value:g}"
        close(what, empirical, wanted[some], 0.0, 0.016)


@LIKELIHOOD.add()
def rule_knots(case: LikelihoodCase) -> None:
    """`knots` are None, or finite values of f, a row for each observation."""
    knots = case.likelihood.knots(case.y)
    if knots is not None:
        shape = np.shape(knots)
        expect(len(shape) == 2 and shape[0] == case.y.size, "knots of shape (n, j)", knots)
        expect(np.all(np.isfinite(knots)), "finite knots", knots)


@LIKELIHOOD.add()
def rule_arguments_are_kept(case: LikelihoodCase) -> None:
    """Arguments may stand in read-only memory, and results are new arrays."""
    it = case.likelihood
    y, f, var = frozen(case.y), frozen(case.f), frozen(np.ones(case.f.size))
    results = [it.log_density(y, f), *it.smoothed(y, f, var), it.log_predictive(y, f, var)]
    if not it.missing("derivatives"):
        results += it.derivatives(y, f)
    if not it.missing("conditional_mean", "conditional_var"):
        results += [it.predictive_mean(f, var), it.predictive_var(f, var)]
        results += [it.conditional_mean(f)]
    for result in results:
        shared = any(np.shares_memory(result, a) for a in (y, f, var))
        expect(not shared, "results in memory of their own", "a view of an argument")


@LIKELIHOOD.add()
def rule_bad_arguments(case: LikelihoodCase) -> None:
    """NaN, a negative variance, or a level outside (0, 1) are refused, in words."""
    it, y, f = case.likelihood, case.y[0], case.f[0]
    refused("a mean of NaN", lambda: it.smoothed(y, np.nan, 1.0), "mean.*finite")
    refused("a variance below 0", lambda: it.smoothed(y, f, -1.0), "var.*negative")
    refused("shapes that do not fit", lambda: it.smoothed([y] * 2, [f] * 3, 1.0), "shape")
    if not it.missing("conditional_cdf"):
        for level in (0.0, 1.0, 2.0):
            call = partial(it.quantile, f, 1.0, level)
            refused(f"a level of {level:g}", call, "level")
