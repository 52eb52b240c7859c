"""The steps of sparse Bayesian learning, compiled; import through `mercer.linalg.precisions`.

What is computed, and why it is right, is written there and in the NumPy twin, `_precisions_twins`.
"""

from __future__ import annotations

import math

from numba import float64, int64, njit, types, void

from mercer.linalg._elementary import COMMON
from mercer.linalg.precisions import ADD as _ADD
from mercer.linalg.precisions import CANCELLED as _CANCELLED
from mercer.linalg.precisions import CHANGE as _CHANGE
from mercer.linalg.precisions import COLLINEAR as _COLLINEAR
from mercer.linalg.precisions import NOTHING as _NOTHING
from mercer.linalg.precisions import REMOVE as _REMOVE
from mercer.linalg.precisions import Model

__all__ = ["change", "choose", "insert", "remove", "run"]

_SUM = {**COMMON, "fastmath": {"contract", "reassoc", "nsz"}}
# Functions whose statistics are worked on at a time: 4 kB each of u, S and Q stay in the L1 cache.
_STRIP = 512
# Functions that are looked at together for one that gains more than the best so far.
_BLOCK = 128

_Vector = float64[::1]
_Matrix = float64[:, ::1]
_Whole = int64[::1]
_Model = types.NamedTuple(
    (
        _Whole,
        _Whole,
        _Whole,
        _Vector,
        _Vector,
        _Matrix,
        _Matrix,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
        _Vector,
    ),
    Model,
)
_Step = types.Tuple((int64, int64, float64, float64))


@njit(void(_Model, int64, float64, float64), **_SUM)
def _shift(A, k, kappa, tau):  # type: ignore[no-untyped-def]
    beta, c = A.numbers[0], A.c
    M = A.S.size
    four = k - k % 4
    for first in range(0, M, _STRIP):
        last = min(first + _STRIP, M)
        u, S, Q = A.u[first:last], A.S[first:last], A.Q[first:last]
        u[:] = 0.0
        for j in range(0, four, 4):
            c0, c1, c2, c3 = beta * c[j], beta * c[j + 1], beta * c[j + 2], beta * c[j + 3]
            g0, g1 = A.G[j, first:last], A.G[j + 1, first:last]
            g2, g3 = A.G[j + 2, first:last], A.G[j + 3, first:last]
            for i in range(u.size):
                u[i] += (c0 * g0[i] + c1 * g1[i]) + (c2 * g2[i] + c3 * g3[i])
        for j in range(four, k):
            c0 = beta * c[j]
            g0 = A.G[j, first:last]
            for i in range(u.size):
                u[i] += c0 * g0[i]
        for i in range(u.size):
            S[i] += kappa * u[i] * u[i]
            Q[i] += tau * u[i]


@njit(void(_Model, int64, float64, float64), **_SUM)
def _downdate(A, k, kappa, weight):  # type: ignore[no-untyped-def]
    c = A.c
    for i in range(k):
        row = A.Xi[i]
        x = kappa * c[i]
        for j in range(k):
            row[j] -= x * c[j]
        A.mu[i] -= weight * c[i]


@njit(void(_Model, int64, float64), **_SUM)
def change(A, j, s):  # type: ignore[no-untyped-def]
    k = A.whole[0]
    more = s - A.s[j]
    left = 1.0 + more * A.Xi[j, j]
    kappa = more / left
    A.numbers[2] = min(A.numbers[2], left)
    A.c[:k] = A.Xi[j, :k]
    weight = kappa * A.mu[j]
    _shift(A, k, kappa, weight)
    _downdate(A, k, kappa, weight)
    A.s[j] = s
    A.whole[1] += 1


@njit(void(_Model, int64), **_SUM)
def remove(A, j):  # type: ignore[no-untyped-def]
    k = A.whole[0]
    kappa = 1.0 / A.Xi[j, j]
    A.c[:k] = A.Xi[j, :k]
    weight = kappa * A.mu[j]
    _shift(A, k, kappa, weight)
    _downdate(A, k, kappa, weight)
    A.place[A.active[j]] = 0
    last = k - 1
    if j != last:
        A.active[j], A.s[j], A.mu[j] = A.active[last], A.s[last], A.mu[last]
        A.G[j] = A.G[last]
        A.Xi[j, :k] = A.Xi[last, :k]
        for i in range(k):
            A.Xi[i, j] = A.Xi[i, last]
        A.Xi[j, j] = A.Xi[last, last]
    A.whole[0] = last
    A.whole[1] += 1


@njit(void(_Model, int64, float64), **_SUM)
def insert(A, i, s):  # type: ignore[no-untyped-def]
    k, beta = A.whole[0], A.numbers[0]
    g = A.G[k]
    e = A.c
    for j in range(k):
        row = A.Xi[j]
        total = 0.0
        for m in range(k):
            total += row[m] * g[A.active[m]]
        e[j] = -beta * total
    e[k] = 1.0
    variance = 1.0 / (s + A.S[i])
    mean = variance * A.Q[i]
    A.numbers[2] = min(A.numbers[2], (s + A.S[i]) / (s + beta * A.D[i]))
    _shift(A, k + 1, -variance, -mean)
    for j in range(k):
        row = A.Xi[j]
        x = variance * e[j]
        for m in range(k):
            row[m] += x * e[m]
        row[k] = x
        A.Xi[k, j] = x
        A.mu[j] += mean * e[j]
    A.Xi[k, k] = variance
    A.mu[k], A.s[k], A.active[k] = mean, s, i
    A.place[i] = 1
    A.whole[0] = k + 1
    A.whole[1] += 1


@njit(types.boolean(_Vector, _Vector, float64), **COMMON)
def _above(S, Q, r):  # type: ignore[no-untyped-def]
    # Whether Q^2/S > r anywhere: without a division, and in vector registers.
    count = 0
    for m in range(S.size):
        count += Q[m] * Q[m] > r * S[m]
    return count > 0


@njit(_Step(_Model), **COMMON)
def choose(A):  # type: ignore[no-untyped-def]
    k, beta = A.whole[0], A.numbers[0]
    what, which, best, gain = _NOTHING, -1, 0.0, 0.0
    for j in range(k):
        xi, s = A.Xi[j, j], A.s[j]
        S, Q = 1.0 / xi - s, A.mu[j] / xi
        if S * xi <= 1e-10:  # rounding; the data say nothing of it
            continue
        more = Q * Q - S
        now = 0.5 * (math.log(s * xi) + Q * Q * xi)
        if more > 0.0:
            here = 0.5 * (math.log(S / (Q * Q)) + more / S) - now
            if here > gain:
                what, which, best, gain = _CHANGE, j, S * S / more, here
        elif A.place[A.active[j]] == 1 and k > 1 and -now > gain:
            what, which, best, gain = _REMOVE, j, math.inf, -now
    while True:
        i, r = -1, 1.0
        for first in range(0, A.S.size, _BLOCK):
            last = min(first + _BLOCK, A.S.size)
            if not _above(A.S[first:last], A.Q[first:last], r):
                continue
            for m in range(first, last):
                S, Q = A.S[m], A.Q[m]
                if Q * Q > r * S and S > 0.0 and A.place[m] == 0:
                    i, r = m, Q * Q / S
        if i < 0:
            break
        here = 0.5 * (r - 1.0 - math.log(r))
        if here <= gain:
            break
        new = A.S[i] / (r - 1.0)
        if new + A.S[i] <= _COLLINEAR * (new + beta * A.D[i]):
            A.place[i] = -1
            continue
        what, which, best, gain = _ADD, i, new, here
        break
    return what, which, best, gain


@njit(int64(_Model), **COMMON)
def _superfluous(A):  # type: ignore[no-untyped-def]
    k = A.whole[0]
    for j in range(k):
        xi = A.Xi[j, j]
        S, Q = 1.0 / xi - A.s[j], A.mu[j] / xi
        if k > 1 and A.place[A.active[j]] == 1 and Q * Q <= S:
            return j
    return -1


@njit(_Step(_Model, float64, int64), **COMMON)
def run(A, tol, limit):  # type: ignore[no-untyped-def]
    for step in range(limit + 1):
        what, which, s, gain = choose(A)
        if gain < tol:
            j = _superfluous(A)
            if j < 0:
                return _NOTHING, -1, 0.0, gain
            what, which, s, gain = _REMOVE, j, math.inf, 0.0
        if step == limit:
            break
        if what == _ADD:
            return what, which, s, gain
        A.numbers[1] += gain
        if what == _CHANGE:
            change(A, which, s)
        else:
            remove(A, which)
        if A.numbers[2] < _CANCELLED:
            return _NOTHING, -1, 0.0, tol
    return _NOTHING, -1, 0.0, tol
