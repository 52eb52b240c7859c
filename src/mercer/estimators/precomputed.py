"""Kernel matrices given by the user instead of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import means
from mercer.kernels import Precomputed
from mercer.means import Mean
from mercer.posterior import InputGradients, Posterior, Predictive

__all__ = ["PrecomputedPredictive", "require_no_inputs"]

Floats = NDArray[np.float64]


def require_no_inputs(mean: Mean) -> None:
    """Raise ValueError unless the mean can do without inputs."""
    if not isinstance(mean, (means.Zero, means.Constant)):
        raise ValueError(
            f"with a precomputed kernel there are no inputs for the mean {mean!r}; use 'zero' or "
            "'constant', or subtract the mean beforehand"
        )


class PrecomputedPredictive(Predictive):
    """A posterior that is asked with rows [K(x, X_train), further columns] instead of inputs."""

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self.scale = posterior.scale

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self.posterior.n_outputs

    def _split(self, X: Floats, further: int, what: str) -> tuple[Floats, Floats]:
        """Return phi at the rows, and the further columns."""
        basis = self.posterior.basis
        assert isinstance(basis.kernel, Precomputed)
        n = len(basis.kernel.K)
        if X.shape[1] < n or (further and X.shape[1] != n + further):
            more = f" and {further} more: {what}" if further else ""
            raise ValueError(
                f"with a precomputed kernel each row needs {n} columns, K(x, X_train){more}; got "
                f"{X.shape[1]}"
            )
        phi = X[:, basis.points[:, 0].astype(int)]
        if basis.features is not None:
            phi = np.hstack([phi, basis.features.features(X)])
        return phi, np.ascontiguousarray(X[:, n:])

    def mean(self, X: Floats) -> Floats:
        """Return the mean at rows K(x, X_train)."""
        phi, _ = self._split(X, 0, "")
        posterior = self.posterior
        return posterior.mean_from(phi) + posterior.mean_function(X, posterior.n_outputs)

    def var(self, X: Floats) -> Floats:
        """Return the variance at rows [K(x, X_train), k(x, x)]."""
        phi, further = self._split(X, 1, "k(x, x)")
        return self.posterior.var_from(phi, further[:, 0])

    def cov(self, X: Floats) -> Floats:
        """Return the covariance at rows [K(x, X_train), K(x, X_new)]."""
        phi, further = self._split(X, len(X), "K(x, X_new)")
        return self.posterior.cov_from(phi, further)

    def sample(
        self, X: Floats, n_samples: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Return joint draws at rows [K(x, X_train), K(x, X_new)]."""
        rng = np.random.default_rng(rng)
        cov = self.cov(X)
        draws = np.empty((len(X), n_samples, self.n_outputs))
        for p in range(self.n_outputs):
            values, vectors = np.linalg.eigh(cov[:, :, p])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            draws[:, :, p] = root @ rng.standard_normal((len(X), n_samples))
        return self.mean(X)[:, None, :] + draws

    def gradients(self, X: Floats) -> InputGradients:
        """Refuse: nothing is known of inputs."""
        raise ValueError("a precomputed kernel has no derivatives in inputs")

    def to_state(self) -> dict[str, Any]:
        """Return the state of the posterior."""
        return self.posterior.to_state()

    def describe(self) -> str:
        """Return the description of the posterior."""
        return self.posterior.describe()
