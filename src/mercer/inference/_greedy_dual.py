"""The dual of Algorithm 1.1: a second subset of the rows, on which L* (BKM 79) is minimised.

With K_JJ + s2 = R R' and z = R^-1 y_J the minimum over coefficients on the rows J is -|z|^2/2.
Another row j lowers it by (y_j - x'z)^2 / (2 (k_jj + s2 - |x|^2)), x = R^-1 k_Jj. No step looks at
more rows than J and its candidates: O(k^2) for each of these, and memory for R.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._greedy_rows import GreedyRows
from mercer.linalg import solve_lower

__all__ = ["SubsetDual"]

Floats = NDArray[np.float64]

_FIRST = 32  # rows there is room for at first


class SubsetDual:
    """The second subset, while rows are being added to it.

    Parameters
    ----------
    rows : GreedyRows
    number : int
        How many candidates to draw each time.
    seed : int
        Where the randomness comes from.

    Attributes
    ----------
    indices : numbers of the rows
    lower : the bound on the sum of L_min over outputs (BKM 80)
    """

    def __init__(self, rows: GreedyRows, number: int, seed: int) -> None:
        self.rows, self.number, self.seed = rows, number, seed
        self.indices: list[int] = []
        self._left = np.ones(len(rows), dtype=bool)
        self._R = np.zeros((_FIRST, _FIRST), order="F")
        self._z = np.zeros((_FIRST, rows.Y.shape[1]))
        self.lower = -0.5 * float(np.sum(rows.Y**2))

    def retarget(self) -> None:
        """Take the targets that the rows have now in place of those before."""
        k, Y = len(self.indices), self.rows.Y
        self._z[:k] = solve_lower(self._R[:k, :k], np.asfortranarray(Y[self.indices]))
        self.lower = -0.5 * float(np.sum(Y**2)) + 0.5 * self.rows.noise * float(
            np.sum(self._z[:k] ** 2)
        )

    def add(self, row: int | None = None) -> None:
        """Add the best of some rows, of all of them at first; nothing where none are left.

        Or add this row.
        """
        left, k = np.flatnonzero(self._left), len(self.indices)
        if row is not None:
            left = np.array([row])
        if not left.size:
            return
        if k and left.size > self.number:
            rng = np.random.default_rng([self.seed, 1, k])
            left = np.sort(rng.choice(left, self.number, replace=False))
        rows, noise = self.rows, self.rows.noise
        cross = np.asfortranarray(rows.block(np.array(self.indices, dtype=np.intp), left))
        x = solve_lower(self._R[:k, :k], cross, overwrite=True)
        # K is no less than 0, so that the noise remains whatever rounding says
        variance = np.maximum(rows.diagonal[left] - np.einsum("ij,ij->j", x, x), 0.0) + noise
        error = rows.Y[left] - x.T @ self._z[:k]
        gains = np.einsum("ij,ij->i", error, error) / variance
        best = int(np.argmax(gains))
        self._grow()
        root = np.sqrt(variance[best])
        self._R[k, :k], self._R[k, k] = x[:, best], root
        self._z[k] = error[best] / root
        indices, still = [*self.indices, int(left[best])], self._left.copy()
        still[left[best]] = False
        lower = self.lower + 0.5 * noise * float(gains[best])
        # At once: Ctrl-C comes between calls, and a row that counts twice would prove too much.
        self.indices, self._left, self.lower = indices, still, lower

    def _grow(self) -> None:
        k, room = len(self.indices), len(self._z)
        if k < room:
            return
        R = np.zeros((2 * k, 2 * k), order="F")
        R[:k, :k] = self._R
        z = np.vstack([self._z, np.zeros_like(self._z)])
        self._R, self._z = R, z
