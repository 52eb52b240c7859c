"""Defects that a regressor and a classifier may have alike, to be put before the class they break.

Those with a `_move` say by how much a prediction is off; how it is, the class behind them knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_info

from mercer.kernels import RBF


class CountsItsCalls:
    """`predict` changes the model."""

    def predict(self, X, **options):
        self.n_calls_ = getattr(self, "n_calls_", 0) + 1
        return super().predict(X, **options)


class WeightsIgnored:
    """Weights are taken and not used."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class SamplesAnew:
    """`random_state` is not heard."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        return super().sample_y(X, n_samples, np.random.default_rng(), latent)


class FillsNaN:
    """NaN is filled in without a word."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.nan_to_num(np.asarray(X, dtype=float)), y, sample_weight)


class ForgetsNames:
    """Names of columns are dropped."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.asarray(X), y, sample_weight)


class ChangesItsParameters:
    """`fit` writes into the constructor's parameters."""

    def fit(self, X, y, sample_weight=None):
        self.kernel = 3.0 * RBF()
        return super().fit(X, y, sample_weight)


class FixedUnits:
    """The default kernel has units of its own: those of `plain`, an estimator."""

    plain: Any

    def fit(self, X, y, sample_weight=None):
        inner = clone(self.plain).fit(X, y, sample_weight)
        vars(self).update({k: v for k, v in vars(inner).items() if k[-1] == "_" or k[0] == "_"})
        return self


class OtherEvidence:
    """The gradient of the evidence has the wrong sign."""

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        out = super().log_marginal_likelihood(theta, eval_gradient)
        return (out[0], -out[1]) if eval_gradient else out


class FreePruning:
    """A process whose pruning costs less, the fewer points are kept."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def prune(self, n, noise=None):
        small, loss = self.inner.prune(n, noise)
        return small, loss and 1.0 / loss


class PrunesForFree:
    """The loss of pruning falls where it should grow."""

    @property
    def predictive_(self):
        return FreePruning(super().predictive_)


class PricedPruning(FreePruning):
    """A process that charges for pruning where it is given no noise."""

    def prune(self, n, noise=None):
        small, loss = self.inner.prune(n, noise)
        return small, loss + (noise is None)


class PrunesByNoise:
    """Keeping all points costs something where no noise is given."""

    @property
    def predictive_(self):
        return PricedPruning(super().predictive_)


class RowsCount:
    """A prediction depends on the other rows."""

    def _move(self, X):
        return 1e-3 * len(X)


class FirstRowCounts:
    """The first row is a special one."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.first_ = abs(float(np.asarray(X)[0, 0]))
        return self

    def _move(self, X):
        return 1e-2 * min(self.first_, 1.0)


class ThreadsCount:
    """The number of threads shows in the digits."""

    unit = 1e-3

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.threads_ = max(library["num_threads"] for library in threadpool_info())
        return self

    def _move(self, X):
        return self.unit * self.threads_
