"""NumPy twins of the compiled loops: the same signatures, slower, easy to read.

They state what the loops compute; the tests hold the loops to them, and they run where Numba
cannot be imported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.loops import PROFILES

Floats = NDArray[np.float64]


def nearest_to_zero(A: Floats, out: Floats) -> None:
    """Write the value of least magnitude in each column into out, the first of several."""
    out[:] = A[np.argmin(np.abs(A), axis=0), np.arange(A.shape[1])]


def squared_distances(A: Floats, Bt: Floats, out: Floats, far: float) -> bool:
    """Write sum_k (A_ik - B_jk)^2 into out; Bt is B transposed.

    Return whether a number in A or B is larger than `far`.
    """
    out[:] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in zip(A.T, Bt, strict=True):
            out += (a[:, None] - b) ** 2
    return bool(np.any(np.abs(A) > far) or np.any(np.abs(Bt) > far))


def transpose(A: Floats, out: Floats) -> None:
    """Write the transposed A into out."""
    out[:] = A.T


def mirror(A: Floats) -> None:
    """Overwrite the strict lower triangle of a square matrix by the upper one."""
    lower = np.tril_indices(len(A), -1)
    A[lower] = A.T[lower]


def pull_scales(A: Floats, Bt: Floats, W: Floats, out: Floats) -> None:
    """Write sum_ij W_ij (A_ik - B_jk)^2 into out[k]."""
    for k, (a, b) in enumerate(zip(A.T, Bt, strict=True)):
        out[k] = np.sum(W * (a[:, None] - b) ** 2)


def pull_points(A: Floats, Bt: Floats, W: Floats, dA: Floats, dBt: Floats) -> None:
    """Write the derivatives of sum_ij W_ij |A_i - B_j|^2 in A and B."""
    for k, (a, b) in enumerate(zip(A.T, Bt, strict=True)):
        T = 2.0 * W * (a[:, None] - b)
        dA[:, k] = T.sum(axis=1)
        dBt[k] = -T.sum(axis=0)


def _exp(x: Floats) -> Floats:
    return np.exp(np.maximum(x, -708.0))


def _pulled(s: Floats, G: Floats, k: Floats, slope: Floats) -> tuple[float, float]:
    W = G * slope
    inner, outer = float(np.dot(G, k)), float(np.dot(W, s))
    s[:] = W
    return inner, outer


def value_rbf(s: Floats) -> None:
    """k = exp(-s/2) (BKM 39)."""
    s[:] = _exp(-0.5 * s)


def pull_rbf(s: Floats, G: Floats) -> tuple[float, float]:
    """k' = -k/2."""
    k = _exp(-0.5 * s)
    return _pulled(s, G, k, -0.5 * k)


def value_exponential(s: Floats) -> None:
    """k = exp(-r) with r = sqrt(s) (BKM 42)."""
    s[:] = _exp(-np.sqrt(s))


def pull_exponential(s: Floats, G: Floats) -> tuple[float, float]:
    """k' = -k/(2r), taken as 0 at coincident points."""
    r = np.sqrt(s)
    k = _exp(-r)
    slope = np.divide(-0.5 * k, r, out=np.zeros_like(r), where=r > 0)
    return _pulled(s, G, k, slope)


def value_matern32(s: Floats) -> None:
    """k = (1 + z) exp(-z) with z = sqrt(3 s)."""
    z = np.sqrt(3.0 * s)
    s[:] = (1.0 + z) * _exp(-z)


def pull_matern32(s: Floats, G: Floats) -> tuple[float, float]:
    """k' = -3/2 exp(-z)."""
    z = np.sqrt(3.0 * s)
    e = _exp(-z)
    return _pulled(s, G, (1.0 + z) * e, -1.5 * e)


def value_matern52(s: Floats) -> None:
    """k = (1 + z + z^2/3) exp(-z) with z = sqrt(5 s)."""
    z = np.sqrt(5.0 * s)
    s[:] = (1.0 + z + z**2 / 3.0) * _exp(-z)


def pull_matern52(s: Floats, G: Floats) -> tuple[float, float]:
    """k' = -5/6 (1 + z) exp(-z)."""
    z = np.sqrt(5.0 * s)
    e = _exp(-z)
    return _pulled(s, G, (1.0 + z + z**2 / 3.0) * e, -5.0 / 6.0 * (1.0 + z) * e)


def value_rational(s: Floats, alpha: float) -> None:
    """k = (1 + s/(2 alpha))^-alpha."""
    s[:] = _exp(-alpha * np.log1p(s / (2.0 * alpha)))


def pull_rational(s: Floats, G: Floats, alpha: float) -> tuple[float, float, float]:
    """k' = -k/(2 (1 + v)) with v = s/(2 alpha); the third sum is that of G dk/dalpha."""
    v = s / (2.0 * alpha)
    k = _exp(-alpha * np.log1p(v))
    shape = float(np.dot(G, k * (v / (1.0 + v) - np.log1p(v))))
    return (*_pulled(s, G, k, -0.5 * k / (1.0 + v)), shape)


def value(profile: int, shape: float, s: Floats) -> None:
    """Overwrite s by k(s), for a profile by its place in `mercer.linalg.PROFILES`."""
    name = PROFILES[profile]
    globals()[f"value_{name}"](s, *((shape,) if name == "rational" else ()))


def weigh(
    profile: int, shape: float, A: Floats, Bt: Floats, Vt: Floats, out: Floats, far: float
) -> bool:
    """Write k(A, B) V into out; Bt and Vt are B and V transposed.

    Return whether a number in A or B is larger than `far`.
    """
    s = np.empty((A.shape[0], Bt.shape[1]))
    beyond = squared_distances(A, Bt, s, far)
    value(profile, shape, s.reshape(-1))
    out[:] = s @ Vt.T
    return beyond


def weigh_both(
    profile: int,
    shape: float,
    A: Floats,
    Bt: Floats,
    U: Floats,
    Vt: Floats,
    squares: bool,
    out: Floats,
    back: Floats,
    far: float,
) -> bool:
    """Write k(A, B) V into out (a, P) and U' k(A, B) into back (P, b); Vt is V transposed.

    If `squares`, the last of P is of the squares of the values. Return whether a number in A or B
    is larger than `far`.
    """
    s = np.empty((A.shape[0], Bt.shape[1]))
    beyond = squared_distances(A, Bt, s, far)
    value(profile, shape, s.reshape(-1))
    out[:], back[:] = s @ Vt.T, U.T @ s
    if squares:
        np.square(s, out=s)
        out[:, -1], back[-1] = s @ Vt[-1], U[:, -1] @ s
    return beyond
