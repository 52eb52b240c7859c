"""The Gaussian at the mode of a softmax: C latent functions whose sites are coupled at each row.

With probabilities pi and weights w, the curvature at row i is W_i = w_i (diag(pi_i) - pi_i pi_i').
With D_c = diag(w pi_c) and E_c = (K + D_c^-1)^-1, as of sites that were not coupled, and
H = sum_c E_c (Rasmussen and Williams, 3.5),

    M = (K + W^-1)^-1,   M_pq = [p = q] E_p - E_p H^-1 E_q
    ln det(1 + K W) = sum_c ln det(1 + K D_c) + ln det H - sum_i ln w_i,

so that C factorisations of order n, and one of H, take the place of one of order nC. H is kept in
units of the weights, w^-1/2 H w^-1/2 = L L'. Not an engine of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._sites import Sites, factorise, scale_lower, symmetric_product
from mercer.likelihoods import Softmax
from mercer.linalg import cholesky, mirror_lower, solve_lower, update_lower
from mercer.posterior import Dense, Factor, InverseTriangular
from mercer.posterior.factors import RowBlock

__all__ = ["CoupledSites"]

Floats = NDArray[np.float64]

# In the place of smaller weights: with less, differences of what a class and all of them have would
# be of rounding alone, and with this a row counts for as little.
_FLOOR = 1e-20
# What may be added to H in units of the weights. It bounds the variance of what all classes have in
# common, on which nothing depends, by its inverse.
_COMMON = (0.0, 1e-14, 1e-12, 1e-10)
_BLOCK = 2**21  # numbers that are held beside the matrices at once


class CoupledSites:
    """A factorisation of K^-1 + W; C + 1 matrices of n^2.

    K : (n, n) lower triangle, the caller's, with `jitter` on its diagonal
    probabilities : (n, C)
    weights : (n,) or None
    jitter : the jitter that K has already; with None what K needs is **added to it**
    keep_factors : whether `factors` will be asked for, which takes C matrices more
    """

    def __init__(
        self,
        K: Floats,
        probabilities: Floats,
        weights: Floats | None = None,
        jitter: float | None = None,
        keep_factors: bool = False,
    ) -> None:
        n, C = probabilities.shape
        w = np.maximum(np.ones(n) if weights is None else weights, _FLOOR)
        self.K, self.probabilities, self._root = K, probabilities, np.sqrt(w)
        self._weighted = w[:, None] * probabilities
        #: What this factorisation had to add to the diagonal of K, in place.
        self.jitter = 0.0
        self._sites: list[Sites] = []
        self._A: list[InverseTriangular] = []
        log_determinant, c = 0.0, 0
        with blas_for(n):
            while c < C:
                sites = factorise(K, self._weighted[:, c], jitter)
                if sites.jitter:
                    self.jitter += sites.jitter
                    if c:  # the others were those of another K
                        self._sites, self._A, log_determinant, c = [], [], 0.0, 0
                        continue
                log_determinant += sites.log_determinant
                if keep_factors:
                    self._A.append(sites.factors(copy=True)[0])
                sites.inverse()
                self._sites.append(sites)
                c += 1
            self._L = self._common_factor()
        #: ln det(1 + K W)
        self.log_determinant = log_determinant + 2.0 * float(np.sum(np.log(np.diagonal(self._L))))

    def _common_factor(self) -> Floats:
        """Return L."""
        n = len(self.K)
        for added in _COMMON:
            H = np.zeros((n, n), order="F")
            for sites in self._sites:
                _add_lower(H, sites.inverse())
            scale_lower(H, 1.0 / self._root, H)
            try:
                return cholesky(H, added).L
            except NotPositiveDefiniteError:
                continue
        raise NotPositiveDefiniteError(
            "the curvature of the classes cannot be factorised: the kernel is too large"
        )

    def solve(self, v: Floats) -> Floats:
        """Return M v for v of shape (n, C). O(n^2 C)."""
        with blas_for(len(self.K)):
            Ev = _each(self._sites, v)
            x = solve_lower(self._L, np.sum(Ev, axis=1) / self._root, overwrite=True)
            x = solve_lower(self._L, x, transpose=True, overwrite=True) / self._root
            return np.asarray(Ev - _each(self._sites, np.tile(x[:, None], v.shape[1])))

    def images(self) -> list[Floats]:
        """Return H^-1/2 E_p for each p, n x n, with (H^-1/2)'H^-1/2 = H^-1. O(C n^3)."""
        out = []
        for sites in self._sites:
            E = mirror_lower(sites.inverse().copy(order="F"))
            E /= self._root[:, None]
            out.append(solve_lower(self._L, E, overwrite=True))
        return out

    def moments(self) -> tuple[Floats, Floats]:
        """Return sum_p M_pp, lower triangle, and `row_covariances`.

        O(C n^3); C + 2 matrices more of n^2.
        """
        n = len(self.K)
        with blas_for(n):
            images = self.images()
            G = np.zeros((n, n), order="F")
            for sites, B in zip(self._sites, images, strict=True):
                _add_lower(G, sites.inverse())
                G = update_lower(-1.0, B, 1.0, G, transpose=True)
        return np.asarray(G), self.row_covariances(images)

    def row_covariances(self, images: list[Floats]) -> Floats:
        """Return the covariances (n, C, C) of the classes at each row, from `images`.

        They are [p = q] diag(Sigma_p) + diag(V_p'V_q), Sigma_p = (K^-1 + D_p)^-1 and
        V_p = H^-1/2 E_p K = H^-1/2 (1 - E_p D_p^-1). O(n^3) and O(C^2 n^2); one matrix of n^2.
        """
        n, C = self.probabilities.shape
        with blas_for(n):
            common = np.asfortranarray(np.diag(1.0 / self._root))
            common = solve_lower(self._L, common, overwrite=True)  # H^-1/2
            out = np.zeros((n, C, C))
            D = np.maximum(self._weighted, 1e-200)  # as in the sites
            size = max(1, _BLOCK // (n * C))
            for i in range(0, n, size):
                rows = slice(i, i + size)
                V = np.stack(
                    [(common[:, rows] - B[:, rows] / D[rows, p]).T for p, B in enumerate(images)],
                    axis=1,
                )  # (rows, C, n)
                out[rows] = V @ V.transpose(0, 2, 1)
            for p, sites in enumerate(self._sites):
                out[:, p, p] += sites.marginal_variances()
        return out

    def lean(self, S: Floats) -> Floats:
        """Return u = (1 + W K)^-1 a, a = -1/2 d ln det(1 + K W)/dF, from `row_covariances` S.

        a is the third derivatives of the log likelihood, contracted with S/2.
        """
        a = -0.5 * self._root[:, None] ** 2 * Softmax.pull_curvature(self.probabilities, S)
        return np.asarray(a - self.solve(symmetric_product(self.K, a)))

    def factors(
        self, images: list[Floats] | None = None
    ) -> tuple[tuple[Factor, ...], tuple[Factor, ...]]:
        """Return A and B of a coupled `Posterior`: A_p'A_q - B_p'B_q = M_pq."""
        n, C = self.probabilities.shape
        A = tuple(RowBlock(F, p * n, C * n) for p, F in enumerate(self._A))
        with blas_for(n):
            return A, tuple(Dense(B) for B in (self.images() if images is None else images))


def _add_lower(total: Floats, lower: Floats) -> None:
    """Add a lower triangle; above it there may be anything, which is no cause for a warning."""
    with np.errstate(all="ignore"):
        total += lower


def _each(sites: list[Sites], v: Floats) -> Floats:
    """Return E_p v_p in the columns."""
    out = np.empty(v.shape, order="F")
    for p, s in enumerate(sites):
        out[:, p] = s.solve(np.ascontiguousarray(v[:, p]))
    return out
