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
    add_outer_times,
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
    e_k, s, u, slope = A.e[r:], A.s[c], A.u[c], A.r[c]
    cross = gamma + dot(e_k, s[r:], m)
    for i in range(m):
        u[i] -= e_k[i]
        A.curvature[c, i] += slope * u[i] ** 2
    A.curvature[c, m] = slope
    for p in range(c, c + 1 if covariances > 1 else outputs):
        q, mean = A.q[p], dot(e_k, A.mu[p, r:], m)
        for i in range(r + m):
            A.mu[p, i] += q * s[i]
        A.mu[p, r + m] = mean + q * cross
        for i in range(m):
            A.alpha[p, i] += q * u[i]
        A.alpha[p, m] = q
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
    # `_add` and `remove(j)` in one pass over each matrix; the row takes the place of point j.
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, e_k, column, w = r + m, A.e[r:], A.v, A.w
    ratio = e_k[j] / gamma
    for i in range(m):
        column[i] = A.Q[j, i] + ratio * e_k[i]
    column[m] = -ratio
    q_j = column[j]
    for c in range(covariances):
        S, P, s, slope = A.S[c], A.P[c], A.s[c], A.r[c]
        cross = _learn_means(A, c, gamma)
        own = gamma + slope * cross * cross
        new = A.s[covariances]
        for i in range(n):
            shared = _shared(S, s, A.e, i, r)
            if i >= r:
                own += shared * A.e[i]
            new[i] = shared + slope * cross * s[i]
        new[n] = own
        add_outer_times(S, r, m, slope, s, column, w)
        for i in range(m):
            w[i] += new[r + i] * column[m]
        w[m] = dot(new[r:], column, m + 1)
        # C_j of the extended C = Q S Q - Q, by the old Q and what the row has added to it
        times(A.Q, 0, m, w, A.u[c])
        shift = (dot(e_k, w, m) - w[m]) / gamma
        for i in range(m):
            A.u[c, i] += shift * e_k[i] - column[i]
        last, own = -shift - column[m], A.u[c, j]
        # P_j of the extended P
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        for i in range(n):
            w[i] = P[r + j, i] + (ratio * A.e[i] if i >= r else 0.0)
        w[n] = -ratio
        lost = math.log(max(w[r + j] / q_j, TINY)) + own / q_j
        for i in range(m):
            t = column[i] / q_j
            A.curvature[c, i] += t * (own * t - 2.0 * A.u[c, i])
        t = column[m] / q_j
        A.curvature[c, j] = A.curvature[c, m] + t * (own * t - 2.0 * last)
        for p in range(c, c + 1 if covariances > 1 else outputs):
            a = A.alpha[p, j]
            A.sums[0] += max(0.5 * (lost + a * a / q_j), 0.0)
            for i in range(m + 1):
                A.alpha[p, i] -= a * column[i] / q_j
            A.alpha[p, j], A.mu[p, r + j] = A.alpha[p, m], A.mu[p, r + m]
        for i in range(n):
            S[r + j, i] = new[i]
        S[r + j, r + j] = new[n]
        mirror(S, r + j, n)
        scale = -1.0 / w[r + j] if w[r + j] > 0.0 else 0.0
        add_two(P, r, m, n, 1.0 / gamma, A.e, scale, w)
        for i in range(r):
            for k in range(r):
                P[i, k] += sharp * A.e[i] * A.e[k]
        for i in range(n):
            old = sharp * A.e[i] if i < r else -A.e[i] / gamma
            P[r + j, i] = old + scale * w[n] * w[i]
        P[r + j, r + j] = 1.0 / gamma + sharp + scale * w[n] * w[n]
        mirror(P, r + j, n)
    add_two(A.Q, 0, m, m, 1.0 / gamma, e_k, -1.0 / q_j, column)
    for i in range(m):
        A.Q[j, i] = -e_k[i] / gamma - column[m] * column[i] / q_j
        A.K[j, i] = A.k[i]
    A.Q[j, j], A.K[j, j] = 1.0 / gamma - column[m] ** 2 / q_j, variance
    mirror(A.Q, j, m)
    mirror(A.K, j, m)
    A.source[j] = source
