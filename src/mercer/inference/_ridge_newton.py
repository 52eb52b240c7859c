"""Newton's method for a loss and a quadratic penalty.

    minimise  sum_i w_i loss_i(f_i) + c |z|^2,    f = m + A z + H beta,

A with columns that are orthogonal to each other. With the pulls u = -w loss'(f) and C the curvature
of the rows a step solves (A'C A + 2c) dz + A'C H dbeta = A'u - 2c z, and likewise for beta: normal
equations that are well-conditioned but for the scale of the columns, as long as curvatures do not
differ by much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

__all__ = ["Coefficients", "Smooth", "minimise"]

Floats = NDArray[np.float64]

_STEPS = 200
_EPS = float(np.finfo(float).eps)
# The share of the greatest curvature that functions without a penalty are given, at least and at
# most, and by what it changes: more after a step that falls short, less after one that does not.
_LEAST, _MOST, _CHANGE = 1e-13, 1.0, 100.0
# What a step may gain of F, beyond which that is rounding, or nothing at all.
_SETTLED, _EXACT = 1e-14, 1e-26
_NONE = 1e-14  # curvature so small beside the greatest is none
_ORTHOGONAL = 1e-13  # cosines so small are those of columns that are orthogonal


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


class Coefficients:
    """The variables z, then beta; O(n k^2) a step and O(n k) memory for k of them.

    Parameters
    ----------
    A : (n, p) array
        Columns that are orthogonal to each other.
    H : (n, r) array
        Those without a penalty.
    c : float
        Above 0.
    """

    def __init__(self, A: Floats, H: Floats, c: float) -> None:
        self.p, self.A, self.H = A.shape[1], A, H
        self.decay = np.concatenate([np.full(self.p, 2.0 * c), np.zeros(H.shape[1])])
        self.squares = np.einsum("ij,ij->j", A, A)
        # directions that are next to rounding need not be orthogonal to H, and matter little
        most = np.sqrt(np.max(self.squares, initial=0.0)) * np.linalg.norm(H, axis=0)
        self.is_split = bool(np.all(np.abs(A.T @ H) <= _ORTHOGONAL * most))

    def none(self) -> Floats:
        """Return the variables of f = m."""
        return np.zeros(len(self.decay))

    def values(self, x: Floats) -> Floats:
        """Return f - m = A z + H beta, (n,)."""
        return np.asarray(self.A @ x[: self.p] + self.H @ x[self.p :])

    def product(self, x: Floats, other: Floats) -> float:
        """Return the bilinear form whose x, x is twice the penalty."""
        return float(x @ (self.decay * other))

    def pulled(self, u: Floats) -> float:
        """Return |A'u|^2/(4c), what the dual problem has in the place of the penalty."""
        slopes = self.A.T @ u
        return float(slopes @ (slopes / (2.0 * self.decay[: self.p])))

    def step(self, x: Floats, u: Floats, curvature: Floats, extra: Floats) -> Floats:
        """Return Newton's step, with extra (n,) curvature for functions without a penalty."""
        slope = np.concatenate([self.A.T @ u, self.H.T @ u]) - self.decay * x
        free = (self.H.T * (curvature + extra)) @ self.H
        if self.is_split and np.ptp(curvature) == 0.0:
            own = slope[: self.p] / (curvature[0] * self.squares + self.decay[: self.p])
            return np.concatenate([own, _solved(free, slope[self.p :])])
        some = np.flatnonzero(curvature)
        half = np.hstack([self.A[some], self.H[some]])
        half *= np.sqrt(curvature[some])[:, None]
        G = half.T @ half
        np.fill_diagonal(G, np.diagonal(G) + self.decay)
        G[self.p :, self.p :] = free
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
        wide = np.zeros((min(self.H.shape), len(x)))
        wide[:, self.p :] = np.linalg.qr(np.sqrt(extra)[:, None] * self.H, mode="r")
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
        pulled = np.concatenate([self.A[others].T @ u[others], self.H[others].T @ u[others]])
        inner = solve_triangular(R, pulled, trans=1, check_finite=False)
        return np.asarray(solve_triangular(R, Q.T @ wanted + inner, check_finite=False))


def minimise(
    loss: Smooth, mean: Floats, over: Coefficients, x: Floats | None = None
) -> tuple[Floats, bool]:
    """Return the variables of the optimum, from some that are given or from f = m.

    And whether it is the optimum: Ctrl-C leaves those of the last step, none of which is worse
    than the one before.
    """
    best = over.none() if x is None else x
    try:
        for after in _steps(loss, mean, over, best):
            best = after
    except KeyboardInterrupt:
        return best, False
    return best, True


def _steps(loss: Smooth, mean: Floats, over: Coefficients, x: Floats) -> Iterator[Floats]:
    """Yield the variables after each step of Newton's method."""
    f, share = mean + over.values(x), _LEAST
    floor = _NONE * loss.steepest
    settled, last = False, np.inf
    for _ in range(_STEPS):
        u = loss.pull(f)
        curvature = loss.curvature(f)
        curvature = np.where(curvature > floor, curvature, 0.0)
        if share > _LEAST:  # pieces of the loss that are flat here are not so where steps end
            curvature = curvature + share * loss.steepest
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
            yield x
        elif share == _MOST:
            break
        share = max(_LEAST, share / _CHANGE) if t > 0.9 else min(_MOST, _CHANGE * share)


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
