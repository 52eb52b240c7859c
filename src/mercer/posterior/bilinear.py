"""The posterior as a function of the basis values phi, whatever these are values of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for
from mercer.linalg import product, semidefinite_root
from mercer.posterior.factor_set import FactorSet
from mercer.posterior.factors import Factor, frozen

__all__ = ["Bilinear", "Factors"]

Floats = NDArray[np.float64]
Factors = Factor | Sequence[Factor] | None


class Bilinear:
    """A mean that is linear in phi, and a covariance that is bilinear in it.

    `Posterior` is this with a kernel, whose sections are phi, and has the meaning of the arguments.
    Rows phi of a matrix Phi (n, m + r) stand for points; of the kernel only its values between
    them are asked for.
    """

    def __init__(
        self, alpha: ArrayLike, A: Factors, B: Factors, weight: int, scale: ArrayLike | None
    ) -> None:
        self.alpha = frozen(np.array(alpha, dtype=float))
        if self.alpha.ndim != 2:
            raise ValueError(
                "alpha must have a row for each basis function and a column for each output, got "
                f"shape {self.alpha.shape}"
            )
        if not np.all(np.isfinite(self.alpha)):
            raise ValueError("alpha must be finite, got NaN or infinity in it")
        if weight not in (0, 1) or (weight == 0 and A is not None):
            raise ValueError(f"weight must be 1, or 0 with A=None, got {weight!r} and A={A!r}")
        self.weight = int(weight)
        P = self.n_outputs
        self._scale = frozen(np.ones(P) if scale is None else np.array(scale, dtype=float))
        if self.scale.shape != (P,) or not np.all(np.isfinite(self.scale) & (self.scale > 0)):
            raise ValueError(f"scale must be {P} positive numbers, one an output, got {scale!r}")
        self.is_coupled = any(F is not None and not isinstance(F, Factor) for F in (A, B))
        c = P if self.is_coupled else 1
        self._A = FactorSet("A", A, c, len(self.alpha))
        self._B = FactorSet("B", B, c, len(self.alpha))

    # --- its parts ----------------------------------------------------------------------------

    @property
    def A(self) -> Factor | tuple[Factor, ...] | None:
        """What the data have taken from the prior covariance."""
        return self._given(self._A)

    @property
    def B(self) -> Factor | tuple[Factor, ...] | None:
        """What they have left of it, or was there beside it."""
        return self._given(self._B)

    def _given(self, factors: FactorSet) -> Factor | tuple[Factor, ...] | None:
        if not factors.factors:
            return None
        return tuple(factors.factors) if self.is_coupled else factors.factors[0]

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return int(self.alpha.shape[1])

    @property
    def scale(self) -> Floats:
        """s (P,): the units of each output."""
        return self._scale

    # --- what it predicts ---------------------------------------------------------------------

    def mean_from(self, Phi: Floats) -> Floats:
        """Return s_p phi' alpha_p, shape (n, P), for rows phi of Phi: the mean less m(x)."""
        with self._blas():
            return product(Phi, self.alpha * self.scale)

    def var_from(self, Phi: Floats, kdiag: Floats | None, *, overwrite: bool = False) -> Floats:
        """Return the variances (n, P) for rows phi of Phi, kdiag their k(x, x) (n,).

        `overwrite` permits Phi to be destroyed.
        """
        with self._blas():
            v = self._B.norms(Phi)
            v -= self._A.norms(Phi, overwrite=overwrite)
        if kdiag is not None:
            v += self.weight * kdiag[:, None]
        np.maximum(v, 0.0, out=v)  # below 0 only by rounding
        return np.asarray(v * self.scale**2)

    def cov_from(self, Phi: Floats, Kss: Floats | None) -> Floats:
        """Return the joint covariance for rows phi of Phi; Kss (n, n) is k between the points.

        The shape is (n, n, P), or (n, P, n, P) for coupled outputs.
        """
        with self._blas(len(Phi)):
            S = self._joint(Phi, Kss)
        if self.is_coupled:
            return np.asarray(S * np.multiply.outer(self.scale, self.scale)[:, None, :])
        return np.asarray(S[:, :, None] * self.scale**2)

    def sample_from(
        self, Phi: Floats, Kss: Floats | None, n_samples: int, rng: np.random.Generator
    ) -> Floats:
        """Return joint draws less their mean, (n, n_samples, P), for rows phi of Phi.

        Kss is as in `cov_from`.
        """
        n, c, P = len(Phi), self._B.c, self.n_outputs
        with self._blas(n):
            if self.weight:
                S = self._joint(Phi, Kss)
                images = semidefinite_root(S.reshape(n * c, n * c)).reshape(n, c, -1)
            else:  # a linear model's factor is a root of its covariance already
                images = np.zeros((n, c, self._B.n_rows))
                for p, F in enumerate(self._B.factors):
                    images[:, p] = F.apply(Phi).T
            shared = 1 if self.is_coupled else P  # independent outputs have draws of their own
            z = rng.standard_normal((images.shape[2], n_samples * shared))
            draws = (images @ z).transpose(0, 2, 1).reshape(n, n_samples, P)
        return np.asarray(self.scale * draws)

    def var_slope_from(self, Phi: Floats, p: int) -> Floats:
        """Return the gradient in phi of the variance over s_p^2, for rows phi of Phi.

        That is of -|A_p phi|^2 + |B_p phi|^2, shape (n, m + r); p counts the factors.
        """
        with self._blas():
            slope = self._B.half_gradient(Phi, p) - self._A.half_gradient(Phi, p)
        return np.asarray(2.0 * slope)

    def _joint(self, Phi: Floats, Kss: Floats | None) -> Floats:
        """Return the covariance in units of `scale`: (n, n), or (n, P, n, P) if coupled."""
        S = self._B.products(Phi)
        S -= self._A.products(Phi)
        n, c = S.shape[:2]
        if Kss is not None:
            for p in range(c):
                S[:, p, :, p] += self.weight * Kss
        flat = S.reshape(n * c, n * c)
        np.fill_diagonal(flat, np.maximum(np.diagonal(flat), 0.0))  # below 0 only by rounding
        return S if self.is_coupled else flat

    def _blas(self, n: int = 0) -> AbstractContextManager[None]:
        """Return `blas_for` the larger of the factors and a joint covariance of n points."""
        return blas_for(max(n * self._B.c, len(self.alpha)))
