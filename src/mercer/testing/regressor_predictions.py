"""Rules for what a fitted regressor predicts."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer.testing.compare import close, expect, identical, refused, slope
from mercer.testing.estimator_case import offers, quietly
from mercer.testing.regressor_case import RegressorCase, distribution, gaussian
from mercer.testing.rules import Rules

__all__ = ["PREDICTIONS"]

Floats = NDArray[np.float64]

PREDICTIONS: Rules[RegressorCase] = Rules()

_DRAWS = 4000


@PREDICTIONS.add()
def rule_unfitted(case: RegressorCase) -> None:
    """Before `fit`, `predict` raises NotFittedError or predicts from a prior that is finite."""
    try:
        mean, std = quietly(clone(case.estimator).predict, case.X_new, return_std=True)
    except NotFittedError:
        return
    expect(np.all(np.isfinite(mean)) and np.all(std > 0), "a prior's mean and std", (mean, std))


@PREDICTIONS.add()
def rule_predict_variants(case: RegressorCase) -> None:
    """All variants of `predict` have the same mean, and std is the root of cov's diagonal.

    With a link, the function and observations have means of their own. Where there are no joint
    distributions, covariances of several rows and joint draws are refused.
    """
    model, X, joint = case.model, case.X_new, case.X_joint
    n, j = len(X), len(joint)
    if j < n:
        refused("a joint covariance", lambda: model.predict(X, return_cov=True), "joint")
        refused("joint draws", lambda: model.sample_y(X), "joint")
    mean = model.predict(X)
    expect(mean.shape == (n,), f"a mean of shape {(n,)}", mean)
    for latent in (False, True):
        if latent:
            alone = model.predict(X, latent=True)
            if case.mean_is_latent:
                close("the latent mean", alone, mean, 1e-9, 1e-10 * case.size)
            mean = alone
        with_std = model.predict(X, return_std=True, latent=latent)
        with_cov = model.predict(joint, return_cov=True, latent=latent)
        expect(len(with_std) == len(with_cov) == 2, "a pair (mean, spread)", with_std)
        expect(with_cov[1].shape == (j, j), f"a covariance of shape {(j, j)}", with_cov[1])
        close("the mean with return_std", with_std[0], mean, 1e-9, 1e-10 * case.size)
        close("the mean with return_cov", with_cov[0], mean[:j], 1e-9, 1e-10 * case.size)
        variance = np.diagonal(with_cov[1])
        close("std squared", with_std[1][:j] ** 2, variance, 1e-7, 1e-12 * case.size**2)
        identical("cov transposed", with_cov[1].T, with_cov[1])


@PREDICTIONS.add()
def rule_predict_by_rows(case: RegressorCase) -> None:
    """A row's prediction does not depend on the other rows, and is never NaN or negative."""
    model, X = case.model, np.concatenate([case.X_new, case.X[:3]])
    if case.mean_is_latent:  # a link may not be finite far out
        X = np.concatenate([X, 1e6 * case.X_new[:1]])
    # error bars far from all data may be warned of
    mean, std = quietly(model.predict, X, return_std=True)
    for i in range(len(X)):
        one = quietly(model.predict, X[i : i + 1], return_std=True)
        close(f"the mean of row {i} alone", one[0][0], mean[i], 1e-9, 1e-9 * case.size)
        close(f"the std of row {i} alone", one[1][0], std[i], 1e-6, 1e-9 * case.size)
    if case.has_spread:
        expect(np.all(np.isfinite(mean)), "finite means", mean)
        expect(np.all(std >= 0) and np.all(np.isfinite(std)), "finite std of at least 0", std)


@PREDICTIONS.add(gaussian)
def rule_latent_spread(case: RegressorCase) -> None:
    """The spread of an observation is that of the function and the noise's, in y's units."""
    model, X = case.model, case.X_new
    _, std = model.predict(X, return_std=True)
    _, latent = model.predict(X, return_std=True, latent=True)
    noise = model.likelihood_.new_variance * model.predictive_.scale[0] ** 2
    close("std^2 less latent std^2", std**2 - latent**2, np.full(len(X), noise), 1e-6, 1e-10)


@PREDICTIONS.add(offers("predict_interval"), distribution)
def rule_interval(case: RegressorCase) -> None:
    """Intervals are equal-tailed, in order, and widen; symmetric ones hold the mean.

    Where observations are counts or labels the distribution function jumps across the tail's
    probability at the end of an interval, and a wider one may have the same ends.
    """
    model, X = case.model, case.X_new
    mean = model.predict(X)
    before = None
    for coverage in (0.3, 0.8, 0.95):
        low, high = model.predict_interval(X, coverage=coverage)
        jumps = False
        for name, end, level in (
            ("lower", low, 0.5 * (1.0 - coverage)),
            ("upper", high, 0.5 * (1.0 + coverage)),
        ):
            at, below = _cdf(case, end), _cdf(case, end - 1e-9 * case.size)
            what = f"P(Y <= the {name} end) at coverage {coverage}"
            nearest = np.clip(level, below, at)  # the level itself, where it is jumped across
            close(what, nearest, np.full(len(X), level), 0.0, 1e-7)
            jumps = jumps or bool(np.any(at - below > 1e-6))
        ordered = low <= high if jumps else low < high
        expect(np.all(ordered), "lower ends below upper ends", (low, high))
        if case.looks_symmetric:
            inside = (low < mean) & (mean < high)
            expect(np.all(inside), "intervals that hold the mean", (low, high))
        if before is not None:
            wider = (low <= before[0]) & (high >= before[1])
            strictly = (low < before[0]) & (high > before[1])
            expect(
                np.all(wider if jumps else strictly),
                f"a wider interval at coverage {coverage}",
                (low, high),
            )
        before = low, high
    default = model.predict_interval(X)
    close("the default interval", np.array(default), np.array(before), 1e-12)


def _cdf(case: RegressorCase, y: Floats) -> Floats:
    """Return the probability of an observation at most y, at the first new rows."""
    process, likelihood = case.model.predictive_, case.model.likelihood_
    s = process.scale[0]
    X = case.X_new[: len(y)]
    mean, var = process.mean(X)[:, 0], process.var(X)[:, 0]
    return np.asarray(likelihood.predictive_cdf(y / s, mean / s, var / s**2))


@PREDICTIONS.add(offers("predict_interval"))
def rule_latent_interval(case: RegressorCase) -> None:
    """Latent intervals are those of a Gaussian with the latent standard deviation."""
    model, X = case.model, case.X_new
    mean, std = model.predict(X, return_std=True, latent=True)
    low, high = model.predict_interval(X, coverage=0.8, latent=True)
    half = ndtri(0.9) * std
    close("the lower end", low, mean - half, 1e-8, 1e-9 * case.size)
    close("the upper end", high, mean + half, 1e-8, 1e-9 * case.size)


@PREDICTIONS.add(offers("predict_gradient"))
def rule_input_gradient(case: RegressorCase) -> None:
    """`predict_gradient` has the derivatives of mean and std in x."""
    model, X = case.model, case.X_new
    gradient = model.predict_gradient(X)
    rows = np.arange(len(X))
    step = 1e-4 * float(np.min(np.std(case.X, axis=0)))

    def predicted(i: int, A: Floats) -> Floats:
        return np.asarray(model.predict(A, return_std=True)[i])

    for i, name in enumerate(("mean", "std")):
        got = getattr(gradient, name)
        expect(got.shape == X.shape, f"d {name}/dx of shape {X.shape}", got)
        wanted = slope(partial(predicted, i), X, step)
        close(f"d {name}/dx", got, wanted[rows, :, rows], 1e-4, 1e-6 * case.size)


@PREDICTIONS.add(offers("log_predictive_density"), gaussian)
def rule_log_predictive_density(case: RegressorCase) -> None:
    """`log_predictive_density` is that of a Gaussian with the predicted mean and std."""
    model, X = case.model, case.X_new
    mean, std = model.predict(X, return_std=True)
    y = mean + std * np.linspace(-2.0, 2.0, len(X))
    got = model.log_predictive_density(X, y)
    close("log_predictive_density", got, norm.logpdf(y, mean, std), 1e-8, 1e-8)


@PREDICTIONS.add(offers("sample_y"))
def rule_samples(case: RegressorCase) -> None:
    """`sample_y` draws from the predictive distribution, noise included unless latent.

    Draws of the function have the predicted mean and covariance; so have observations if noise is
    Gaussian. Others are held against their distribution function, whose tails may be heavy.
    """
    model, X = case.model, case.X_joint[:3]
    n = len(X)
    is_gaussian = not (hasattr(model, "likelihood_") and gaussian(case))
    for latent in (False, True):
        draws = model.sample_y(X, _DRAWS, random_state=3, latent=latent)
        expect(draws.shape == (n, _DRAWS), f"draws of shape {(n, _DRAWS)}", draws)
        if not (latent or is_gaussian):
            if not distribution(case):
                _check_frequencies(case, draws)
            continue
        mean, cov = model.predict(X, return_cov=True, latent=latent)
        std = np.sqrt(np.diagonal(cov))
        # five standard errors of a mean, and of a variance; of a variance that is 0 all draws are
        # the mean, and what is left is the rounding of a sum, some tens of the 2e-16 of its size
        error = np.abs(draws.mean(axis=1) - mean)
        most = 5.0 * std / np.sqrt(_DRAWS) + 1e-14 * np.abs(mean)
        expect(np.all(error <= most), f"draws with mean {mean}", error)
        spread = np.outer(std, std) * 5.0 * np.sqrt(2.0 / _DRAWS) + 1e-12
        found = np.cov(draws).reshape(n, n)
        error = np.abs(found - cov)
        expect(np.all(error <= spread), f"draws with covariance {cov.tolist()}", found)


def _check_frequencies(case: RegressorCase, draws: Floats) -> None:
    """Hold draws (t, n) at the first new rows against the predictive distribution function."""
    at = np.quantile(draws, np.linspace(0.05, 0.95, 19), axis=1, method="inverted_cdf")
    got = np.array([np.mean(draws <= y[:, None], axis=1) for y in at])
    wanted = np.array([_cdf(case, y) for y in at])
    # 4.5 standard deviations of a frequency of one half
    close("frequencies of draws", got, wanted, 0.0, 2.25 / np.sqrt(draws.shape[1]))
