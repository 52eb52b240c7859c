"""The NumPy twin of the compiled homotopy: the same arrays and functions, slower, easy to read.

It states what the compiled one computes; the tests hold that to it, and it runs where Numba cannot
be imported. `mercer.linalg.homotopy` has the notation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.linalg.homotopy import Homotopy

__all__ = ["BLOCKED", "aim", "factorise", "follow"]

Floats = NDArray[np.float64]

#: A column that has left may come back when tau is less by this part, the first time, and eight
#: times more each time: rounding could have it come and go at one tau for ever.
BLOCKED = 1e-12


def factorise(A: Homotopy, G: Floats, floor: float) -> None:
    """Factorise G on the active columns; a column that depends on those before it is refused."""
    wanted = A.active[: A.whole[0]].copy()
    A.whole[0] = 0
    for j in wanted:
        _join(A, int(j), G, floor)


def aim(A: Homotopy, c: Floats, d: Floats, lam: Floats, first: int) -> None:
    """Set zp and zq, from place `first` on, as c, d, lam and the signs have them."""
    k = A.whole[0]
    active = A.active[:k]
    if k > first:
        right = np.column_stack([c[active] - lam[active] * A.sign[active], d[active]])
        Z = solve_triangular(A.L[:k, :k], right, lower=True)
        A.zp[first:k], A.zq[first:k] = Z[first:].T


def follow(
    A: Homotopy,
    G: Floats,
    c: Floats,
    d: Floats,
    lam: Floats,
    bound: Floats,
    tau: float,
    grid: Floats,
    out: Floats,
    floor: float,
    most: int,
) -> float:
    """Follow theta(tau) down to 0; write it at the values of `grid`, descending to 0, into `out`.

    `out` (len(grid), m) is zero to begin with. A slope up to `bound`, lam and its rounding, is
    within lam. A pivot of at most `floor` times G_jj is rounding: a column that depends on active
    ones takes the place of one of them.
    Returns the tau of the end: more than 0 after `most` breakpoints.
    """
    filled = 0
    while True:
        _solve(A, G, c, d)
        # All is linear in tau: only what would be wrong at 0 is a breakpoint on the way there.
        at, which, leaving = 0.0, -1, False
        k = A.whole[0]
        for i in range(k):
            s = A.sign[A.active[i]]
            if s * A.p[i] >= 0.0:
                continue
            event = min(-A.p[i] / A.q[i], tau) if s * A.q[i] > 0.0 else tau
            if event > at or which < 0:
                at, which, leaving = event, i, True
        for j in range(len(c)):
            if A.place[j] != 0 or not abs(A.v0[j]) > bound[j]:
                continue
            s = 1.0 if A.v0[j] > 0.0 else -1.0
            slope = -s * A.v1[j]
            event = min((s * A.v0[j] - lam[j]) / slope, tau) if slope > 0.0 else tau
            event = min(event, A.until[j])
            if event > at or which < 0:
                at, which, leaving = event, j, False
        while filled < len(grid) and (which < 0 or grid[filled] > at):
            out[filled, A.active[:k]] = A.p[:k] + grid[filled] * A.q[:k]
            filled += 1
        if which < 0:
            return 0.0
        if A.whole[1] >= most:
            out[filled:, A.active[:k]] = A.p[:k] + at * A.q[:k]
            return float(at)
        tau = at
        A.whole[1] += 1
        if leaving:
            j = int(A.active[which])
            _leave(A, which)
            _block(A, j, tau)
            aim(A, c, d, lam, which)
            continue
        s = 1.0 if A.v0[which] > 0.0 else -1.0
        A.sign[which] = s if lam[which] > 0.0 else 0.0
        _join(A, which, G, floor)
        first = A.whole[0] - 1
        if A.place[which] < 0:
            i = _exchanged(A, which, s, tau, G)
            if i < 0:
                continue
            j = int(A.active[i])
            _leave(A, i)
            _block(A, j, tau)
            A.sign[which] = s
            _join(A, which, G, floor)
            first = i
        aim(A, c, d, lam, first)


def _block(A: Homotopy, j: int, tau: float) -> None:
    A.until[j] = tau * (1.0 - min(0.5, BLOCKED * 8.0 ** A.leaves[j]))
    A.leaves[j] += 1


def _exchanged(A: Homotopy, j: int, s: float, tau: float, G: Floats) -> int:
    """Return the place of the active column that goes for one that depends on them, or -1.

    phi_j is a combination a of the active columns. As theta_j grows with sign s, theta less a
    theta_j leaves f as it is; the first coefficient that becomes zero so is the one.
    """
    k = A.whole[0]
    if k == 0:
        return -1
    a = solve_triangular(A.L[:k, :k], G[j, A.active[:k]], lower=True)
    a = solve_triangular(A.L[:k, :k], a, lower=True, trans=1)
    found, least = -1, np.inf
    for i in range(k):
        falls = s * a[i] * A.sign[A.active[i]]
        if falls > 0.0:
            room = max(A.sign[A.active[i]] * (A.p[i] + tau * A.q[i]), 0.0) / falls
            if room < least:
                found, least = i, room
    return found


def _solve(A: Homotopy, G: Floats, c: Floats, d: Floats) -> None:
    k = A.whole[0]
    active = A.active[:k]
    if k:
        A.p[:k] = solve_triangular(A.L[:k, :k], A.zp[:k], lower=True, trans=1)
        A.q[:k] = solve_triangular(A.L[:k, :k], A.zq[:k], lower=True, trans=1)
    A.v0[:] = c - A.p[:k] @ G[active]
    A.v1[:] = d - A.q[:k] @ G[active]


def _join(A: Homotopy, j: int, G: Floats, floor: float) -> None:
    """Add a column to the factor, or refuse one that depends on those that are in it."""
    k = A.whole[0]
    row = G[j, A.active[:k]]
    if k:
        row = solve_triangular(A.L[:k, :k], row, lower=True)
    pivot = G[j, j] - row @ row
    if not pivot > floor * G[j, j]:
        A.place[j], A.sign[j] = -1, 0.0
        return
    A.L[k, :k], A.L[k, k] = row, np.sqrt(pivot)
    A.active[k], A.place[j] = j, 1
    A.whole[0] = k + 1


def _leave(A: Homotopy, i: int) -> None:
    """Take the column at place i of the factor out; those refused may try again."""
    k = A.whole[0] - 1
    A.place[A.active[i]], A.sign[A.active[i]] = 0, 0.0
    A.active[i:k] = A.active[i + 1 : k + 1]
    A.whole[0] = k
    A.place[A.place < 0] = 0
    # The rows below the one that goes have a column too many: an orthogonal turn takes it away.
    lower = np.delete(A.L[: k + 1, : k + 1], i, axis=0)
    R = np.asarray(np.linalg.qr(lower.T, mode="r"))
    A.L[:k, :k] = R.T * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)
