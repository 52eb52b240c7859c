"""The NumPy twin of the compiled steps of sparse Bayesian learning: slower, easy to read.

It states what the compiled ones compute; the tests hold these to it, and it runs where Numba cannot
be imported. `mercer.linalg.precisions` has the notation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.precisions import ADD, CANCELLED, CHANGE, COLLINEAR, NOTHING, REMOVE, Model

__all__ = ["change", "choose", "insert", "remove", "run"]

Floats = NDArray[np.float64]


def _shift(A: Model, k: int, kappa: float, tau: float) -> None:
    """Add kappa u^2 to S and tau u to Q, with u = beta G'c."""
    u = A.numbers[0] * (A.c[:k] @ A.G[:k])
    A.S[:] += kappa * u * u
    A.Q[:] += tau * u


def change(A: Model, j: int, s: float) -> None:
    """Give the function at place j of the model the precision s."""
    k = int(A.whole[0])
    more = s - A.s[j]
    left = 1.0 + more * A.Xi[j, j]
    kappa = more / left
    A.numbers[2] = min(A.numbers[2], left)
    A.c[:k] = A.Xi[:k, j]
    weight = kappa * A.mu[j]
    _shift(A, k, kappa, weight)
    A.Xi[:k, :k] -= kappa * np.outer(A.c[:k], A.c[:k])
    A.mu[:k] -= weight * A.c[:k]
    A.s[j] = s
    A.whole[1] += 1


def remove(A: Model, j: int) -> None:
    """Take the function at place j out of the model; the last one gets its place."""
    k = int(A.whole[0])
    kappa = 1.0 / A.Xi[j, j]
    A.c[:k] = A.Xi[:k, j]
    weight = kappa * A.mu[j]
    _shift(A, k, kappa, weight)
    A.Xi[:k, :k] -= kappa * np.outer(A.c[:k], A.c[:k])
    A.mu[:k] -= weight * A.c[:k]
    A.place[A.active[j]] = 0
    last = k - 1
    if j != last:
        A.active[j], A.s[j], A.mu[j], A.G[j] = A.active[last], A.s[last], A.mu[last], A.G[last]
        A.Xi[j, :k] = A.Xi[last, :k]
        A.Xi[:k, j] = A.Xi[:k, last]
        A.Xi[j, j] = A.Xi[last, last]
    A.whole[0] = last
    A.whole[1] += 1


def insert(A: Model, i: int, s: float) -> None:
    """Put function i, whose row stands in G after those of the model, into it with precision s."""
    k = int(A.whole[0])
    beta = A.numbers[0]
    e = beta * (A.Xi[:k, :k] @ A.G[k, A.active[:k]])
    variance = 1.0 / (s + A.S[i])
    mean = variance * A.Q[i]
    A.numbers[2] = min(A.numbers[2], (s + A.S[i]) / (s + beta * A.D[i]))
    A.c[:k], A.c[k] = -e, 1.0
    _shift(A, k + 1, -variance, -mean)
    A.Xi[:k, :k] += variance * np.outer(e, e)
    A.Xi[k, :k] = A.Xi[:k, k] = -variance * e
    A.Xi[k, k] = variance
    A.mu[:k] -= mean * e
    A.mu[k], A.s[k], A.active[k] = mean, s, i
    A.place[i] = 1
    A.whole[0] = k + 1
    A.whole[1] += 1


def choose(A: Model) -> tuple[int, int, float, float]:
    """Return what one step gains most by, under a flat hyperprior: (what, which, s, gain).

    Which is a place in the model, or the function to add. A function that is collinear with those
    in the model is marked as refused, and the next best taken.
    """
    k, beta = int(A.whole[0]), A.numbers[0]
    what, which, best, gain = NOTHING, -1, 0.0, 0.0
    for j in range(k):
        xi, s = A.Xi[j, j], A.s[j]
        S, Q = 1.0 / xi - s, A.mu[j] / xi
        if S * xi <= 1e-10:  # rounding; the data say nothing of it
            continue
        more = Q * Q - S
        now = 0.5 * (np.log(s * xi) + Q * Q * xi)
        if more > 0.0:
            new = S * S / more
            here = 0.5 * (np.log(S / (Q * Q)) + more / S) - now
            if here > gain:
                what, which, best, gain = CHANGE, j, new, here
        elif A.place[A.active[j]] == 1 and k > 1 and -now > gain:
            what, which, best, gain = REMOVE, j, np.inf, -now
    while True:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((A.place == 0) & (A.S > 0.0), A.Q * A.Q / A.S, 0.0)
        i = int(np.argmax(ratio))
        r = float(ratio[i])
        if not r > 1.0:
            break
        here = 0.5 * (r - 1.0 - np.log(r))
        if here <= gain:
            break
        new = A.S[i] / (r - 1.0)
        if new + A.S[i] <= COLLINEAR * (new + beta * A.D[i]):
            A.place[i] = -1
            continue
        what, which, best, gain = ADD, i, float(new), here
        break
    return what, which, float(best), float(gain)


def _superfluous(A: Model) -> int:
    """Return a function of the model that it is no worse without, however little; or -1."""
    k = int(A.whole[0])
    xi = np.diagonal(A.Xi)[:k]
    S, Q = 1.0 / xi - A.s[:k], A.mu[:k] / xi
    there = (A.place[A.active[:k]] == 1) & (Q * Q <= S) & (k > 1)
    return int(np.argmax(there)) if np.any(there) else -1


def run(A: Model, tol: float, limit: int) -> tuple[int, int, float, float]:
    """Take steps inside the model until one that adds gains more, or none gains `tol`.

    A function goes even if that gains less.

    Return what `choose` wants next; NOTHING at the end, and with a gain of `tol` where there is
    more to do after `limit` steps, or the matrices must be fresh. A limit of 0 is a look.
    """
    for step in range(limit + 1):
        what, which, s, gain = choose(A)
        if gain < tol:
            j = _superfluous(A)
            if j < 0:
                return NOTHING, -1, 0.0, gain
            what, which, s, gain = REMOVE, j, np.inf, 0.0
        if step == limit:
            break
        if what == ADD:
            return what, which, s, gain
        A.numbers[1] += gain
        if what == CHANGE:
            change(A, which, s)
        else:
            remove(A, which)
        if A.numbers[2] < CANCELLED:
            return NOTHING, -1, 0.0, tol
    return NOTHING, -1, 0.0, tol
