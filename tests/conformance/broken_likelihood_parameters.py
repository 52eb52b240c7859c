"""Likelihoods with one defect each, of expected values, gradients, starts and flags."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.likelihoods import Custom, Gaussian, Laplace, Logistic, MixtureNoise, Probit, StudentT
from mercer.registry import storable

from .noise import CountsExample


@storable
class ExpectsAtTheMean(Gaussian):
    """The expected log density is that at the mean."""

    def expected(self, y, mean, var):
        return super().expected(y, mean, 0.5 * np.asarray(var))


@storable
class WrongExpectedSlope(Gaussian):
    """The derivative in the variance is that in the standard deviation."""

    def expected(self, y, mean, var):
        value, first, second = super().expected(y, mean, var)
        return value, first, second * 2.0 * np.sqrt(np.asarray(var))


@storable
class ExpectsAStep(Probit):
    """Minus infinity is rounded up."""

    def expected(self, y, mean, var):
        return Probit(1e-3).expected(y, mean, var)


@storable
class PullsNaturalUnits(Gaussian):
    """The gradient is in the noise, not in its logarithm."""

    def pull_derivatives(self, y, f, g0, g1, g2):
        return super().pull_derivatives(y, f, g0, g1, g2) / self.noise


@storable
class PullsNoCurvature(Gaussian):
    """What the curvature adds is forgotten."""

    def pull_derivatives(self, y, f, g0, g1, g2):
        return super().pull_derivatives(y, f, g0, g1, np.zeros_like(g2))


@storable
class PullsTheDensity(Gaussian):
    """The gradient is that of log p at the mean."""

    def pull_smoothed(self, y, mean, var, g):
        return super().pull_smoothed(y, mean, np.zeros_like(var), g)

    def pull_expected(self, y, mean, var, g):
        return super().pull_expected(y, mean, np.zeros_like(var), g)


@storable
class StartsAtNothing(Gaussian):
    """The start is infinite."""

    def initial(self, y):
        return np.full(np.shape(y), -np.inf)


@storable
class StartsAtItsArgument(Gaussian):
    """The start is y itself, not a copy."""

    def initial(self, y):
        return np.asarray(y)


@storable
class ForgetsItsNoise(Gaussian):
    """The noise that was given is replaced by that of the data."""

    def begun(self, y, weights=None):
        return type(self)(float(np.var(y)))


@storable
class BeginsElsewhere(Gaussian):
    """The bounds do not hold the noise that was given."""

    def begun(self, y, weights=None):
        noise = self.parameters["noise"]
        return type(self)(noise.replace(bounds=(2.0 * noise.value, 3.0 * noise.value)))


@storable
class BeginsWithoutWeights(Gaussian):
    """Weights are added, where they are powers."""

    def begun(self, y, weights=None):
        return super().begun(y if weights is None else y + np.asarray(weights) * np.arange(y.size))


@storable
class ClaimsToBeConcave(StudentT):
    """Heavy tails are not concave."""

    is_log_concave = True


@storable
class ClaimsOnePeak(MixtureNoise):
    """Two kinds of noise have two peaks."""

    is_unimodal = True


@storable
class ClaimsToAddNoise(CountsExample):
    """Counts are not the latent value and noise."""

    adds_noise = True


@storable
class NoiseGrows(Gaussian):
    """The noise is wider by a thousandth where f is larger by 1, and is said to be the same."""

    def log_density(self, y, f):
        wider = np.exp(1e-3 * np.asarray(f))
        return super().log_density(y / wider, f / wider) - np.log(wider)


@storable
class ClaimsSymmetry(MixtureNoise):
    """There is more noise above than below."""

    is_symmetric = True


@storable
class ClaimsToCount(Gaussian):
    """0 is not the surer, the smaller f is."""

    counts_events = True


@storable
class PrefersExact(Gaussian):
    """The engine is not one that is chosen from."""

    preferred_inference = "exact"


@storable
class ClaimsEveryRowConcave(StudentT):
    """Heavy tails are not concave, whatever the observation."""

    def log_concave_at(self, y):
        return np.full(np.shape(y), True)


@storable
class OneAnswerForAll(Gaussian):
    """Rows are not answered one by one."""

    def log_concave_at(self, y):
        return True


@storable
class SaysYes(Logistic):
    """A flag is a word."""

    is_unimodal = "yes"


@storable
class ClaimsNoCurvature(Gaussian):
    """The curvature is denied."""

    has_curvature = False


@storable
class ClaimsCurvature(Laplace):
    """There is none."""

    has_curvature = True


def one_sided(y, f):
    """Return the log density of exponential noise, which is 0 below f."""
    with np.errstate(divide="ignore"):
        return f - y + np.log(y >= f)


LIKELIHOOD_PARAMETERS: dict[str, list[Any]] = {
    "rule_expected": [
        ExpectsAtTheMean(0.3),
        WrongExpectedSlope(0.3),
        WrongExpectedSlope(1e-6),
        ExpectsAStep(0.0),
    ],
    "rule_expected_without_variance": [WrongExpectedSlope(0.3)],
    "rule_pull_derivatives": [PullsNaturalUnits(0.3), PullsNoCurvature(0.3)],
    "rule_pull_smoothed": [PullsTheDensity(0.3)],
    "rule_pull_expected": [PullsTheDensity(0.3)],
    "rule_initial": [StartsAtNothing(0.3), StartsAtItsArgument(0.3)],
    "rule_begun": [ForgetsItsNoise(0.3), BeginsElsewhere(0.3), BeginsWithoutWeights(0.3)],
    "rule_flags": [
        ClaimsToBeConcave(3.0, 0.5),
        ClaimsOnePeak([0.5, 0.5], [-1.0, 1.0], [0.3, 0.3]),
        ClaimsToAddNoise(),
        NoiseGrows(0.3),
        ClaimsSymmetry([0.8, 0.2], [0.0, 0.3], [0.2, 1.5]),
        ClaimsToCount(0.3),
        PrefersExact(0.3),
        ClaimsEveryRowConcave(3.0, 0.5),
        OneAnswerForAll(0.3),
        SaysYes(),
        Custom(one_sided, twice_differentiable=False),
    ],
    "rule_curvature": [ClaimsNoCurvature(0.3), ClaimsCurvature(0.3)],
}
