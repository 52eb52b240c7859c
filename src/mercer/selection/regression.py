"""Least squares on the columns of a growing factor, with a penalty on the coefficients.

With rows I chosen and K about V V', the mean of the posterior at the rows is f = V c, where c
minimises

    |D (y - V c)|^2 + |c|^2 = sum_i (y_i - f_i)^2 / noise_i + alpha' K_II alpha,    D = noise^-1/2,

with f = K_I alpha and c = L' alpha, L the lower triangle V[I]. These are least squares for the
matrix [D V; 1] and the target [D y; 0]. The orthogonal factor [W; B] of the matrix grows by a
column whenever V does. The data leave the variance noise_i |W_i|^2 of f_i, and the minimum is
y'(V V' + noise)^-1 y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemv

from mercer.compute import blas_for

__all__ = ["Regression", "noise_variances", "target_columns"]

Floats = NDArray[np.float64]

# A column that keeps less than this part of its square is made orthogonal to the others twice.
_KEPT = 1e-3
_FIRST = 32  # columns there is room for at first


class Regression:
    """The least squares, while columns are being added to V.

    Parameters
    ----------
    Y : (n, P) targets
    noise : (n,) noise variances
    most : int
        How many columns may be added.

    Attributes
    ----------
    residual : (n, P) of the targets, D (y - f)
    leverage : (n,) |W_i|^2, at most 1
    losses : the minimum with 0, 1, ... columns
    """

    def __init__(self, Y: Floats, noise: Floats, most: int) -> None:
        self.root = np.sqrt(noise)
        self.residual = Y / self.root[:, None]
        self.leverage = np.zeros(len(Y))
        self.losses = [float(np.sum(self.residual**2))]
        self._most, self._k = most, 0
        room = min(most, _FIRST)
        self._W = np.empty((len(Y), room), order="F")
        self._B = np.zeros((room, room), order="F")
        self._lower = np.zeros((room, Y.shape[1]))  # the rest of the residual, -c

    def add(self, v: Floats) -> None:
        """Add a column of V: O(n k)."""
        k = self._k
        self._grow()
        top, bottom = v / self.root, np.zeros(k + 1)
        bottom[k] = 1.0
        before = float(top @ top) + 1.0
        square = self._orthogonalise(top, bottom)
        if square < _KEPT * before:
            square = self._orthogonalise(top, bottom)
        top /= np.sqrt(square)
        bottom /= np.sqrt(square)
        self._W[:, k] = top
        self._B[: k + 1, k] = bottom
        self._k = k + 1
        beta = top @ self.residual + bottom @ self._lower[: k + 1]
        self.residual -= np.outer(top, beta)
        self._lower[: k + 1] -= np.outer(bottom, beta)
        self.leverage = np.minimum(self.leverage + top**2, 1.0)
        loss = float(np.sum(self.residual**2) + np.sum(self._lower**2))
        self.losses.append(min(loss, self.losses[-1]))

    def _orthogonalise(self, top: Floats, bottom: Floats) -> float:
        """Take from a column, in place, what the others hold; return the square of the rest."""
        k = self._k
        if k:
            W, B = self._W[:, :k], self._B[:k, :k]
            with blas_for(int(np.cbrt(float(W.size)))):
                part = dgemv(1.0, W, top, trans=1) + bottom[:k] @ B
                top[:] = dgemv(-1.0, W, part, 1.0, top)
            bottom[:k] -= B @ part
        return float(top @ top + bottom @ bottom)

    def _grow(self) -> None:
        k, (n, room) = self._k, self._W.shape
        if k < room:
            return
        more = min(self._most, 2 * k)
        W, B = np.empty((n, more), order="F"), np.zeros((more, more), order="F")
        W[:, :k], B[:k, :k] = self._W, self._B
        self._W, self._B = W, B
        self._lower = np.vstack([self._lower, np.zeros((more - k, self._lower.shape[1]))])


def target_columns(y: Any, n: int) -> Floats:
    """Return the targets of n rows as an (n, P) array, or raise ValueError."""
    try:
        Y = np.array(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be an array of numbers: {error}") from None
    if Y.ndim == 1:
        Y = Y[:, None]
    if Y.ndim != 2 or len(Y) != n or Y.shape[1] == 0:
        raise ValueError(f"y must have shape ({n},) or ({n}, P), got {np.shape(y)}")
    if not np.all(np.isfinite(Y)):
        raise ValueError("y holds NaN or infinity")
    return Y


def noise_variances(noise: Any, n: int) -> Floats:
    """Return the noise variances of n rows, of a number or one for each, or raise ValueError."""
    try:
        given = np.asarray(noise, dtype=float)
    except (TypeError, ValueError):
        given = np.empty((0, 0))
    if given.shape not in {(), (n,)} or not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(
            f"noise must be a positive variance, or {n} of them, one for each row; got {noise!r}"
        )
    return np.array(np.broadcast_to(given, n))
