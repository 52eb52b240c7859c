"""The steps along which a search moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Directions"]

Floats = NDArray[np.float64]


class Directions:
    """Unit steps of theta, but for its last components, which move along columns of a matrix.

    Each is worth about as much as a unit of log-parameter. Only components without bounds may be
    mixed.

    Parameters
    ----------
    size : int
        The number p of components of theta.
    last : array of shape (k, k), optional
        The steps of the last k components, in columns; all steps are unit steps without it.
    """

    def __init__(self, size: int, last: Floats | None = None) -> None:
        self.size = size
        self._last = np.empty((0, 0)) if last is None else last
        self._start = size - len(self._last)

    def along(self, theta: Floats) -> Floats:
        """Return how many of each step make theta, (p,)."""
        steps = np.array(theta, dtype=float)
        if len(self._last):
            steps[self._start :] = np.linalg.solve(self._last, steps[self._start :])
        return steps

    def theta(self, along: Floats) -> Floats:
        """Return the theta that these steps make, (p,)."""
        return self._mixed(self._last, along)

    def pull(self, gradient: Floats) -> Floats:
        """Return the derivatives along the steps from those in theta, (p,)."""
        return self._mixed(self._last.T, gradient)

    def matrix(self) -> Floats:
        """Return the steps in the columns of a matrix, (p, p)."""
        T = np.eye(self.size)
        T[self._start :, self._start :] = self._last
        return T

    def _mixed(self, M: Floats, vector: Floats) -> Floats:
        mixed = np.array(vector, dtype=float)
        if len(M):
            mixed[self._start :] = M @ mixed[self._start :]
        return mixed
