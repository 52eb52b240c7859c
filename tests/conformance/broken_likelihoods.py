"""Likelihoods with one defect each: Gaussian noise but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from mercer.likelihoods import (
    Custom,
    Gaussian,
    Laplace,
    Likelihood,
    Logistic,
    MixtureNoise,
    Probit,
    StudentT,
)
from mercer.registry import storable

from .noise import CountsExample


@storable
class NotNormalised(Gaussian):
    """A constant is missing in the density."""

    def log_density(self, y, f):
        return super().log_density(y, f) + 0.01


@storable
class WrongFirst(Gaussian):
    """The first derivative is that in y."""

    def derivatives(self, y, f):
        first, second, third = super().derivatives(y, f)
        return -first, second, third


@storable
class WrongThird(Gaussian):
    """The third derivative is not 0."""

    def derivatives(self, y, f):
        first, second, third = super().derivatives(y, f)
        return first, second, third + 0.1


@storable
class WrongFisher(Gaussian):
    """The information has the wrong sign."""

    def fisher(self, f):
        return -super().fisher(f)


@storable
class WrongSmoothed(Gaussian):
    """The Gaussian's variance is taken for its standard deviation."""

    def smoothed(self, y, mean, var):
        return super().smoothed(y, mean, np.sqrt(var))


@storable
class WrongSmoothedSlope(Gaussian):
    """The second derivative lacks its sign."""

    def smoothed(self, y, mean, var):
        log_z, first, second = super().smoothed(y, mean, var)
        return log_z, first, -second


@storable
class NoNoiseInPredictions(Gaussian):
    """The predictive variance lacks the noise."""

    def predictive_var(self, mean, var):
        return super().predictive_var(mean, var) - self.new_variance


@storable
class WrongQuantile(Gaussian):
    """Quantiles are of the latent value."""

    def quantile(self, mean, var, level):
        return Gaussian(1e-12).quantile(mean, var, level)


@storable
class WrongDistribution(Gaussian):
    """The distribution function is of a standard deviation for the variance."""

    def conditional_cdf(self, y, f):
        return ndtr((np.asarray(y) - f) / self.new_variance)


@storable
class WrongSamples(Gaussian):
    """Draws have the variance for their standard deviation."""

    def sample(self, f, rng):
        return f + self.new_variance * rng.standard_normal(np.shape(f))


@storable
class WrongSamplesUnseen(WrongSamples):
    """Likewise, and there is no distribution function to hold draws against."""

    conditional_cdf = Likelihood.conditional_cdf


@storable
class NearlyTheDistribution(Gaussian):
    """The distribution function is off by less than a thousandth."""

    def conditional_cdf(self, y, f):
        p = super().conditional_cdf(y, f)
        return p + 9e-4 * np.sin(2.0 * np.pi * p)


@storable
class SamplesFromNowhere(Gaussian):
    """The generator is not used."""

    def sample(self, f, rng):
        return super().sample(f, np.random.default_rng())


@storable
class TakesAnyLevel(Gaussian):
    """Levels are not checked."""

    def quantile(self, mean, var, level):
        return super().quantile(mean, var, np.clip(level, 1e-12, 1 - 1e-12))


@storable
class FlatDensity(Gaussian):
    """Scalars come back as vectors."""

    def log_density(self, y, f):
        return np.atleast_1d(super().log_density(y, f))


@storable
class WrongSpread(Gaussian):
    """The standard deviation is given for the variance."""

    def conditional_var(self, f):
        return np.sqrt(super().conditional_var(f))


@storable
class DividesByTheVariance(Gaussian):
    """A variance of 0 is treated as a tenth."""

    def smoothed(self, y, mean, var):
        return super().smoothed(y, mean, np.where(np.asarray(var) > 0, var, 0.1))


@storable
class PredictsTheLatent(Gaussian):
    """The predictive density lacks the noise."""

    def log_predictive(self, y, mean, var):
        return super().log_predictive(y, mean, 0.5 * np.asarray(var))


@storable
class WrongPredictiveDistribution(Gaussian):
    """The predictive distribution function is the survival function."""

    def predictive_cdf(self, y, mean, var):
        return 1.0 - super().predictive_cdf(y, mean, var)


@storable
class OneKnotForAll(Gaussian):
    """Knots are not given row by row."""

    def knots(self, y):
        return np.zeros((1, 1))


@storable
class ReturnsItsArgument(Gaussian):
    """The conditional mean is f itself, not a copy."""

    def conditional_mean(self, f):
        return np.asarray(f)


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


LIKELIHOODS: dict[str, list[Any]] = {
    "rule_density_integrates_to_one": [NotNormalised(0.3)],
    "rule_derivatives": [WrongFirst(0.3), WrongThird(0.3), WrongFirst(1e-6)],
    "rule_fisher": [WrongFisher(0.3)],
    "rule_smoothed": [WrongSmoothed(0.3), WrongSmoothedSlope(0.3), WrongSmoothed(1e-6)],
    "rule_predictive_moments": [NoNoiseInPredictions(0.3)],
    "rule_quantile": [WrongQuantile(0.3)],
    "rule_conditional_cdf": [WrongDistribution(0.3), NearlyTheDistribution(0.3)],
    "rule_samples": [WrongSamples(0.3), WrongSamplesUnseen(0.3), SamplesFromNowhere(0.3)],
    "rule_bad_arguments": [TakesAnyLevel(0.3)],
    "rule_shapes": [FlatDensity(0.3)],
    "rule_conditional_moments": [WrongSpread(0.3), WrongSpread(1e-6)],
    "rule_smoothed_without_variance": [DividesByTheVariance(0.3)],
    "rule_log_predictive": [PredictsTheLatent(0.3), PredictsTheLatent(1e-6)],
    "rule_predictive_cdf": [WrongPredictiveDistribution(0.3)],
    "rule_knots": [OneKnotForAll(0.3)],
    "rule_arguments_are_kept": [ReturnsItsArgument(0.3)],
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
        PrefersExact(0.3),
        ClaimsEveryRowConcave(3.0, 0.5),
        OneAnswerForAll(0.3),
        SaysYes(),
        Custom(one_sided, twice_differentiable=False),
    ],
    "rule_curvature": [ClaimsNoCurvature(0.3), ClaimsCurvature(0.3)],
}
