"""How near a point is to the functions of a degenerate posterior, beyond which it knows nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.posterior import Posterior

__all__ = ["far_from", "reach_of"]

Floats = NDArray[np.float64]

# A point at which all sections have less than this part of their greatest values is far from them,
# unless a training row is so too.
_FAR = 0.01
# So many deviations from the rows, local functions have less than this part left.
_AWAY, _VANISHED = 1e3, 1e-6


def reach_of(posterior: Posterior, X: Any, count: int | None = None) -> Floats | None:
    """Return what `far_from` needs: the greatest value of each section at rows X, and a threshold.

    The sections are the first `count` functions of the basis, those of several kernels included;
    without it those of the basis points. None where they do not vanish far from the rows, so that
    no point is far from them.
    """
    m = posterior.n_basis if count is None else count
    if not m or not posterior.kernel.is_numeric:
        return None
    X = np.asarray(X, dtype=float)
    Phi = np.abs(posterior.basis.phi(X)[:, :m])
    greatest = np.max(Phi, axis=0)
    if not np.all(greatest > 0):
        return None
    low, high = np.min(X, axis=0), np.max(X, axis=0)
    width = np.where(high > low, high - low, 1.0)
    corners = np.vstack([low - _AWAY * width, high + _AWAY * width])
    with np.errstate(over="ignore", under="ignore"):
        there = np.abs(posterior.basis.phi(corners)[:, :m])
    if not np.all(there <= _VANISHED * greatest):
        return None
    near = np.max(Phi / greatest, axis=1)
    return np.append(greatest, min(_FAR, float(np.min(near))))


def far_from(posterior: Posterior, X: Any, reach: Floats) -> int:
    """Return at how many rows of X no section has more than next to nothing of its size."""
    X = posterior.kernel.inputs(X)
    sections = np.abs(posterior.basis.phi(X)[:, : len(reach) - 1])
    return int(np.sum(np.max(sections / reach[:-1], axis=1) < reach[-1]))
