"""The constant kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Constant"]

Floats = NDArray[np.float64]


@storable
class Constant(Kernel):
    """k(x, x') = variance: a common offset with that prior variance.

    Parameters
    ----------
    variance : float or Parameter, default 1.0
        The value, which can be learned.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> RBF() + 3.0
    RBF(length_scale=1) + Constant(variance=3)
    """

    is_infinitely_divisible = True
    variance: float

    def __init__(self, variance: float | Parameter = 1.0) -> None:
        self._set(variance=positive("variance", variance, zero=True, vector=False))

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        return {"variance": (1e-4 * variance, 1e4 * variance)}

    def _log_size(self, widths: Floats) -> float:
        return float(np.log(self.variance)) if self.variance > 0 else 0.0

    @property
    def _needs_numbers(self) -> bool:
        return False

    def _block(self, A: Any, B: Any) -> Floats:
        return np.full((len(A), len(B)), self.variance)

    def _diag(self, A: Any) -> Floats:
        return np.full(len(A), self.variance)

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        total = float(np.sum(G))
        dA, dB = (np.zeros(np.shape(A)), np.zeros(np.shape(B))) if inputs else (None, None)
        return BlockGradient(self._own_gradient(variance=total), dA, dB, self.variance * total)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        total = float(np.sum(g))
        dA = np.zeros(np.shape(A)) if inputs else None
        return BlockGradient(self._own_gradient(variance=total), dA, None, self.variance * total)
