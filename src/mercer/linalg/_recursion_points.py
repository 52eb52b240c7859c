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
    move,
    put,
    take,
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
        shared -= S[max(i, j), min(i, j)] * e[j]
    return shared


@njit(float64(State, int64, float64, float64, Vector), **MAP)
def _own_row(A, c, gamma, cross, new):  # type: ignore[no-untyped-def]
    # the row's covariances with all coordinates once it is learned; returns its variance
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    S, s, e, slope = A.S[c], A.s[c], A.e, A.r[c]
    factor = slope * cross
    if r == 0:
        for i in range(m):
            new[i] = s[i] + factor * s[i]
        return gamma + factor * cross + dot(s, e, m)
    own = gamma + factor * cross
    for i in range(r + m):
        shared = _shared(S, s, e, i, r)
        if i >= r:
            own += shared * e[i]
        new[i] = shared + factor * s[i]
    return own


@njit(void(State, float64, int64, float64), **MAP)
def add(A, gamma, source, variance):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    n, e_k, share, new = r + m, A.e[r:], A.v, A.s[A.S.shape[0]]
    if m >= A.K.shape[0]:
        raise IndexError("there is no room for another point")
    share[:r] = 0.0
    share[r:n] = A.e[r:n]
    for c in range(A.S.shape[0]):
        S, P, s, slope = A.S[c], A.P[c], A.s[c], A.r[c]
        cross = _learn_means(A, c, gamma)
        new[n] = _own_row(A, c, gamma, cross, new)
        add_outer(S, n, slope, s)
        put(S, n, n + 1, new)
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        add_outer(P, n, 1.0 / gamma, share)
        for i in range(r):
            for j in range(r):
                P[i, j] += sharp * A.e[i] * A.e[j]
            new[i] = sharp * A.e[i]
        for i in range(m):
            new[r + i] = -e_k[i] / gamma
        new[n] = 1.0 / gamma + sharp
        put(P, n, n + 1, new)
    add_outer(A.Q, m, 1.0 / gamma, e_k)
    for i in range(m):
        new[i] = -e_k[i] / gamma
    new[m] = 1.0 / gamma
    put(A.Q, m, m + 1, new)
    A.k[m] = variance
    put(A.K, m, m + 1, A.k)
    A.source[m] = source
    A.whole[0] = m + 1


@njit(void(State, int64), **MAP)
def remove(A, j):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, last = r + m, m - 1
    padded, t, room = A.v, A.k, A.s[covariances]  # Q_j after r zeros, and Q_j/q_j
    padded[:r] = 0.0
    column = padded[r:]
    take(A.Q, j, m, column)
    q_j = column[j]
    for i in range(m):
        t[i] = column[i] / q_j
    for c in range(covariances):
        S, P = A.S[c], A.P[c]
        times(S, n, padded, A.w)
        times(A.Q, m, A.w[r:], A.e)  # of which C_j is all but Q_j
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
        take(P, r + j, n, A.e)
        if A.e[r + j] > 0.0:
            add_outer(P, n, -1.0 / A.e[r + j], A.e)
        move(S, r + last, r + j, room)
        move(P, r + last, r + j, room)
    add_outer(A.Q, m, -1.0 / q_j, column)
    move(A.Q, last, j, room)
    move(A.K, last, j, room)
    A.source[j] = A.source[last]
    A.whole[0] = last


@njit(void(State, float64, int64, float64, int64), **MAP)
def exchange(A, gamma, source, variance, j):  # type: ignore[no-untyped-def]
    # `add` and `remove(j)` in one pass over each matrix; the row takes the place of point j.
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, e, e_k, padded, w, new = r + m, A.e, A.e[r:], A.v, A.w, A.s[covariances]
    w_k, sharpness = w[r:], 1.0 / gamma
    ratio = e_k[j] * sharpness
    padded[:r] = 0.0
    column = padded[r:]
    take(A.Q, j, m, column)
    for i in range(m):
        column[i] += ratio * e_k[i]
    column[m] = -ratio
    q_j = column[j]
    inverse = 1.0 / q_j
    for c in range(covariances):
        S, P, s, u, curvature, slope = A.S[c], A.P[c], A.s[c], A.u[c], A.curvature[c], A.r[c]
        cross = _learn_means(A, c, gamma)
        new[n] = _own_row(A, c, gamma, cross, new)
        add_outer(S, n, slope, s)
        times(S, n, padded, w)
        new_k = new[r:]
        for i in range(m):
            w_k[i] -= ratio * new_k[i]
        w_k[m] = dot(new_k, column, m + 1)
        # C_j of the extended C = Q S Q - Q, by the old Q and what the row has added to it
        times(A.Q, m, w_k, u)
        shift = (dot(e_k, w_k, m) - w_k[m]) * sharpness
        for i in range(m):
            u[i] += shift * e_k[i] - column[i]
        own, last = u[j], ratio - shift
        for i in range(m):
            t = column[i] * inverse
            curvature[i] += t * (own * t - 2.0 * u[i])
        t = -ratio * inverse
        curvature[j] = curvature[m] + t * (own * t - 2.0 * last)
        new[r + j] = new[n]
        put(S, r + j, n, new)
        # P_j of the extended P, to which the row adds its share in the points alone
        take(P, r + j, n, w)
        for i in range(n):
            new[i] = e[i] if i >= r else 0.0
            w[i] += ratio * new[i]
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
            new[i] = -sharpness * new[i] - scale * ratio * w[i]
        for i in range(r):
            new[i] += sharp * e[i]
        new[r + j] = sharpness + sharp + scale * ratio * ratio
        put(P, r + j, n, new)
    add_two(A.Q, m, sharpness, e_k, -inverse, column)
    for i in range(m):
        new[i] = ratio * inverse * column[i] - sharpness * e_k[i]
    new[j] = sharpness - ratio * ratio * inverse
    put(A.Q, j, m, new)
    A.k[j] = variance
    put(A.K, j, m, A.k)
    A.source[j] = source
