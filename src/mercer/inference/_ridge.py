"""Weight decay: expansions whose coefficients have a Gaussian prior (BKM 99).

    F(theta, beta) = sum_i w_i loss_i(f_i) + c sum_j theta_j^2,   f = m + Phi theta + H beta,

c = unit/s^2 for the scale s of the prior. At the optimum theta = Phi'u/(2c), whatever the loss, and
all columns take part: there is nothing to be generated. For any pulls u with H'u = 0

    D(u) = -sum_i w_i loss_i*(-u_i/w_i) - u'm - |Phi'u|^2/(4c) <= F.

It is minimised by Newton's method (`_ridge_newton`) where the slope of the loss is continuous. A
loss that is linear in pieces has a neighbour whose slope is,

    g_i(f) = max over u of  -w_i loss_i*(-u/w_i) - u f - (mu/(2 w_i)) (u - v_i)^2:

the method of multipliers, which minimises it with pulls v, takes those u at which the maximum is
attained for the next v, and comes to the optimum for any mu, the faster the smaller it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._losses import Insensitive
from mercer.inference._ridge_newton import Few, Many, Variables, minimise

__all__ = ["decay", "solve_ridge"]

Floats = NDArray[np.float64]

_TINY = float(np.finfo(float).tiny)
_FEW = 4  # rows for each function, for functions to be few
_BLOCK = 512  # columns that are formed at once
# Rounds of the method of multipliers, how many of them may be for nothing, the part of the
# tolerance that they stop at, and what rounding may leave of the gap.
_ROUNDS, _PATIENCE, _SETTLED, _ROUNDING = 60, 10, 1e-4, 1e-12
# mu: at first, in units of the mean loss; what it is multiplied by after each round; and the
# least, in units of the first.
_WIDE, _FASTER, _NARROW = 0.1, 0.3, 1e-6
_BACK = 6  # rounds that are undone after three for nothing


def decay(problem: ExpansionProblem, lam: float) -> float:
    """Return c = unit/s^2 of the prior that has the penalty lam."""
    return lam * (lam / problem.loss.unit)


def solve_ridge(
    problem: ExpansionProblem, lam: float, tol: float = 1e-6, start: Floats | None = None
) -> Expansion:
    """Return the optimum under weight decay of the scale unit/lam.

    Over p functions, at most a quarter of the n rows, O(n p^2) time a step and O(n p) memory. Over
    more of them O(n^2) memory, and time O(n^2 p) to begin with and O(n^3/3) a step; all are formed
    twice.

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
    c, columns = decay(problem, lam), problem.columns
    H = np.empty((problem.n, 0)) if problem.H is None else problem.H
    few = _FEW * columns.size <= problem.n
    over: Variables
    with blas_for(problem.n):
        if few:
            over = Few(columns.take(np.arange(columns.size)), H, c)
        else:
            over = Many(_gram(problem) / (2.0 * c), H)
        x, u = _minimised(problem, over, tol, start)
        f = problem.mean + over.values(x)
        penalty = 0.5 * over.product(x, x)
        own, beta = x[: len(x) - problem.n_free], x[len(x) - problem.n_free :]
        slopes, theta = columns.products(np.column_stack([u, u if few else own])).T
        theta = own if few else theta / (2.0 * c)
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


class _Smooth:
    """A loss with a continuous slope, as Newton's method asks for it."""

    def __init__(self, problem: ExpansionProblem) -> None:
        self.value, self.pull, self.curvature = problem.value, problem.pull, problem.curvature
        self.steepest = problem.weighted(np.full(problem.n, problem.loss.greatest_curvature))


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
    problem: ExpansionProblem, over: Variables, tol: float, start: Floats | None
) -> tuple[Floats, Floats]:
    """Return the variables of the optimum, and its pulls."""
    if problem.loss.kind != "linear":
        x = minimise(_Smooth(problem), problem.mean, over)
        return x, problem.balanced(problem.pull(problem.mean + over.values(x)))
    low, high = problem.reach()
    v = np.zeros(problem.n) if start is None else np.clip(start, low, high)
    mu = _WIDE * float(np.mean(problem.loss.values(problem.mean))) or 1.0
    widest, x, stalled = mu, over.none(), 0
    best = np.inf, x, v
    for _ in range(_ROUNDS):
        rounded = _Rounded(problem, v, mu)
        x = minimise(rounded, problem.mean, over, x)
        f = problem.mean + over.values(x)
        v = rounded.pull(f)
        u = problem.balanced(v)
        objective = problem.value(f) + 0.5 * over.product(x, x)
        gap = objective - problem.dual_value(u) + over.pulled(u)
        stalled = 0 if gap < 0.5 * best[0] else stalled + 1
        if gap < best[0]:
            best = gap, x, u
        patience = 2 if best[0] <= 0.1 * tol * objective else _PATIENCE
        if gap <= max(_SETTLED * tol, _ROUNDING) * objective or stalled >= patience:
            break
        # The narrower it is, the more of rounding is in the pulls: where they get worse, back.
        mu *= _FASTER ** (-_BACK if stalled and stalled % 3 == 0 else 1)
        mu = min(max(mu, _NARROW * widest), widest)
    return best[1], best[2]
