"""Estimators with one defect each, whose noise is not Gaussian or that have a link."""

from __future__ import annotations

from typing import Any

import numpy as np

from .broken_estimators import Broken
from .noise import CountsExample, SkewedExample, TwoSidedExample


class Counts(Broken):
    """Predicts counts: the latent function is what a Gaussian fit to 0.1 y finds."""

    noise = CountsExample()

    def fit(self, X, y, sample_weight=None):
        super().fit(X, 0.1 * np.asarray(y), sample_weight)
        self.likelihood_ = self.noise
        return self

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, not return_cov, return_cov, latent)
        return out if return_std or return_cov else out[0]


class CountsBelow(Counts):
    """Intervals end one count too low."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        low, high = super().predict_interval(X, coverage, latent)
        return low, high - 1.0


class CountsOfTwoMeans(Counts):
    """`predict` without a spread is of the latent function."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        latent = latent or not (return_std or return_cov)
        return super().predict(X, return_std, return_cov, latent)


class CountsWithoutNoise(Counts):
    """Draws are the rates."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        draws = super().sample_y(X, n_samples, random_state, latent=True)
        return draws if latent else np.exp(draws)


class TwoSided(Counts):
    """Laplacian noise."""

    noise = TwoSidedExample(0.3)


class Skewed(Counts):
    """Skewed noise."""

    noise = SkewedExample(2.0)


class LatentElsewhere(Broken):
    """The function's mean is not that of observations, and there is no link."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        shift = 0.1 * float(latent)
        return (out[0] + shift, out[1]) if isinstance(out, tuple) else out + shift


class TwoSidedWithoutNoise(TwoSided):
    """Draws of observations are draws of the function."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        return super().sample_y(X, n_samples, random_state, latent=True)


class TwoSidedGaussian(TwoSided):
    """Intervals are those of Gaussian noise of the same variance."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        if latent:
            return super().predict_interval(X, coverage, latent)
        mean, std = self.predict(X, return_std=True)
        unit = super().predict_interval(X, coverage, latent=True)
        half = std * (unit[1] - unit[0]) / (2.0 * self.predict(X, True, latent=True)[1])
        return mean - half, mean + half


# What is sound, and must keep the rules that the ones below break.
SOUND = [Counts(), TwoSided(), Skewed()]

NOISE: dict[str, list[Any]] = {
    "rule_interval": [CountsBelow(), TwoSidedGaussian()],
    "rule_predict_variants": [CountsOfTwoMeans(), LatentElsewhere()],
    "rule_samples": [CountsWithoutNoise(), TwoSidedWithoutNoise()],
}
