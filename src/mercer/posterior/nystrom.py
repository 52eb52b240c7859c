"""The Nyström approximation of Gaussian process regression, which is no probabilistic model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import row_blocks
from mercer.errors import MercerWarning, warn
from mercer.kernels import Kernel
from mercer.linalg import semidefinite_root
from mercer.means import Mean, Zero
from mercer.posterior.factors import frozen
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.registry import storable

__all__ = ["NystromPredictive"]

Floats = NDArray[np.float64]

# Entries of the kernel matrix that are worked on at once.
_ENTRIES = 2_000_000


@storable
class NystromPredictive(Predictive):
    """The covariance of the rows approximated, that between them and new points exact (UV 31, 32).

        mean(x) = m(x) + k_f(x)' Sigma^-1 (y - m)
        var(x)  = k(x,x) - k_f(x)' Sigma^-1 k_f(x),     Sigma = K_fu K_uu^-1 K_uf + noise

    The two are not parts of one covariance, so that variances may come out negative (UV Remark
    14). They are cut off at 0, with a warning.

    Parameters
    ----------
    kernel : Kernel
    X : inputs, n rows
    residuals : (n, P) array
        Sigma^-1 (Y - m).
    noise : (n,) array
        Noise variances, over the weights.
    left : (m, n) array
        U with Sigma^-1 = noise^-1 - U'U.
    mean : Mean
    scale : (P,) array, optional
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        residuals: ArrayLike,
        noise: ArrayLike,
        left: ArrayLike,
        mean: Mean | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.kernel, self.X = kernel, frozen(np.asarray(X))
        self.residuals = frozen(np.asarray(residuals, dtype=float))
        self.noise = frozen(np.asarray(noise, dtype=float))
        self.left = frozen(np.asarray(left, dtype=float))
        self.mean_function: Mean = Zero() if mean is None else mean
        P = self.residuals.shape[1]
        self._scale = frozen(np.ones(P) if scale is None else np.asarray(scale, dtype=float))
        if not len(self.X) == len(self.residuals) == len(self.noise) == self.left.shape[1]:
            raise ValueError("inputs, residuals, noise and the columns of left must be as many")

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return int(self.residuals.shape[1])

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self._scale

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        X = self.kernel.inputs(X)
        fixed = np.array(self.mean_function(X, self.n_outputs), dtype=float)
        return fixed + self.kernel.times(X, self.X, self.residuals * self.scale)

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P), cut off at 0."""
        X = self.kernel.inputs(X)
        var = self.kernel.diag(X)
        for rows in row_blocks(len(X), max(1, _ENTRIES // len(self.X))):
            K = self.kernel(X[rows], self.X)
            var[rows] += np.sum((K @ self.left.T) ** 2, axis=1) - np.sum(K**2 / self.noise, axis=1)
        self._warn(int(np.sum(var < 0)), len(var))
        return np.asarray(np.maximum(var, 0.0)[:, None] * self.scale**2)

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X, (n, n, P), its negative part cut off."""
        X = self.kernel.inputs(X)
        K = self.kernel(X, self.X)
        U = K @ self.left.T
        cov = self.kernel(X) - (K / self.noise) @ K.T + U @ U.T
        self._warn(int(np.sum(np.diagonal(cov) < 0)), len(cov))
        root = semidefinite_root(cov)
        return np.asarray(np.multiply.outer(root @ root.T, self.scale**2))

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""
        X = self.kernel.inputs(X)
        P, kernel = self.n_outputs, self.kernel
        dmean = np.array(self.mean_function.gradient(X, P), dtype=float)
        K = kernel(X, self.X)
        slope = 2.0 * ((K @ self.left.T) @ self.left - K / self.noise)
        own = kernel.pullback_diag(X, np.ones(len(X))).X
        through = kernel.pullback(X, self.X, slope).X
        assert own is not None and through is not None
        dvar = own + through
        dvar[self.var(X)[:, 0] == 0] = 0.0
        for p in range(P):
            pulled = kernel.pullback(X, self.X, np.tile(self.residuals[:, p], (len(X), 1))).X
            assert pulled is not None
            dmean[:, :, p] += self.scale[p] * pulled
        return InputGradients(dmean, dvar[:, :, None] * self.scale**2)

    @staticmethod
    def _warn(negative: int, n: int) -> None:
        if negative:
            warn(
                f"{negative} of {n} variances of the Nyström approximation were negative and are "
                "cut off at 0: it is no probabilistic model; use approximation='dtc', 'fitc' or "
                "'vfe', or more inducing inputs",
                MercerWarning,
            )

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "kernel": self.kernel,
            "X": self.X,
            "residuals": self.residuals,
            "noise": self.noise,
            "left": self.left,
            "mean": self.mean_function,
            "scale": self.scale,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NystromPredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        return (
            f"Nyström approximation, {len(self.left)} inducing inputs, {len(self.X)} rows\n"
            f"  kernel  {self.kernel!r}\n  mean    {self.mean_function!r}"
        )
