"""The choice between the compiled homotopy of L1-penalised quadratics and its NumPy twin.

For a positive semi-definite G (m, m) and penalties lam >= 0, theta(tau) is a minimiser of

    theta'G theta/2 - (c + tau d)'theta + sum_j lam_j |theta_j|.

It is piecewise linear in tau. A homotopy follows it from tau = 1, where it is known, to tau = 0,
from one breakpoint to the next: there a coefficient becomes zero and leaves the active set, or the
slope v_j = (c + tau d - G theta)_j of a column that is not active reaches lam_j or -lam_j, and it
joins. On the active set theta = p + tau q, with p and q of one factor of its part of G.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.loops import loops

__all__ = ["Homotopy", "empty_homotopy", "homotopy"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Homotopy(NamedTuple):
    """What the homotopy changes in place; m columns, of which the first k of `active` are active.

    whole : (2,) k; breakpoints so far
    active : (m,) the active columns in the order of the factor's rows, and after them anything
    sign : (m,) the sign of an active column that has a penalty, else 0
    place : (m,) 1 for active columns, -1 for one refused because it depends on the active ones, 0
    L : (m, m) lower Cholesky factor of G on the active columns
    zp, zq : (m,) L^-1 (c - lam sign) and L^-1 d on them
    p, q : (m,) theta = p + tau q on them, in their order
    v0, v1 : (m,) c - G p and d - G q of all columns
    until : (m,) a column that has left may not come back before tau is less than this
    leaves : (m,) how often a column has left
    """

    whole: Whole
    active: Whole
    sign: Floats
    place: Whole
    L: Floats
    zp: Floats
    zq: Floats
    p: Floats
    q: Floats
    v0: Floats
    v1: Floats
    until: Floats
    leaves: Whole


def empty_homotopy(m: int) -> Homotopy:
    """Return the state of m columns of which none is active."""

    def whole() -> Whole:
        return np.zeros(m, dtype=np.int64)

    def real() -> Floats:
        return np.zeros(m)

    return Homotopy(
        whole=np.zeros(2, dtype=np.int64),
        active=whole(),
        sign=real(),
        place=whole(),
        L=np.zeros((m, m)),
        zp=real(),
        zq=real(),
        p=real(),
        q=real(),
        v0=real(),
        v1=real(),
        until=np.full(m, 2.0),
        leaves=whole(),
    )


@cache
def homotopy() -> ModuleType:
    """Return the module of the homotopy: compiled where Numba works, NumPy elsewhere."""
    if loops().__name__.endswith("_twins"):
        from mercer.linalg import _homotopy_twins

        return _homotopy_twins
    from mercer.linalg import _homotopy

    return _homotopy
