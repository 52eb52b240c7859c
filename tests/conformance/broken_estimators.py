"""Estimators with one defect each: a GPRegressor but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.registry import storable


class Broken(GPRegressor):
    """What the broken ones are made of: they keep the constructor, as scikit-learn wants."""


@storable
class CountsItsCalls(Broken):
    """`predict` changes the model."""

    def predict(self, X, **options):
        self.n_calls_ = getattr(self, "n_calls_", 0) + 1
        return super().predict(X, **options)


@storable
class WeightsIgnored(Broken):
    """Weights are taken and not used."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


@storable
class StdIsVariance(Broken):
    """std is the variance."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        return (out[0], out[1] ** 2) if return_std else out


@storable
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


@storable
class LatentHasNoise(Broken):
    """`latent=True` is not heard."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        return super().predict(X, return_std=return_std, return_cov=return_cov)


@storable
class OneSidedInterval(Broken):
    """The lower end is that of a one-sided interval."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        other = 2.0 * coverage - 1.0 if coverage > 0.5 else coverage
        low, _ = super().predict_interval(X, other, latent)
        return low, super().predict_interval(X, coverage, latent)[1]


@storable
class NarrowInterval(Broken):
    """Intervals are for the function, not for an observation."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        return super().predict_interval(X, coverage, latent=True)


@storable
class SamplesAnew(Broken):
    """`random_state` is not heard."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        return super().sample_y(X, n_samples, np.random.default_rng(), latent)


@storable
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


@storable
class KeepsTheArray(Broken):
    """The training targets are not copied."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._given = y
        return self

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        shift = 1e-3 * np.mean(self._given)
        return (out[0] + shift, out[1]) if return_std or return_cov else out + shift


@storable
class WrongGradient(Broken):
    """The derivative of std is that of the variance."""

    def predict_gradient(self, X):
        gradient = super().predict_gradient(X)
        return gradient._replace(std=2.0 * gradient.std)


@storable
class WrongDensity(Broken):
    """The density is of the latent function."""

    def log_predictive_density(self, X, y):
        return super().log_predictive_density(X, y) + 0.1


@storable
class FillsNaN(Broken):
    """NaN is filled in without a word."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.nan_to_num(np.asarray(X, dtype=float)), y, sample_weight)


@storable
class ChangesItsParameters(Broken):
    """`fit` writes into the constructor's parameters."""

    def fit(self, X, y, sample_weight=None):
        self.kernel = 1.0 * RBF() if self.kernel is None else self.kernel
        return super().fit(X, y, sample_weight)


@storable
class FlatOutputs(Broken):
    """One column of targets loses its axis."""

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        return out if isinstance(out, tuple) or out.shape[-1:] != (1,) else out[:, 0]


@storable
class ForgetsNames(Broken):
    """Names of columns are dropped."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.asarray(X), y, sample_weight)


@storable
class OtherEvidence(Broken):
    """The gradient of the evidence has the wrong sign."""

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        out = super().log_marginal_likelihood(theta, eval_gradient)
        return (out[0], -out[1]) if eval_gradient else out


@storable
class FixedUnits(Broken):
    """The default kernel has units of its own."""

    def fit(self, X, y, sample_weight=None):
        inner = GPRegressor(1.0 * RBF(), Gaussian(0.1), optimizer=None).fit(X, y, sample_weight)
        vars(self).update({k: v for k, v in vars(inner).items() if k[-1] == "_" or k[0] == "_"})
        return self


class Shifted(Broken):
    """Its means are moved by what subclasses say."""

    def _shift(self, X):
        return 0.0

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        out = super().predict(X, return_std=return_std, return_cov=return_cov, latent=latent)
        shift = self._shift(X)
        return (out[0] + shift, *out[1:]) if isinstance(out, tuple) else out + shift


@storable
class CentresItsRows(Shifted):
    """A prediction depends on the other rows."""

    def _shift(self, X):
        return 1e-3 * len(X)


@storable
class OtherThanItsPosterior(Shifted):
    """`predict` and `posterior_` disagree."""

    def _shift(self, X):
        return 1e-3


@storable
class FirstRowCounts(Shifted):
    """The first row is a special one."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.first_ = float(np.ravel(np.asarray(y))[0])
        return self

    def _shift(self, X):
        return 1e-3 * self.first_


@storable
class ThreadsCount(Shifted):
    """The number of threads shows in the digits."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.threads_ = max(library["num_threads"] for library in threadpool_info())
        return self

    def _shift(self, X):
        return 1e-6 * self.threads_


@storable
class NotLinear(Shifted):
    """Means do not follow the targets."""

    def _shift(self, X):
        return 0.1


@storable
class OutputsMix(Shifted):
    """The second output sees the first."""

    def _shift(self, X):
        return 0.1 * float(self._multioutput)


@storable
class WrongLatentInterval(Broken):
    """Latent intervals have the noise in them."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        return super().predict_interval(X, coverage)


@storable
class PickyAboutPickles(Broken):
    """A pickle forgets the noise."""

    def __getstate__(self):
        state = super().__getstate__()
        return state | {"likelihood_": Gaussian(1.0)} if "likelihood_" in state else state


@storable
class NaNBeforeFit(Shifted):
    """Without a fit it predicts NaN."""

    def _shift(self, X):
        return 0.0 if hasattr(self, "posterior_") else np.nan


@storable
class TakesAnyCoverage(Broken):
    """Coverages are not checked."""

    def predict_interval(self, X, coverage=0.95, latent=False):
        coverage = min(max(float(coverage), 0.01), 0.99)
        return super().predict_interval(X, coverage, latent)


class _FreePruning:
    """A posterior whose pruning costs less, the fewer points are kept."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def prune(self, n, noise=None):
        small, loss = self.inner.prune(n, noise)
        return small, loss and 1.0 / loss


class PrunesForFree(Broken):
    """The loss of pruning falls where it should grow."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.posterior_ = _FreePruning(self.posterior_)
        return self


ESTIMATORS: dict[str, list[Any]] = {
    "rule_predict_is_pure": [CountsItsCalls()],
    "rule_weights": [WeightsIgnored()],
    "rule_predict_variants": [StdIsVariance()],
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
