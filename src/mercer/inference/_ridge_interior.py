"""Weight decay for losses that are linear in pieces, by interior points.

Such a loss of the residual t = y - f has a slope of h above a zone e, of l below -e and 0 between:

    minimise  sum_i h_i p_i - l_i q_i + c |z|^2,    p >= t - e,  q >= -t - e,  p, q >= 0.

Its multipliers are two parts of the pulls, u = a - b with 0 <= a <= h and 0 <= b <= -l, and at the
optimum A'u = 2c z, H'u = 0 and

    a (p - t + e) = 0,    (h - a) p = 0,    b (q + t + e) = 0,    (-l - b) q = 0.

Newton's method for mu in the place of these zeros keeps all eight factors positive. What is left of
its equations when they are eliminated is a step of `_ridge_newton`, for rows of positive curvature.
mu is chosen, and the step corrected to second order, as Mehrotra (1992) does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._ridge_bounds import above, below, enough
from mercer.inference._ridge_newton import Coefficients

__all__ = ["by_interior_points"]

Floats = NDArray[np.float64]

_STEPS, _PATIENCE = 100, 8  # at the most, and how many of them may be for nothing
_FAR = 100.0  # residuals from 0, to begin with: points near a face from the start get stuck there
_SHORT = 0.995  # of the way to where a factor is 0
_FREE = 1e-13  # the share of curvature that functions without a penalty are given beyond
_SIGNS = np.array([[1.0], [-1.0]])


class _Factors(NamedTuple):
    """What must stay positive, for both parts of the pulls: (2, n) each.

    part : a and b
    room : h - a and -l - b
    slack : p - t + e and q + t + e
    excess : p and q
    """

    part: Floats
    room: Floats
    slack: Floats
    excess: Floats

    def moved(self, by: _Factors, length: float) -> _Factors:
        """Return all of them after a step."""
        return _Factors(*(own + length * step for own, step in zip(self, by, strict=True)))

    def longest(self, by: _Factors) -> float:
        """Return the longest step, at most 1, after which none is negative."""
        pairs = zip(self, by, strict=True)
        return 1.0 / max(1.0, *(float(np.max(-step / own)) for own, step in pairs))

    def products(self) -> Floats:
        """Return those that are 0 at the optimum, (2, 2, n)."""
        return np.stack([self.part * self.slack, self.room * self.excess])


def by_interior_points(
    problem: ExpansionProblem, over: Coefficients, tol: float, inside: float = 0.0
) -> tuple[Floats, Floats, bool]:
    """Return the variables of the optimum, and its pulls.

    And whether it is the optimum: Ctrl-C leaves the best so far. Some ten to twenty steps of two
    systems each, but under decays so small that points get stuck: see `_ridge_multipliers`.

    Parameters
    ----------
    problem : ExpansionProblem
        Its loss is linear in pieces.
    over : Coefficients
    tol : float
        On the gap between F and D, relative to F.
    inside : float
        How far inside of flat pieces their edge is aimed at, in units of the largest target. Under
        decays that all but vanish, residuals that rounding puts outside cost more than all else.
    """
    idle, last = 0, np.full(2, np.inf)
    x, u = over.none(), np.zeros(problem.n)
    F, D = problem.value(problem.mean), 0.0  # no loss is less
    points = _Points(problem, over, inside)
    try:
        for _ in range(_STEPS):
            points.step()
            # Variables and pulls are good or bad each on their own.
            objective = above(problem, over, points.x)
            if objective < F:
                F, x = objective, points.x
            v = problem.balanced(points.pulls())
            dual = below(problem, over, v)
            if dual > D:
                D, u = dual, v
            # far from the optimum the products tell of progress before the gap does
            now = np.array([F - D, points.left])
            idle = 0 if np.any(now < 0.5 * last) else idle + 1
            last = np.where(now < 0.5 * last, now, last)
            if F - D <= enough(tol) * F or idle == _PATIENCE:
                break
    except KeyboardInterrupt:
        return x, u, False
    return x, u, True


class _Points:
    """The iterates, from f = m and pulls halfway.

    Attributes
    ----------
    x : (k,) array
        The variables.
    left : float
        The mean of the products that are 0 at the optimum.
    """

    def __init__(self, problem: ExpansionProblem, over: Coefficients, inside: float) -> None:
        self.over, self.x = over, over.none()
        self._target = problem.loss.y - problem.mean
        zone = problem.loss.zone
        self._zone = zone - inside * float(np.max(np.abs(self._target), initial=0.0))
        low, high = problem.reach()
        bound = np.stack([high, -low])
        # Parts that are held at 0 keep factors of 1, and take no part in anything.
        self._some = bound > 0.0
        ahead = _SIGNS * self._target - self._zone
        unit = _FAR * (float(np.mean(np.abs(self._target))) + zone or 1.0)
        half = np.where(self._some, 0.5 * bound, 1.0)
        self._at = _Factors(
            half,
            half,
            np.where(self._some, np.maximum(-ahead, 0.0) + unit, 1.0),
            np.where(self._some, np.maximum(ahead, 0.0) + unit, 1.0),
        )
        self.left = self._mean(self._at)

    def pulls(self) -> Floats:
        """Return u = a - b, (n,)."""
        part = np.where(self._some, self._at.part, 0.0)
        return np.asarray(part[0] - part[1])

    def step(self) -> None:
        """Take a step."""
        at, product = self._at, self._at.products()
        _, by = self._direction(-product)
        after = self._mean(at.moved(by, at.longest(by)))
        second = np.stack([by.part * by.slack, by.room * by.excess])
        dx, by = self._direction(after * (after / self.left) ** 2 - product - second)
        length = _SHORT * at.longest(by)
        self.x = self.x + length * dx
        self._at = at.moved(by, length)
        self.left = self._mean(self._at)

    def _mean(self, at: _Factors) -> float:
        """Return the mean of the products, over the parts that are not held at 0."""
        return float(np.sum(at.products(), where=self._some)) / (2.0 * np.sum(self._some))

    def _direction(self, wanted: Floats) -> tuple[Floats, _Factors]:
        """Return the step that to first order changes the products by `wanted`, (2, 2, n).

        With push = wanted_0/a - wanted_1/(h - a), less what t, p and the slack lack of agreement,
        and D = slack/a + p/(h - a), a part is changed by da = (push + dt)/D: for the variables, a
        row of curvature 1/D.
        """
        at, over = self._at, self.over
        t = _SIGNS * (self._target - over.values(self.x))
        lack = self._zone - t - at.slack + at.excess
        push = wanted[0] / at.part - wanted[1] / at.room - lack
        weight = np.where(self._some, 1.0 / (at.slack / at.part + at.excess / at.room), 0.0)
        curvature = np.sum(weight, axis=0)
        pulled = self.pulls() + np.sum(_SIGNS * weight * push, axis=0)
        dx = over.step(self.x, pulled, curvature, _FREE * curvature)
        part = weight * (push - _SIGNS * over.values(dx))
        slack = (wanted[0] - at.slack * part) / at.part
        excess = (wanted[1] + at.excess * part) / at.room
        still = np.where(self._some, 1.0, 0.0)
        return dx, _Factors(part, -part, still * slack, still * excess)
