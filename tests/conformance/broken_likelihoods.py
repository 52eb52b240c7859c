"""Likelihoods with one defect each: Gaussian noise but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from mercer.likelihoods import Gaussian, Likelihood
from mercer.registry import storable

from .broken_likelihood_parameters import LIKELIHOOD_PARAMETERS


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
class CompiledWithADeviation(Gaussian):
    """The compiled averages take the noise's standard deviation for its variance."""

    def compiled_site(self):
        return "gaussian", np.sqrt([self.noise])


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
    "rule_compiled_site": [CompiledWithADeviation(0.3), CompiledWithADeviation(1e-6)],
    "rule_log_predictive": [PredictsTheLatent(0.3), PredictsTheLatent(1e-6)],
    "rule_predictive_cdf": [WrongPredictiveDistribution(0.3)],
    "rule_knots": [OneKnotForAll(0.3)],
    "rule_arguments_are_kept": [ReturnsItsArgument(0.3)],
    **LIKELIHOOD_PARAMETERS,
}
