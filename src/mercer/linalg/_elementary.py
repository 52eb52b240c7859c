"""exp, log and log1p in forms that LLVM vectorises, for the compiled loops."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import float64, njit, types
from numba.extending import intrinsic

# "contract" permits fused multiply-adds. NumPy's error model leaves out the test for a zero
# divisor, which would keep a loop from being vectorised.
COMMON = {"nogil": True, "cache": True, "error_model": "numpy"}
MAP = {**COMMON, "fastmath": {"contract"}}
# "reassoc" lets sums run in vector registers. It does not assume the absence of infinities or NaN.
SUM = {**COMMON, "fastmath": {"contract", "reassoc", "nsz"}}
#: What is only read may be read-only: the points of a posterior are.
Given = types.Array(float64, 2, "C", readonly=True)
GivenVector = types.Array(float64, 1, "C", readonly=True)

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_TWO52 = 4503599627370496.0
_TWO52_BITS = 0x4330000000000000
_ONE_BITS = 0x3FF0000000000000


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
@njit(float64(float64), **MAP)
def exp(x):  # type: ignore[no-untyped-def]
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


@njit(float64(float64, float64), **MAP)
def _log_of(k, f):  # type: ignore[no-untyped-def]
    # log(2^k (1 + f)), 1 + f from sqrt(1/2) to sqrt(2), by fdlibm's polynomial in f/(2 + f)
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


@njit(float64(float64), **MAP)
def log1p(v):  # type: ignore[no-untyped-def]
    """log(1 + v) for v >= 0 to 3e-16 relative, in a form that LLVM vectorises.

    1 + v = 2^k m with m from sqrt(1/2) to sqrt(2): k is read from the exponent bits. What rounding
    1 + v has lost is put back into m - 1, so small v keep all their digits.
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
    return _log_of(k, f)


@njit(float64(float64), **MAP)
def log(x):  # type: ignore[no-untyped-def]
    """log(x) for normal x > 0 to 3e-16 relative, in a form that LLVM vectorises.

    As `log1p`, but for an exponent of either sign. Infinity and NaN give NaN.
    """
    bits = _bits(x)
    k_bits = ((bits - _SQRT_HALF + _ONE_BITS) >> 52) & 0x7FF  # k + 1023
    k = _from_bits(k_bits + _TWO52_BITS) - (_TWO52 + 1023.0)
    return _log_of(k, _from_bits(bits - (k_bits << 52) + _ONE_BITS) - 1.0) + 0.0 * x
