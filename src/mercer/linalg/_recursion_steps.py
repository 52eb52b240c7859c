"""The steps of the compiled recursion: one row into a sparse posterior.

What is computed, and why it is right, is written in the NumPy twin, `_recursion_twins`. Where the
new point is the one to go, nothing is added here and the row is projected.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, types, void

from mercer.linalg._elementary import MAP, log
from mercer.linalg._recursion_matrices import Vector, add_outer, complete, dot, times
from mercer.linalg._recursion_points import State, add, exchange, remove
from mercer.linalg._recursion_twins import (
    CHECK_EVERY,
    EPS,
    NEAR,
    P_DRIFT,
    Q_DRIFT,
    REFINED,
    SELDOM,
    SHARPEST,
    SMALL,
    SMALLEST,
    TINY,
)
from mercer.linalg.recursion import Rules

__all__ = ["Choice", "State", "cheapest", "forget", "learn", "predict", "remove"]

Choice = types.NamedTuple((int64, int64, int64, float64, float64, float64), Rules)


@njit(void(State, float64), **MAP)
def forget(A, keep):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    root = math.sqrt(keep)
    for c in range(A.S.shape[0]):
        S = A.S[c]
        for i in range(m):
            row, k = S[r + i], A.K[i]
            for j in range(i + 1):
                row[r + j] = keep * row[r + j] + (1.0 - keep) * k[j]
            for j in range(r):
                row[j] *= root
            A.curvature[c, i] *= keep
        complete(S, r + m)
    for p in range(A.mu.shape[0]):
        for i in range(m):
            A.mu[p, r + i] *= root
            A.alpha[p, i] *= root


@njit(float64(State, Vector, float64, float64), **MAP)
def _refined(A, e_k, variance, gamma):  # type: ignore[no-untyped-def]
    m, rest = A.whole[0], A.v
    times(A.K, m, e_k, rest)
    worst = 0.0
    for i in range(m):
        rest[i] = A.k[i] - rest[i]
        worst = max(worst, abs(rest[i]))
    if worst <= REFINED * gamma:
        return gamma - dot(e_k, rest, m)
    if worst > Q_DRIFT * variance:
        A.whole[2] = 1
    times(A.Q, m, rest, A.u[0])
    for i in range(m):
        e_k[i] += A.u[0, i]
    return variance - dot(e_k, A.k, m)


@njit(void(State, int64, int64), **MAP)
def _or_rounding(A, c, n):  # type: ignore[no-untyped-def]
    size = 0.0
    for i in range(n):
        size += abs(A.e[i]) * math.sqrt(max(A.S[c, i, i], 0.0))
    rounding = n * EPS * size * size
    if A.spread[c] <= rounding:
        A.spread[c] = rounding
        A.s[c, :n] = 0.0


@njit(float64(State, float64, float64), **MAP)
def predict(A, variance, floor):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    e_k = A.e[r:]
    times(A.Q, m, A.k, e_k)
    gamma = variance - dot(e_k, A.k, m)
    if gamma > floor * variance and (gamma < NEAR * variance or A.whole[1] % SELDOM == 0):
        gamma = _refined(A, e_k, variance, gamma)
    for c in range(A.S.shape[0]):
        times(A.S[c], r + m, A.e, A.s[c])
        A.spread[c] = dot(A.e, A.s[c], r + m)
        if A.spread[c] <= SMALL * variance:
            _or_rounding(A, c, r + m)
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
        if dot(s, s, r + m) > 0.0:  # else the row tells nothing of the points
            add_outer(A.S[c], r + m, slope, s)
            add_outer(A.P[c], r + m, -slope / inside, A.e)


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
    e_k, q, scores, precision = A.e[r:], A.v, A.w, A.s[A.S.shape[0]]
    sharpness = 1.0 / gamma
    redundant, most = -1, 1.0 / rules.floor
    for i in range(m):
        q[i] = A.Q[i, i] + sharpness * e_k[i] ** 2
        if q[i] * A.K[i, i] > most:
            redundant, most = i, q[i] * A.K[i, i]
    if redundant >= 0 or m < rules.max_basis:
        return redundant
    for p in range(A.alpha.shape[0]):
        c = p if A.S.shape[0] > 1 else 0
        P, u, curvature, alpha, slope, q_p = (
            A.P[c],
            A.u[c],
            A.curvature[c],
            A.alpha[p],
            A.r[c],
            A.q[p],
        )
        own = sharpness - slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        own = _score(rules.criterion, sharpness, own, slope, q_p)
        scores[m] = max(scores[m], own) if p else own
        for i in range(m):
            precision[i] = P[r + i, r + i] + sharpness * e_k[i] ** 2
        for i in range(m):
            step = u[i] - e_k[i]
            weight = alpha[i] + q_p * step
            if rules.criterion == 0:
                score = abs(weight) / q[i]
            else:
                score = log(max(precision[i] / q[i], TINY))
                score += (curvature[i] + slope * step * step + weight * weight) / q[i]
            score = score if score == score else math.inf  # of squares that overflow
            scores[i] = score if p == 0 else max(scores[i], score)
    best = 0
    for i in range(1, m + 1):
        if scores[i] < scores[best]:
            best = i
    return best


@njit(void(State), **MAP)
def _renew(A):  # type: ignore[no-untyped-def]
    n = A.S.shape[1] - A.K.shape[0] + A.whole[0]
    if n == 0:
        return
    for c in range(A.S.shape[0]):
        square = A.S[c, :n, :n].copy()
        for i in range(n):
            square[i, i] *= 1.0 + n * EPS
            for j in range(i):
                square[j, i] = square[i, j]
        A.P[c, :n, :n] = np.linalg.inv(square)
        complete(A.P[c], n)


@njit(int64(State), **MAP)
def _has_drifted(A):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    n = r + m
    probe, image, back = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        probe[i] = 1.0 if (i * 2654435761 >> 13) & 1 else -1.0
    for c in range(A.S.shape[0]):
        times(A.S[c], n, probe, image)
        times(A.P[c], n, image, back)
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
        var = max(gamma + A.spread[c], TINY)
        least = min(max(SHARPEST, SMALLEST * variance / var), 1.0)
        A.r[c] = max(A.r[c], (least - 1.0) / var)
        times(A.Q, m, A.s[c, r:], A.u[c])
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
        exchange(A, gamma, source, variance, j)
    else:
        add(A, gamma, source, variance)
    A.whole[1] += 1
    if A.whole[1] >= CHECK_EVERY:
        A.whole[1] = 0
        if rules.keep == 1.0 and _has_drifted(A):
            A.whole[2] = 1
