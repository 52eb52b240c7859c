"""The compiled loops. Import through `mercer.linalg.loops`, which falls back to NumPy twins.

Single-threaded, without the GIL, with explicit signatures, cached on disk. Arrays are tiles that
fit into a core's cache; threads are the caller's affair.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, types, void

from mercer.linalg._elementary import COMMON as _COMMON
from mercer.linalg._elementary import MAP as _MAP
from mercer.linalg._elementary import SUM as _SUM
from mercer.linalg._elementary import Given, GivenVector
from mercer.linalg._elementary import exp as _exp
from mercer.linalg._elementary import log1p as _log1p

Vector = float64[::1]
Matrix = float64[:, ::1]

# Columns are taken in groups so that a group of the second tile's rows stays in the L1/L2 cache.
_COLUMNS = 32
# Entries of a row that `weigh` works on at a time: 3 kB. At 4 kB and more, a page, what is stored
# and what is loaded next often share the low bits of their addresses, and wait for each other.
_STRIP = 384


@njit(void(Given, Vector), **_COMMON)
def nearest_to_zero(A, out):  # type: ignore[no-untyped-def]
    out[:] = A[0]
    for i in range(1, A.shape[0]):
        for k in range(out.size):
            out[k] = A[i, k] if abs(A[i, k]) < abs(out[k]) else out[k]


@njit(types.boolean(Given, Given, float64), **_MAP)
def _beyond(A, Bt, far):  # type: ignore[no-untyped-def]
    count = 0
    for points in (A, Bt):
        for x in points.reshape(-1):
            count += abs(x) > far
    return count > 0


@njit(void(Given, Given, Matrix), **_MAP)
def _eight_columns(A, Bt, out):  # type: ignore[no-untyped-def]
    # Those of the first eight columns, in strips for which these columns stay in the L1 cache.
    m = Bt.shape[1]
    for start in range(0, m, _STRIP):
        stop = min(start + _STRIP, m)
        b0, b1, b2, b3 = (
            Bt[0, start:stop], Bt[1, start:stop], Bt[2, start:stop], Bt[3, start:stop]
        )  # fmt: skip
        b4, b5, b6, b7 = (
            Bt[4, start:stop], Bt[5, start:stop], Bt[6, start:stop], Bt[7, start:stop]
        )  # fmt: skip
        for i in range(A.shape[0]):
            row = out[i, start:stop]
            a0, a1, a2, a3 = A[i, 0], A[i, 1], A[i, 2], A[i, 3]
            a4, a5, a6, a7 = A[i, 4], A[i, 5], A[i, 6], A[i, 7]
            for j in range(stop - start):
                t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                t4, t5, t6, t7 = a4 - b4[j], a5 - b5[j], a6 - b6[j], a7 - b7[j]
                s = t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3
                row[j] = s + (t4 * t4 + t5 * t5 + t6 * t6 + t7 * t7)


@njit(types.boolean(Given, Given, Matrix, float64), **_MAP)
def squared_distances(A, Bt, out, far):  # type: ignore[no-untyped-def]
    n, d = A.shape
    m = Bt.shape[1]
    done = 0
    if d < 8:
        out[:] = 0.0
    else:
        _eight_columns(A, Bt, out)
        done = 8
    for first in range(done, d, _COLUMNS):
        last = min(first + _COLUMNS, d)
        four = last - (last - first) % 4
        for i in range(n):
            row = out[i]
            for k in range(first, four, 4):
                a0, a1, a2, a3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
                b0, b1, b2, b3 = Bt[k], Bt[k + 1], Bt[k + 2], Bt[k + 3]
                for j in range(m):
                    t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                    row[j] += t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3
            for k in range(four, last):
                a, b = A[i, k], Bt[k]
                for j in range(m):
                    t = a - b[j]
                    row[j] += t * t
    return _beyond(A, Bt, far)


@njit(void(Given, Matrix), **_COMMON)
def transpose(A, out):  # type: ignore[no-untyped-def]
    # Eight rows at a time: the lines they are read from stay in the L1 cache until used up.
    n, m = A.shape
    for first in range(0, n, 8):
        last = min(first + 8, n)
        for j in range(m):
            for i in range(first, last):
                out[j, i] = A[i, j]


@njit(void(Matrix), **_COMMON)
def mirror(A):  # type: ignore[no-untyped-def]
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = A[j, i]


@njit(void(Given, Given, Given, Vector), **_SUM)
def pull_scales(A, Bt, W, out):  # type: ignore[no-untyped-def]
    n, d = A.shape
    m = Bt.shape[1]
    out[:] = 0.0
    for first in range(0, d, _COLUMNS):
        last = min(first + _COLUMNS, d)
        four = last - (last - first) % 4
        for i in range(n):
            w = W[i]
            for k in range(first, four, 4):
                a0, a1, a2, a3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
                b0, b1, b2, b3 = Bt[k], Bt[k + 1], Bt[k + 2], Bt[k + 3]
                s0 = 0.0
                s1 = 0.0
                s2 = 0.0
                s3 = 0.0
                for j in range(m):
                    x = w[j]
                    t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                    s0 += x * (t0 * t0)
                    s1 += x * (t1 * t1)
                    s2 += x * (t2 * t2)
                    s3 += x * (t3 * t3)
                out[k] += s0
                out[k + 1] += s1
                out[k + 2] += s2
                out[k + 3] += s3
            for k in range(four, last):
                a, b = A[i, k], Bt[k]
                total = 0.0
                for j in range(m):
                    t = a - b[j]
                    total += w[j] * (t * t)
                out[k] += total


@njit(void(Given, Given, Given, Matrix, Matrix), **_SUM)
def pull_points(A, Bt, W, dA, dBt):  # type: ignore[no-untyped-def]
    n, d = A.shape
    m = Bt.shape[1]
    dBt[:] = 0.0
    for first in range(0, d, _COLUMNS):
        last = min(first + _COLUMNS, d)
        for i in range(n):
            w = W[i]
            for k in range(first, last):
                a, b, db = A[i, k], Bt[k], dBt[k]
                total = 0.0
                for j in range(m):
                    t = 2.0 * w[j] * (a - b[j])
                    total += t
                    db[j] -= t
                dA[i, k] = total


# Radial profiles k(s), s the squared scaled distance. `value_*` overwrites s by k(s). `pull_*`
# overwrites s by W = G k'(s) and returns sum(G k) and sum(W s).


@njit(void(Vector), **_MAP)
def value_rbf(s):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        s[i] = _exp(-0.5 * s[i])


@njit(types.UniTuple(float64, 2)(Vector, GivenVector), **_SUM)
def pull_rbf(s, G):  # type: ignore[no-untyped-def]
    inner = 0.0
    outer = 0.0
    for i in range(s.size):
        gk = G[i] * _exp(-0.5 * s[i])
        w = -0.5 * gk
        inner += gk
        outer += w * s[i]
        s[i] = w
    return inner, outer


@njit(void(Vector), **_MAP)
def value_exponential(s):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        s[i] = _exp(-math.sqrt(s[i]))


@njit(types.UniTuple(float64, 2)(Vector, GivenVector), **_SUM)
def pull_exponential(s, G):  # type: ignore[no-untyped-def]
    inner = 0.0
    outer = 0.0
    for i in range(s.size):
        r = math.sqrt(s[i])
        gk = G[i] * _exp(-r)
        # k'(s) = -k/(2r) is infinite at 0, where everything it multiplies vanishes: 0 is the limit.
        w = -0.5 * gk / r if r > 0.0 else 0.0
        inner += gk
        outer += w * s[i]
        s[i] = w
    return inner, outer


@njit(void(Vector), **_MAP)
def value_matern32(s):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        z = math.sqrt(3.0 * s[i])
        s[i] = (1.0 + z) * _exp(-z)


@njit(types.UniTuple(float64, 2)(Vector, GivenVector), **_SUM)
def pull_matern32(s, G):  # type: ignore[no-untyped-def]
    inner = 0.0
    outer = 0.0
    for i in range(s.size):
        z = math.sqrt(3.0 * s[i])
        ge = G[i] * _exp(-z)
        w = -1.5 * ge
        inner += (1.0 + z) * ge
        outer += w * s[i]
        s[i] = w
    return inner, outer


@njit(void(Vector), **_MAP)
def value_matern52(s):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        z = math.sqrt(5.0 * s[i])
        s[i] = (1.0 + z + z * z * (1.0 / 3.0)) * _exp(-z)


@njit(types.UniTuple(float64, 2)(Vector, GivenVector), **_SUM)
def pull_matern52(s, G):  # type: ignore[no-untyped-def]
    inner = 0.0
    outer = 0.0
    for i in range(s.size):
        z = math.sqrt(5.0 * s[i])
        ge = G[i] * _exp(-z)
        w = (-5.0 / 6.0) * (1.0 + z) * ge
        inner += (1.0 + z + z * z * (1.0 / 3.0)) * ge
        outer += w * s[i]
        s[i] = w
    return inner, outer


@njit(void(Vector, float64), **_MAP)
def value_rational(s, alpha):  # type: ignore[no-untyped-def]
    scale = 0.5 / alpha
    for i in range(s.size):
        s[i] = _exp(-alpha * _log1p(scale * s[i]))


@njit(types.UniTuple(float64, 3)(Vector, GivenVector, float64), **_SUM)
def pull_rational(s, G, alpha):  # type: ignore[no-untyped-def]
    inner = 0.0
    outer = 0.0
    shape = 0.0
    scale = 0.5 / alpha
    for i in range(s.size):
        v = scale * s[i]
        log_u = _log1p(v)
        gk = G[i] * _exp(-alpha * log_u)
        w = -0.5 * gk / (1.0 + v)
        inner += gk
        outer += w * s[i]
        shape += -2.0 * w * v - gk * log_u
        s[i] = w
    return inner, outer, shape


# Profiles by their places in `mercer.linalg.PROFILES`.


@njit(void(int64, float64, Vector), **_MAP)
def value(profile, shape, s):  # type: ignore[no-untyped-def]
    if profile == 0:
        value_rbf(s)
    elif profile == 1:
        value_exponential(s)
    elif profile == 2:
        value_matern32(s)
    elif profile == 3:
        value_matern52(s)
    else:
        value_rational(s, shape)


@njit(void(Given, Given, int64, int64, int64, Vector), inline="always", **_SUM)
def _distances(A, Bt, i, first, last, s):  # type: ignore[no-untyped-def]
    d = A.shape[1]
    four = d - d % 4
    # The first columns write what the others add to, and what never leaves the L1 cache.
    if four == 0:
        s[:] = 0.0
    for k in range(0, four, 4):
        a0, a1, a2, a3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
        b0, b1 = Bt[k, first:last], Bt[k + 1, first:last]
        b2, b3 = Bt[k + 2, first:last], Bt[k + 3, first:last]
        if k == 0:
            for j in range(s.size):
                t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                s[j] = t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3
        else:
            for j in range(s.size):
                t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                s[j] += t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3
    for k in range(four, d):
        a, b = A[i, k], Bt[k, first:last]
        for j in range(s.size):
            t = a - b[j]
            s[j] += t * t


@njit(types.boolean(int64, float64, Given, Given, Given, Matrix, float64), **_SUM)
def weigh(profile, shape, A, Bt, Vt, out, far):  # type: ignore[no-untyped-def]
    m = Bt.shape[1]
    strip = np.empty(_STRIP)
    out[:] = 0.0
    for first in range(0, m, _STRIP):
        last = min(first + _STRIP, m)
        s = strip[: last - first]
        for i in range(A.shape[0]):
            _distances(A, Bt, i, first, last, s)
            value(profile, shape, s)
            for p in range(Vt.shape[0]):
                v = Vt[p, first:last]
                total = 0.0
                for j in range(s.size):
                    total += s[j] * v[j]
                out[i, p] += total
    return _beyond(A, Bt, far)


@njit(
    types.boolean(
        int64, float64, Given, Given, Given, Given, types.boolean, Matrix, Matrix, float64
    ),
    **_SUM,
)
def weigh_both(profile, shape, A, Bt, U, Vt, squares, out, back, far):  # type: ignore[no-untyped-def]
    m, outputs = Bt.shape[1], Vt.shape[0]
    strip = np.empty(_STRIP)
    out[:] = 0.0
    back[:] = 0.0
    for first in range(0, m, _STRIP):
        last = min(first + _STRIP, m)
        s = strip[: last - first]
        for i in range(A.shape[0]):
            _distances(A, Bt, i, first, last, s)
            value(profile, shape, s)
            for p in range(outputs):
                if squares and p == outputs - 1:
                    for j in range(s.size):
                        s[j] = s[j] * s[j]
                v, other, u = Vt[p, first:last], back[p, first:last], U[i, p]
                total = 0.0
                for j in range(s.size):
                    total += s[j] * v[j]
                    other[j] += u * s[j]
                out[i, p] += total
    return _beyond(A, Bt, far)
