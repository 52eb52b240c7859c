"""The steps of the compiled recursion: one row into a sparse posterior.

What is computed, and why it is right, is written in the NumPy twin, `_recursion_twins`. Where that
adds a point and removes another, here the one takes the other's place (`_exchange`), in one pass
over each matrix; where the new point is the one to go, nothing is added and the row is projected.
"""

from __future__ import annotations

import math

import numpy as np
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
from mercer.linalg._recursion_twins import (
    CHECK_EVERY,
    EPS,
    NEAR,
    P_DRIFT,
    Q_DRIFT,
    REFINED,
    SELDOM,
    SHARPEST,
    TINY,
)
from mercer.linalg.recursion import Arrays, Rules

_Stack = float64[:, :, ::1]
_Whole = int64[::1]
State = types.NamedTuple(
    (
        _Whole, _Whole, Vector, Matrix, Matrix, _Stack, _Stack, Matrix, Matrix, Matrix,
        Vector, Vector, Matrix, Vector, Vector, Vector, Vector, Matrix, Vector, Vector,
    ),
    Arrays,
)  # fmt: skip
Choice = types.NamedTuple((int64, int64, int64, float64, float64, float64), Rules)


@njit(void(State, float64), **MAP)
def forget(A, keep):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    root = math.sqrt(keep)
    for c in range(A.S.shape[0]):
        S = A.S[c]
        for i in range(m):
            row, k = S[r + i], A.K[i]
            for j in range(m):
                row[r + j] = keep * row[r + j] + (1.0 - keep) * k[j]
            for j in range(r):
                row[j] *= root
                S[j, r + i] = row[j]
            A.curvature[c, i] *= keep
    for p in range(A.mu.shape[0]):
        for i in range(m):
            A.mu[p, r + i] *= root
            A.alpha[p, i] *= root


@njit(float64(State, Vector, float64, float64), **MAP)
def _refined(A, e_k, variance, gamma):  # type: ignore[no-untyped-def]
    m, rest = A.whole[0], A.v
    for time in range(2):
        times(A.K, 0, m, e_k, rest)
        worst = 0.0
        for i in range(m):
            rest[i] = A.k[i] - rest[i]
            worst = max(worst, abs(rest[i]))
        if time == 1 or worst <= REFINED * gamma:
            break
        if worst > Q_DRIFT * variance:
            A.whole[2] = 1
        times(A.Q, 0, m, rest, A.u[0])
        for i in range(m):
            e_k[i] += A.u[0, i]
    gamma = variance
    for i in range(m):
        gamma -= e_k[i] * (A.k[i] + rest[i])
    return gamma


@njit(float64(State, float64, float64), **MAP)
def predict(A, variance, floor):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    e_k = A.e[r:]
    times(A.Q, 0, m, A.k, e_k)
    gamma = variance - dot(e_k, A.k, m)
    if gamma > floor * variance and (gamma < NEAR * variance or A.whole[1] % SELDOM == 0):
        gamma = _refined(A, e_k, variance, gamma)
    for c in range(A.S.shape[0]):
        times(A.S[c], 0, r + m, A.e, A.s[c])
        A.spread[c] = max(dot(A.e, A.s[c], r + m), 0.0)
    for p in range(A.mu.shape[0]):
        A.mean[p] = dot(A.e, A.mu[p], r + m)
    return max(gamma, 0.0)


@njit(void(State, float64), **MAP)
def _project(A, gamma):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    for c in range(covariances):
        s, slope, u = A.s[c], A.r[c], A.u[c]
        inside = max(1.0 + slope * A.spread[c], SHARPEST)
        outside = max(1.0 + slope * (A.spread[c] + gamma), SHARPEST)
        lost = math.log(inside / outside) + gamma * slope
        for i in range(m):
            A.curvature[c, i] += slope * u[i] ** 2
        for p in range(c, c + 1 if covariances > 1 else outputs):
            q = A.q[p]
            for i in range(r + m):
                A.mu[p, i] += q * s[i]
            for i in range(m):
                A.alpha[p, i] += q * u[i]
            A.sums[0] += max(0.5 * (lost + gamma * q * q), 0.0)
        add_outer(A.S[c], 0, r + m, slope, s)
        add_outer(A.P[c], 0, r + m, -slope / inside, A.e)


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
def _add(A, gamma, source, variance):  # type: ignore[no-untyped-def]
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


@njit(float64(int64, float64, float64, float64, float64), **MAP)
def _score(criterion, q, precision, curvature, alpha):  # type: ignore[no-untyped-def]
    if criterion == 0:
        return abs(alpha) / q
    return math.log(max(precision / q, TINY)) + (curvature + alpha * alpha) / q


@njit(int64(State, Choice), **MAP)
def cheapest(A, rules):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    best, least = 0, math.inf
    for i in range(m):
        worst = -math.inf
        for p in range(A.alpha.shape[0]):
            c = p if A.S.shape[0] > 1 else 0
            precision, curvature = A.P[c, r + i, r + i], A.curvature[c, i]
            score = _score(rules.criterion, A.Q[i, i], precision, curvature, A.alpha[p, i])
            worst = max(worst, score)
        if worst < least:
            best, least = i, worst
    return best


@njit(int64(State, Choice, float64), **MAP)
def _leaving(A, rules, gamma):  # type: ignore[no-untyped-def]
    # Which point goes if the row becomes one: itself has the number m, and -1 is none. All is as
    # it would be with the row among the points.
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    best, least, redundant, most = -1, math.inf, -1, 1.0 / rules.floor
    for i in range(m + 1):
        e = A.e[r + i] if i < m else -1.0
        q = (A.Q[i, i] if i < m else 0.0) + e * e / gamma
        if i < m and q * A.K[i, i] > most:
            redundant, most = i, q * A.K[i, i]
        worst = -math.inf
        for p in range(A.alpha.shape[0]):
            c = p if A.S.shape[0] > 1 else 0
            slope = A.r[c]
            if i < m:
                u = A.u[c, i] - e
                precision = A.P[c, r + i, r + i] + e * e / gamma
                curvature, alpha = A.curvature[c, i] + slope * u * u, A.alpha[p, i] + A.q[p] * u
            else:
                precision = q - slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
                curvature, alpha = slope, A.q[p]
            worst = max(worst, _score(rules.criterion, q, precision, curvature, alpha))
        if worst < least:
            best, least = i, worst
    if redundant >= 0:
        return redundant
    return best if m >= rules.max_basis else -1


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
def _exchange(A, gamma, source, variance, j):  # type: ignore[no-untyped-def]
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


@njit(void(State), **MAP)
def _renew(A):  # type: ignore[no-untyped-def]
    n = A.S.shape[1] - A.K.shape[0] + A.whole[0]
    if n == 0:
        return
    for c in range(A.S.shape[0]):
        square = A.S[c, :n, :n].copy()
        ridge = n * EPS * np.max(np.diag(square))
        for i in range(n):
            square[i, i] += ridge
        A.P[c, :n, :n] = np.linalg.inv(square)
        for i in range(n):
            mirror(A.P[c], i, i)


@njit(int64(State), **MAP)
def _has_drifted(A):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    n = r + m
    probe, image, back = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        probe[i] = 1.0 if (i * 2654435761 >> 13) & 1 else -1.0
    for c in range(A.S.shape[0]):
        times(A.S[c], 0, n, probe, image)
        times(A.P[c], 0, n, image, back)
        for i in range(n):
            if not abs(back[i] - probe[i]) <= P_DRIFT:
                return 1
    return 0


@njit(void(State, Choice, float64, float64, int64), **MAP)
def learn(A, rules, variance, gamma, source):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    largest = 0.0
    for p in range(A.mu.shape[0]):
        largest = max(largest, abs(A.q[p]))
    for c in range(A.S.shape[0]):
        A.r[c] = max(A.r[c], (SHARPEST - 1.0) / max(gamma + A.spread[c], TINY))
        times(A.Q, 0, m, A.s[c, r:], A.u[c])
    is_new = rules.max_basis > 0 and gamma > rules.floor * variance
    if rules.novelty == 0:
        is_new = is_new and gamma > rules.tol * variance
    else:
        is_new = is_new and largest * gamma > rules.tol * math.sqrt(variance)
    j = m
    if is_new:
        if rules.keep < 1.0:
            _renew(A)
        j = _leaving(A, rules, gamma)
    if j == m:
        _project(A, gamma)
        return
    if j >= 0:
        _exchange(A, gamma, source, variance, j)
    else:
        _add(A, gamma, source, variance)
    A.whole[1] += 1
    if A.whole[1] >= CHECK_EVERY:
        A.whole[1] = 0
        if rules.keep == 1.0 and _has_drifted(A):
            A.whole[2] = 1
