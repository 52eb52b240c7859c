"""One row at a time into a sparse posterior, compiled; import through `mercer.linalg.recursion`.

What is computed, and why it is right, is written in the NumPy twin, `_recursion_twins`. Here each
of its products is a loop over rows, four at a time where a vector is read again for each of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from mercer.linalg._elementary import COMMON, MAP
from mercer.linalg._recursion_twins import CHECK_EVERY, P_DRIFT, Q_DRIFT, REFINED, SHARPEST
from mercer.linalg._smoothing import smoothed
from mercer.linalg.recursion import Arrays, Rules

_Vector = float64[::1]
_Matrix = float64[:, ::1]
_Stack = float64[:, :, ::1]
_Whole = int64[::1]
_Given = types.Array(float64, 2, "C", readonly=True)
_GivenVector = types.Array(float64, 1, "C", readonly=True)
_A = types.NamedTuple(
    (
        _Whole, _Whole, _Vector, _Matrix, _Matrix, _Stack, _Stack, _Matrix, _Matrix, _Matrix,
        _Vector, _Vector, _Matrix, _Vector, _Vector, _Vector, _Vector, _Vector, _Vector,
    ),
    Arrays,
)  # fmt: skip
_R = types.NamedTuple((int64, int64, int64, float64, float64, float64), Rules)
_SUM = {**COMMON, "fastmath": {"contract", "reassoc", "nsz"}}


@njit(void(_Matrix, int64, int64, _Vector, _Vector), **_SUM)
def _times(A, first, n, x, out):  # type: ignore[no-untyped-def]
    # out[:n] = A[first:first + n, first:first + n] x[:n]
    four = n - n % 4
    for i in range(0, four, 4):
        a0 = A[first + i, first : first + n]
        a1 = A[first + i + 1, first : first + n]
        a2 = A[first + i + 2, first : first + n]
        a3 = A[first + i + 3, first : first + n]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for j in range(n):
            t = x[j]
            s0 += a0[j] * t
            s1 += a1[j] * t
            s2 += a2[j] * t
            s3 += a3[j] * t
        out[i] = s0
        out[i + 1] = s1
        out[i + 2] = s2
        out[i + 3] = s3
    for i in range(four, n):
        a0 = A[first + i, first : first + n]
        s0 = 0.0
        for j in range(n):
            s0 += a0[j] * x[j]
        out[i] = s0


@njit(void(_Matrix, int64, int64, float64, _Vector), **MAP)
def _add_outer(A, first, n, scale, x):  # type: ignore[no-untyped-def]
    # A[first:first + n, first:first + n] += scale x x'
    for i in range(n):
        a = A[first + i, first : first + n]
        t = scale * x[i]
        for j in range(n):
            a[j] += t * x[j]


@njit(float64(_Vector, _Vector, int64), **_SUM)
def _dot(x, y, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@njit(void(_Matrix, int64, int64), **MAP)
def _move(A, old, new):  # type: ignore[no-untyped-def]
    # the last row and column of a symmetric matrix take the place of others
    for i in range(old):
        A[new, i] = A[old, i]
    A[new, new] = A[old, old]
    for i in range(old):
        A[i, new] = A[new, i]


@njit(void(_A, float64), **MAP)
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


@njit(float64(_A, _Vector, int64), **MAP)
def _residual(A, e_k, m):  # type: ignore[no-untyped-def]
    # u = k - K e_k
    _times(A.K, 0, m, e_k, A.u)
    largest = 0.0
    for i in range(m):
        A.u[i] = A.k[i] - A.u[i]
        largest = max(largest, abs(A.u[i]))
    return largest


@njit(float64(_A, float64), **MAP)
def predict(A, variance):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    e_k = A.e[r:]
    _times(A.Q, 0, m, A.k, e_k)
    if _residual(A, e_k, m) > REFINED * variance:
        _times(A.Q, 0, m, A.u, A.v)
        for i in range(m):
            e_k[i] += A.v[i]
        if _residual(A, e_k, m) > Q_DRIFT * variance:
            A.whole[2] = 1
    gamma = variance
    for i in range(m):
        gamma -= e_k[i] * (A.k[i] + A.u[i])
    for c in range(A.S.shape[0]):
        _times(A.S[c], 0, r + m, A.e, A.s[c])
        A.spread[c] = max(_dot(A.e, A.s[c], r + m), 0.0)
    for p in range(A.mu.shape[0]):
        A.mean[p] = _dot(A.e, A.mu[p], r + m)
    return max(gamma, 0.0)


@njit(void(_A, float64), **MAP)
def _project(A, gamma):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    for c in range(covariances):
        s, slope = A.s[c], A.r[c]
        inside = 1.0 + slope * A.spread[c]
        outside = max(1.0 + slope * (A.spread[c] + gamma), SHARPEST)
        lost = math.log(max(inside, SHARPEST) / outside) + gamma * slope
        _times(A.Q, 0, m, s[r:], A.u)
        for i in range(m):
            A.curvature[c, i] += slope * A.u[i] ** 2
        for p in range(c, c + 1 if covariances > 1 else outputs):
            q = A.q[p]
            for i in range(r + m):
                A.mu[p, i] += q * s[i]
            for i in range(m):
                A.alpha[p, i] += q * A.u[i]
            A.sums[0] += max(0.5 * (lost + gamma * q * q), 0.0)
        _add_outer(A.S[c], 0, r + m, slope, s)
        _add_outer(A.P[c], 0, r + m, -slope / max(inside, SHARPEST), A.e)


@njit(void(_A, float64, int64, float64), **MAP)
def _add(A, gamma, source, variance):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, e_k = r + m, A.e[r:]
    for c in range(covariances):
        S, P, s, slope = A.S[c], A.P[c], A.s[c], A.r[c]
        cross = gamma + _dot(e_k, s[r:], m)  # of the new g with f
        _times(A.Q, 0, m, s[r:], A.u)
        for i in range(m):
            A.u[i] -= e_k[i]
            A.curvature[c, i] += slope * A.u[i] ** 2
        A.curvature[c, m] = slope
        for p in range(c, c + 1 if covariances > 1 else outputs):
            q, mean = A.q[p], _dot(e_k, A.mu[p, r:], m)
            for i in range(n):
                A.mu[p, i] += q * s[i]
            A.mu[p, n] = mean + q * cross
            for i in range(m):
                A.alpha[p, i] += q * A.u[i]
            A.alpha[p, m] = q
        own = gamma + slope * cross * cross
        new = S[n]
        for i in range(n):
            shared = s[i]  # the covariance of coordinate i with the new g
            for j in range(r):
                shared -= S[i, j] * A.e[j]
            if i >= r:
                own += shared * A.e[i]
            new[i] = shared + slope * cross * s[i]
        new[n] = own
        _add_outer(S, 0, n, slope, s)
        for i in range(n):
            S[i, n] = new[i]
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        _add_outer(P, r, m, 1.0 / gamma, e_k)
        for i in range(r):
            for j in range(r):
                P[i, j] += sharp * A.e[i] * A.e[j]
            P[n, i] = sharp * A.e[i]
            P[i, n] = P[n, i]
        for i in range(m):
            P[n, r + i] = -e_k[i] / gamma
            P[r + i, n] = P[n, r + i]
        P[n, n] = 1.0 / gamma + sharp
    _add_outer(A.Q, 0, m, 1.0 / gamma, e_k)
    for i in range(m):
        A.Q[m, i] = -e_k[i] / gamma
        A.Q[i, m] = A.Q[m, i]
        A.K[m, i] = A.k[i]
        A.K[i, m] = A.k[i]
    A.Q[m, m], A.K[m, m] = 1.0 / gamma, variance
    A.source[m] = source
    A.whole[0] = m + 1


@njit(int64(_A, _R), **MAP)
def cheapest(A, rules):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    best, least = 0, math.inf
    for i in range(m):
        q, score = A.Q[i, i], -math.inf
        for p in range(A.alpha.shape[0]):
            if rules.criterion == 0:
                cost = abs(A.alpha[p, i]) / q
            else:
                c = p if A.S.shape[0] > 1 else 0
                ratio = max(A.P[c, r + i, r + i] / q, 1e-300)
                cost = math.log(ratio) + (A.curvature[c, i] + A.alpha[p, i] ** 2) / q
            score = max(score, cost)
        if score < least:
            best, least = i, score
    return best


@njit(void(_A, int64, boolean), **MAP)
def remove(A, j, anew):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    n, last, q_j = r + m, m - 1, A.Q[j, j]
    column, t = A.k, A.v  # Q_j, and Q_j/q_j
    for i in range(m):
        column[i] = A.Q[j, i]
        t[i] = column[i] / q_j
    for c in range(covariances):
        S, P = A.S[c], A.P[c]
        if anew:
            square = np.empty((n, n))
            most = 0.0
            for i in range(n):
                most = max(most, S[i, i])
            for i in range(n):
                for k in range(n):
                    square[i, k] = S[i, k]
                square[i, i] += n * 2e-16 * most
            square = np.linalg.inv(square)
            for i in range(n):
                for k in range(n):
                    P[i, k] = 0.5 * (square[i, k] + square[k, i])
        _times(S, r, m, column, A.u)
        _times(A.Q, 0, m, A.u, A.e)  # of which C_j is all but Q_j
        own = A.e[j] - q_j
        lost = math.log(max(P[r + j, r + j] / q_j, 1e-300)) + own / q_j
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
            _add_outer(P, 0, n, -1.0 / A.e[r + j], A.e)
        _move(S, r + last, r + j)
        _move(P, r + last, r + j)
    _add_outer(A.Q, 0, m, -1.0 / q_j, column)
    _move(A.Q, last, j)
    _move(A.K, last, j)
    A.source[j] = A.source[last]
    A.whole[0] = last


@njit(int64(_A), **MAP)
def _has_drifted(A):  # type: ignore[no-untyped-def]
    m, r = A.whole[0], A.S.shape[1] - A.K.shape[0]
    n = r + m
    probe, image, back = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        probe[i] = 1.0 if (i * 2654435761 >> 13) & 1 else -1.0
    for c in range(A.S.shape[0]):
        _times(A.S[c], 0, n, probe, image)
        _times(A.P[c], 0, n, image, back)
        for i in range(n):
            if not abs(back[i] - probe[i]) <= P_DRIFT:
                return 1
    return 0


@njit(int64(_A, float64), **MAP)
def _redundant(A, floor):  # type: ignore[no-untyped-def]
    most, found = 1.0 / floor, -1
    for i in range(A.whole[0]):
        if A.Q[i, i] * A.K[i, i] > most:
            most, found = A.Q[i, i] * A.K[i, i], i
    return found


@njit(void(_A, _R, float64, float64, int64), **MAP)
def learn(A, rules, variance, gamma, source):  # type: ignore[no-untyped-def]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    largest = 0.0
    for p in range(outputs):
        largest = max(largest, abs(A.q[p]))
    for c in range(covariances):
        bound = (SHARPEST - 1.0) / max(gamma + A.spread[c], 1e-300)
        A.r[c] = max(A.r[c], bound)
    is_new = rules.max_basis > 0 and gamma > rules.floor * variance
    if rules.novelty == 0:
        is_new = is_new and gamma > rules.tol * variance
    else:
        is_new = is_new and largest * gamma > rules.tol * math.sqrt(variance)
    if not is_new:
        _project(A, gamma)
        return
    _add(A, gamma, source, variance)
    j = _redundant(A, rules.floor)
    if j < 0 and A.whole[0] > rules.max_basis:
        j = cheapest(A, rules)
    if j >= 0:
        remove(A, j, rules.keep < 1.0)
    A.whole[1] += 1
    if A.whole[1] >= CHECK_EVERY:
        A.whole[1] = 0
        if rules.keep == 1.0 and _has_drifted(A):
            A.whole[2] = 1


@njit(
    int64(
        _A, _R, _Given, _GivenVector, _Given, _Given, _Given, _GivenVector, int64, _GivenVector,
        int64, int64, _Matrix, _Matrix, _Vector,
    ),
    **MAP,
)  # fmt: skip
def advance(A, rules, block, variances, H, y, offsets, weights, kind, parameters, old, start,
            means, spreads, log_z):  # type: ignore[no-untyped-def]  # fmt: skip
    r = H.shape[1]
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    site = np.empty(parameters.size)
    for i in range(start, block.shape[0]):
        if weights[i] == 0.0:
            continue
        times = int(math.ceil(weights[i]))
        site[:] = parameters
        power = weights[i] / times
        if power != 1.0:  # of Gaussian noise alone, for which it divides the variance
            site[0] /= power
        for time in range(times):
            if rules.keep < 1.0 and time == 0:
                forget(A, rules.keep)
            for j in range(A.whole[0]):
                A.k[j] = block[i, A.source[j]]
            for j in range(r):
                A.e[j] = H[i, j]
            gamma = predict(A, variances[i])
            total = 0.0
            for p in range(outputs):
                c = p if covariances > 1 else 0
                mean, var = A.mean[p] + offsets[i, p], gamma + A.spread[c]
                value, A.q[p], A.r[c] = smoothed(kind, site, y[i, p], mean, var)
                if power != 1.0:
                    value += 0.5 * ((1.0 - power) * math.log(2.0 * math.pi * parameters[0])
                                    - math.log(power))  # fmt: skip
                total += value
                if time == 0:
                    means[i, p], spreads[i, c] = mean, var
            if time == 0:
                log_z[i] = 0.0
            log_z[i] += total
            ok = math.isfinite(total)
            for p in range(outputs):
                ok = ok and math.isfinite(A.q[p])
            for c in range(covariances):
                ok = ok and math.isfinite(A.r[c])
            if not ok:
                log_z[i] = math.nan
                break
            A.sums[1] += total
            A.sums[2] += power
            learn(A, rules, variances[i], gamma, old + i)
        if A.whole[2]:
            return i + 1
    return block.shape[0]
