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

_FEW = 4  # rows for each function, for functions to be few
_MORE = 4  # functions for each row, at the most, for them to be varied themselves
_LARGEST = 1024  # the same for all rows: a step takes the QR of a matrix
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
    three times. Where that leaves no certificate, p <= 1024 of them are varied themselves, unless
    the loss is linear in pieces, in O(n p) memory and O((n + p) p^2) a step.

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
    with blas_for(problem.n):
        if few:
            best = _over_few(problem, H, c, tol, start)
        else:
            over = Many(_gram(problem) / (2.0 * c), H)
            x, u = _minimised(problem, over, tol, start)
            a, beta = x[: problem.n], x[problem.n :]
            theta = columns.products(a[:, None])[:, 0] / (2.0 * c)
            # a is itself a point of the dual problem, without the error of u, times K
            best = _found(problem, H, c, theta, beta, [u, problem.balanced(a)])
            smooth = problem.loss.kind != "linear"  # else steps are far too many
            if smooth and best.gap > tol and columns.size <= min(_LARGEST, _MORE * problem.n):
                # K is squared: over theta itself there are twice as many digits
                again = _over_few(problem, H, c, tol, best.pull, theta, beta)
                best = min(best, again, key=lambda one: one.gap)
    return best._replace(status="certified" if best.gap <= tol else "stopped")


def _over_few(
    problem: ExpansionProblem,
    H: Floats,
    c: float,
    tol: float,
    start: Floats | None,
    theta: Floats | None = None,
    beta: Floats | None = None,
) -> Expansion:
    """Return the optimum found over theta and beta themselves, from some that are given."""
    size = problem.columns.size
    over = Few(problem.columns.take(np.arange(size)), H, c)
    first = None if theta is None or beta is None else np.concatenate([theta, beta])
    x, u = _minimised(problem, over, tol, start, first)
    return _found(problem, H, c, x[:size], x[size:], [u])


def _found(
    problem: ExpansionProblem, H: Floats, c: float, theta: Floats, beta: Floats, pulls: list[Floats]
) -> Expansion:
    """Return the solution of coefficients, with F as they have it, and the best D of some pulls."""
    columns = problem.columns
    f = problem.mean + H @ beta
    for piece in _pieces(columns.size):
        f += columns.take(piece) @ theta[piece]
    objective = problem.value(f) + c * float(theta @ theta)
    slopes = columns.products(np.column_stack(pulls))
    duals = [
        max(problem.dual_value(u) - float(own @ (own / (4.0 * c))), 0.0)  # no loss is less
        for u, own in zip(pulls, slopes.T, strict=True)
    ]
    # the larger, unless it is above F: then rounding is in it
    gaps = [abs(objective - dual) for dual in duals]
    best, kept = int(np.argmin(gaps)), np.flatnonzero(theta)
    return Expansion(
        kept,
        np.array(theta[kept]),
        beta,
        f,
        pulls[best],
        objective,
        duals[best],
        2.0 * c * np.abs(theta[kept]),
        "",
        1,
        columns.size,
    )


def _pieces(size: int) -> list[NDArray[np.intp]]:
    return [np.arange(i, min(i + _BLOCK, size)) for i in range(0, size, _BLOCK)]


def _gram(problem: ExpansionProblem) -> Floats:
    """Return Phi Phi', (n, n), in Fortran order."""
    K = np.zeros((problem.n, problem.n), order="F")
    for piece in _pieces(problem.columns.size):
        A = problem.columns.take(piece)
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
    problem: ExpansionProblem,
    over: Variables,
    tol: float,
    start: Floats | None,
    first: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the variables of the optimum, from some that are given if any, and its pulls."""
    if problem.loss.kind != "linear":
        x = minimise(_Smooth(problem), problem.mean, over, first)
        return x, problem.balanced(problem.pull(problem.mean + over.values(x)))
    low, high = problem.reach()
    v = np.zeros(problem.n) if start is None else np.clip(start, low, high)
    mu = _WIDE * float(np.mean(problem.loss.values(problem.mean))) or 1.0
    widest, x, stalled = mu, over.none() if first is None else first, 0
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
