"""The least squares that a greedy choice of kernel sections keeps, by an orthogonal factor.

With the rows I chosen, K_II = L L' and V = K_I L^-T, the solution (BKM 86) is f = V c, where c
minimises |y - V c|^2 + s2 |c|^2: least squares for the matrix [V; s 1], or, what spans the same,
[K_I; s L']. Its orthogonal factor [W; B] grows by a column with each row that is chosen, so that
no normal equations, which square the condition, are ever formed. Since V B = s W,

    [W; B]' [k_j; s L^-1 k_Ij] = W' (k_j + s2 e_j)                                       (BKM 88)

for the section of any row j: row j of W says what W and the kernel's column leave open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import map_tiles, row_blocks
from mercer.linalg import solve_lower

__all__ = ["Factor", "Section"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# A section is added if the variance that the others leave of it is so many times what of it may
# be rounding.
_SURE = 1e4
# What a new column may keep of the others, in units of its own length.
_LEFT = 1e-14
_FIRST = 32  # columns there is room for at first
_ENTRIES = 131_072  # of a tile of W: 1 MB, which stays in a core's cache


class Section(NamedTuple):
    """What the chosen rows know of another one.

    cross : (k,) L^-1 k_Ij
    variance : what is left of k_jj, k_jj - |cross|^2
    rounding : how much of this may be rounding
    """

    cross: Floats
    variance: float
    rounding: float

    @property
    def is_new(self) -> bool:
        """Whether there is more left of it than rounding."""
        return self.variance > _SURE * self.rounding


class Factor:
    """The factor, while rows are being chosen; weights of rows are in all that it is given.

    Parameters
    ----------
    Y : (n, P) targets
    noise : s2

    Attributes
    ----------
    residual : (n, P) of the targets, y - f
    explained : (P,) |y|^2 less the minimum of |y - V c|^2 + s2 |c|^2, which is -2 L (BKM 78)
    indices : numbers of the rows that are chosen, in their order
    gains : how far each of them has lowered 2 L, summed over outputs
    """

    def __init__(self, Y: Floats, noise: float) -> None:
        n, outputs = Y.shape
        self.noise, self.s = noise, float(np.sqrt(noise))
        self.residual, self.explained = Y.copy(), np.zeros(outputs)
        self.indices: list[int] = []
        self._lower = np.zeros((_FIRST, outputs))  # the rest of the residual, -s c
        self._W = np.empty((n, _FIRST), order="F")
        self._B = np.zeros((_FIRST, _FIRST), order="F")
        self._L = np.zeros((_FIRST, _FIRST), order="F")
        self._diagonal = np.empty(_FIRST)  # k_ii of the rows chosen
        self.gains: list[float] = []

    @property
    def size(self) -> int:
        """How many rows are chosen."""
        return len(self.indices)

    @property
    def W(self) -> Floats:
        """The upper part of the orthogonal factor, (n, k), Fortran order."""
        return self._W[:, : self.size]

    @property
    def B(self) -> Floats:
        """Its lower part, (k, k), an upper triangle."""
        return self._B[: self.size, : self.size]

    @property
    def L(self) -> Floats:
        """The lower triangle of K_II, (k, k)."""
        return self._L[: self.size, : self.size]

    @property
    def whitened(self) -> Floats:
        """The coefficients c, (k, P), in which |f|_H^2 = |c|^2."""
        return np.asarray(-self._lower[: self.size] / self.s)

    @property
    def coefficients(self) -> Floats:
        """The coefficients alpha = L^-T c of the kernel sections, (k, P)."""
        return self._solve(self.whitened, transpose=True)

    def retarget(self, Y: Floats) -> None:
        """Take other targets, (n, P), in place of those before: O(n k P)."""
        parts = self.W.T @ Y
        lower = np.zeros((len(self._lower), Y.shape[1]))
        lower[: self.size] = -self.B @ parts
        self.residual, self._lower = Y - self.W @ parts, lower
        self.explained = np.einsum("ip,ip->p", parts, parts)
        self.gains = np.einsum("ip,ip->i", parts, parts).tolist()

    def least_squares(self, Y: Floats, H: Floats) -> Floats:
        """Return the coefficients beta (r, P) for which Y ~ N(H beta, V V' + s2) is most likely.

        (V V' + s2)^-1 is (1 - W W')/s2, of which [1 - W W'; B W'] is a root: a factor of it has the
        digits that normal equations lose. O(n k (r + P)).
        """
        W, B = self.W, self.B
        left, right = (np.vstack([M - W @ (W.T @ M), B @ (W.T @ M)]) for M in (H, Y))
        return np.asarray(np.linalg.lstsq(left, right)[0])

    def section(self, variance: float, cross: Floats) -> Section:
        """Return what is known of a row with k_jj = `variance` and k_Ij = `cross`: O(k^2).

        A perturbation D of K_II by rounding changes what is left by x'D x, x = K_II^-1 k_Ij.
        """
        k = self.size
        if not k:
            return Section(cross, variance, _EPS * variance)
        seen = self._solve(cross[:, None])
        weights = self._solve(seen, transpose=True)[:, 0]
        rounding = _EPS * (variance + float(weights**2 @ self._diagonal[:k]))
        return Section(seen[:, 0], variance - float(seen[:, 0] @ seen[:, 0]), rounding)

    def add(self, row: int, column: Floats, section: Section, part: Floats) -> None:
        """Add a row: O(n k). If it is broken off, nothing is added.

        Parameters
        ----------
        row : its number
        column : (n,) its column of K
        section : Section
        part : (k,) W' column
        """
        k = self.size
        self._grow()
        root = float(np.sqrt(section.variance))
        bottom = self.s * np.append(section.cross, root)
        # s2 W_j, but as right as the section is
        part = part + bottom[:k] @ self._B[:k, :k]
        bottom[:k] -= self._B[:k, :k] @ part
        top, rest = self._reduced(column, part)
        rest += bottom[:k] @ self._B[:k, :k]
        if float(rest @ rest) > _LEFT**2 * float(top @ top + bottom @ bottom):
            # Of a column that is all but in the span of the others; twice is enough.
            bottom[:k] -= self._B[:k, :k] @ rest
            top, _ = self._reduced(top, rest, again=False)
        length = np.sqrt(float(top @ top + bottom @ bottom))
        top /= length
        bottom /= length
        self._W[:, k], self._B[: k + 1, k] = top, bottom
        self._L[k, :k], self._L[k, k] = section.cross, root
        self._diagonal[k] = section.variance + float(section.cross @ section.cross)
        beta = np.asarray(top @ self.residual + bottom @ self._lower[: k + 1])
        residual, lower = self.residual - np.outer(top, beta), self._lower.copy()
        lower[: k + 1] -= np.outer(bottom, beta)
        explained, indices = self.explained + beta**2, [*self.indices, row]
        gains = [*self.gains, float(beta @ beta)]
        # At once: Ctrl-C comes between calls.
        self.residual, self._lower, self.explained = residual, lower, explained
        self.indices, self.gains = indices, gains

    def _reduced(self, column: Floats, part: Floats, again: bool = True) -> tuple[Floats, Floats]:
        """Return column - W part and, with `again`, W' times it, while a tile of W is at hand."""
        W, k = self.W, self.size
        if not k:
            return column.copy(), np.empty(0)
        out = np.empty(len(column))

        def tile(s: slice) -> Floats:
            out[s] = column[s] - W[s] @ part
            return out[s] @ W[s] if again else np.empty(0)

        sums = map_tiles(tile, row_blocks(len(column), max(64, _ENTRIES // k)))
        return out, np.asarray(np.sum(sums, axis=0))

    def _solve(self, right: Floats, transpose: bool = False) -> Floats:
        """Return L^-1 or L^-T times an array."""
        return solve_lower(self.L, np.asfortranarray(right), transpose=transpose)

    def _grow(self) -> None:
        k, (n, room) = self.size, self._W.shape
        if k < room:
            return
        W = np.empty((n, 2 * k), order="F")
        W[:, :k] = self._W
        B, L = (np.zeros((2 * k, 2 * k), order="F") for _ in range(2))
        B[:k, :k], L[:k, :k] = self._B[:k, :k], self._L[:k, :k]
        lower = np.vstack([self._lower[:k], np.zeros_like(self._lower[:k])])
        diagonal = np.append(self._diagonal[:k], np.empty(k))
        # All of them or none, as in `add`.
        self._W, self._B, self._L, self._lower, self._diagonal = W, B, L, lower, diagonal
