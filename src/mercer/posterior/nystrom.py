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
from mercer.posterior.basis import Basis
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

    Coefficients of the mean that are integrated out add their uncertainty.

    Parameters
    ----------
    kernel : Kernel
    X : inputs, n rows
    alpha : (n + r, P) array
        Sigma^-1 (Y - m), and the r coefficients that are integrated out.
    noise : (n,) array
        Noise variances, over the weights.
    left : (k, n + r) array
        U with cov(x, x') = k(x, x') - k_f(x)' noise^-1 k_f(x') + <U phi(x), U phi(x')>, where phi
        has k_f and the r regressors.
    features : Mean, optional
        Whose regressors these are.
    mean : Mean, optional
        m(x), or what is fixed of it.
    scale : (P,) array, optional

    Notes
    -----
    Keeps the rows, and O(nm) numbers beside them. Predictions at a point cost O(n) for the mean and
    O(nm) for the variance.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        alpha: ArrayLike,
        noise: ArrayLike,
        left: ArrayLike,
        features: Mean | None = None,
        mean: Mean | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.basis = Basis(kernel, X, features)
        self.kernel, self.X = kernel, self.basis.points
        self.alpha = frozen(np.asarray(alpha, dtype=float))
        self.noise = frozen(np.asarray(noise, dtype=float))
        self.left = frozen(np.asarray(left, dtype=float))
        self.mean_function: Mean = Zero() if mean is None else mean
        P = self.alpha.shape[1]
        self._scale = frozen(np.ones(P) if scale is None else np.asarray(scale, dtype=float))
        n, r = len(self.X), self.basis.n_features
        if not (n == len(self.noise) and n + (r or 0) == len(self.alpha) == self.left.shape[1]):
            raise ValueError(
                f"{n} rows and {r} regressors want as many noise variances as rows, and "
                f"coefficients and columns of left for both, got {len(self.noise)}, "
                f"{len(self.alpha)} and {self.left.shape[1]}"
            )

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return int(self.alpha.shape[1])

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self._scale

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        X = self.kernel.inputs(X)
        n, alpha = len(self.X), self.alpha * self.scale
        out = np.array(self.mean_function(X, self.n_outputs), dtype=float)
        out += self.kernel.times(X, self.X, alpha[:n])
        if self.basis.features is not None:
            out += self.basis.features.features(X) @ alpha[n:]
        return out

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P), cut off at 0."""
        var = self._var(self.kernel.inputs(X))
        self._warn(int(np.sum(var < 0)), len(var))
        return np.asarray(np.maximum(var, 0.0)[:, None] * self.scale**2)

    def _var(self, X: Any) -> Floats:
        var, n = self.kernel.diag(X), len(self.X)
        for rows in self._blocks(len(X)):
            Phi = self.basis.phi(X[rows])
            var[rows] += np.sum((Phi @ self.left.T) ** 2, axis=1)
            var[rows] -= np.sum(Phi[:, :n] ** 2 / self.noise, axis=1)
        return var

    def _blocks(self, n: int) -> list[slice]:
        return row_blocks(n, max(1, _ENTRIES // len(self.X)))

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X, (n, n, P).

        Its negative part is cut off, and what remains is scaled to the variances.
        """
        X = self.kernel.inputs(X)
        Phi = self.basis.phi(X)
        K, U = Phi[:, : len(self.X)], Phi @ self.left.T
        cov = self.kernel(X) - (K / self.noise) @ K.T + U @ U.T
        self._warn(int(np.sum(np.diagonal(cov) < 0)), len(cov))
        var = np.maximum(np.diagonal(cov), 0.0)
        root = semidefinite_root(cov)
        more = np.sum(root**2, axis=1)  # without a negative part there is more of each
        root *= np.sqrt(var / np.where(more > 0, more, 1.0))[:, None]
        return np.asarray(np.multiply.outer(root @ root.T, self.scale**2))

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P).

        Those of variances that are cut off are 0.
        """
        X = self.kernel.inputs(X)
        n, P = len(self.X), self.n_outputs
        dmean = np.array(self.mean_function.gradient(X, P), dtype=float)
        own = self.kernel.pullback_diag(X, np.ones(len(X))).X
        assert own is not None
        dvar = own.copy()
        for rows in self._blocks(len(X)):
            Phi = self.basis.phi(X[rows])
            slope = (Phi @ self.left.T) @ self.left
            slope[:, :n] -= Phi[:, :n] / self.noise
            dvar[rows] += self._pull(X[rows], 2.0 * slope)
            for p in range(P):
                rise = np.tile(self.alpha[:, p], (len(Phi), 1))
                dmean[rows, :, p] += self.scale[p] * self._pull(X[rows], rise)
        dvar[self._var(X) <= 0] = 0.0
        return InputGradients(dmean, dvar[:, :, None] * self.scale**2)

    def _pull(self, X: Floats, G: Floats) -> Floats:
        """Return the derivative (n, d) of sum(G * phi(X)) in X, a row each."""
        n, features = len(self.X), self.basis.features
        out = self.kernel.pullback(X, self.X, G[:, :n]).X
        assert out is not None
        return out if features is None else out + features.pull_features(X, G[:, n:])

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
            "alpha": self.alpha,
            "noise": self.noise,
            "left": self.left,
            "features": self.basis.features,
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
            f"Nyström approximation of rank {len(self.left)}, {len(self.X)} rows\n"
            f"  kernel  {self.kernel!r}\n  mean    {self.mean_function!r}"
        )
