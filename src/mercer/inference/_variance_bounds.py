"""Bounds on the variance of exact regression from a few rows of it (BKM 81, 83).

The variance of f at x is k(x, x) - k'(K + s2)^-1 k with k the kernel's values at x and the n rows.
The last term is -2 times the minimum of L* for the targets k (BKM 83). Over coefficients on the
basis J alone, which can only be worse,

    k'(K + s2)^-1 k >= k_J'(K_JJ + s2)^-1 k_J                                              (BKM 83)

and by (BKM 81), with the solution (BKM 86) for the targets k on the same basis,

    k'(K + s2)^-1 k <= (|k|^2 - |W'k|^2)/s2,

W the upper part of the orthogonal factor of [V; s 1], V V' = K_nJ K_JJ^-1 K_Jn, which is that of a
greedy fit: rows of which the others leave nothing but rounding have a column of zeros. Both are
sums over the basis in its order, so that all beginnings of it come at once. Each is moved by what
may be rounding of it, of the order of m eps |k|^2/s2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import executor_for, row_blocks
from mercer.inference._greedy_factor import Factor
from mercer.inference._greedy_rows import GreedyRows
from mercer.inference._greedy_step import section_of
from mercer.kernels import Kernel
from mercer.linalg import cholesky, solve_lower

__all__ = ["LatentVarianceBounds", "VarianceBounds"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# What columns of the factor may keep of each other, twice, in units of eps (see `Factor`).
_KEPT = 100.0
_POINTS = 256  # that are worked on at once


class VarianceBounds(NamedTuple):
    """What the variance of the function lies between, at each point.

    lower, upper : (q,), or (q, P) for several outputs
    n_kernels : (q,) how many kernel functions the bounds were had with
    """

    lower: Floats
    upper: Floats
    n_kernels: NDArray[np.intp]


class LatentVarianceBounds:
    """Bounds for any points, made ready once: O(n m^2) time, n m doubles.

    Parameters
    ----------
    kernel : Kernel
    X : inputs, n rows
    basis : (m,) numbers of rows
    noise : s2; that of row i is s2/w_i
    weights : (n,) w, or None for ones
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        basis: NDArray[np.intp],
        noise: float,
        weights: Floats | None = None,
    ) -> None:
        self.kernel, self.X, self.noise, self.basis = kernel, kernel.inputs(X), noise, basis
        self.root = np.ones(len(self.X)) if weights is None else np.sqrt(weights)
        Z, root = self.X[basis], self.root[basis]
        no_targets = np.empty((len(self.X), 0))
        self.W = _orthogonal(GreedyRows(kernel, self.X, no_targets, noise, weights), basis)
        own = np.asfortranarray(kernel(Z) * np.outer(root, root))
        own.reshape(-1, order="F")[:: len(own) + 1] += noise
        # a perturbation by rounding of the matrix takes this part off what is seen, at the most
        self._sure = max(0.0, 1.0 - 4.0 * _EPS * float(np.trace(own)) / noise)
        self._own = cholesky(own).L

    def __call__(
        self, Z: Any, tol: float | None = None, gap: float | None = None
    ) -> VarianceBounds:
        """Return the bounds at points Z: O(n m) each.

        Parameters
        ----------
        Z : inputs, q rows
        tol : float, optional
            No more of the basis is taken than brings the bounds as near to each other as this, in
            units of k(x, x). Without it all is.
        gap : float, optional
            The same for the distance of the bounds on k'(K + s2)^-1 k relative to their mean, as
            the paper counts kernels (BKM 84).
        """
        Z = self.kernel.inputs(Z, "Z")
        if len(Z) == 0:
            return VarianceBounds(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp))
        parts = [self._block(Z[s], tol, gap) for s in row_blocks(len(Z), _POINTS)]
        return VarianceBounds(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _block(self, Z: Any, tol: float | None, gap: float | None) -> VarianceBounds:
        m = len(self.basis)

        def sums(X: Any, W: Floats, root: Floats) -> Floats:
            K = self.kernel(X, Z) * root[:, None]
            return np.vstack([W.T @ K, np.einsum("ij,ij->j", K, K)])

        found = executor_for(self.X).sum(sums, self.X, self.W, self.root, block=2048)
        square, prior = found[m], np.asarray(self.kernel.diag(Z), dtype=float)
        cross = self.root[self.basis][:, None] * self.kernel(self.X[self.basis], Z)
        seen = solve_lower(self._own, np.asfortranarray(cross), overwrite=True)
        least = self._sure * np.cumsum(seen**2, axis=0)
        most = np.maximum(square - np.cumsum(found[:m] ** 2, axis=0), 0.0) / self.noise
        most += (8.0 + m + _KEPT) * _EPS * square / self.noise
        close = np.zeros(least.shape, dtype=bool)
        if tol is not None:
            close |= most - least <= tol * prior
        if gap is not None:
            close |= 2.0 * (most - least) <= gap * (most + least)
        last = np.where(np.any(close, axis=0), np.argmax(close, axis=0), m - 1)
        least, most = (each[last, np.arange(len(Z))] for each in (least, most))
        upper = np.clip(prior - least, 0.0, None)
        return VarianceBounds(np.clip(prior - most, 0.0, upper), upper, (last + 1).astype(np.intp))


def _orthogonal(rows: GreedyRows, basis: NDArray[np.intp]) -> Floats:
    """Return the upper part of the orthogonal factor, (n, m), Fortran order."""
    factor, new = Factor(rows.Y, rows.noise), np.zeros(len(basis), dtype=bool)
    for i, row in enumerate(map(int, basis)):
        section = section_of(rows, factor, row)
        new[i] = section.is_new
        if section.is_new:
            column = rows.column(row)
            factor.add(row, column, section, column @ factor.W)
    if np.all(new):
        return factor.W
    W = np.zeros((len(rows), len(basis)), order="F")
    W[:, new] = factor.W
    return W
