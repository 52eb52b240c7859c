"""Newton's method for a loss and a quadratic penalty, over few functions or over many.

    minimise  sum_i w_i loss_i(f_i) + c |theta|^2,    f = m + Phi theta + H beta.

`Few` has theta and beta for its variables. Where there are more functions than rows, theta is
Phi'a/(2c) for some a (n,), which at the optimum are the pulls u = -w loss'(f): `Many` has a and
beta, and K = Phi Phi'/(2c) in the place of Phi. With C the curvature of the rows that have some,
its Newton step is a + da = u - C (df), a system of as many rows, as in Laplace's method (BKM 72).
K has the square of the condition number of Phi: what that costs, `Few` mends, which does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

__all__ = ["Few", "Many", "Variables", "minimise"]

Floats = NDArray[np.float64]

_STEPS = 200
_EPS = float(np.finfo(float).eps)
# The share of the greatest curvature that functions without a penalty are given, at least and at
# most, and by what it changes: more after a step that falls short, less after one that does not.
_LEAST, _MOST, _CHANGE = 1e-13, 1.0, 100.0
# What a step may gain of F, beyond which that is rounding, or nothing at all.
_SETTLED, _EXACT = 1e-14, 1e-26
_NONE = 1e-14  # curvature so small beside the greatest is none


class Smooth(Protocol):
    """A sum of losses of rows whose slopes are continuous.

    steepest : (n,) what the curvature of each row is at most
    """

    steepest: Floats

    def value(self, f: Floats) -> float:
        """Return the sum."""

    def pull(self, f: Floats) -> Floats:
        """Return u = -w loss'(f), (n,)."""

    def curvature(self, f: Floats) -> Floats:
        """Return w loss''(f), (n,)."""


class Variables(Protocol):
    """What is varied: coefficients of functions with a penalty, then those without."""

    def none(self) -> Floats:
        """Return the variables of f = m."""

    def values(self, x: Floats) -> Floats:
        """Return f - m, (n,)."""

    def product(self, x: Floats, z: Floats) -> float:
        """Return the bilinear form whose x, x is twice the penalty."""

    def pulled(self, u: Floats) -> float:
        """Return |Phi'u|^2/(4c), what the dual problem has in the place of the penalty."""

    def step(self, x: Floats, u: Floats, curvature: Floats, extra: Floats) -> Floats:
        """Return Newton's step, with extra (n,) curvature for functions without a penalty."""


class Few:
    """theta and beta themselves; O(n p^2) a step and O(n p) memory for p functions."""

    def __init__(self, A: Floats, H: Floats, c: float) -> None:
        self.p, self.H = A.shape[1], H
        self.A = np.concatenate([A, H], axis=1)
        self.decay = np.concatenate([np.full(self.p, 2.0 * c), np.zeros(H.shape[1])])

    def none(self) -> Floats:
        """Return zeros."""
        return np.zeros(len(self.decay))

    def values(self, x: Floats) -> Floats:
        """Return Phi theta + H beta."""
        return np.asarray(self.A @ x)

    def product(self, x: Floats, z: Floats) -> float:
        """Return 2 c theta'zeta."""
        return float(x @ (self.decay * z))

    def pulled(self, u: Floats) -> float:
        """Return |Phi'u|^2/(4c)."""
        slopes = self.A[:, : self.p].T @ u
        return float(slopes @ (slopes / (2.0 * self.decay[: self.p])))

    def step(self, x: Floats, u: Floats, curvature: Floats, extra: Floats) -> Floats:
        """Return Newton's step from the normal equations."""
        some = np.flatnonzero(curvature)
        half = np.sqrt(curvature[some])[:, None] * self.A[some]
        G = half.T @ half
        np.fill_diagonal(G, np.diagonal(G) + self.decay)
        G[self.p :, self.p :] += (self.H.T * extra) @ self.H
        slope = self.A.T @ u - self.decay * x
        found = _by_cholesky(G, slope)
        if found is not None:
            return found
        return self._by_qr(half, some, slope, x, u, curvature, extra)

    def _by_qr(
        self,
        half: Floats,
        some: NDArray[np.intp],
        slope: Floats,
        x: Floats,
        u: Floats,
        curvature: Floats,
        extra: Floats,
    ) -> Floats:
        """Return Newton's step as least squares: G is squared, and lacks half of the digits.

        Rows with curvature C have the residuals u/C^(1/2), and their square roots for a matrix;
        pulls of rows without are left to the normal equations.
        """
        wide = np.zeros((len(extra), len(x)))
        wide[:, self.p :] = np.sqrt(extra)[:, None] * self.H
        decays = np.diag(np.sqrt(self.decay))[: self.p]
        Q, R = np.linalg.qr(np.concatenate([half, decays, wide]))
        size = np.linalg.norm(R, axis=0)
        if np.min(np.abs(np.diagonal(R)) / np.where(size > 0.0, size, 1.0)) <= 10.0 * _EPS:
            G = R.T @ R
            return np.asarray(np.linalg.lstsq(G, slope, rcond=len(x) * _EPS)[0])
        wanted = np.zeros(len(Q))
        wanted[: len(some)] = u[some] / np.sqrt(curvature[some])
        wanted[len(some) : len(some) + self.p] = -np.sqrt(self.decay[: self.p]) * x[: self.p]
        others = np.delete(np.arange(len(u)), some)
        inner = solve_triangular(R, self.A[others].T @ u[others], trans=1, check_finite=False)
        return np.asarray(solve_triangular(R, Q.T @ wanted + inner, check_finite=False))


class Many:
    """a and beta, with K = Phi Phi'/(2c) (n, n); O(n^3/3) a step where all rows have curvature."""

    def __init__(self, K: Floats, H: Floats) -> None:
        self.K, self.H, self.n = K, H, len(K)

    def none(self) -> Floats:
        """Return zeros."""
        return np.zeros(self.n + self.H.shape[1])

    def values(self, x: Floats) -> Floats:
        """Return K a + H beta."""
        return np.asarray(self.K @ x[: self.n] + self.H @ x[self.n :])

    def product(self, x: Floats, z: Floats) -> float:
        """Return a'K b."""
        return float(x[: self.n] @ (self.K @ z[: self.n]))

    def pulled(self, u: Floats) -> float:
        """Return u'K u/2."""
        return 0.5 * float(u @ (self.K @ u))

    def step(self, x: Floats, u: Floats, curvature: Floats, extra: Floats) -> Floats:
        """Return Newton's step: da = u - a for rows without curvature, da' for short.

        Those with some, C, have (C^-1 + K) da = C^-1 (u - a) - K da' - H dbeta. Nothing is made of
        differences there: K may be large, and da next to nothing.
        """
        rest = u - x[: self.n]
        with_some = curvature > 0.0
        some = np.flatnonzero(with_some)
        root = np.sqrt(curvature[some])
        B = self.K[np.ix_(some, some)] * np.outer(root, root)
        np.fill_diagonal(B, np.diagonal(B) + 1.0)
        solved = _inverse(B)

        def taken(V: Floats) -> Floats:
            """Return (C^-1 + K)^-1 V of the rows with curvature."""
            return np.asarray((root * solved((root * V.T).T).T).T)

        other = np.where(with_some, 0.0, rest)
        step, H = other.copy(), self.H[some]
        step[some] = root * solved(rest[some] / root)
        if len(some) < self.n:
            step[some] -= taken((self.K @ other)[some])
        change = np.empty(0)
        if H.shape[1]:
            spread = taken(H)
            G = H.T @ spread + (self.H.T * extra) @ self.H
            change = _solved(0.5 * (G + G.T), self.H.T @ (x[: self.n] + step))
            step[some] -= spread @ change
        return np.concatenate([step, change])


def _inverse(B: Floats) -> Callable[[Floats], Floats]:
    """Return the function B^-1 V of a B (k, k), which is changed, with no eigenvalue below 1.

    Where rounding has made one of them negative, it is 1.
    """
    kept = B.copy()
    try:
        factor = cho_factor(B, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(kept)
        values = np.maximum(values, 1.0)
        return lambda V: np.asarray(vectors @ ((vectors.T @ V).T / values).T)
    return lambda V: np.asarray(cho_solve(factor, V, check_finite=False))


def minimise(loss: Smooth, mean: Floats, over: Variables, x: Floats | None = None) -> Floats:
    """Return the variables of the optimum, from some that are given or from f = m."""
    x = over.none() if x is None else x
    f, share = mean + over.values(x), _LEAST
    floor = _NONE * loss.steepest
    settled, last = False, np.inf
    for _ in range(_STEPS):
        u = loss.pull(f)
        curvature = loss.curvature(f)
        curvature = np.where(curvature > floor, curvature, 0.0)
        step = over.step(x, u, curvature, share * loss.steepest)
        move = over.values(step)
        first, second = over.product(x, step), over.product(step, step)
        gain = float(u @ move) - first
        here = loss.value(f) + 0.5 * over.product(x, x)
        # The pulls, of which steep losses make much of little, go on after F has settled.
        if not gain > _EXACT * abs(here) or (settled and gain > 0.1 * last):
            break
        settled, last = gain <= _SETTLED * abs(here), gain
        t = _length(loss, f, move, first, second)
        if t > 0.0:
            x = x + t * step
            f = mean + over.values(x)
        elif share == _MOST:
            break
        share = max(_LEAST, share / _CHANGE) if t > 0.9 else min(_MOST, _CHANGE * share)
    return x


def _length(loss: Smooth, f: Floats, move: Floats, first: float, second: float) -> float:
    """Return how far to go along a step: 1, or less where F rises before."""

    def slope(t: float) -> float:
        return first + t * second - float(loss.pull(f + t * move) @ move)

    here, fall = loss.value(f), -slope(0.0)
    there = loss.value(f + move) + first + 0.5 * second
    if slope(1.0) <= 0.0 or there <= here - 1e-4 * fall + 1e-14 * abs(here):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-2 * high and high > 1e-14:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return low


def _scaled(G: Floats) -> tuple[Floats, Floats]:
    """Return G with ones on its diagonal, and the roots of what it had there."""
    root = np.sqrt(np.diagonal(G))
    root = np.where(root > 0.0, root, 1.0)
    return G / np.outer(root, root), root


def _by_cholesky(G: Floats, b: Floats) -> Floats | None:
    """Return G^-1 b, None where G is singular but for rounding."""
    M, root = _scaled(G)
    try:
        factor = cho_factor(M, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    if not np.min(np.diagonal(factor[0]), initial=1.0) > 1e-7:
        return None
    return np.asarray(cho_solve(factor, b / root, check_finite=False) / root)


def _solved(G: Floats, b: Floats) -> Floats:
    """Return the least G^+ b, where functions may depend on each other."""
    found = _by_cholesky(G, b)
    if found is not None:
        return found
    M, root = _scaled(G)
    return np.asarray(np.linalg.lstsq(M, b / root, rcond=len(b) * _EPS)[0] / root)
