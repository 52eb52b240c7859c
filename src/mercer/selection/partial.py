"""The Cholesky factorisation of a kernel matrix, some columns at a time and in any order.

With rows i_1, ..., i_k chosen, K = V V' + S. The columns of V (n, k) are those of a Cholesky
factorisation that takes these rows first, and S is what remains: the covariance of f at the rows
given its values at the chosen ones. V V' is the Nyström approximation K_nk K_kk^-1 K_kn on them,
its K_kk factorised by the rows V[chosen], a lower triangle. Only the diagonal of S is kept; a
column of it takes n values of the kernel and a product with V.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.linalg import solve_lower
from mercer.selection.checks import require_kernel

__all__ = ["PartialCholesky", "Selection"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# A diagonal of S below minus this part of (k_ii max k)^1/2 is no rounding.
_NEGATIVE = 1e-8
# A row may be added if its variance is at least this part of the largest that is left.
_THRESHOLD = 1e-4
_SURE = 1e3  # and this many times what of it may be rounding
_FIRST = 32  # columns there is room for at first


class Selection(NamedTuple):
    """The rows that were chosen, and the approximation of K that they make.

    indices : (k,) numbers of the rows, in the order in which they were chosen
    V : (n, k) the factor, K is about V V'; its rows `indices` are a lower triangle
    residual : (n,) the diagonal of K - V V', never negative
    traces : (k + 1,) the trace of K - V V' with 0, 1, ..., k rows
    """

    indices: NDArray[np.intp]
    V: Floats
    residual: Floats
    traces: Floats


class PartialCholesky:
    """The factorisation, while rows are being added to it.

    Parameters
    ----------
    kernel : Kernel
    X : inputs
        n rows.
    most : int
        How many rows may be added.
    """

    def __init__(self, kernel: Kernel, X: Any, most: int) -> None:
        require_kernel(kernel)
        self.kernel, self.X = kernel, kernel.inputs(X)
        self.diagonal = np.array(kernel.diag(self.X), dtype=float)
        n = len(self.diagonal)
        if n == 0:
            raise ValueError("at least one row is wanted, got none")
        if not np.all(np.isfinite(self.diagonal)) or np.any(self.diagonal < 0):
            raise NotPositiveDefiniteError(
                f"{kernel!r} has negative or infinite values k(x, x) at some rows, which no "
                "covariance has"
            )
        self.most = min(most, n)
        self.residual = self.diagonal.copy()
        self._rounding = np.zeros(n)  # how much of the residual may be that
        self._reach = np.zeros(n)  # x'D x, see `_spread`
        self._lost = np.zeros(n)  # squares of what columns had beyond the rows' variances
        self.indices: list[int] = []
        self.traces = [self.trace]
        self._V = np.empty((n, min(self.most, _FIRST)), order="F")
        self._L = np.zeros((_FIRST, _FIRST), order="F")  # the rows chosen of V, a lower triangle

    @property
    def V(self) -> Floats:
        """The factor so far, (n, k), Fortran order."""
        return self._V[:, : len(self.indices)]

    @property
    def trace(self) -> float:
        """The trace of S."""
        return float(np.sum(self.residual))

    def goes_on(self, tol: float = 0.0) -> bool:
        """Whether another row may be added, and more than this part of the trace of K is left."""
        return len(self.indices) < self.most and self.traces[-1] > tol * self.traces[0]

    def candidates(self, number: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw so many rows, or fewer, that may be added: with enough variance to be divided by.

        A row with less than others passes its rounding on to these, multiplied by the ratio. Where
        rounding may be some part of all that is left, only the row that has most may be added.
        """
        most = np.max(self.residual)
        passed_on = _EPS * (self.diagonal + self._reach)
        least = np.maximum(_THRESHOLD * most, _SURE * np.maximum(self._rounding, passed_on))
        rows = np.flatnonzero(self.residual > least)
        if not rows.size:
            return np.flatnonzero(self.residual == most)[:1]
        return rows if rows.size <= number else np.sort(rng.choice(rows, number, replace=False))

    def columns(self, rows: NDArray[np.intp]) -> Floats:
        """Return these columns of S, (n, c), Fortran order: O(n k c)."""
        out = np.asfortranarray(self.kernel(self.X, self.X[rows]))
        if self.indices:
            V = self.V
            with blas_for(int(np.cbrt(float(V.size) * len(rows)))):
                out = dgemm(-1.0, V, V[rows], 1.0, out, trans_b=1, overwrite_c=1)
        return np.asarray(out)

    def add(self, row: int, column: Floats | None = None) -> None:
        """Add a row; its column of S may be given."""
        if column is None:
            column = self.columns(np.array([row]))[:, 0]
        k = len(self.indices)
        self._grow()
        root = np.sqrt(self.residual[row])
        v = column / root
        reach = self._reach + (v / root) ** 2 * (self.diagonal[row] + self._spread(row))
        # What was cut off before is in the column once more, and is divided by the root here.
        passed_on = 8.0 * _SURE * _EPS * (self.diagonal + reach)
        self._check(v, passed_on + self._lost * self.diagonal[row] / root**2)
        # Beyond the rows' own variance, by Cauchy and Schwarz, there is nothing but rounding. That
        # variance may itself be rounded to 0; of rows chosen before nothing is left.
        rounded = np.minimum(self._rounding, 16.0 * _EPS * self.diagonal)
        limit = np.sqrt(np.maximum(self.residual, rounded))
        limit[self.indices] = 0.0
        cut = np.clip(v, -limit, limit)
        cut[row] = v[row]
        self._lost += (v - cut) ** 2
        v = cut
        v[row] = root
        self._V[:, k] = v
        self._L[k, : k + 1] = self._V[row, : k + 1]
        self.indices.append(row)
        self.residual -= v**2
        # Of S_ij^2/S_jj the entry is uncertain by eps (k_ii k_jj)^1/2, and S_jj by eps k_jj.
        spread = np.abs(v) * np.sqrt(self.diagonal[row]) / root
        self._rounding += 2.0 * _EPS * spread * (2.0 * np.sqrt(self.diagonal) + spread)
        self._reach = reach
        self.residual[self.residual <= self._rounding] = 0.0
        self.residual[row] = 0.0
        self.traces.append(self.trace)

    def _spread(self, row: int) -> float:
        """Return the sum of x_l^2 k_ll, x = K_II^-1 k_Ij the weights of the chosen rows in f_j.

        Rounding D of K_II changes what is left of f_j by x'D x. Another row i has the weights
        sum_l v_il/L_ll (e_l - x_l), x_l those of the l-th chosen row given the ones before: large
        where some of these nearly repeat each other, and it is larger than they are.
        """
        k = len(self.indices)
        if not k:
            return 0.0
        weights = solve_lower(self._L[:k, :k], self._V[row, :k].copy(), transpose=True)
        return float(weights**2 @ self.diagonal[self.indices])

    def _grow(self) -> None:
        """Make room for another column."""
        k, (n, room) = len(self.indices), self._V.shape
        if k == room:
            V = np.empty((n, min(self.most, 2 * k)), order="F")
            V[:, :k] = self._V
            self._V = V
        if k == len(self._L):
            L = np.zeros((2 * k, 2 * k), order="F")
            L[:k, :k] = self._L
            self._L = L

    def _check(self, v: Floats, allowed: Floats) -> None:
        """Raise where a row would be left with a negative variance that no rounding explains."""
        left = self.residual - v**2
        roots = np.sqrt(self.diagonal)
        wrong = ~(left >= -_NEGATIVE * roots * np.max(roots) - allowed)
        if np.any(wrong):
            raise NotPositiveDefiniteError(
                f"{self.kernel!r} is no covariance: given {len(self.indices) + 1} rows, row "
                f"{np.flatnonzero(wrong)[0]} is left with a variance of {left[wrong][0]:.3g}"
            )

    def selection(self) -> Selection:
        """Return what has been chosen."""
        chosen = np.array(self.indices, dtype=np.intp)
        return Selection(chosen, self.V, self.residual, np.array(self.traces))
