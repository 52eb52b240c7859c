"""The derivatives that kernels give: of a whole matrix, and of one tile of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockGradient", "KernelGradient"]

Floats = NDArray[np.float64]


class KernelGradient(NamedTuple):
    """Derivatives of a scalar L: in `theta` (p,), in X (n, d) and in Z (m, d)."""

    theta: Floats
    X: Floats | None
    Z: Floats | None


class BlockGradient(NamedTuple):
    """Derivatives of L = sum(G * K) for one tile, and L itself.

    theta : (p,), over the free parameters
    A, B : (a, d) and (b, d), or None where inputs were not asked for
    inner : sum(G * K); a scale factor's derivative, which most tiles get for nothing
    """

    theta: Floats
    A: Floats | None
    B: Floats | None
    inner: float
