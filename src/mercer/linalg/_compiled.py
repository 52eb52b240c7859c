"""The compiled loops. Import through `mercer.linalg.loops`, which falls back to NumPy twins.

Single-threaded, without the GIL, with explicit signatures, cached on disk. Arrays are tiles that
fit into a core's cache; threads are the caller's affair.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import float64, njit, types, void
from numba.extending import intrinsic

Vector = float64[::1]
Matrix = float64[:, ::1]

# "contract" permits fused multiply-adds; "reassoc" lets sums run in vector registers. Neither
# assumes the absence of infinities or NaN. NumPy's error model leaves out the test for a zero
# divisor, which would keep a loop from being vectorised.
_COMMON = {"nogil": True, "cache": True, "error_model": "numpy"}
_MAP = {**_COMMON, "fastmath": {"contract"}}
_SUM = {**_COMMON, "fastmath": {"contract", "reassoc", "nsz"}}

# Columns are taken in groups so that a group of the second tile's rows stays in the L1/L2 cache.
_COLUMNS = 32

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_TWO52 = 4503599627370496.0
_TWO52_BITS = 0x4330000000000000


@intrinsic
def _bits(_context: Any, x: Any) -> Any:
    def build(_c: Any, builder: Any, _s: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), build


@intrinsic
def _from_bits(_context: Any, x: Any) -> Any:
    def build(_c: Any, builder: Any, _s: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), build


# Not inlined by Numba but by LLVM, so that it keeps its own flags: a caller's "reassoc" would
# cancel the rounding below.
@njit(float64(float64), **_MAP)
def _exp(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0 to 3e-16 relative, in a form that LLVM vectorises.

    x = n ln 2 + r, exp(r) by its Taylor polynomial on |r| <= ln(2)/2, and 2^n added into the
    exponent bits. AVX2 cannot convert to 64-bit integers, hence the rounding by a magic number.
    Below -708 the result stays at the smallest normal number instead of reaching 0.
    """
    x = max(x, -708.0)
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return _from_bits(_bits(p) + (_bits(shifted) << 52))


@njit(float64(float64), **_MAP)
def _log1p(v):  # type: ignore[no-untyped-def]
    """log(1 + v) for v >= 0 to 3e-16 relative, in a form that LLVM vectorises.

    1 + v = 2^k m with m from sqrt(1/2) to sqrt(2): k is read from the exponent bits, log(m) is
    fdlibm's polynomial in (m - 1)/(m + 1). What rounding 1 + v has lost is put back into m - 1, so
    small v keep all their digits.
    """
    u = 1.0 + v
    lost = v - (u - 1.0)
    bits = _bits(u)
    # The offset carries into the exponent where the mantissa is above sqrt(2); k is not negative,
    # and the mask says so: AVX2 has no shift that keeps signs. Nor does it convert 64-bit integers,
    # hence k goes into the low bits of 2^52.
    k_bits = ((bits - _SQRT_HALF) >> 52) & 0x7FF
    k = _from_bits(k_bits + _TWO52_BITS) - _TWO52
    f = (_from_bits(bits - (k_bits << 52)) - 1.0) + lost * _from_bits((1023 - k_bits) << 52)
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + z * p) + k * _LN2_LOW)) - f)


@njit(types.boolean(Matrix, Matrix, Matrix, float64), **_MAP)
def squared_distances(A, Bt, out, far):  # type: ignore[no-untyped-def]
    n, d = A.shape
    m = Bt.shape[1]
    beyond = 0
    for points in (A, Bt):
        for x in points.reshape(-1):
            beyond += abs(x) > far
    out[:] = 0.0
    for first in range(0, d, _COLUMNS):
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
    return beyond > 0


@njit(void(Matrix, Matrix, Matrix, Vector), **_SUM)
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


@njit(void(Matrix, Matrix, Matrix, Matrix, Matrix), **_SUM)
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


@njit(types.UniTuple(float64, 2)(Vector, Vector), **_SUM)
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


@njit(types.UniTuple(float64, 2)(Vector, Vector), **_SUM)
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


@njit(types.UniTuple(float64, 2)(Vector, Vector), **_SUM)
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


@njit(types.UniTuple(float64, 2)(Vector, Vector), **_SUM)
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


@njit(types.UniTuple(float64, 3)(Vector, Vector, float64), **_SUM)
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
