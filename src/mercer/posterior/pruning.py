"""Removing basis points from a posterior, with the loss measured.

With the full kernel (w = 1), removing points by (SOGP 3.16) keeps two things of the posterior q on
the kept subset R: the marginal q(g_R, beta), where g is the part of f that the kernel is the prior
of and beta are the coefficients of the explicit functions, and the prior's conditional of all else
given it. Hence

- the pruned posterior of *any* R follows at once from the moments of (g_R, beta), and
- KL(q, pruned) = D(B) - D(R) with D(R) = KL(q(g_R, beta), p(g_R) x flat), so that losses of
  successive removals add up.

Both are computed in whitened coordinates u = L^-1 g_R, K_RR = L L', where the prior is N(0, 1) and
the posterior is well conditioned however nearly singular K_RR may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.linalg import cholesky, inverse_lower, mirror_lower, solve_lower
from mercer.posterior.factors import Dense, Factor, InverseTriangular
from mercer.posterior.pruning_linear import REDUNDANT, log_det, prune_linear

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["prune"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# How many removals are put off before the matrices are brought up to date in one product.
_PENDING = 64
# Redundant points go first where that costs no more than this, in nats.
_NEGLIGIBLE = 1e-3
# An eigenvalue further below 0, in units of the largest, is more than rounding.
_INDEFINITE = 1e-6


def prune(posterior: Posterior, n: int, noise: float | None = None) -> tuple[Posterior, float]:
    """Return a posterior on at most n of the basis points, and the loss; see `Posterior.prune`."""
    n = at_least_one("n, the number of basis points to keep,", n)
    if n >= posterior.n_basis:
        return posterior, 0.0
    if posterior.weight:
        with blas_for(posterior.n_basis):
            return _prune_full(posterior, n)
    if noise is None or not np.isfinite(noise) or noise <= 0:
        raise ValueError(
            "a degenerate posterior (w = 0) is pruned by its noisy predictions: give the noise "
            f"variance, a positive number, got noise={noise!r}"
        )
    with blas_for(posterior.n_basis):
        return prune_linear(posterior, n, float(noise))


def at_least_one(name: str, given: object) -> int:
    """Return a count that a caller has given, if it is one."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {given!r}")
    return int(given)


class _Moments(NamedTuple):
    """The posterior of (beta, u), whitened on a subset of k points.

    c is 1 where the outputs are independent (they share S), and P where they are coupled; the
    coordinates run over beta and then u, the c outputs innermost.
    """

    L: Floats  # (k, k), K_RR = L L'
    u: Floats  # (k, P), means
    S_root: Floats  # ((r + k) c, (r + k) c), lower Cholesky factor of the covariance
    N: Floats  # (k, c, k, c), the covariance of u less the prior's identity
    copies: int  # how many outputs share S

    @property
    def n_sound(self) -> int:
        """How many of the points, in order of novelty, are not redundant."""
        novelty = np.diagonal(self.L) ** 2
        return int(np.sum(novelty > REDUNDANT * novelty[:1]))

    def first(self, k: int) -> _Moments:
        """Return the moments for the first k points: whitening goes from point to point."""
        dropped = (len(self.u) - k) * self.N.shape[1]
        size = len(self.S_root) - dropped
        L = np.asfortranarray(self.L[:k, :k])
        return _Moments(L, self.u[:k], self.S_root[:size, :size], self.N[:k, :, :k], self.copies)

    def divergence(self) -> Floats:
        """Return D for the first 0, 1, ..., k points, without the constant of beta."""
        k, c = self.N.shape[:2]
        variance = np.einsum("ipip->i", self.N)
        log_root = np.log(np.diagonal(self.S_root)[len(self.S_root) - k * c :])
        steps = self.copies * (variance - 2.0 * log_root.reshape(k, c).sum(axis=1))
        return np.concatenate([[0.0], 0.5 * np.cumsum(steps + np.sum(self.u**2, axis=1))])


def _moments(posterior: Posterior, L: Floats, V: Floats) -> _Moments:
    """Return the moments for the subset with K_RR = L L' and V = L^-1 K_RB."""
    (k, m), r, P = V.shape, posterior.n_features, posterior.n_outputs
    c = P if posterior.is_coupled else 1
    rows = np.zeros((r + k, m + r))
    rows[:r, m:] = np.eye(r)
    rows[r:, :m] = V
    S = posterior._B.products(rows)
    S -= posterior._A.products(rows)
    N = S[r:, :, r:].copy()
    flat = S.reshape((r + k) * c, (r + k) * c)
    index = np.arange(r * c, (r + k) * c)
    flat[index, index] += 1.0
    return _Moments(L, V @ posterior.alpha[:m], _steady_root(flat), N, P // c)


def _steady_root(S: Floats) -> Floats:
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


def _prune_full(posterior: Posterior, n: int) -> tuple[Posterior, float]:
    kept, moments = _all_moments(posterior)
    divergence = moments.divergence()
    total = divergence[-1]
    sound = moments.n_sound
    # Redundant points need not be tried one by one, unless the data have made them count.
    if n <= sound < len(kept) and total - divergence[sound] <= _NEGLIGIBLE:
        kept, moments = kept[:sound], moments.first(sound)
    while len(kept) > n:
        # The updates of a removal are exact, but their rounding builds up: begin anew with half,
        # and sooner where that many points are redundant, once they may all have gone.
        sound = moments.n_sound
        target = max(n, len(kept) // 2, sound if sound < len(kept) else 0)
        rest = kept[_eliminate(moments, target)]
        rest = rest if len(rest) < len(kept) else kept[:-1]
        kept, moments = _subset_moments(posterior, rest)
    pruned = _on_subset(posterior, kept, moments)
    return pruned, max(0.0, float(total - moments.divergence()[-1]))


def _by_novelty(K: Floats) -> tuple[Indices, Floats]:
    """Order points by novelty, with the Gram matrix's root (k, rank) in that order.

    This is the pivoted Cholesky factorisation. Points beyond the numerical rank come last: given
    those before them, nothing but rounding is left of their variance (k eps of the largest).
    """
    if not len(K):
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    root, pivots, rank, _ = dpstrf(K, lower=1, overwrite_a=1)
    return np.asarray(pivots, dtype=np.intp) - 1, np.tril(root)[:, :rank]


def _all_moments(posterior: Posterior) -> tuple[Indices, _Moments]:
    """Return the points up to the numerical rank, in order of novelty, and the moments there."""
    order, L = _by_novelty(posterior.kernel.gram_lower(posterior.basis.points))
    rank = L.shape[1]
    V = np.empty((rank, len(order)))
    V[:, order] = L.T  # whitened without a solve
    return order[:rank], _moments(posterior, np.asfortranarray(L[:rank]), V)


def _subset_moments(posterior: Posterior, kept: Indices) -> tuple[Indices, _Moments]:
    """Return likewise those of a subset."""
    kernel, points = posterior.kernel, posterior.basis.points
    order, L = _by_novelty(kernel.gram_lower(points[kept]))
    rank = L.shape[1]
    kept, L = kept[order[:rank]], np.asfortranarray(L[:rank])
    V = solve_lower(L, kernel(points, points[kept]).T, overwrite=True)
    return kept, _moments(posterior, L, V)


def _on_subset(posterior: Posterior, kept: Indices, moments: _Moments) -> Posterior:
    """Return the posterior whose moments of (g_R, beta) are given."""
    (k, c), r, L = moments.N.shape[:2], posterior.n_features, moments.L
    # cov = k - |L^-1 k_R|^2 + |S_root' [h; L^-1 k_R]|^2
    roots = moments.S_root.reshape(r + k, c, -1)
    A: list[Factor] = []
    B: list[Factor] = []
    for p in range(c):
        halves = roots[r:, p].copy(order="F"), roots[:r, p]
        B.append(Dense(np.hstack([solve_lower(L, halves[0], transpose=True).T, halves[1].T])))
        if c == 1:
            A.append(InverseTriangular(L))
        else:  # outputs are independent in the prior: each has rows of its own
            M = np.zeros((c * k, k + r))
            M[p * k : (p + 1) * k, :k] = solve_lower(L, np.eye(k))
            A.append(Dense(M))
    alpha_k = solve_lower(L, moments.u, transpose=True)
    return posterior.replace(
        basis=posterior.basis.take(kept),
        alpha=np.vstack([alpha_k, posterior.alpha[posterior.n_basis :]]),
        A=A if posterior.is_coupled else A[0],
        B=B if posterior.is_coupled else B[0],
    )


def _eliminate(moments: _Moments, n: int) -> Indices:
    """Return which n of the points stay when the cheapest is removed again and again.

    More than n come back where rounding has spoilt the matrices and they must be made anew.

    Q is the prior's precision of g_R, P the posterior's (of g_R, with beta), alpha and C those of
    the posterior on the current subset. Removing i costs, over the outputs that share S,

        1/2 [ln(P_ii / Q_ii) + C_ii / Q_ii + alpha_i^2 / Q_ii]

    which is the score q/P - 1 - ln(q/P) + alpha^2/q + q b'Sb (over 2) with Q S Q = Q + C put in.
    With a = Q_i / Q_ii, the removal (SOGP 3.16) is Q - Q_ii a a', C - a z' - z a' with
    z = C_i - C_ii a/2, alpha - a alpha_i, and P loses a Schur complement. Only diagonals are kept
    up to date; columns are caught up when needed, and the matrices after `_PENDING` removals.
    """
    L, N = moments.L, moments.N
    k, c = N.shape[:2]
    inverse = solve_lower(L, np.eye(k, order="F"), overwrite=True)
    Q = inverse.T @ inverse
    C = np.stack([inverse.T @ N[:, p, :, p] @ inverse for p in range(c)])
    alpha = inverse.T @ moments.u
    S_root = moments.S_root[-k * c :, -k * c :]
    g_root = (L @ S_root.reshape(k, c * k * c)).reshape(k * c, k * c)
    P = mirror_lower(inverse_lower(np.asfortranarray(g_root)))
    alive = np.arange(k)
    while len(alive) > n:
        size = len(alive)
        steps = min(_PENDING, size - n)
        stays = _remove(Q, C, P, alpha, steps, moments.copies)
        alive, alpha = alive[stays], alpha[stays]
        Q, C = Q[np.ix_(stays, stays)], C[:, stays][:, :, stays]
        blocks = (stays[:, None] * c + np.arange(c)).ravel()
        P = P[np.ix_(blocks, blocks)]
        if len(stays) > size - steps:
            break
    return alive


def _remove(Q: Floats, C: Floats, P: Floats, alpha: Floats, steps: int, copies: int) -> Indices:
    """Remove that many points from the matrices, in place; return the rows that stay."""
    k, c = len(Q), len(C)
    a, w = np.zeros((k, steps)), np.zeros((k, steps))
    z = np.zeros((c, k, steps))
    U = np.zeros((k * c, steps * c))
    q, C_diag = np.diagonal(Q).copy(), np.einsum("pii->pi", C).copy()
    P_diag = np.einsum("ipiq->ipq", P.reshape(k, c, k, c)).copy()
    gone = np.zeros(k, dtype=bool)
    for t in range(steps):
        with np.errstate(all="ignore"):
            spread = log_det(P_diag) - c * np.log(q) + C_diag.sum(axis=0) / q
            scores = copies * spread + np.sum(alpha**2, axis=1) / q
        scores[~np.isfinite(scores)] = np.finfo(float).max
        scores[gone] = np.inf
        i = int(np.argmin(scores))
        block = slice(i * c, (i + 1) * c)

        column = Q[:, i] - w[:, :t] @ w[i, :t]
        columns = P[:, block] - U[:, : t * c] @ U[block, : t * c].T
        try:
            root = np.linalg.cholesky(columns[block])
        except np.linalg.LinAlgError:
            break
        if not column[i] > 0:
            break
        gone[i] = True
        a[:, t] = column / column[i]
        w[:, t] = column / np.sqrt(column[i])
        q -= w[:, t] ** 2
        for p in range(c):
            column = C[p, :, i] - a[:, :t] @ z[p, i, :t] - z[p, :, :t] @ a[i, :t]
            z[p, :, t] = column - 0.5 * column[i] * a[:, t]
            C_diag[p] -= 2.0 * a[:, t] * z[p, :, t]
        new = columns @ np.linalg.inv(root).T
        U[:, t * c : (t + 1) * c] = new
        new = new.reshape(k, c, c)
        P_diag -= new @ new.transpose(0, 2, 1)
        alpha -= np.outer(a[:, t], alpha[i])
    Q -= w @ w.T
    for p in range(c):
        change = a @ z[p].T
        C[p] -= change + change.T
    P -= U @ U.T
    return np.flatnonzero(~gone)
