"""Loops over the rows of small symmetric matrices, for the compiled recursion.

Matrices have room for more than the n coordinates that are in use. Of each the lower triangle is
kept, and so are whole squares of `SQUARE` on its diagonal: half of the memory to go through, in
rows whose lengths suit vectors. What is above the squares may be anything.
"""

from __future__ import annotations

from numba import float64, int64, njit, void

from mercer.linalg._elementary import MAP, SUM

Vector = float64[::1]
Matrix = float64[:, ::1]
SQUARE = 4  # rows that `times` takes at once
_WIDE = 8  # updates go on to a multiple of this, which is a vector or two, rather than end in one


@njit(void(Matrix, int64, Vector, Vector), **SUM)
def times(A, n, x, out):  # type: ignore[no-untyped-def]
    # out[:n] = A[:n, :n] x[:n]; each entry is used twice while it is there
    out[:n] = 0.0
    whole = n - n % SQUARE
    for i in range(0, whole, SQUARE):
        a0 = A[i, :n]
        a1 = A[i + 1, :n]
        a2 = A[i + 2, :n]
        a3 = A[i + 3, :n]
        x0 = x[i]
        x1 = x[i + 1]
        x2 = x[i + 2]
        x3 = x[i + 3]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for j in range(i):
            t = x[j]
            s0 += a0[j] * t
            s1 += a1[j] * t
            s2 += a2[j] * t
            s3 += a3[j] * t
            out[j] += a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
        out[i] += s0
        out[i + 1] += s1
        out[i + 2] += s2
        out[i + 3] += s3
        for j in range(i, i + SQUARE):
            out[j] += a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
    for i in range(whole, n):
        a0 = A[i, :n]
        x0 = x[i]
        s0 = 0.0
        for j in range(whole):
            s0 += a0[j] * x[j]
            out[j] += a0[j] * x0
        for j in range(whole, n):
            s0 += a0[j] * x[j]
        out[i] += s0


@njit(void(Matrix, int64, float64, Vector), **MAP)
def add_outer(A, n, scale, x):  # type: ignore[no-untyped-def]
    # A[:n, :n] += scale x x'
    for i in range(n):
        row = A[i, :n]
        t = x[i]
        for j in range(min(i // _WIDE * _WIDE + _WIDE, n)):
            row[j] += scale * (t * x[j])  # in this order it is symmetric to the last digit


@njit(void(Matrix, int64, float64, Vector, float64, Vector), **MAP)
def add_two(A, n, a, x, b, y):  # type: ignore[no-untyped-def]
    # A[:n, :n] += a x x' + b y y'
    for i in range(n):
        row = A[i, :n]
        s = x[i]
        t = y[i]
        for j in range(min(i // _WIDE * _WIDE + _WIDE, n)):
            row[j] += a * (s * x[j]) + b * (t * y[j])


@njit(float64(Vector, Vector, int64), **SUM)
def dot(x, y, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@njit(void(Matrix, int64, int64, Vector), **MAP)
def take(A, j, n, out):  # type: ignore[no-untyped-def]
    # out[:n] = row j of the symmetric matrix
    row = A[j]
    for i in range(j + 1):
        out[i] = row[i]
    for i in range(j + 1, n):
        out[i] = A[i, j]


@njit(void(Matrix, int64, int64, Vector), **MAP)
def put(A, j, n, x):  # type: ignore[no-untyped-def]
    # row and column j = x[:n]
    row = A[j]
    for i in range(min(j // SQUARE * SQUARE + SQUARE, n)):
        row[i] = x[i]
    for i in range(j // SQUARE * SQUARE, n):
        A[i, j] = x[i]


@njit(void(Matrix, int64, int64, Vector), **MAP)
def move(A, old, new, room):  # type: ignore[no-untyped-def]
    # the last row and column of a symmetric matrix take the place of others
    take(A, old, old + 1, room)
    room[new] = room[old]
    put(A, new, old, room)


@njit(void(Matrix, int64), **MAP)
def complete(A, n):  # type: ignore[no-untyped-def]
    # the squares on the diagonal by what is below it
    for i in range(n):
        for j in range(i + 1, min(i // SQUARE * SQUARE + SQUARE, n)):
            A[i, j] = A[j, i]
