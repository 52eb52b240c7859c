"""The normal tail, compiled: no digits are lost however far out.

M(x) = Q(x)/phi(x) is Mills' ratio, Q(x) = 1 - Phi(x), and h = 1/M. `mercer.likelihoods.mills` is
the same for arrays.
"""

from __future__ import annotations

import math

from numba import float64, njit, types

from mercer.linalg._elementary import MAP

LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_2PI = math.sqrt(2.0 * math.pi)

# (x + 1) (h(x) - x) for x >= 0 as a polynomial in s = (x - 3.5)/(x + 3.5), which is from -1 to 1:
# its Chebyshev series, cut off at 1e-17 and sorted by powers of s, the even and the odd ones.
_EVEN = (
    1.1312606918596488,
    -0.23240183756755062,
    -0.009895560060049737,
    0.014956225185129625,
    -0.006901027850766084,
    0.0025836503349750276,
    -0.0008647582471463483,
    0.000261728302646661,
    -7.049000072422844e-05,
    1.6389256465545116e-05,
    -3.16630311259102e-06,
    4.88546133525375e-07,
    -5.717453174465993e-08,
    4.1203148598277545e-09,
)
_ODD = (
    -0.033650801961951,
    0.17406459876373784,
    -0.05025491501120112,
    0.014014751167087534,
    -0.004061692910072974,
    0.0012499707527497631,
    -0.00040415211166360964,
    0.00013156605079683032,
    -4.05574700209143e-05,
    1.1033060744588812e-05,
    -2.4267337292100915e-06,
    3.762774741002633e-07,
    -3.0275384529218994e-08,
)
_LAST_EVEN, _LAST_ODD = len(_EVEN) - 1, len(_ODD) - 1
# Where h is 0 or x to rounding, and squares are finite.
_FURTHEST = 1e150


@njit(float64(float64), **MAP)
def _gap(x):  # type: ignore[no-untyped-def]
    """h(x) - x for x >= 0, to 3e-16 relative: about 1/x for large x."""
    s = (x - 3.5) / (x + 3.5)
    square = s * s
    even = _EVEN[_LAST_EVEN]
    for k in range(_LAST_EVEN - 1, -1, -1):
        even = even * square + _EVEN[k]
    odd = _ODD[_LAST_ODD]
    for k in range(_LAST_ODD - 1, -1, -1):
        odd = odd * square + _ODD[k]
    return (even + s * odd) / (x + 1.0)


@njit(types.UniTuple(float64, 3)(float64), **MAP)
def tail(x):  # type: ignore[no-untyped-def]
    """log Q(x), h = phi(x)/Q(x) and h - x, the last two positive: h is about x far above.

    h may underflow to 0.
    """
    away = min(abs(x), _FURTHEST)
    g = _gap(away)
    if x >= 0.0:
        h = away + g
        return -0.5 * x * x - LOG_ROOT_2PI - math.log(h), h, g
    # Q(x) = 1 - Q(-x) = 1 - phi/(away + g)
    phi = math.exp(-0.5 * away * away) / _ROOT_2PI
    beyond = phi / (away + g)
    h = phi / (1.0 - beyond)
    return math.log1p(-beyond), h, h + away


@njit(float64(float64), **MAP)
def log_upper(x):  # type: ignore[no-untyped-def]
    """log Q(x)."""
    return tail(x)[0]
