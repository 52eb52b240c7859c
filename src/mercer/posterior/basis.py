"""The basis that a posterior is expanded in."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for
from mercer.errors import JitterWarning, warn
from mercer.kernels import Kernel
from mercer.linalg import cholesky, inverse_lower, mirror_lower
from mercer.posterior.factors import frozen
from mercer.registry import storable

__all__ = ["Basis", "Regressors"]

Floats = NDArray[np.float64]


class Regressors(Protocol):
    """Explicit functions: those of a mean, or others."""

    def features(self, X: Any) -> Floats:
        """Return the functions at the rows of X, shape (n, r)."""

    def pull_features(self, X: Any, G: ArrayLike) -> Floats:
        """Return the derivative of sum(G * features(X)) in X, shape (n, d); G is (n, r)."""


@storable
class Basis:
    """phi(x) = [k(x, b_1), ..., k(x, b_m), h_1(x), ..., h_r(x)].

    Parameters
    ----------
    kernel : Kernel
        Its sections at the points are the first m functions.
    points : array of shape (m, d), or what the kernel takes; None for m = 0
        The basis vectors b_i.
    features : Mean or other Regressors, optional
        Its regressors are the r explicit functions; none without it.
    """

    def __init__(
        self, kernel: Kernel, points: Any = None, features: Regressors | None = None
    ) -> None:
        self.kernel = kernel
        empty = points is None or len(points) == 0
        self.points = frozen(np.empty((0, 0)) if empty else np.array(kernel.inputs(points)))
        self.features = features

    @property
    def n_points(self) -> int:
        """The number m of kernel sections."""
        return len(self.points)

    @property
    def n_features(self) -> int | None:
        """The number r of explicit functions; None where no point is there to tell it from."""
        if self.features is None:
            return 0
        return self.features.features(self.points[:1]).shape[1] if self.n_points else None

    def phi(self, X: Any) -> Floats:
        """Return phi at the rows of X, shape (n, m + r), C order, fresh memory."""
        K = self.kernel(X, self.points) if self.n_points else np.empty((len(X), 0))
        if self.features is None:
            return K
        return np.concatenate([K, self.features.features(X)], axis=1)

    def inverse_gram(self) -> Floats:
        """Return the inverse Gram matrix of the points, (m, m); see `Posterior.Q`."""
        if not self.n_points:
            return np.empty((0, 0))
        with blas_for(self.n_points):
            factor = cholesky(np.asfortranarray(self.kernel(self.points)))
            if factor.jitter > 0:
                warn(
                    f"{factor.jitter:.3g} was added to the diagonal of the basis points' Gram "
                    "matrix to invert it for Q: some points are redundant, they repeat or lie "
                    "closer together than the kernel tells apart; `prune` removes such points",
                    JitterWarning,
                )
            return mirror_lower(inverse_lower(factor.L))

    def take(self, kept: NDArray[np.intp]) -> Basis:
        """Return the basis with only these of the points (and all explicit functions)."""
        return Basis(self.kernel, self.points[kept], self.features)

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        points = self.points if self.n_points else None
        return {"kernel": self.kernel, "points": points, "features": self.features}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Basis:
        """Rebuild from `to_state`."""
        return cls(**state)
