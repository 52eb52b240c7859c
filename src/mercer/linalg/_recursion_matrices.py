"""Loops over the rows of small symmetric matrices, for the compiled recursion.

Matrices have room for more than the n coordinates that are in use, and both triangles are kept.
Four rows are taken at a time where a vector is read again for each.
"""

from __future__ import annotations

from numba import float64, int64, njit, void

from mercer.linalg._elementary import COMMON, MAP

Vector = float64[::1]
Matrix = float64[:, ::1]
_SUM = {**COMMON, "fastmath": {"contract", "reassoc", "nsz"}}


@njit(void(Matrix, int64, int64, Vector, Vector), **_SUM)
def times(A, first, n, x, out):  # type: ignore[no-untyped-def]
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


@njit(void(Matrix, int64, int64, float64, Vector), **MAP)
def add_outer(A, first, n, scale, x):  # type: ignore[no-untyped-def]
    # A[first:first + n, first:first + n] += scale x x'
    for i in range(n):
        a = A[first + i, first : first + n]
        t = x[i]
        for j in range(n):
            a[j] += scale * (t * x[j])  # in this order it is symmetric to the last digit


@njit(void(Matrix, int64, float64, Vector, float64, Vector), **MAP)
def add_two(A, n, a, x, b, y):  # type: ignore[no-untyped-def]
    # A[:n, :n] += a x x' + b y y'
    for i in range(n):
        row = A[i, :n]
        s = x[i]
        t = y[i]
        for j in range(n):
            row[j] += a * (s * x[j]) + b * (t * y[j])


@njit(float64(Vector, Vector, int64), **_SUM)
def dot(x, y, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@njit(void(Matrix, int64, int64), **MAP)
def move(A, old, new):  # type: ignore[no-untyped-def]
    # the last row and column of a symmetric matrix take the place of others
    for i in range(old):
        A[new, i] = A[old, i]
    A[new, new] = A[old, old]
    for i in range(old):
        A[i, new] = A[new, i]


@njit(void(Matrix, int64, int64), **MAP)
def mirror(A, j, n):  # type: ignore[no-untyped-def]
    # the first n entries of row j into column j
    for i in range(n):
        A[i, j] = A[j, i]
