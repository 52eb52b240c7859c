"""The homotopy of L1-penalised quadratics, compiled; import through `mercer.linalg.homotopy`.

What is computed, and why it is right, is written in the NumPy twin, `_homotopy_twins`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, types, void

from mercer.linalg._elementary import COMMON, SUM, Given, GivenVector
from mercer.linalg._homotopy_twins import BLOCKED as _BLOCKED
from mercer.linalg.homotopy import Homotopy

__all__ = ["aim", "factorise", "follow"]

_Vector = float64[::1]
_Matrix = float64[:, ::1]
_Whole = int64[::1]
_State = types.NamedTuple(
    (
        _Whole,
        _Whole,
        _Vector,
        _Whole,
        _Matrix,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Whole,
    ),
    Homotopy,
)


@njit(float64(_Vector, _Vector, int64), **SUM)
def _dot(a, b, k):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(k):
        total += a[i] * b[i]
    return total


@njit(void(_State, int64, Given, float64), **COMMON)
def _join(A, j, G, floor):  # type: ignore[no-untyped-def]
    k = A.whole[0]
    row = A.L[k]
    pivot = G[j, j]
    for i in range(k):
        row[i] = (G[j, A.active[i]] - _dot(A.L[i], row, i)) / A.L[i, i]
        pivot -= row[i] * row[i]
    if not pivot > floor * G[j, j]:
        A.place[j] = -1
        A.sign[j] = 0.0
        return
    row[k] = math.sqrt(pivot)
    A.active[k] = j
    A.place[j] = 1
    A.whole[0] = k + 1


@njit(void(_State, int64), **COMMON)
def _leave(A, i):  # type: ignore[no-untyped-def]
    k = A.whole[0] - 1
    j = A.active[i]
    A.place[j] = 0
    A.sign[j] = 0.0
    A.whole[0] = k
    for j in range(A.place.size):
        A.place[j] = max(A.place[j], 0)
    for row in range(i, k):
        A.active[row] = A.active[row + 1]
        for t in range(row + 2):
            A.L[row, t] = A.L[row + 1, t]
    # Each turn of two columns takes away what the row at their place has above the diagonal.
    for t in range(i, k):
        a, b = A.L[t, t], A.L[t, t + 1]
        length = math.hypot(a, b)
        cosine, sine = a / length, b / length
        A.L[t, t] = length
        for row in range(t + 1, k):
            x, y = A.L[row, t], A.L[row, t + 1]
            A.L[row, t] = cosine * x + sine * y
            A.L[row, t + 1] = cosine * y - sine * x


@njit(void(_State, GivenVector, GivenVector, GivenVector, int64), **COMMON)
def aim(A, c, d, lam, first):  # type: ignore[no-untyped-def]
    for t in range(first, A.whole[0]):
        j = A.active[t]
        A.zp[t] = (c[j] - lam[j] * A.sign[j] - _dot(A.L[t], A.zp, t)) / A.L[t, t]
        A.zq[t] = (d[j] - _dot(A.L[t], A.zq, t)) / A.L[t, t]


@njit(void(_State, int64, float64), **COMMON)
def _block(A, j, tau):  # type: ignore[no-untyped-def]
    A.until[j] = tau * (1.0 - min(0.5, _BLOCKED * 8.0 ** A.leaves[j]))
    A.leaves[j] += 1


@njit(int64(_State, int64, float64, float64, Given), **COMMON)
def _exchanged(A, j, s, tau, G):  # type: ignore[no-untyped-def]
    k = A.whole[0]
    a = np.empty(k)
    for i in range(k):
        a[i] = (G[j, A.active[i]] - _dot(A.L[i], a, i)) / A.L[i, i]
    for i in range(k - 1, -1, -1):
        a[i] /= A.L[i, i]
        for t in range(i):
            a[t] -= a[i] * A.L[i, t]
    found = -1
    least = np.inf
    for i in range(k):
        falls = s * a[i] * A.sign[A.active[i]]
        if falls > 0.0:
            room = max(A.sign[A.active[i]] * (A.p[i] + tau * A.q[i]), 0.0) / falls
            if room < least:
                found, least = i, room
    return found


@njit(void(_State, Given, GivenVector, GivenVector), **SUM)
def _solve(A, G, c, d):  # type: ignore[no-untyped-def]
    k, m = A.whole[0], c.size
    p, q, v0, v1 = A.p, A.q, A.v0, A.v1
    for i in range(k):
        p[i] = A.zp[i]
        q[i] = A.zq[i]
    for i in range(k - 1, -1, -1):
        row = A.L[i]
        p[i] /= row[i]
        q[i] /= row[i]
        a, b = p[i], q[i]
        for t in range(i):
            p[t] -= a * row[t]
            q[t] -= b * row[t]
    for j in range(m):
        v0[j] = c[j]
        v1[j] = d[j]
    # Two rows of G at a time: half as many loads and stores of the sums.
    for i in range(0, k - 1, 2):
        first, second = G[A.active[i]], G[A.active[i + 1]]
        a, b, e, f = p[i], q[i], p[i + 1], q[i + 1]
        for j in range(m):
            x, y = first[j], second[j]
            v0[j] -= a * x + e * y
            v1[j] -= b * x + f * y
    if k % 2:
        last = G[A.active[k - 1]]
        a, b = p[k - 1], q[k - 1]
        for j in range(m):
            v0[j] -= a * last[j]
            v1[j] -= b * last[j]


@njit(void(_State, Given, float64), **COMMON)
def factorise(A, G, floor):  # type: ignore[no-untyped-def]
    wanted = A.active[: A.whole[0]].copy()
    A.whole[0] = 0
    for j in wanted:
        _join(A, j, G, floor)


@njit(
    float64(
        _State,
        Given,
        GivenVector,
        GivenVector,
        GivenVector,
        GivenVector,
        float64,
        GivenVector,
        _Matrix,
        float64,
        int64,
    ),
    **COMMON,
)
def follow(A, G, c, d, lam, bound, tau, grid, out, floor, most):  # type: ignore[no-untyped-def]
    filled = 0
    while True:
        _solve(A, G, c, d)
        at = 0.0
        which = -1
        leaving = False
        k = A.whole[0]
        for i in range(k):
            s = A.sign[A.active[i]]
            if s * A.p[i] >= 0.0:
                continue
            event = min(-A.p[i] / A.q[i], tau) if s * A.q[i] > 0.0 else tau
            if event > at or which < 0:
                at, which, leaving = event, i, True
        for j in range(c.size):
            if A.place[j] != 0 or not abs(A.v0[j]) > bound[j]:
                continue
            s = 1.0 if A.v0[j] > 0.0 else -1.0
            slope = -s * A.v1[j]
            event = min((s * A.v0[j] - lam[j]) / slope, tau) if slope > 0.0 else tau
            event = min(event, A.until[j])
            if event > at or which < 0:
                at, which, leaving = event, j, False
        while filled < grid.size and (which < 0 or grid[filled] > at):
            for i in range(k):
                out[filled, A.active[i]] = A.p[i] + grid[filled] * A.q[i]
            filled += 1
        if which < 0:
            return 0.0
        if A.whole[1] >= most:
            for row in range(filled, grid.size):
                for i in range(k):
                    out[row, A.active[i]] = A.p[i] + at * A.q[i]
            return at
        tau = at
        A.whole[1] += 1
        if leaving:
            j = A.active[which]
            _leave(A, which)
            _block(A, j, tau)
            aim(A, c, d, lam, which)
            continue
        s = 1.0 if A.v0[which] > 0.0 else -1.0
        A.sign[which] = s if lam[which] > 0.0 else 0.0
        _join(A, which, G, floor)
        first = A.whole[0] - 1
        if A.place[which] < 0:
            i = _exchanged(A, which, s, tau, G)
            if i < 0:
                continue
            j = A.active[i]
            _leave(A, i)
            _block(A, j, tau)
            A.sign[which] = s
            _join(A, which, G, floor)
            first = i
        aim(A, c, d, lam, first)
