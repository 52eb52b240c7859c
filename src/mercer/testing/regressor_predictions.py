"""Rules for what a fitted regressor predicts."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm

from mercer.posterior import Posterior, Predictive
from mercer.testing.compare import close, expect, identical, slope
from mercer.testing.regressor_case import (
    RegressorCase,
    distribution,
    gaussian,
    multi_output,
    offers,
    quietly,
    weights,
)
from mercer.testing.rules import Rules

__all__ = ["PREDICTIONS"]

Floats = NDArray[np.float64]

PREDICTIONS: Rules[RegressorCase] = Rules()

_DRAWS = 4000


@PREDICTIONS.add()
def rule_predict_variants(case: RegressorCase) -> None:
    """All variants of `predict` have the same mean, and std is the root of cov's diagonal.

    With a link, the function and observations have means of their own.
    """
    model, X = case.model, case.X_new
    n = len(X)
    mean = model.predict(X)
    expect(mean.shape == (n,), f"a mean of shape {(n,)}", mean)
    for latent in (False, True):
        if latent:
            alone = model.predict(X, latent=True)
            if case.adds_noise:
                close("the latent mean", alone, mean, 1e-9, 1e-10 * case.size)
            mean = alone
        with_std = model.predict(X, return_std=True, latent=latent)
        with_cov = model.predict(X, return_cov=True, latent=latent)
        expect(len(with_std) == len(with_cov) == 2, "a pair (mean, spread)", with_std)
        expect(with_cov[1].shape == (n, n), f"a covariance of shape {(n, n)}", with_cov[1])
        close("the mean with return_std", with_std[0], mean, 1e-9, 1e-10 * case.size)
        close("the mean with return_cov", with_cov[0], mean, 1e-9, 1e-10 * case.size)
        variance = np.diagonal(with_cov[1])
        close("std squared", with_std[1] ** 2, variance, 1e-7, 1e-12 * case.size**2)
        identical("cov transposed", with_cov[1].T, with_cov[1])


@PREDICTIONS.add()
def rule_predict_by_rows(case: RegressorCase) -> None:
    """A row's prediction does not depend on the other rows, and is never NaN or negative."""
    model, X = case.model, np.concatenate([case.X_new, case.X[:3]])
    if case.adds_noise:  # a link may not be finite far out
        X = np.concatenate([X, 1e6 * case.X_new[:1]])
    mean, std = model.predict(X, return_std=True)
    for i in range(len(X)):
        one = model.predict(X[i : i + 1], return_std=True)
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
        if case.is_symmetric:
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


@PREDICTIONS.add()
def rule_predictive(case: RegressorCase) -> None:
    """`predictive_` is a Predictive that says what `predict` says, and `posterior_` likewise."""
    model, X = case.model, case.X_new
    mean, latent = model.predict(X, return_std=True, latent=True)
    processes = {"predictive_": getattr(model, "predictive_", None)}
    expect(isinstance(processes["predictive_"], Predictive), "a Predictive", processes)
    if hasattr(model, "posterior_"):
        processes["posterior_"] = model.posterior_
        expect(isinstance(model.posterior_, Posterior), "a Posterior", model.posterior_)
    for name, process in processes.items():
        assert process is not None
        close(f"mean of {name}", process.mean(X)[:, 0], mean, 1e-9, 1e-10 * case.size)
        var = process.var(X)[:, 0]
        close(f"variance of {name}", var, latent**2, 1e-7, 1e-12 * case.size**2)
        expect(process.n_outputs == 1, "one output", process.n_outputs)
        expect(process.describe(), f"a description of {name}", "nothing")


@PREDICTIONS.add(offers("posterior_"))
def rule_prune(case: RegressorCase) -> None:
    """Pruning to all points changes nothing at no loss; fewer points lose more, never less."""
    posterior, X = case.model.posterior_, case.X_new
    m = posterior.n_basis
    noise = getattr(case.model.likelihood_, "new_variance", None)
    same, loss = posterior.prune(m, noise)
    expect(loss == 0.0, "no loss for keeping all points", loss)
    identical("the mean with all points kept", same.mean(X), posterior.mean(X))
    before = 0.0
    for kept in (m - 1, m // 2, max(1, m // 4)):
        small, loss = posterior.prune(kept, noise)
        expect(small.n_basis <= kept, f"at most {kept} points", small.n_basis)
        expect(np.isfinite(loss) and loss >= before - 1e-9, f"a loss of {before:g} or more", loss)
        var = small.var(X)
        expect(np.all(np.isfinite(var)) and np.all(var >= 0), "finite variances", var)
        before = loss


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
    model, X = case.model, case.X_new[:3]
    is_gaussian = not (hasattr(model, "likelihood_") and gaussian(case))
    for latent in (False, True):
        draws = model.sample_y(X, _DRAWS, random_state=3, latent=latent)
        expect(draws.shape == (3, _DRAWS), f"draws of shape {(3, _DRAWS)}", draws)
        if not (latent or is_gaussian):
            if not distribution(case):
                _check_frequencies(case, draws)
            continue
        mean, cov = model.predict(X, return_cov=True, latent=latent)
        std = np.sqrt(np.diagonal(cov))
        # five standard errors of a mean, and of a variance
        error = np.abs(draws.mean(axis=1) - mean)
        expect(np.all(error <= 5.0 * std / np.sqrt(_DRAWS)), f"draws with mean {mean}", error)
        spread = np.outer(std, std) * 5.0 * np.sqrt(2.0 / _DRAWS) + 1e-12
        error = np.abs(np.cov(draws) - cov)
        expect(np.all(error <= spread), f"draws with covariance {cov.tolist()}", np.cov(draws))


def _check_frequencies(case: RegressorCase, draws: Floats) -> None:
    """Hold draws (t, n) at the first new rows against the predictive distribution function."""
    at = np.quantile(draws, np.linspace(0.05, 0.95, 19), axis=1, method="inverted_cdf")
    got = np.array([np.mean(draws <= y[:, None], axis=1) for y in at])
    wanted = np.array([_cdf(case, y) for y in at])
    # 4.5 standard deviations of a frequency of one half
    close("frequencies of draws", got, wanted, 0.0, 2.25 / np.sqrt(draws.shape[1]))


@PREDICTIONS.add(offers("log_marginal_likelihood", "log_marginal_likelihood_value_"))
def rule_evidence(case: RegressorCase) -> None:
    """`log_marginal_likelihood` at the fit is the value kept, and its gradient its derivative."""
    w = np.linspace(0.5, 2.0, len(case.y))
    models = {"one output": case.model}
    if not weights(case):
        models["weighted rows"] = case.fit(case.X, case.y, w)
    if not multi_output(case):
        models["two outputs"] = case.two_outputs
    for what, model in models.items():
        kept = model.log_marginal_likelihood_value_
        theta = model.theta_ + 0.05 * np.cos(np.arange(model.theta_.size))
        close(f"evidence, {what}", model.log_marginal_likelihood(model.theta_), kept, 1e-8, 1e-8)
        close(f"evidence without theta, {what}", model.log_marginal_likelihood(), kept, 1e-12)
        value, gradient = quietly(model.log_marginal_likelihood, theta, eval_gradient=True)
        plain = model.log_marginal_likelihood(theta)
        close(f"evidence with its gradient, {what}", value, plain, 1e-10, 1e-10)
        wanted = slope(model.log_marginal_likelihood, theta)
        close(f"gradient of the evidence, {what}", gradient, wanted, 1e-4, 1e-5)


@PREDICTIONS.add(multi_output)
def rule_several_outputs(case: RegressorCase) -> None:
    """With y (n, P) predictions have an axis of outputs, last; with y (n, 1) too."""
    X = case.X_new
    (t, d), p = X.shape, 2
    model = case.two_outputs
    mean, std = model.predict(X, return_std=True)
    _, cov = model.predict(X, return_cov=True)
    for what, value, shape in (
        ("predict", model.predict(X), (t, p)),
        ("the mean", mean, (t, p)),
        ("std", std, (t, p)),
        ("cov", cov, (t, t, p)),
    ):
        expect(value.shape == shape, f"{what} of shape {shape}", value)
    close("std squared", std**2, np.einsum("iip->ip", cov), 1e-7, 1e-10)
    if hasattr(model, "predict_interval"):
        ends = np.array(model.predict_interval(X))
        expect(ends.shape == (2, t, p), f"two ends of shape {(t, p)}", ends)
    if hasattr(model, "sample_y"):
        draws = model.sample_y(X, 3)
        expect(draws.shape == (t, p, 3), f"draws of shape {(t, p, 3)}", draws)
    if hasattr(model, "predict_gradient"):
        gradient = model.predict_gradient(X).std
        expect(gradient.shape == (t, d, p), f"gradients of shape {(t, d, p)}", gradient)
    if hasattr(model, "log_predictive_density"):
        density = model.log_predictive_density(X, mean if case.adds_noise else case.Y[:t])
        expect(density.shape == (t, p), f"densities of shape {(t, p)}", density)
    column, plain = case.hold(case.X, case.y[:, None]), case.hold(case.X, case.y)
    close("one column of targets", column.predict(X), plain.predict(X)[:, None], 1e-9, 1e-12)
