"""The moments of a posterior on a subset of its basis points, by which it is pruned.

They are taken in whitened coordinates u = L^-1 g_R, K_RR = L L', where the prior is N(0, 1) and the
posterior is well conditioned however nearly singular K_RR may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf

from mercer.errors import NotPositiveDefiniteError
from mercer.linalg import cholesky, solve_lower
from mercer.posterior.chart import Chart, charted
from mercer.posterior.factor_set import products_of
from mercer.posterior.pruning_linear import REDUNDANT

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["Moments", "all_moments", "extended_moments", "steady_root", "subset_moments"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# An eigenvalue further below 0, in units of the largest, is more than rounding.
_INDEFINITE = 1e-6


class Moments(NamedTuple):
    """The posterior of (beta, u), whitened on a subset of k points.

    beta are the coefficients of the chart's functions F h. c is 1 where the outputs are independent
    (they share S), and P where they are coupled; the coordinates run over beta and then u, the c
    outputs innermost.
    """

    L: Floats  # (k, k), K_RR = L L'
    u: Floats  # (k, P), means
    S_root: Floats  # ((q + k) c, (q + k) c), lower Cholesky factor of the covariance
    N: Floats  # (k, c, k, c), the covariance of u less the prior's identity
    copies: int  # how many outputs share S
    chart: Chart  # of the explicit functions, q of them

    @property
    def n_sound(self) -> int:
        """How many of the points, in order of novelty, are not redundant."""
        novelty = np.diagonal(self.L) ** 2
        return int(np.sum(novelty > REDUNDANT * novelty[:1]))

    def first(self, k: int) -> Moments:
        """Return the moments for the first k points: whitening goes from point to point."""
        dropped = (len(self.u) - k) * self.N.shape[1]
        size = len(self.S_root) - dropped
        L = np.asfortranarray(self.L[:k, :k])
        root = self.S_root[:size, :size]
        return Moments(L, self.u[:k], root, self.N[:k, :, :k], self.copies, self.chart)

    def steps(self) -> Floats:
        """Return how much each point adds to D, given those before it; none is negative."""
        k, c = self.N.shape[:2]
        variance = np.einsum("ipip->i", self.N)
        log_root = np.log(np.diagonal(self.S_root)[len(self.S_root) - k * c :])
        spread = self.copies * (variance - 2.0 * log_root.reshape(k, c).sum(axis=1))
        return np.asarray(0.5 * (spread + np.sum(self.u**2, axis=1)))


def all_moments(posterior: Posterior) -> tuple[Indices, Moments]:
    """Return the points up to the numerical rank, in order of novelty, and the moments there."""
    K = posterior.kernel.gram_lower(posterior.basis.points)
    order, L = _by_novelty(K, _rounding(np.diagonal(K)))
    rank = L.shape[1]
    V = np.empty((rank, len(order)))
    V[:, order] = L.T  # whitened without a solve
    return order[:rank], _moments(posterior, np.asfortranarray(L[:rank]), V)


def subset_moments(posterior: Posterior, kept: Indices) -> tuple[Indices, Moments]:
    """Return likewise those of a subset."""
    kernel, points = posterior.kernel, posterior.basis.points
    K = kernel.gram_lower(points[kept])
    order, L = _by_novelty(K, _rounding(np.diagonal(K)))
    rank = L.shape[1]
    kept, L = kept[order[:rank]], np.asfortranarray(L[:rank])
    V = solve_lower(L, kernel(points, points[kept]).T, overwrite=True)
    return kept, _moments(posterior, L, V)


def extended_moments(posterior: Posterior, kept: Indices, L: Floats) -> Moments:
    """Return the moments for the kept points, K_RR = L L', and after them all others.

    The others come in order of novelty, those beyond the numerical rank left out.
    """
    kernel, points = posterior.kernel, posterior.basis.points
    k = len(kept)
    others = np.setdiff1d(np.arange(len(points)), kept)
    first = solve_lower(L, kernel(points, points[kept]).T, overwrite=True)
    K = kernel(points[others]).T  # symmetric; the view is in Fortran order
    K -= first[:, others].T @ first[:, others]
    order, root = _by_novelty(K, _rounding(kernel.diag(points)))
    others, rank = others[order], root.shape[1]
    V = np.zeros((k + rank, len(points)))
    V[:k] = first
    V[k:, others] = root.T
    whole = np.zeros((k + rank, k + rank), order="F")
    whole[:k, :k] = np.tril(L)
    whole[k:, :k] = first[:, others[:rank]].T
    whole[k:, k:] = root[:rank]
    return _moments(posterior, whole, V)


def _rounding(variances: Floats) -> float:
    """Return what is left of variances that a factorisation reduces to 0, as LAPACK has it."""
    return float(0.5 * len(variances) * np.finfo(float).eps * np.max(variances, initial=0.0))


def _moments(posterior: Posterior, L: Floats, V: Floats) -> Moments:
    """Return the moments for the subset with K_RR = L L' and V = L^-1 K_RB."""
    (k, m), P = V.shape, posterior.n_outputs
    c = P if posterior.is_coupled else 1
    rows = np.zeros((k, len(posterior.alpha)))
    rows[:, :m] = V
    chart, b, a = charted(posterior, rows)
    r = chart.size
    S = products_of(b, r + k, c)
    S -= products_of(a, r + k, c)
    N = S[r:, :, r:].copy()
    flat = S.reshape((r + k) * c, (r + k) * c)
    index = np.arange(r * c, (r + k) * c)
    flat[index, index] += 1.0
    return Moments(L, V @ posterior.alpha[:m], steady_root(flat), N, P // c, chart)


def steady_root(S: Floats) -> Floats:
    """Return a lower triangular root of a whitened covariance, with a positive diagonal.

    A posterior that interpolates leaves nothing but the rounding of the prior's variance, 1, in
    some directions. Their eigenvalues are then raised to the size of that rounding, without which
    the divergence would be infinite; the others stay as they are.
    """
    try:
        return np.tril(cholesky(np.array(S, order="F"), 0.0).L)
    except NotPositiveDefiniteError:
        values, vectors = eigh(S)
    floor = len(S) * np.finfo(float).eps * max(1.0, values[-1])
    if values[0] < -_INDEFINITE * max(1.0, values[-1]):
        raise NotPositiveDefiniteError(
            "the posterior covariance of the basis values is not positive definite: the factors A "
            "and B do not belong to this kernel and these basis points"
        )
    root = vectors * np.sqrt(np.maximum(values, floor))
    R = np.linalg.qr(root.T)[1]  # root root' = R'R
    return np.asarray(R.T * np.where(np.diagonal(R) < 0, -1.0, 1.0))


def _by_novelty(K: Floats, rounding: float) -> tuple[Indices, Floats]:
    """Order points by novelty, with the Gram matrix's root (k, rank) in that order.

    This is the pivoted Cholesky factorisation. Points beyond the numerical rank come last: given
    those before them, their variance is less than `rounding`.
    """
    if not len(K):
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    root, pivots, rank, _ = dpstrf(K, tol=rounding, lower=1, overwrite_a=1)
    return np.asarray(pivots, dtype=np.intp) - 1, np.tril(root)[:, :rank]
