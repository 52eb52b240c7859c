"""The kernel of a model that is linear in given features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.tiles import contract
from mercer.linalg.differences import pull_rows
from mercer.registry import storable

__all__ = ["Features", "shape_of"]

Floats = NDArray[np.float64]


@storable
class Features(Kernel):
    """f(x)' Sigma f(x') (BKM 41): the model y(x) = beta' f(x) with beta ~ N(0, Sigma).

    Parameters
    ----------
    f : callable
        Maps inputs (n, d) to features (n, q), each row by itself. It is called with blocks of
        rows, perhaps from several threads at once.
    Sigma : array of shape (q, q), optional
        The covariance of the coefficients, symmetric and positive semi-definite; the identity
        without it. Not learned.
    jacobian : callable, optional
        Maps inputs (n, d) to the derivatives df/dx, shape (n, q, d). Without it derivatives in
        the inputs are central differences of f: 2d calls, good to about 1e-10 of f.

    Notes
    -----
    The covariance has rank q. Functions are saved by name: define them with ``def`` and give them
    back to `load`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Features
    >>> def powers(X):
    ...     return np.hstack([np.ones_like(X), X, X**2])
    >>> Features(powers, Sigma=np.diag([1.0, 2.0, 3.0]))(np.array([[1.0], [2.0]]))
    array([[ 6., 17.],
           [17., 57.]])
    """

    def __init__(
        self,
        f: Callable[[Floats], ArrayLike],
        Sigma: ArrayLike | None = None,
        jacobian: Callable[[Floats], ArrayLike] | None = None,
    ) -> None:
        if not callable(f):
            raise ValueError(f"f must be a function of the inputs, got {f!r}")
        if jacobian is not None and not callable(jacobian):
            raise ValueError(f"jacobian must be a function of the inputs, got {jacobian!r}")
        self.f = f
        self.Sigma = None if Sigma is None else _covariance(Sigma)
        self.jacobian = jacobian
        self._set()

    def _options(self) -> dict[str, Any]:
        return {"f": self.f, "Sigma": self.Sigma, "jacobian": self.jacobian}

    def _features(self, A: Floats) -> Floats:
        F = np.asarray(self.f(A), dtype=float)
        q = "q" if self.Sigma is None else len(self.Sigma)
        if F.ndim != 2 or len(F) != len(A) or q not in ("q", F.shape[1]):
            raise ValueError(f"f must return an array of shape ({len(A)}, {q}), got {F.shape}")
        if not np.all(np.isfinite(F)):
            raise ValueError("f returned NaN or infinity")
        return F

    def _weighted(self, F: Floats) -> Floats:
        return F if self.Sigma is None else F @ self.Sigma

    def _block(self, A: Floats, B: Floats) -> Floats:
        F = self._features(A)
        return self._weighted(F) @ (F if B is A else self._features(B)).T

    def _diag(self, A: Floats) -> Floats:
        F = self._features(A)
        return np.asarray(np.einsum("ij,ij->i", self._weighted(F), F))

    def _pull_features(self, A: Floats, dF: Floats) -> Floats:
        """Chain dL/df (a, q) to dL/dx (a, d)."""
        if self.jacobian is None:
            return pull_rows(self._features, A, dF)
        J = np.asarray(self.jacobian(A), dtype=float)
        if J.shape != (*dF.shape, A.shape[1]):
            wanted = (*dF.shape, A.shape[1])
            raise ValueError(f"jacobian must return an array of shape {wanted}, got {J.shape}")
        return np.asarray(np.einsum("iq,iqk->ik", dF, J))

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        F, H = self._features(A), self._features(B)
        dF = G @ self._weighted(H)
        inner = contract(dF, F)
        if not inputs:
            return BlockGradient(np.empty(0), None, None, inner)
        dH = G.T @ self._weighted(F)
        dA, dB = self._pull_features(A, dF), self._pull_features(B, dH)
        return BlockGradient(np.empty(0), dA, dB, inner)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        F = self._features(A)
        dF = 2.0 * g[:, None] * self._weighted(F)
        dA = self._pull_features(A, dF) if inputs else None
        return BlockGradient(np.empty(0), dA, None, 0.5 * contract(dF, F))

    def __repr__(self) -> str:
        parts = [getattr(self.f, "__name__", repr(self.f))]
        if self.Sigma is not None:
            parts.append(f"Sigma={shape_of(self.Sigma)}")
        if self.jacobian is not None:
            parts.append(f"jacobian={getattr(self.jacobian, '__name__', self.jacobian)}")
        return f"Features({', '.join(parts)})"


def _covariance(Sigma: ArrayLike) -> Floats:
    S = np.array(Sigma, dtype=float)
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.all(np.isfinite(S)):
        raise ValueError(f"Sigma must be a square matrix of numbers, got shape {S.shape}")
    size = float(np.max(np.abs(S), initial=0.0))
    if not np.allclose(S, S.T, rtol=0.0, atol=1e-12 * size):
        raise ValueError("Sigma must be symmetric")
    S = 0.5 * (S + S.T)
    least = float(np.min(np.linalg.eigvalsh(S), initial=0.0)) if S.size else 0.0
    if least < -1e-10 * size:
        raise ValueError(f"Sigma must be positive semi-definite, its least eigenvalue is {least:g}")
    S.setflags(write=False)
    return np.asarray(S)


def shape_of(array: NDArray[Any]) -> str:
    """Describe an array in a repr by its shape alone."""
    return f"<array of shape {array.shape}>"
