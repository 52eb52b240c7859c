"""Which basis points stay when the cheapest is removed again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import inverse_lower, mirror_lower, solve_lower
from mercer.posterior.pruning_linear import log_det
from mercer.posterior.pruning_moments import Moments

__all__ = ["eliminate", "remove"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# How many removals are put off before the matrices are brought up to date in one product.
_PENDING = 64


def eliminate(moments: Moments, n: int) -> Indices:
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
        stays = remove(Q, C, P, alpha, steps, moments.copies)
        alive, alpha = alive[stays], alpha[stays]
        Q, C = Q[np.ix_(stays, stays)], C[:, stays][:, :, stays]
        blocks = (stays[:, None] * c + np.arange(c)).ravel()
        P = P[np.ix_(blocks, blocks)]
        if len(stays) > size - steps:
            break
    return alive


def remove(Q: Floats, C: Floats, P: Floats, alpha: Floats, steps: int, copies: int) -> Indices:
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
