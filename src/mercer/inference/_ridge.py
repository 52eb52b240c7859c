"""Weight decay: expansions whose coefficients have a Gaussian prior (BKM 99).

    F(theta, beta) = sum_i w_i loss_i(f_i) + c sum_j theta_j^2,   f = m + Phi theta + H beta,

c = unit/s^2 for the scale s of the prior. At the optimum theta = Phi'u/(2c), whatever the loss, and
all columns take part: there is nothing to be generated. For any pulls u with H'u = 0

    D(u) = -sum_i w_i loss_i*(-u_i/w_i) - u'm - |Phi'u|^2/(4c) <= F.

It is minimised over theta if there are fewer columns than rows, else over coordinates of Phi Phi',
by Newton's method where the slope of the loss is continuous. A loss that is linear in pieces has a
neighbour whose slope is,

    g_i(f) = max over u of  -w_i loss_i*(-u/w_i) - u f - (mu/(2 w_i)) (u - v_i)^2:

the method of multipliers, which minimises it with pulls v, takes those u at which the maximum is
attained for the next v, and comes to the optimum for any mu, the faster the smaller it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from mercer.compute import blas_for
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._losses import Insensitive

__all__ = ["solve_ridge"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_BLOCK = 512  # columns that are formed at once
_STEPS = 200  # of Newton's method
_SHARE, _LEAST = 1e-3, 1e-10  # of the greatest curvature that is added: at first, and at least
_MULTIPLIERS = 100  # rounds of the method of multipliers
_SETTLED = 1e-4  # the part of the tolerance that they stop at
_FASTER = 0.5  # what mu is multiplied by after each


def solve_ridge(
    problem: ExpansionProblem, lam: float, tol: float = 1e-6, start: Floats | None = None
) -> Expansion:
    """Return the optimum under weight decay of the scale unit/lam.

    O(n p^2) time a step and O(n p) memory, p the smaller of the numbers of rows and columns, for
    losses with a continuous slope; O(n^3) and O(n^2) for others. All columns are formed, once if
    they are no more than the rows, twice otherwise.

    Parameters
    ----------
    problem : ExpansionProblem
    lam : float
        Positive.
    tol : float
        On the gap between F and D, relative to F.
    start : (n,) array, optional
        Pulls of a problem nearby.
    """
    c, columns = lam**2 / problem.loss.unit, problem.columns
    few = columns.size <= problem.n
    with blas_for(problem.n):
        A = columns.take(np.arange(columns.size)) if few else _coordinates(_gram(problem), c)
        x, u = _minimised(problem, A, c, tol, start)
        p = A.shape[1]
        z, beta = x[:p], x[p:]
        f = _latent(problem, A, x)
        penalty = c * float(z @ z)
        # theta is Phi'v where A = Phi Q, Q'Q = 1 and theta = Q z
        v = u if few else A @ (z / np.einsum("ij,ij->j", A, A))
        slopes, theta = columns.products(np.column_stack([u, v])).T
        theta = z if few else theta
    objective = problem.value(f) + penalty
    dual = problem.dual_value(u) - float(slopes @ slopes) / (4.0 * c)
    dual = max(dual, 0.0)  # no loss is less
    gap = (objective - dual) / max(objective, _TINY)
    kept = np.flatnonzero(theta)
    return Expansion(
        kept,
        np.array(theta[kept]),
        beta,
        f,
        u,
        objective,
        dual,
        2.0 * c * np.abs(theta[kept]),
        "certified" if gap <= tol else "stopped",
        1,
        columns.size,
    )


def _gram(problem: ExpansionProblem) -> Floats:
    """Return Phi Phi', (n, n), in Fortran order."""
    K = np.zeros((problem.n, problem.n), order="F")
    size = problem.columns.size
    for first in range(0, size, _BLOCK):
        A = problem.columns.take(np.arange(first, min(first + _BLOCK, size)))
        K += A @ A.T
    return K


def _coordinates(K: Floats, c: float) -> Floats:
    """Return A (n, p) with A A' = K and orthogonal columns.

    Eigenvalues that are rounding are left out where they could matter beside 2 c, the decay; else
    they do no harm, and what they stand for belongs to theta.
    """
    values, vectors = eigh(K, overwrite_a=True, check_finite=False)
    sure = values > len(K) * _EPS * max(float(values[-1]), _TINY)
    kept = sure | ((values > 0.0) & (values <= 2e-3 * c))
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _latent(problem: ExpansionProblem, A: Floats, x: Floats) -> Floats:
    """Return m + A z + H beta, x having z and beta."""
    f = problem.mean + A @ x[: A.shape[1]]
    return f if problem.H is None else np.asarray(f + problem.H @ x[A.shape[1] :])


class _Smooth:
    """A loss with a continuous slope, as Newton's method asks for it."""

    def __init__(self, problem: ExpansionProblem) -> None:
        self.value, self.pull, self.curvature = problem.value, problem.pull, problem.curvature
        self.steepest = problem.weighted(np.full(problem.n, problem.loss.greatest_curvature))
        self.share = 0.0 if problem.loss.kind == "squares" else _SHARE


class _Rounded:
    """The neighbour of a loss that is linear in pieces, about pulls v; see the module's text."""

    def __init__(self, problem: ExpansionProblem, v: Floats, mu: float) -> None:
        loss = problem.loss
        self.y, self.v = loss.y, v
        self.zone = loss.zone if isinstance(loss, Insensitive) else 0.0
        self.low, self.high = problem.reach()
        reach = np.maximum(self.high, -self.low)  # w
        self.some = reach > 0.0
        self.mu = mu / np.where(self.some, reach, 1.0)
        self.steepest = np.where(self.some, 1.0 / self.mu, 0.0)
        self.share = _SHARE

    def pull(self, f: Floats) -> Floats:
        """Return the u at which the maximum is attained."""
        u = self.v + (self.y - f) / self.mu
        u = np.sign(u) * np.maximum(np.abs(u) - self.zone / self.mu, 0.0)
        return np.clip(u, self.low, self.high)

    def value(self, f: Floats) -> float:
        """Return the sum of g."""
        u = self.pull(f)
        rows = u * (self.y - f) - self.zone * np.abs(u) - 0.5 * self.mu * (u - self.v) ** 2
        return float(np.sum(rows))

    def curvature(self, f: Floats) -> Floats:
        """Return w/mu where a pull is not at a bound, nor held at 0 by the zone."""
        u = self.pull(f)
        inside = (u > self.low) & (u < self.high)
        if self.zone:
            inside &= u != 0.0
        return np.where(inside, self.steepest, 0.0)


def _minimised(
    problem: ExpansionProblem, A: Floats, c: float, tol: float, start: Floats | None
) -> tuple[Floats, Floats]:
    """Return z and beta of the optimum, together, and its pulls."""
    B = A if problem.H is None else np.concatenate([A, problem.H], axis=1)
    decay = np.concatenate([np.full(A.shape[1], 2.0 * c), np.zeros(problem.n_free)])
    x = np.zeros(B.shape[1])
    if problem.loss.kind != "linear":
        x = _newton(_Smooth(problem), problem.mean, B, decay, x)
        return x, problem.balanced(problem.pull(_latent(problem, A, x)))
    low, high = problem.reach()
    v = np.zeros(problem.n) if start is None else np.clip(start, low, high)
    mu = 0.1 * float(np.mean(problem.loss.values(problem.mean))) or 1.0
    best = np.inf, x, v
    for _ in range(_MULTIPLIERS):
        rounded = _Rounded(problem, v, mu)
        x = _newton(rounded, problem.mean, B, decay, x)
        f = _latent(problem, A, x)
        v = rounded.pull(f)
        u = problem.balanced(v)
        penalty = 0.5 * float(decay @ x**2)
        objective = problem.value(f) + penalty
        # A'u is 2 c z, but for what is left of Newton's method and of the change from v to u
        slopes = A.T @ u
        gap = objective - problem.dual_value(u) + float(slopes @ slopes) / (4.0 * c)
        if gap < best[0]:
            best = gap, x, u
        if gap <= _SETTLED * tol * objective:
            break
        mu *= _FASTER
    return best[1], best[2]


def _newton(loss: _Smooth | _Rounded, mean: Floats, A: Floats, decay: Floats, x: Floats) -> Floats:
    """Return the x that minimises the loss of mean + A x and sum_j decay_j x_j^2/2, from x."""
    f = mean + A @ x
    share = loss.share
    for _ in range(_STEPS):
        fall = A.T @ loss.pull(f) - decay * x
        curvature = loss.curvature(f) + share * loss.steepest
        some = np.flatnonzero(curvature)
        half = np.sqrt(curvature[some])[:, None] * A[some]
        G = half.T @ half
        np.fill_diagonal(G, np.diagonal(G) + decay)
        step = _solved(G, fall)
        gain, here = float(fall @ step), loss.value(f) + 0.5 * float(decay @ x**2)
        if not gain > 1e-16 * abs(here):
            break
        t = _length(loss, x, step, f, A @ step, decay)
        x = x + t * step
        f = mean + A @ x
        if loss.share:
            share = max(_LEAST, 0.1 * share) if t > 0.9 else min(1.0, 10.0 * share)
        if gain <= 1e-14 * abs(here) and t == 1.0:
            break
    return x


def _solved(G: Floats, b: Floats) -> Floats:
    """Return the least G^+ b, where functions may depend on each other."""
    root = np.sqrt(np.diagonal(G))
    root = np.where(root > 0.0, root, 1.0)
    M = G / np.outer(root, root)
    try:
        factor = cho_factor(M, lower=True, check_finite=False)
        if np.min(np.diagonal(factor[0])) > 1e-7:
            return np.asarray(cho_solve(factor, b / root, check_finite=False) / root)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(M, b / root, rcond=len(b) * _EPS)[0] / root)


def _length(
    loss: _Smooth | _Rounded, x: Floats, step: Floats, f: Floats, move: Floats, decay: Floats
) -> float:
    """Return how far to go along a step: 1, or less where F rises before."""

    def slope(t: float) -> float:
        return float((decay * (x + t * step)) @ step - loss.pull(f + t * move) @ move)

    at_zero = slope(0.0)
    if slope(1.0) <= -0.1 * at_zero:  # a little beyond the minimum at the most
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-2 * high and high > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high if low == 0.0 else low
