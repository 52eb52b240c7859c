"""Points that come and go: what the compiled recursion changes where a row becomes one.

What is computed, and why it is right, is written in the NumPy twin, `_recursion_twins`. Where that
adds a point and removes another, here the one takes the other's place (`exchange`), in one pass
over each matrix.
"""

from __future__ import annotations

import math

from numba import float64, int64, njit, types, void

from mercer.linalg._elementary import MAP
from mercer.linalg._recursion_matrices import (
    Matrix,
    Vector,
    add_outer,
    add_two,
    dot,
    mirror,
    move,
    times,
)
from mercer.linalg._recursion_twins import SHARPEST, TINY
from mercer.linalg.recursion import Arrays

__all__ = ["State", "add", "exchange", "remove"]

_Stack = float64[:, :, ::1]
_Whole = int64[::1]
State = types.NamedTuple(
    (
        _Whole, _Whole, Vector, Matrix, Matrix, _Stack, _Stack, Matrix, Matrix, Matrix,
        Vector, Vector, Matrix, Vector, Vector, Vector, Vector, Matrix, Vector, Vector,
    ),
    Arrays,
)  # fmt: skip


@njit(float64(State, int64, float64), **MAP)
def _learn_means(A, c, gamma):  # type: ignore[no-untyped-def]
    # mu, alpha and the diagonal of C with the row as point m; returns cov(its g, f)
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    e_k, s, u, curvature, slope = A.e[r:], A.s[c], A.u[c], A.curvature[c], A.r[c]
    cross = gamma + dot(e_k, s[r:], m)
    for i in range(m):
        u[i] -= e_k[i]
        curvature[i] += slope * u[i] ** 2
    curvature[m] = slope
    for p in range(c, c + 1 if covariances > 1 else outputs):
        q, mu, alpha = A.q[p], A.mu[p], A.alpha[p]
        mean = dot(e_k, mu[r:], m)
        for i in range(r + m):
            mu[i] += q * s[i]
        mu[r + m] = mean + q * cross
        for i in range(m):
            alpha[i] += q * u[i]
        alpha[m] = q
    return cross


@njit(float64(Matrix, Vector, Vector, int64, int64), **MAP)
def _shared(S, s, e, i, r):  # type: ignore[no-untyped-def]
    # the covariance of coordinate i with the new g, which is f less the explicit functions
    shared = s[i]
    for j in range(r):
        shared -= S[i, j] * e[j]
    return shared


@njit(void(State, float64, int64, float64), **MAP)
def add(A, gamma, source, variance):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    n, e_k = r + m, A.e[r:]
    for c in range(A.S.shape[0]):
        S, P, s, slope = A.S[c], A.P[c], A.s[c], A.r[c]
        cross = _learn_means(A, c, gamma)
        own = gamma + slope * cross * cross
        for i in range(n):
            shared = _shared(S, s, A.e, i, r)
            if i >= r:
                own += shared * A.e[i]
            S[n, i] = shared + slope * cross * s[i]
        S[n, n] = own
        add_outer(S, 0, n, slope, s)
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        add_outer(P, r, m, 1.0 / gamma, e_k)
        for i in range(r):
            for j in range(r):
                P[i, j] += sharp * A.e[i] * A.e[j]
            P[n, i] = sharp * A.e[i]
        for i in range(m):
            P[n, r + i] = -e_k[i] / gamma
        P[n, n] = 1.0 / gamma + sharp
        mirror(S, n, n)
        mirror(P, n, n)
    add_outer(A.Q, 0, m, 1.0 / gamma, e_k)
    for i in range(m):
        A.Q[m, i] = -e_k[i] / gamma
        A.K[m, i] = A.k[i]
    A.Q[m, m], A.K[m, m] = 1.0 / gamma, variance
    mirror(A.Q, m, m)
    mirror(A.K, m, m)
    A.source[m] = source
    A.whole[0] = m + 1


@njit(void(State, int64), **MAP)
def remove(A, j):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, last, q_j = r + m, m - 1, A.Q[j, j]
    column, t = A.k, A.v  # Q_j, and Q_j/q_j
    for i in range(m):
        column[i] = A.Q[j, i]
        t[i] = column[i] / q_j
    for c in range(covariances):
        S, P = A.S[c], A.P[c]
        times(S, r, m, column, A.u[c])
        times(A.Q, 0, m, A.u[c], A.e)  # of which C_j is all but Q_j
        own = A.e[j] - q_j
        lost = math.log(max(P[r + j, r + j] / q_j, TINY)) + own / q_j
        for i in range(m):
            A.curvature[c, i] += t[i] * (own * t[i] - 2.0 * (A.e[i] - column[i]))
        for p in range(c, c + 1 if covariances > 1 else outputs):
            a = A.alpha[p, j]
            A.sums[0] += max(0.5 * (lost + a * a / q_j), 0.0)
            for i in range(m):
                A.alpha[p, i] -= a * t[i]
            A.alpha[p, j], A.mu[p, r + j] = A.alpha[p, last], A.mu[p, r + last]
        A.curvature[c, j] = A.curvature[c, last]
        for i in range(n):
            A.e[i] = P[r + j, i]
        if A.e[r + j] > 0.0:
            add_outer(P, 0, n, -1.0 / A.e[r + j], A.e)
        move(S, r + last, r + j)
        move(P, r + last, r + j)
    add_outer(A.Q, 0, m, -1.0 / q_j, column)
    move(A.Q, last, j)
    move(A.K, last, j)
    A.source[j] = A.source[last]
    A.whole[0] = last


@njit(void(State, float64, int64, float64, int64), **MAP)
def exchange(A, gamma, source, variance, j):  # type: ignore[no-untyped-def]
    # `add` and `remove(j)` in one pass over each matrix; the row takes the place of point j.
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, e, e_k, column, w, new = r + m, A.e, A.e[r:], A.v, A.w, A.s[covariances]
    Q_j, K_j, sharpness = A.Q[j], A.K[j], 1.0 / gamma
    ratio = e_k[j] * sharpness
    for i in range(m):
        column[i] = Q_j[i] + ratio * e_k[i]
    column[m] = -ratio
    q_j = column[j]
    inverse = 1.0 / q_j
    for c in range(covariances):
        S, P, s, u, curvature, slope = A.S[c], A.P[c], A.s[c], A.u[c], A.curvature[c], A.r[c]
        S_j, P_j = S[r + j], P[r + j]
        cross = _learn_means(A, c, gamma)
        own = gamma + slope * cross * cross
        for i in range(n):
            shared = _shared(S, s, e, i, r)
            if i >= r:
                own += shared * e[i]
            new[i] = shared + slope * cross * s[i]
        new[n] = own
        add_outer(S, 0, n, slope, s)
        times(S, r, m, column, w)
        new_k = new[r:]
        for i in range(m):
            w[i] -= ratio * new_k[i]
        w[m] = dot(new_k, column, m + 1)
        # C_j of the extended C = Q S Q - Q, by the old Q and what the row has added to it
        times(A.Q, 0, m, w, u)
        shift = (dot(e_k, w, m) - w[m]) * sharpness
        for i in range(m):
            u[i] += shift * e_k[i] - column[i]
        own, last = u[j], ratio - shift
        for i in range(m):
            t = column[i] * inverse
            curvature[i] += t * (own * t - 2.0 * u[i])
        t = -ratio * inverse
        curvature[j] = curvature[m] + t * (own * t - 2.0 * last)
        for i in range(n):
            S_j[i] = new[i]
        S_j[r + j] = new[n]
        mirror(S, r + j, n)
        # P_j of the extended P, to which the row adds its share in the points alone
        for i in range(n):
            new[i] = e[i] if i >= r else 0.0
            w[i] = P_j[i] + ratio * new[i]
        lost = math.log(max(w[r + j] * inverse, TINY)) + own * inverse
        for p in range(c, c + 1 if covariances > 1 else outputs):
            alpha, a = A.alpha[p], A.alpha[p, j] * inverse
            A.sums[0] += max(0.5 * (lost + a * a * q_j), 0.0)
            for i in range(m + 1):
                alpha[i] -= a * column[i]
            alpha[j], A.mu[p, r + j] = alpha[m], A.mu[p, r + m]
        scale = -1.0 / w[r + j] if w[r + j] > 0.0 else 0.0
        add_two(P, n, sharpness, new, scale, w)
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        for i in range(r):
            for k in range(r):
                P[i, k] += sharp * e[i] * e[k]
        for i in range(n):
            P_j[i] = -sharpness * new[i] - scale * ratio * w[i]
        for i in range(r):
            P_j[i] += sharp * e[i]
        P_j[r + j] = sharpness + sharp + scale * ratio * ratio
        mirror(P, r + j, n)
    add_two(A.Q, m, sharpness, e_k, -inverse, column)
    for i in range(m):
        Q_j[i] = ratio * inverse * column[i] - sharpness * e_k[i]
        K_j[i] = A.k[i]
    Q_j[j], K_j[j] = sharpness - ratio * ratio * inverse, variance
    mirror(A.Q, j, m)
    mirror(A.K, j, m)
    A.source[j] = source
