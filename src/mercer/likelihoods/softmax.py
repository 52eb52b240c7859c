"""Several classes: the softmax of one latent value a class."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from mercer.params import Parametrised
from mercer.registry import storable

__all__ = ["Softmax"]

Floats = NDArray[np.float64]


@storable
class Softmax(Parametrised):
    """Classes c = 1..C with P(c | f) = exp(f_c) / sum_j exp(f_j), each with a latent function.

    The latent values of a row are coupled, so that this is no scalar `Likelihood`: latent values
    and targets are arrays of shape (n, C). Targets are one-hot rows, or soft ones: probabilities
    of the classes, read as the cross-entropy sum_c y_c log P(c | f). That is what repeated labels
    amount to: a row (0.7, 0.3) counts as 7 of one label and 3 of the other, each with weight 1/10.

    Adding a number to all f of a row changes nothing. With two classes and kernel k it is
    `Logistic` with kernel 2 k.

    Parameters
    ----------
    n_classes : int
        C, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.likelihoods import Softmax
    >>> likelihood = Softmax(3)
    >>> F = np.log([[1.0, 2.0, 5.0]])
    >>> likelihood.probabilities(F)
    array([[0.125, 0.25 , 0.625]])
    >>> likelihood.log_density(likelihood.one_hot([2]), F)
    array([-0.47000363])
    """

    is_log_concave = True
    has_curvature = True
    is_of_labels = True
    is_positive = True
    preferred_inference = "laplace"

    def __init__(self, n_classes: int) -> None:
        try:
            count = index(n_classes)
        except TypeError:
            count = 0
        if count < 2:
            raise ValueError(f"n_classes must be a whole number of at least 2, got {n_classes!r}")
        self.n_classes = count
        self._set()

    def _options(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes}

    def __hash__(self) -> int:
        return hash((type(self), self.n_classes))

    # ------------------------------------------------------------------------------------ targets

    def one_hot(self, codes: ArrayLike) -> Floats:
        """Return the targets (n, C) of classes numbered from 0, shape (n,)."""
        codes = np.asarray(codes)
        whole = codes.ndim == 1 and codes.dtype.kind in "iu"
        if not whole or np.any((codes < 0) | (codes >= self.n_classes)):
            raise ValueError(
                f"codes must be a vector of integers from 0 to {self.n_classes - 1}, got {codes!r}"
            )
        return np.asarray(np.eye(self.n_classes)[codes])

    def targets(self, Y: ArrayLike) -> Floats:
        """Return one-hot or soft targets (n, C), checked: rows of probabilities."""
        Y = self._table("Y", Y)
        if np.any(Y < 0) or np.any(np.abs(Y.sum(axis=1) - 1.0) > 1e-8):
            raise ValueError(
                "each row of Y must hold the probabilities of the classes, at least 0 and adding "
                f"up to 1; the rows' least entries and sums are {Y.min():.6g} and "
                f"{Y.sum(axis=1).min():.6g} to {Y.sum(axis=1).max():.6g}"
            )
        return Y

    def initial(self, Y: ArrayLike) -> Floats:
        """Return zeros (n, C): even odds."""
        return np.zeros(self._table("Y", Y).shape)

    # -------------------------------------------------------------------- density and derivatives

    def log_density(self, Y: ArrayLike, F: ArrayLike) -> Floats:
        """Return sum_c y_c log P(c | f), shape (n,)."""
        Y, F = self._pair(Y, F)
        # A class without weight may have a probability that underflows.
        return np.asarray(np.sum(np.where(Y > 0, Y * log_softmax(F, axis=1), 0.0), axis=1))

    def probabilities(self, F: ArrayLike) -> Floats:
        """Return P(c | f), shape (n, C)."""
        F = self._table("F", F)
        P = np.exp(F - F.max(axis=1, keepdims=True))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @staticmethod
    def curvature_times(P: Floats, V: Floats) -> Floats:
        """Return W V for V of shape (n, C) or (n, C, k), from the probabilities P (n, C).

        W = diag(P) - P P' is minus the Hessian of a row, and the Fisher information too; its null
        vector is the ones. The gradient is Y - P.
        """
        Q = P.reshape(*P.shape, *[1] * (V.ndim - 2))
        return np.asarray(Q * (V - np.sum(Q * V, axis=1, keepdims=True)))

    @staticmethod
    def pull_curvature(P: Floats, S: Floats) -> Floats:
        """Return d/dF of sum_i tr(S_i W_i), shape (n, C), for symmetric S (n, C, C).

        With S the posterior covariances of the rows it is what the third derivatives do to the
        gradient of a Laplace approximation's evidence.
        """
        g = np.einsum("icc->ic", S) - 2.0 * np.einsum("icd,id->ic", S, P)
        return Softmax.curvature_times(P, g)

    def sample(self, F: ArrayLike, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw a class for each row, numbered from 0, shape (n,)."""
        P = self.probabilities(F)
        u = rng.uniform(size=(P.shape[0], 1))
        return np.asarray(np.minimum(np.sum(u >= np.cumsum(P, axis=1), axis=1), P.shape[1] - 1))

    def _pair(self, Y: ArrayLike, F: ArrayLike) -> tuple[Floats, Floats]:
        Y, F = self.targets(Y), self._table("F", F)
        if Y.shape != F.shape:
            raise ValueError(f"Y and F must have as many rows, got {len(Y)} and {len(F)}")
        return Y, F

    def _table(self, name: str, given: ArrayLike) -> Floats:
        try:
            table = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim != 2 or table.shape[1] != self.n_classes:
            raise ValueError(
                f"{name} must be numbers of shape (n, {self.n_classes}), got shape "
                f"{np.shape(given)}"
            )
        if not np.all(np.isfinite(table)):
            raise ValueError(f"{name} must be finite, got NaN or infinity in it")
        return table
