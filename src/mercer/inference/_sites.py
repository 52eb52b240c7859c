"""Gaussian sites: what Laplace's method, expectation propagation and variational methods end in.

Each makes the posterior of the latent values a Gaussian with covariance Sigma = (K^-1 + S)^-1,
S the diagonal matrix of the sites' precisions, some of which may be 0 or negative. Nothing here
inverts K. With the positive part S+, its root s, and N the rows whose precision -t^2 is negative,

    B      = 1 + s K s                                          = L L'
    Sigma+ = (K^-1 + S+)^-1 = K - K R+ K,     R+ = s B^-1 s
    M      = 1 - t Sigma+_NN t                                  = L_M L_M'
    Sigma  = Sigma+ + Sigma+_N t M^-1 t Sigma+_N'
           = K - K R K,     R = (K + S^-1)^-1 = R+ - V V',   V = (1 - R+ K)_N t L_M^-T,

and K^-1 + S is positive definite if and only if M is. Not an engine of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dgemm, dsymm, dsymv, dtrsm

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.linalg import (
    JITTERS,
    cholesky,
    inverse_lower,
    mirror_lower,
    solve_lower,
    update_lower,
)
from mercer.posterior import Dense, InverseTriangular

__all__ = [
    "FLOOR",
    "Sites",
    "factorise",
    "falling",
    "scale_lower",
    "symmetric_columns",
    "symmetric_product",
]

Floats = NDArray[np.float64]

# Taken for a precision of 0, or for the positive part of a negative one: of it nothing is left but
# that s can be divided by, so that a row without curvature needs no case of its own.
FLOOR = 1e-200

# Columns that are worked on at once where a triangle is passed over.
_STRIP = 64


class Sites:
    """A factorisation of K^-1 + S; made by `factorise`.

    K : (n, n) lower triangle, the caller's, with `jitter` on its diagonal
    precision : (n,) the diagonal of S
    log_determinant : ln det(1 + K S)
    jitter : what this factorisation had to add to the diagonal of K, in place
    """

    def __init__(
        self, K: Floats, precision: Floats, L: Floats, V: Floats, log_determinant: float, j: float
    ) -> None:
        self.K, self.precision, self.log_determinant, self.jitter = K, precision, log_determinant, j
        self.memory = L  # of the factor, and later of the inverse
        self._root = _root(precision)
        self._L: Floats | None = L
        self._V = V  # (n, k)
        self._inverse: Floats | None = None  # R, in the memory of L
        self._variances: Floats | None = None

    def solve(self, v: Floats) -> Floats:
        """Return R v = (K + S^-1)^-1 v for v of shape (n,) or (n, c). O(n^2 c)."""
        with blas_for(len(self.K)):
            if self._inverse is not None:
                return symmetric_product(self._inverse, v)
            s = self._root if v.ndim == 1 else self._root[:, None]
            x = solve_lower(self._factor(), np.array(s * v, order="F"), overwrite=True)
            x = s * solve_lower(self._factor(), x, transpose=True, overwrite=True)
            if self._V.size:
                columns = v.reshape(len(v), -1)
                x -= dgemm(1.0, self._V, dgemm(1.0, self._V, columns, trans_a=1)).reshape(v.shape)
            return np.asarray(x)

    def inverse(self) -> Floats:
        """Return the lower triangle of R = (K + S^-1)^-1 = S - S Sigma S.

        It takes the memory of the factor, so that `factors` can no longer be had; all else can.
        """
        self._invert()
        assert self._inverse is not None
        return self._inverse

    def marginal_variances(self) -> Floats:
        """Return the diagonal of Sigma, (n,), positive. Calls `inverse`: O(n^3)."""
        self._invert()
        assert self._variances is not None
        return self._variances

    def covariance(self) -> Floats:
        """Return Sigma = K - K R K, (n, n), both triangles. Three matrices of n^2."""
        with blas_for(len(self.K)):
            K = mirror_lower(np.array(self.K, order="F"))
            if self._inverse is not None:
                out = K - dsymm(1.0, self._inverse, K, lower=1).T @ K
            else:
                C = np.array(self._root[:, None] * K, order="F")
                C = solve_lower(self._factor(), C, overwrite=True)  # L^-1 s K
                out = update_lower(-1.0, C, 1.0, K.copy(order="F"), transpose=True)
                if self._V.size:
                    KV = symmetric_product(self.K, self._V)
                    out = update_lower(1.0, KV, 1.0, out)
            return mirror_lower(np.asfortranarray(out))

    def factors(self, copy: bool = False) -> tuple[InverseTriangular, Dense | None]:
        """Return A and B of a `Posterior`, with A'A - B'B = R.

        They take the factor's memory, unless `copy` is asked for.
        """
        L = self._factor()
        if copy:
            L = L.copy(order="F")
        else:
            self._L = None
        LT = L.T  # C order: its rows are the columns of L
        for j in range(0, len(L), _STRIP):
            LT[j : j + _STRIP, j:] /= self._root[j:]
        return InverseTriangular(L), Dense(self._V.T) if self._V.size else None

    def _factor(self) -> Floats:
        if self._L is None:
            raise ValueError("the factor's memory has been used for the inverse, or given away")
        return self._L

    def _invert(self) -> None:
        if self._inverse is not None:
            return
        L, s = self._factor(), self._root
        with blas_for(len(L)):
            R = inverse_lower(L)
            kept = np.maximum(1.0 - np.diagonal(R), 0.0)  # 1 - (B^-1)_ii = s_i^2 Sigma+_ii
            scale_lower(R, s, R)
            self._L = None
            k = np.diagonal(self.K)
            tiny = np.finfo(float).eps * k
            # Sigma+_ii = (R+ K)_ii/s_i^2 loses digits where s^2 k is large, the other form where
            # it is small.
            v = kept / s**2
            small = s**2 * k < 1e-2
            if np.any(small):
                rows = _row_sums(R, self.K)
                v = np.where(small, np.maximum(rows / s**2, tiny), v)
            v = np.minimum(v, k)
            v = np.where(v > 0, v, tiny)
            if self._V.size:
                v = v + np.sum(symmetric_product(self.K, self._V) ** 2, axis=1)
                R = update_lower(-1.0, self._V, 1.0, R)
        self._inverse, self._variances = np.asarray(R), v


def factorise(
    K: Floats, precision: Floats, jitter: float | None = None, out: Floats | None = None
) -> Sites:
    """Factorise K^-1 + S. O(n^3/3), and O(n^2 k) for k negative precisions.

    Parameters
    ----------
    K : (n, n) array, Fortran order
        Its lower triangle is read. The sites keep it, and need it as it is.
    precision : (n,) array
        The diagonal of S, of any sign.
    jitter : float, optional
        The jitter that `K` has already on its diagonal (`LatentProblem.gram` has put it there):
        none is added then. With None, where K is not positive semidefinite and B therefore cannot
        be factorised, 1e-10, 1e-8 and 1e-6 times the mean of its diagonal are **added to K**.
    out : (n, n) array, Fortran order, optional
        Memory for the factor.

    Raises
    ------
    NotPositiveDefiniteError
        Where K^-1 + S is not positive definite.
    """
    s = _root(precision)
    if not np.all(np.isfinite(s)):
        raise ValueError("the precisions of the sites must be finite, got NaN or infinity")
    diagonal = np.diagonal(K).copy()
    with blas_for(len(K)):
        L, added = _positive_part(K, s, jitter, out)
        try:
            V, log_determinant = _negative_part(K, precision, s, L)
        except NotPositiveDefiniteError:
            np.fill_diagonal(K, diagonal)
            raise
    log_determinant += 2.0 * float(np.sum(np.log(np.diagonal(L))))
    return Sites(K, precision, L, V, log_determinant, added)


def falling(K: Floats, precision: Floats) -> Floats | None:
    """Return d (n,) along which K d has the most negative curvature in K^-1 + S; None without.

    That is d = (1 - R+ K)_N t v for the least eigenvalue of M.
    """
    if np.all(precision >= 0):
        return None
    s = _root(precision)
    with blas_for(len(K)):
        L, _ = _positive_part(K, s, 0.0, None)
        N, t, Z, M = _middle(K, precision, s, L)
        values, vectors = eigh(M, subset_by_index=[0, 0])
        if values[0] >= 0:
            return None
        v = t * vectors[:, 0]
        d = -s * solve_lower(L, Z @ v, transpose=True)
    d[N] += v
    return np.asarray(d)


def _positive_part(
    K: Floats, s: Floats, jitter: float | None, out: Floats | None
) -> tuple[Floats, float]:
    """Return the factor of B = 1 + s K s, and what was added to the diagonal of K for it."""
    n = len(K)
    L = np.empty((n, n), order="F") if out is None else out
    diagonal = np.diagonal(K).copy()
    ladder = [j * float(np.mean(diagonal)) for j in JITTERS] if jitter is None else [0.0]
    for added in ladder:
        if added:
            np.fill_diagonal(K, diagonal + added)
        scale_lower(K, s, L)
        L.reshape(-1, order="F")[:: n + 1] += 1.0
        try:
            return cholesky(L, 0.0).L, added
        except NotPositiveDefiniteError:
            continue
    np.fill_diagonal(K, diagonal)
    raise NotPositiveDefiniteError(
        "the Gram matrix is not positive semidefinite: 1 + S^1/2 K S^1/2 cannot be factorised, "
        f"even with {ladder[-1]:.3g} added to the diagonal of K"
    )


def _middle(
    K: Floats, precision: Floats, s: Floats, L: Floats
) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
    """Return the k rows N, t (k,), L^-1 s K_N (n, k), and M (k, k)."""
    N = np.flatnonzero(precision < 0)
    t = np.sqrt(-precision[N])
    K_N = symmetric_columns(K, N)
    Z = solve_lower(L, np.array(s[:, None] * K_N, order="F"), overwrite=True)
    M = np.asfortranarray(K_N[N])
    M = update_lower(1.0, Z, -1.0, M, transpose=True)  # -Sigma+_NN
    M *= np.multiply.outer(t, t)
    M.reshape(-1, order="F")[:: N.size + 1] += 1.0
    return N, t, Z, M


def _negative_part(K: Floats, precision: Floats, s: Floats, L: Floats) -> tuple[Floats, float]:
    """Return V (n, k) and ln det M."""
    if np.all(precision >= 0):
        return np.empty((len(K), 0)), 0.0
    N, t, Z, M = _middle(K, precision, s, L)
    try:
        factor = cholesky(M, 0.0)
    except NotPositiveDefiniteError:
        raise NotPositiveDefiniteError(
            f"K^-1 + S is not positive definite: {N.size} of the sites' {len(K)} precisions are "
            "negative, and outweigh the prior"
        ) from None
    V = -s[:, None] * solve_lower(L, Z, transpose=True, overwrite=True)
    V[N, np.arange(N.size)] += 1.0
    V = np.asfortranarray(V * t)
    V = dtrsm(1.0, factor.L, V, side=1, lower=1, trans_a=1, overwrite_b=1)
    return np.asarray(V), factor.log_determinant()


def _root(precision: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(precision, FLOOR)))


def scale_lower(M: Floats, s: Floats, out: Floats) -> Floats:
    """Write s M s to the lower triangle of `out`, which may be M; both in Fortran order."""
    MT, OT = M.T, out.T  # C order: rows are columns of M
    with np.errstate(all="ignore"):  # above the triangle there may be anything
        for j in range(0, len(s), _STRIP):
            columns = slice(j, j + _STRIP)
            strip = np.multiply(MT[columns, j:], s[j:], out=OT[columns, j:])
            strip *= s[columns, None]
    return out


def symmetric_columns(K: Floats, columns: NDArray[np.intp]) -> Floats:
    """Return columns (n, k) of the symmetric matrix whose lower triangle is that of K."""
    i = np.arange(len(K))[:, None]
    return np.asfortranarray(K[np.maximum(i, columns), np.minimum(i, columns)])


def symmetric_product(K: Floats, v: Floats) -> Floats:
    """Return K v for v (n,) or (n, c), of a symmetric K whose lower triangle is given."""
    if v.ndim == 1:
        return np.asarray(dsymv(1.0, K, v, lower=1))
    return np.asarray(dsymm(1.0, K, np.asfortranarray(v), lower=1))


def _row_sums(A: Floats, B: Floats) -> Floats:
    """Return sum_j A_ij B_ij, (n,), of symmetric matrices whose lower triangles are given."""
    n = len(A)
    out = np.zeros(n)
    for j in range(0, n, _STRIP):
        strip = A.T[j : j + _STRIP, j:] * B.T[j : j + _STRIP, j:]  # (columns, rows from j on)
        w = len(strip)
        corner = np.triu(strip[:, :w])  # the upper triangle of the transposed square
        out[j : j + w] += np.sum(corner, axis=1) + np.sum(np.triu(corner, 1), axis=0)
        out[j : j + w] += np.sum(strip[:, w:], axis=1)
        out[j + w :] += np.sum(strip[:, w:], axis=0)
    return out
