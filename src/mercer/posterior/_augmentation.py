"""Sparse solutions to whose inducing inputs a point is added, for many points apart (UV 8.1).

Let x join the inducing inputs. With v = L^-1 k_u(x), delta = k(x,x) - v'v is what these leave of
its variance and rho = k_f(x) - K_fu K_uu^-1 k_u(x) of its covariance with the rows. The rows have

    Q + rho rho'/delta  instead of Q,    and  Lambda less the part of rho rho'/delta that is in it;

f(x) is k_u' K_uu^-1 u + e, with e ~ N(0, delta) independent of u. Where Lambda is the noise that
is a change of rank one; where it has blocks, one of rank one for each block; where it has the
diagonal of K - Q every row changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from mercer.compute import executor_for, map_tiles
from mercer.linalg import cholesky, mirror_lower, solve_lower
from mercer.posterior._solved_rows import ENTRIES, Point, SolvedRows

__all__ = ["Augmented", "augment"]

Floats = NDArray[np.float64]


class Augmented(NamedTuple):
    """The solution with one of t points added, for each of them; Sigma that of the rows then.

    mean : (t, q) k_f' Sigma^-1 T
    var : (t,) k(x,x) - k_f' Sigma^-1 k_f
    S : (t, q, q) T' Sigma^-1 T
    omega : (t, m, q + 1) and eta : (t, q + 1)
        Coefficients of k_u and of rho in Q Sigma^-1 T and, last, in Lambda Sigma^-1 k_f
    """

    mean: Floats
    var: Floats
    S: Floats
    omega: Floats
    eta: Floats


def augment(known: SolvedRows, X: Any, point: Point) -> Augmented:
    """Return the solutions with each of the rows of X added."""
    by = {"deterministic": _rank_one, "blocks": _blocks, "independent": _diagonal}
    return by[known.training](known, X, point)


def _rank_one(known: SolvedRows, X: Any, point: Point) -> Augmented:
    """Lambda stays: O(n m) a point, by Sherman and Morrison's formula."""
    m, q = known.alpha.shape

    def block(rows: Any, T: Floats, noise: Floats, weights: Floats) -> Floats:
        K, precision = known.kernel(rows, known.Z), (weights / noise)[:, None]
        rho = known.rho(rows, K, X, point)
        E = precision * (T - K @ known.alpha)
        over = precision * rho
        return np.vstack([K.T @ over, E.T @ rho, np.einsum("ij,ij->j", rho, over)])

    rows = known.X, known.T, known.noise, known.weights
    size = max(1, ENTRIES // max(m, len(X)))
    sums = executor_for(known.X).sum(block, *rows, block=size)
    c, G = solve_lower(known.LA.L, np.asfortranarray(sums[:m])), sums[m : m + q].T
    # rho' Sigma^-1 rho and k_u' A^-1 K_uf Lambda^-1 rho
    s = np.maximum(sums[-1] - np.einsum("ij,ij->j", c, c), 0.0)
    left = point.joins * point.delta - np.einsum("ij,ij->j", point.a, c)
    total = point.delta + s
    eta = np.column_stack([G, left]) / total[:, None]
    base = np.einsum("ij,ij->j", point.a, point.a)
    back = np.stack([c, point.a], axis=2)  # (m, t, 2)
    back = solve_lower(known.LA.L, np.asfortranarray(back.reshape(m, -1)), transpose=True)
    back = back.reshape(m, -1, 2).transpose(1, 0, 2)
    omega = -back[:, :, :1] * eta[:, None, :]
    omega[:, :, :q] += known.alpha
    omega[:, :, q] += back[:, :, 1]
    return Augmented(
        point.K.T @ known.alpha + left[:, None] * eta[:, :q],
        base + left * eta[:, q],
        known.S - G[:, :, None] * G[:, None, :] / total[:, None, None],
        omega,
        eta,
    )


def _blocks(known: SolvedRows, X: Any, point: Point) -> Augmented:
    """Each block of Lambda loses rho_s rho_s'/delta, so that A changes by one rank a block."""
    (m, q), t, delta = known.alpha.shape, len(X), point.delta

    def of(block: tuple[slice, Floats]) -> tuple[Floats, Floats, Floats]:
        s, R = block
        K = known.kernel(known.X[s], known.Z)
        rho = np.asfortranarray(known.rho(known.X[s], K, X, point))
        over = solve_lower(R, solve_lower(R, rho), transpose=True)  # Lambda_s^-1 rho_s
        c = solve_lower(known.LA.L, np.asfortranarray(K.T @ over))
        return c, over.T @ known.T[s], np.einsum("ij,ij->j", rho, over)

    parts = map_tiles(of, list(zip(known.spans(), known.kept(), strict=True)))
    C = np.stack([part[0].T for part in parts], axis=2)  # (t, m, blocks)
    F = np.stack([part[1] for part in parts], axis=1)  # (t, blocks, q)
    taken = np.stack([part[2] for part in parts], axis=1)
    gain = 1.0 / (delta[:, None] - taken)
    Cd, C_T = np.einsum("tms,ts->tm", C, gain), np.tril(known.LA.L).T @ known.alpha
    rhs = C_T + C @ (gain[:, :, None] * F)
    sides = np.concatenate([rhs, point.a.T[:, :, None], Cd[:, :, None]], axis=2)
    solved = _solve_update(C, gain, sides)  # N^-1 of each, N = 1 + C diag(gain) C'
    # the precision of e, given the rows, and its moments; then those of u
    precision = (1.0 + np.sum(taken * gain, axis=1)) / delta
    precision -= np.einsum("tm,tm->t", Cd, solved[:, :, -1])
    own = np.concatenate([np.einsum("ts,tsq->tq", gain, F), point.joins[:, None]], axis=1)
    e = (own - np.einsum("tm,tmq->tq", Cd, solved[:, :, :-1])) / precision[:, None]
    left = point.joins - np.einsum("mt,tm->t", point.a, solved[:, :, -1])
    moments = np.einsum("mt,tmq->tq", point.a, solved[:, :, :-1]) + left[:, None] * e
    S = known.S + C_T.T @ C_T + np.einsum("tsp,ts,tsq->tpq", F, gain, F)
    S = S - rhs.transpose(0, 2, 1) @ solved[:, :, :q]
    S -= precision[:, None, None] * e[:, :q, None] * e[:, None, :q]
    inner = solved[:, :, :-1] - solved[:, :, -1:] * e[:, None, :]
    inner = np.asfortranarray(inner.transpose(1, 0, 2).reshape(m, -1))
    omega = solve_lower(known.LA.L, inner, transpose=True).reshape(m, t, q + 1)
    eta = e / delta[:, None]
    return Augmented(moments[:, :q], moments[:, q], S, omega.transpose(1, 0, 2), eta)


def _diagonal(known: SolvedRows, X: Any, point: Point) -> Augmented:
    """Every row's variance loses rho_i^2/delta: O(n m^2) a point."""
    (m, q), t = known.alpha.shape, len(X)
    root = np.sqrt(point.delta)

    def block(rows: Any, T: Floats, noise: Floats, weights: Floats, d: Floats) -> Floats:
        K = known.kernel(rows, known.Z)
        rho = known.rho(rows, K, X, point) / root
        both = np.empty((m + 1 + q, len(T)), order="F")
        both[:m], both[m + 1 :] = solve_lower(known.L.L, K.T), T.T
        out = np.empty((t, m + 1 + q, m + 1 + q))
        for i in range(t):
            both[m] = rho[:, i]
            kept = np.maximum(d - rho[:, i] ** 2, 0.0)
            scaled = both * np.sqrt(weights / (noise + known.power * kept))
            out[i] = dsyrk(1.0, scaled, lower=1)
        return out

    rows = known.X, known.T, known.noise, known.weights, known.kept()[0]
    sums = executor_for(known.X).sum(block, *rows, block=max(1, ENTRIES // (m + t)))
    out = Augmented(
        np.empty((t, q)),
        np.empty(t),
        np.empty((t, q, q)),
        np.empty((t, m, q + 1)),
        np.empty((t, q + 1)),
    )
    v = np.tril(known.L.L).T @ point.w
    for i, each in enumerate(sums):
        total = mirror_lower(np.array(each, order="F"))
        N = np.asfortranarray(total[: m + 1, : m + 1] + np.eye(m + 1))
        factor = cholesky(N, 0.0).L
        sides = np.empty((m + 1, q + 1), order="F")
        sides[:, :q] = total[: m + 1, m + 1 :]
        sides[:, q] = [*v[:, i], point.joins[i] * root[i]]
        half = solve_lower(factor, sides)
        out.mean[i], out.var[i] = half[:, :q].T @ half[:, q], half[:, q] @ half[:, q]
        out.S[i] = total[m + 1 :, m + 1 :] - half[:, :q].T @ half[:, :q]
        whole = solve_lower(factor, half, transpose=True)
        out.omega[i] = solve_lower(known.L.L, np.asfortranarray(whole[:m]), transpose=True)
        out.eta[i] = whole[m] / root[i]
    return out


def _solve_update(C: Floats, gain: Floats, B: Floats) -> Floats:
    """Return (1 + C diag(gain) C')^-1 B for t matrices C (m, k), by the smaller of two systems."""
    _, m, k = C.shape
    if k < m:
        inner = C.transpose(0, 2, 1) @ C
        inner[:, np.arange(k), np.arange(k)] += 1.0 / gain
        return np.asarray(B - C @ np.linalg.solve(inner, C.transpose(0, 2, 1) @ B))
    whole = (C * gain[:, None, :]) @ C.transpose(0, 2, 1)
    whole[:, np.arange(m), np.arange(m)] += 1.0
    return np.asarray(np.linalg.solve(whole, B), dtype=float)
