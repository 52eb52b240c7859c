"""The overlap kernel for categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Categorical"]

Floats = NDArray[np.float64]


@storable
class Categorical(Kernel):
    """prod_k (1 if x_k = x'_k, else correlation_k): overlap of categories.

    Parameters
    ----------
    correlation : float, array of shape (d,) or Parameter, default 0.5
        How alike two different categories are, from 0 (nothing in common) to 1 (no difference);
        one for all columns or one a column. Learned when strictly between 0 and 1; 0 and 1 are
        held.

    Notes
    -----
    The inputs are numeric codes and only their equality counts: encode strings, with
    scikit-learn's `OrdinalEncoder` for example. Mix with kernels of other columns by
    ``Categorical().on(columns) * RBF().on(others)``. The derivative in the inputs is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Categorical
    >>> Categorical(0.25)(np.array([[0.0, 2.0], [0.0, 1.0], [1.0, 0.0]]))
    array([[1.    , 0.25  , 0.0625],
           [0.25  , 1.    , 0.0625],
           [0.0625, 0.0625, 1.    ]])
    """

    is_infinitely_divisible = True
    correlation: float | Floats

    def __init__(self, correlation: ArrayLike | Parameter = 0.5) -> None:
        self._set(correlation=positive("correlation", correlation, zero=True, transform="logit"))

    def _block(self, A: Floats, B: Floats) -> Floats:
        K = np.ones((A.shape[0], B.shape[0]))
        for k, rho in enumerate(np.broadcast_to(self.correlation, A.shape[1])):
            K *= np.where(_differ(A, B, k), rho, 1.0)
        return K

    def _diag(self, A: Floats) -> Floats:
        return np.ones(A.shape[0])

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        GK = G * self._block(A, B)
        correlation: ArrayLike = 0.0
        if self._parameters["correlation"].is_free:
            # and so above 0: where a column differs, dk/drho = k/rho
            sums = [float(np.sum(GK, where=_differ(A, B, k))) for k in range(A.shape[1])]
            correlation = np.array(sums) / self.correlation
        dA, dB = (np.zeros(A.shape), np.zeros(B.shape)) if inputs else (None, None)
        theta = self._own_gradient(correlation=correlation)
        return BlockGradient(theta, dA, dB, float(np.sum(GK)))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        dA = np.zeros(A.shape) if inputs else None
        return BlockGradient(np.zeros(self.theta.size), dA, None, float(np.sum(g)))


def _differ(A: Floats, B: Floats, k: int) -> NDArray[np.bool_]:
    """Return which pairs of rows have different categories in column k."""
    return np.not_equal.outer(A[:, k], B[:, k])
