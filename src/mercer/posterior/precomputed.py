"""Predictions from rows of a kernel matrix instead of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels import Precomputed
from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, Predictive, at_least_one
from mercer.registry import storable

__all__ = ["PrecomputedPredictive"]

Floats = NDArray[np.float64]


@storable
class PrecomputedPredictive(Predictive):
    """A posterior that is asked with rows [K(x, X_train), further columns] instead of inputs.

    Parameters
    ----------
    posterior : Posterior
        One whose kernel is `Precomputed`, over the N training rows. Its mean function and its
        explicit functions are called with the rows as they are, so they must not depend on inputs.
    """

    def __init__(self, posterior: Posterior) -> None:
        if not isinstance(posterior.kernel, Precomputed):
            raise ValueError(
                f"the posterior's kernel must be Precomputed, got {posterior.kernel!r}"
            )
        self.posterior = posterior
        self._n_train = len(posterior.kernel.K)

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self.posterior.n_outputs

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self.posterior.scale

    def _split(self, X: ArrayLike, what: str = "") -> tuple[Floats, Floats, Floats]:
        """Return the rows, phi at them, and the columns beyond K(x, X_train).

        With `what` these must be there: one for "k(x, x)", and one a row for "K(x, X_new)".
        """
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2:
            raise ValueError(
                "with a precomputed kernel rows of kernel values are wanted, a 2-D array, got "
                f"shape {rows.shape}"
            )
        n = self._n_train
        if not self.posterior.weight:  # a degenerate one is linear in the columns
            what = ""
        further = {"": 0, "k(x, x)": 1, "K(x, X_new)": len(rows)}[what]
        if rows.shape[1] < n or (further and rows.shape[1] != n + further):
            more = f" and {further} more: {what}" if further else ""
            raise ValueError(
                f"with a precomputed kernel each row needs {n} columns, K(x, X_train){more}; got "
                f"{rows.shape[1]}"
            )
        basis = self.posterior.basis
        phi = rows[:, basis.points[:, 0].astype(np.intp)] if basis.n_points else rows[:, :0]
        if basis.features is not None:
            phi = np.hstack([phi, basis.features.features(rows)])
        return rows, phi, np.ascontiguousarray(rows[:, n:])

    def mean(self, X: ArrayLike) -> Floats:
        """Return the mean at rows K(x, X_train); further columns are not looked at."""
        rows, phi, _ = self._split(X)
        posterior = self.posterior
        fixed = posterior.mean_function(rows, posterior.n_outputs)
        return np.asarray(posterior.mean_from(phi) + fixed)

    def var(self, X: ArrayLike) -> Floats:
        """Return the variance at rows [K(x, X_train), k(x, x)], without the last if degenerate."""
        _, phi, further = self._split(X, "k(x, x)")
        return self.posterior.var_from(phi, further[:, 0] if self.posterior.weight else None)

    def cov(self, X: ArrayLike) -> Floats:
        """Return the covariance at rows [K(x, X_train), K(x, X_new)], likewise."""
        _, phi, further = self._split(X, "K(x, X_new)")
        return self.posterior.cov_from(phi, further if self.posterior.weight else None)

    def sample(
        self, X: ArrayLike, n_samples: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Return joint draws at rows [K(x, X_train), K(x, X_new)], likewise."""
        n_samples = at_least_one("n_samples", n_samples)
        rows, phi, further = self._split(X, "K(x, X_new)")
        rng = np.random.default_rng(rng)
        between = further if self.posterior.weight else None
        deviations = self.posterior.sample_from(phi, between, n_samples, rng)
        return np.asarray(self.mean(rows)[:, None, :] + deviations)

    def gradients(self, X: Any) -> InputGradients:
        """Refuse: nothing is known of inputs."""
        raise ValueError("a precomputed kernel has no derivatives in inputs")

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's argument."""
        return {"posterior": self.posterior}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PrecomputedPredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return the description of the posterior."""
        return self.posterior.describe()
