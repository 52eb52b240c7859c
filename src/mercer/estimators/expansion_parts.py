"""Parts of models that are expansions in kernel sections and other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.means import Affine, Constant, Linear, Mean, Zero

__all__ = ["fixed_mean", "given_centres"]


def given_centres(centres: Any, kernel: Kernel) -> Any:
    """Return the centres as the kernel takes them."""
    if len(centres) == 0:
        return np.empty((0, 0))
    return kernel.inputs(centres, "centres")


def fixed_mean(
    mean: Mean, slope: float = 1.0, offset: float = 0.0, output: int | None = None
) -> Mean:
    """Return slope m(x) + offset for an output of the part of a mean that is not estimated."""
    if isinstance(mean, (Zero, Constant)) or (isinstance(mean, Linear) and mean.estimate):
        held = 0.0
        if mean.estimate is None and mean.coefficients is not None:
            values = mean.coefficients[0]
            held = float(values[0 if output is None or values.size == 1 else output])
        value = slope * held + offset
        return Constant(value, estimate=None) if value else Zero()
    if mean.estimate is None and (slope, offset, output) == (1.0, 0.0, None):
        return mean
    return Affine(mean, slope, offset, output)
