"""How many kernels the variance at one point needs, by a greedy basis of its own (BKM 4.5).

The target is k, the kernel's values at the point and the rows. With L and L* for it,

    -2 L*(a) <= k'(K + s2)^-1 k <= (|k|^2 + 2 L(f))/s2,                               (BKM 81, 83)

and kernels are added until the relative distance of the two is small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference.greedy import Greedy
from mercer.kernels import Kernel

__all__ = ["kernels_for_variance"]

Floats = NDArray[np.float64]

_BEGIN = 8  # kernels at first; twice as many whenever they do not suffice


def kernels_for_variance(
    kernel: Kernel, X: Floats, x: Floats, noise: float, tol: float, most: int
) -> int:
    """Return with how many kernels the bounds on k'(K + s2)^-1 k are within `tol`.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) the rows
    x : (d,) the point
    noise : s2
    tol : the relative distance, 2 (upper - lower)/(upper + lower), that is enough
    most : what is returned where so many kernels are not enough
    """
    k = kernel(X, x[None])[:, 0]
    path = Greedy(kernel, X, k, noise, dual="subset")
    uppers: dict[int, float] = {}

    def note(size: int, gap: float) -> None:
        uppers[size] = path.upper

    limit = _BEGIN
    while True:
        gaps = path.grow(0.0, most=min(limit, most), progress=note).gaps
        for size in range(1, len(gaps) + 1):
            L, gap = uppers[size], gaps[size - 1]
            bound = L * (2.0 + gap) / (2.0 - gap) if gap < 2.0 else -np.inf  # (BKM 84), solved
            above, below = k @ k + 2.0 * L, k @ k + 2.0 * bound  # both are s2 times a bound
            if 2.0 * (above - below) <= tol * (above + below):
                return size
        if limit >= most or len(gaps) < limit:
            return len(gaps)
        limit *= 2
