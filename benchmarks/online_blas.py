"""The products and rank-one updates that one row of the on-line recursion needs, and nothing else.

A row that takes the place of a point needs five products of a symmetric matrix and a vector, Q k,
S e, Q s, S Q_j and Q w, and five rank-one updates: one of S and two each of Q and P.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.blas import dsymv, dsyr

PRODUCTS = ("Q", "S", "Q", "S", "Q")
UPDATES = ("S", "Q", "Q", "P", "P")


class Matrices:
    """Q, S, P of m points, in Fortran order as BLAS wants them, and a vector.

    Updates have alternating signs and little weight, so that the numbers stay what they are.
    """

    def __init__(self, m: int) -> None:
        rng = np.random.default_rng(m)
        self.m = m
        self.of = {name: np.asfortranarray(_symmetric(rng, m)) for name in "QSP"}
        self.x, self.out = rng.normal(size=m), np.zeros(m)

    def called_from_python(self, count: int) -> None:
        """All that `count` rows need, by SciPy's wrappers."""
        for row in range(count):
            weight = 1e-6 if row % 2 else -1e-6
            for name in PRODUCTS:
                dsymv(1.0, self.of[name], self.x, y=self.out, overwrite_y=1, lower=1)
            for name in UPDATES:
                dsyr(weight, self.x, a=self.of[name], overwrite_a=1, lower=1)

    def called_from_compiled_code(self) -> Callable[[int], None]:
        """Return a function that does all that `count` rows need, compiled."""
        loop, matrices = _compiled(), tuple(self.of.values())
        sizes, reals = np.array([self.m, 1], dtype=np.intc), np.array([1.0, 0.0, 1e-6, -1e-6])
        lower = np.array([ord("L")], dtype=np.uint8)
        flat = tuple(a.ravel(order="K") for a in matrices)
        if not all(np.shares_memory(a, b) for a, b in zip(flat, matrices, strict=True)):
            raise RuntimeError("the matrices were copied")
        return lambda count: loop(count, *flat, self.x, self.out, sizes, reals, lower)


def _symmetric(rng: Any, m: int) -> Any:
    A = rng.normal(size=(m, m))
    return A + A.T


def _address(name: str, arguments: int) -> Any:
    """Return a function of SciPy's BLAS that compiled code can call; all arguments are pointers."""
    from numba.extending import get_cython_function_address

    address = get_cython_function_address("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * arguments)(address)


def _compiled() -> Any:
    from numba import njit

    symv, syr = _address("dsymv", 10), _address("dsyr", 7)

    @njit
    def times(A, x, out, sizes, reals, lower):  # type: ignore[no-untyped-def]
        n, one = sizes.ctypes, sizes[1:].ctypes
        alpha, beta = reals.ctypes, reals[1:].ctypes
        symv(lower.ctypes, n, alpha, A.ctypes, n, x.ctypes, one, beta, out.ctypes, one)

    @njit
    def update(A, x, sizes, weight, lower):  # type: ignore[no-untyped-def]
        n, one = sizes.ctypes, sizes[1:].ctypes
        syr(lower.ctypes, n, weight.ctypes, x.ctypes, one, A.ctypes, n)

    @njit
    def loop(count, Q, S, P, x, out, sizes, reals, lower):  # type: ignore[no-untyped-def]
        for row in range(count):
            weight = reals[2:] if row % 2 else reals[3:]
            times(Q, x, out, sizes, reals, lower)
            times(S, x, out, sizes, reals, lower)
            times(Q, x, out, sizes, reals, lower)
            times(S, x, out, sizes, reals, lower)
            times(Q, x, out, sizes, reals, lower)
            update(S, x, sizes, weight, lower)
            update(Q, x, sizes, weight, lower)
            update(Q, x, sizes, weight, lower)
            update(P, x, sizes, weight, lower)
            update(P, x, sizes, weight, lower)

    return loop
