"""The trapezoidal rule over a Gaussian: for analytic functions, where it converges exponentially.

A function that is analytic within a distance b of the real line (pi, for the logistic one) is
averaged over N(mean, sd^2) by equal steps of h sd with an error of about exp(-2 pi b/(h sd)).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["equal_steps"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# The Gaussian's own error, exp(-2 pi^2/h^2), is below 1e-50 with this step.
_LARGEST_STEP = 0.4
# Nodes handled together: a few arrays of 2 MB.
_BLOCK = 2**18


def equal_steps(
    sd: Floats, chosen: NDArray[np.bool_], step: float, reach: float
) -> Iterator[tuple[Rows, Floats, Floats]]:
    """Yield indices of the chosen rows (n,), with nodes and weights for z = (f - mean)/sd.

    Rows of similar sd share their nodes: `step` over the largest sd among them, from -reach to
    reach.
    """
    # 2^level is the least power of two that is not below sd, from 1/2 on
    level = np.ceil(np.log2(np.maximum(sd, 0.5)))
    for value in np.unique(level[chosen]):
        h = min(step / 2.0**value, _LARGEST_STEP)
        z = h * np.arange(-np.ceil(reach / h), np.ceil(reach / h) + 1)
        w = h * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        rows = np.flatnonzero(chosen & (level == value))
        count = max(_BLOCK // z.size, 1)
        for start in range(0, rows.size, count):
            yield rows[start : start + count], z, w
