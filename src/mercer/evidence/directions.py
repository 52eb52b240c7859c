"""The steps along which a search moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Directions"]

Floats = NDArray[np.float64]


class Directions:
    """Unit steps of theta, but for some components, which move along columns of a matrix.

    Each is worth about as much as a unit of log-parameter. Only components without bounds may be
    mixed.

    Parameters
    ----------
    size : int
        The number p of components of theta.
    mixed : array of shape (k, k), optional
        The steps of k components, in columns; all steps are unit steps without it.
    start : int, optional
        The first of these k; by default they are the last ones.
    """

    def __init__(self, size: int, mixed: Floats | None = None, start: int | None = None) -> None:
        self.size = size
        self._steps = np.empty((0, 0)) if mixed is None else mixed
        first = size - len(self._steps) if start is None else start
        self._rows = slice(first, first + len(self._steps))

    def along(self, theta: Floats) -> Floats:
        """Return how many of each step make theta, (p,)."""
        steps = np.array(theta, dtype=float)
        if len(self._steps):
            steps[self._rows] = np.linalg.solve(self._steps, steps[self._rows])
        return steps

    def theta(self, along: Floats) -> Floats:
        """Return the theta that these steps make, (p,)."""
        return self._mixed(self._steps, along)

    def pull(self, gradient: Floats) -> Floats:
        """Return the derivatives along the steps from those in theta, (p,)."""
        return self._mixed(self._steps.T, gradient)

    def matrix(self) -> Floats:
        """Return the steps in the columns of a matrix, (p, p)."""
        T = np.eye(self.size)
        T[self._rows, self._rows] = self._steps
        return T

    def _mixed(self, M: Floats, vector: Floats) -> Floats:
        mixed = np.array(vector, dtype=float)
        if len(M):
            mixed[self._rows] = M @ mixed[self._rows]
        return mixed
