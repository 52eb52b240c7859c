"""Weight decay for losses that are linear in pieces, by the method of multipliers.

Such a loss has a neighbour whose slope is continuous,

    g_i(f) = max over u of  -w_i loss_i*(-u/w_i) - u f - (mu/(2 w_i)) (u - v_i)^2:

Newton's method minimises it with pulls v, those u at which the maximum is attained are the next v,
and this comes to the optimum for any mu, the faster the smaller it is. It takes several times the
steps of interior points (`_ridge_interior`), and crawls where functions of very different sizes
are to be told apart, but comes to the optimum under decays so small that those get stuck.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._ridge_bounds import above, below, enough
from mercer.inference._ridge_newton import Coefficients, minimise

__all__ = ["by_multipliers"]

Floats = NDArray[np.float64]

_ROUNDS, _PATIENCE = 60, 10  # at the most, and how many of them may be for nothing
# mu: at first, in units of the mean loss; what it is multiplied by after each round; and the
# least, in units of the first.
_WIDE, _FASTER, _NARROW = 0.1, 0.3, 1e-6
_BACK = 6  # rounds that are undone after three for nothing


class _Rounded:
    """The neighbour of a loss that is linear in pieces, about pulls v; see the module's text."""

    def __init__(self, problem: ExpansionProblem, v: Floats, mu: float) -> None:
        self.y, self.v, self.zone = problem.loss.y, v, problem.loss.zone
        self.low, self.high = problem.reach()
        reach = np.maximum(self.high, -self.low)  # w
        self.mu = mu / np.where(reach > 0.0, reach, 1.0)
        self.steepest = np.where(reach > 0.0, 1.0 / self.mu, 0.0)

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


def by_multipliers(
    problem: ExpansionProblem, over: Coefficients, tol: float, x: Floats, u: Floats
) -> tuple[Floats, Floats, bool]:
    """Return the variables of the optimum, from x, and its pulls, from u (n,).

    And whether it is the optimum: Ctrl-C leaves the best so far. `tol` is on the gap between F and
    D, relative to F.
    """
    v = u
    mu = _WIDE * float(np.mean(problem.loss.values(problem.mean))) or 1.0
    widest, stalled = mu, 0
    best = np.inf, x, u
    for _ in range(_ROUNDS):
        rounded = _Rounded(problem, v, mu)
        x, whole = minimise(rounded, problem.mean, over, x)
        v = rounded.pull(problem.mean + over.values(x))
        u = problem.balanced(v)
        objective = above(problem, over, x)
        gap = objective - below(problem, over, u)
        stalled = 0 if gap < 0.5 * best[0] else stalled + 1
        if gap < best[0]:
            best = gap, x, u
        patience = 2 if best[0] <= 0.1 * tol * objective else _PATIENCE
        if not whole or gap <= enough(tol) * objective or stalled >= patience:
            break
        # The narrower it is, the more of rounding is in the pulls: where they get worse, back.
        mu *= _FASTER ** (-_BACK if stalled and stalled % 3 == 0 else 1)
        mu = min(max(mu, _NARROW * widest), widest)
    return best[1], best[2], whole
