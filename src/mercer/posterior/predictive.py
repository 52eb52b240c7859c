"""What every fitted model can do, whatever it is made of."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import semidefinite_root
from mercer.posterior.storage import save

__all__ = ["InputGradients", "MarginalPredictive", "Predictive", "at_least_one"]

Floats = NDArray[np.float64]


class InputGradients(NamedTuple):
    """Derivatives of the mean and the variance in the inputs, each of shape (n, d, P)."""

    mean: Floats
    var: Floats


class Predictive(ABC):
    """A distribution over functions with P outputs, of which any finite part can be asked for.

    `Posterior` is the richer kind, which can also be pruned and continued. Committees, and
    approximations that need the training rows to predict, have only what is listed here.
    """

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The number P of outputs."""

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,), in which hyperparameters are stated; ones by default."""
        return np.ones(self.n_outputs)

    @abstractmethod
    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""

    @abstractmethod
    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P), never negative."""

    @abstractmethod
    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X.

        Its shape is (n, n, P) for independent outputs and (n, P, n, P) for coupled ones.
        """

    def sample(
        self, X: Any, n_samples: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Return joint draws at the rows of X, shape (n, n_samples, P), of independent outputs."""
        n_samples = at_least_one("n_samples", n_samples)
        mean, cov = self.mean(X), self.cov(X)
        z = np.random.default_rng(rng).standard_normal((*mean.shape, n_samples))
        draws = [semidefinite_root(cov[..., p]) @ z[:, p] for p in range(mean.shape[1])]
        return np.asarray(mean[:, None, :] + np.stack(draws, axis=2))

    @abstractmethod
    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` rebuilds the object from."""

    @abstractmethod
    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which may share work."""
        return self.mean(X), self.var(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file, to be read by `load`."""
        save(self, path)


class MarginalPredictive(Predictive):
    """A distribution of the function at one point, for every point, and no joint one."""

    #: Why, and what to use instead.
    _alone: str

    def cov(self, X: Any) -> Floats:
        """Return the variance of one row, shape (1, 1, P); of several it is not defined."""
        var = self.var(X)
        if len(var) > 1:
            raise ValueError(
                f"a joint covariance of {len(var)} points was asked for, but {self._alone}"
            )
        return var[:, None, :]


def at_least_one(name: str, given: object) -> int:
    """Return a count that a caller has given, if it is one."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {given!r}")
    return int(given)
