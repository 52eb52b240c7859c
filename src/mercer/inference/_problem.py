"""What the engines for one latent function are given, and the adjoints they give back.

Not an engine: Laplace's method, expectation propagation and the variational methods share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.likelihoods.base import Likelihood

__all__ = ["LatentAdjoints", "LatentLeftOut", "LatentProblem"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatentProblem:
    """Observations y_i ~ p(y | f(x_i)) of one latent function f, in arrays.

    kernel : Kernel
    X : inputs, n rows
    y : (n,) observations
    likelihood : Likelihood, of a scalar latent value
    mean : (n,) prior mean of f at the rows
    weights : (n,) powers of the likelihood, at least 0; None stands for ones
    jitter : what to add to the diagonal of K; None lets the first factorisation that fails decide
    """

    kernel: Kernel
    X: Floats
    y: Floats
    likelihood: Likelihood
    mean: Floats
    weights: Floats | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        n = len(self.X)
        for name in ("y", "mean", "weights"):
            given = getattr(self, name)
            if given is None and name == "weights":
                continue
            if np.shape(given) != (n,):
                raise ValueError(f"{name} must have shape ({n},), got {np.shape(given)}")
            if not np.all(np.isfinite(given)):
                raise ValueError(f"{name} must be finite, got NaN or infinity in it")
        if n == 0:
            raise ValueError("at least one row is wanted, got none")
        if self.weights is not None and np.any(self.weights < 0):
            raise ValueError(f"weights must not be negative, got {np.min(self.weights)}")

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)

    def require(self, engine: str, *methods: str) -> None:
        """Raise ValueError, with the list, if the likelihood lacks what an engine needs."""
        missing = self.likelihood.missing(*methods)
        if missing:
            raise ValueError(
                f"{engine} needs of a likelihood: {', '.join(methods)}; "
                f"{type(self.likelihood).__name__} has no {', '.join(missing)}"
            )

    def require_mode(self, engine: str, instead: str) -> None:
        """Raise ValueError for a likelihood that has no Gaussian at its mode."""
        self.require(engine, "log_density", "derivatives")
        if not self.likelihood.has_curvature:
            raise ValueError(
                f"{engine} needs the curvature of the likelihood at the mode, and that of "
                f"{type(self.likelihood).__name__} is 0 almost everywhere; use {instead}"
            )

    def gram(self, out: Floats | None = None) -> Floats:
        """Return the lower triangle of K, Fortran order, with `jitter` on its diagonal."""
        K = self.kernel.gram_lower(self.X, out)
        if self.jitter:
            K.reshape(-1, order="F")[:: self.n + 1] += self.jitter
        return K

    def log_likelihood(self, f: Floats) -> float:
        """Return sum_i w_i log p(y_i | f_i); -inf where that is no number."""
        with np.errstate(all="ignore"):
            rows = self.likelihood.log_density(self.y, f)
            total = float(np.sum(self.weighted(rows)))
        return total if np.isfinite(total) else -np.inf

    def derivatives(self, f: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives of w_i log p(y_i | f_i) in f_i, each (n,)."""
        first, second, third = self.likelihood.derivatives(self.y, f)
        return self.weighted(first), self.weighted(second), self.weighted(third)

    def weighted(self, values: Floats) -> Floats:
        """Return values (n,) times the weights; 0 at rows of weight 0, whatever the values are."""
        if self.weights is None:
            return values
        with np.errstate(invalid="ignore"):
            return np.where(self.weights > 0, self.weights * values, 0.0)


class LatentAdjoints(NamedTuple):
    """Derivatives of the log evidence L in what the engine was given.

    K : (n, n) Fortran order, lower triangle; dL/dK is `factor` times it
    factor : what would otherwise cost a pass over the matrix
    likelihood : (p,) dL/dtheta of the likelihood's free parameters
    mean : (n,) dL/d(prior mean)
    """

    K: Floats
    factor: float
    likelihood: Floats
    mean: Floats


class LatentLeftOut(NamedTuple):
    """Each row predicted from the others.

    mean, variance : (n,) of the latent value
    log_density : (n,) of the observation
    """

    mean: Floats
    variance: Floats
    log_density: Floats
