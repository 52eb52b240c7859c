"""Estimators with one defect each: a GPRegressor but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import BayesianCommitteeRegressor, GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.registry import storable

from . import defects


class Broken(GPRegressor):
    """What the broken ones are made of: they keep the constructor, as scikit-learn wants."""


class StdIsVariance(Broken):
    """std is the variance."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        return (out[0], out[1] ** 2) if return_std else out


class StdInOtherUnits(Broken):
    """The spread is that of targets of unit variance."""

    def fit(self, X, y, sample_weight=None):
        self.unit_ = float(np.std(y))
        return super().fit(X, y, sample_weight)

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        if return_std:
            return out[0], out[1] / self.unit_
        return (out[0], out[1] / self.unit_**2) if return_cov else out


class LatentHasNoise(Broken):
    """`latent=True` is not heard."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        return super().predict(X, return_std=return_std, return_cov=return_cov)


class OneSidedInterval(Broken):
    """The lower end is that of a one-sided interval."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        other = 2.0 * coverage - 1.0 if coverage > 0.5 else coverage
        low, _ = super().predict_interval(X, other, latent)
        return low, super().predict_interval(X, coverage, latent)[1]


class NarrowInterval(Broken):
    """Intervals are for the function, not for an observation."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        return super().predict_interval(X, coverage, latent=True)


class SamplesWithoutNoise(Broken):
    """Draws of observations are draws of the function."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        return super().sample_y(X, n_samples, random_state, latent=True)


@storable
class LosesItsFit(Broken):
    """A part of the fit is not saved."""

    def to_state(self):
        state = super().to_state()
        state["fitted"]["likelihood_"] = Gaussian(1.0)
        return state


class WrongGradient(Broken):
    """The derivative of std is that of the variance."""

    def predict_gradient(self, X):
        gradient = super().predict_gradient(X)
        return gradient._replace(std=2.0 * gradient.std)


class WrongDensity(Broken):
    """The density is of the latent function."""

    def log_predictive_density(self, X, y):
        return super().log_predictive_density(X, y) + 0.1


class FlatOutputs(Broken):
    """One column of targets loses its axis."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        return out if isinstance(out, tuple) or out.shape[-1:] != (1,) else out[:, 0]


class Shifted(Broken):
    """Its means are moved by what subclasses say."""

    def _move(self, X):
        return 0.0

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        shift = self._move(X)
        return (out[0] + shift, *out[1:]) if isinstance(out, tuple) else out + shift


class RightInOneRow(BayesianCommitteeRegressor):
    """Only the first row has the same mean with its std as without."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        return (out[0] + 0.1 * np.arange(len(X)), out[1]) if return_std else out


class KeepsTheArray(Shifted):
    """The training targets are not copied."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._given = y
        return self

    def _move(self, X):
        return 1e-3 * np.mean(self._given)


class OtherThanItsPosterior(Shifted):
    """`predict` and `posterior_` disagree."""

    def _move(self, X):
        return 1e-3


class NotLinear(Shifted):
    """Means do not follow the targets."""

    def _move(self, X):
        return 0.1


class OutputsMix(Shifted):
    """The second output sees the first."""

    def _move(self, X):
        return 0.1 * float(self._multioutput)


class WrongLatentInterval(Broken):
    """Latent intervals have the noise in them."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        return super().predict_interval(X, coverage)


class PickyAboutPickles(Broken):
    """A pickle forgets the noise."""

    def __getstate__(self):
        state = super().__getstate__()
        return state | {"likelihood_": Gaussian(1.0)} if "likelihood_" in state else state


class NaNBeforeFit(Shifted):
    """Without a fit it predicts NaN."""

    def _move(self, X):
        return 0.0 if hasattr(self, "posterior_") else np.nan


class TakesAnyCoverage(Broken):
    """Coverages are not checked."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        coverage = min(max(float(coverage), 0.01), 0.99)
        return super().predict_interval(X, coverage, latent)


CountsItsCalls = type("CountsItsCalls", (defects.CountsItsCalls, Broken), {})
WeightsIgnored = type("WeightsIgnored", (defects.WeightsIgnored, Broken), {})
SamplesAnew = type("SamplesAnew", (defects.SamplesAnew, Broken), {})
FillsNaN = type("FillsNaN", (defects.FillsNaN, Broken), {})
ForgetsNames = type("ForgetsNames", (defects.ForgetsNames, Broken), {})
ChangesItsParameters = type("ChangesItsParameters", (defects.ChangesItsParameters, Broken), {})
OtherEvidence = type("OtherEvidence", (defects.OtherEvidence, Broken), {})
PrunesForFree = type("PrunesForFree", (defects.PrunesForFree, Broken), {})
FixedUnits = type(
    "FixedUnits",
    (defects.FixedUnits, Broken),
    {"plain": GPRegressor(1.0 * RBF(), Gaussian(0.1), optimizer=None)},
)
CentresItsRows = type("CentresItsRows", (defects.RowsCount, Shifted), {})
FirstRowCounts = type("FirstRowCounts", (defects.FirstRowCounts, Shifted), {})
ThreadsCount = type("ThreadsCount", (defects.ThreadsCount, Shifted), {"unit": 1e-6})

ESTIMATORS: dict[str, list[Any]] = {
    "rule_predict_is_pure": [CountsItsCalls()],
    "rule_weights": [WeightsIgnored()],
    "rule_predict_variants": [
        StdIsVariance(),
        RightInOneRow(1.0 * RBF(), Gaussian(0.1), n_members=2, optimizer=None),
    ],
    "rule_units_of_the_targets": [StdInOtherUnits(), FixedUnits()],
    "rule_latent_spread": [LatentHasNoise()],
    "rule_interval": [OneSidedInterval(), NarrowInterval()],
    "rule_random_state": [SamplesAnew()],
    "rule_samples": [SamplesWithoutNoise()],
    "rule_storage": [LosesItsFit()],
    "rule_data_are_copied": [KeepsTheArray()],
    "rule_input_gradient": [WrongGradient()],
    "rule_log_predictive_density": [WrongDensity()],
    "rule_bad_data": [FillsNaN()],
    "rule_fit": [ChangesItsParameters()],
    "rule_several_outputs": [FlatOutputs()],
    "rule_frames": [ForgetsNames()],
    "rule_evidence": [OtherEvidence()],
    "rule_units_of_the_inputs": [FixedUnits()],
    "rule_predict_by_rows": [CentresItsRows()],
    "rule_predictive": [OtherThanItsPosterior()],
    "rule_prune": [PrunesForFree()],
    "rule_latent_interval": [WrongLatentInterval()],
    "rule_pickle_and_clone": [PickyAboutPickles()],
    "rule_unfitted": [NaNBeforeFit()],
    "rule_bad_arguments": [TakesAnyCoverage()],
    "rule_order_of_rows": [FirstRowCounts()],
    "rule_threads": [ThreadsCount()],
    "rule_linear_in_the_targets": [NotLinear(RBF(), Gaussian(0.1))],
    "rule_outputs_are_independent": [OutputsMix(RBF(), Gaussian(0.1))],
}
