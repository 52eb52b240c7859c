"""Newton's method of (BKM 70 to 72) in alpha, for one latent function or several.

With f = m + K alpha, c = -g and C = W of the paper, the step of (BKM 72, as corrected) is
alpha + d, (1 + W K) d = g - alpha. It is found by conjugate gradients, whose steps cost O(n^2),
preconditioned by the factorisation at an earlier iterate; one is made again only when the steps
become many, or when the objective turns out not to be concave. Then they end: the first of them,
with the Fisher information in the preconditioner, is that of Fisher scoring.

Not an engine of its own: what the likelihood decides is left to `_mode` and `softmax`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.inference._sites import symmetric_product

__all__ = ["Direction", "Newton", "Point", "Solver"]

Floats = NDArray[np.float64]

_ITERATIONS = 200
_EPS = float(np.finfo(float).eps)
# How far the preconditioner may be from the right length at first. The null space of K, which is
# large for smooth kernels, is not seen by the energy that conjugate gradients minimise: a step of
# length a multiplies what alpha has there too much of by 1 - a.
_LENGTH = 5.0


class Observed(Protocol):
    """What is asked of a problem; latent values are of shape (n,), or (n, C)."""

    @property
    def mean(self) -> Floats:
        """The prior mean."""

    def log_likelihood(self, f: Floats) -> float:
        """Return log p(Y | f), -inf where that is no number."""


class Solver(Protocol):
    """A preconditioner: something like W - W (K^-1 + W)^-1 W, to be multiplied by."""

    def solve(self, v: Floats) -> Floats:
        """Return the product."""


class Point(NamedTuple):
    """An iterate, with what the objective is made of there."""

    alpha: Floats
    f: Floats
    log_likelihood: float
    square: float  # alpha'K alpha

    @property
    def value(self) -> float:
        """The objective."""
        return self.log_likelihood - 0.5 * self.square

    @property
    def rounding(self) -> float:
        """How much the value may be wrong by."""
        return 4.0 * _EPS * (1.0 + abs(self.log_likelihood) + abs(self.square))


class Direction(NamedTuple):
    """Where to go, and whether another preconditioner would do better."""

    d: Floats
    Kd: Floats
    is_good: bool


def _dot(a: Floats, b: Floats) -> float:
    return float(np.sum(a * b))


class Newton(ABC):
    """The iteration, and what it counts.

    K : (n, n) the lower triangle of the Gram matrix
    """

    #: Conjugate gradient steps after which a new factorisation pays, and the most there are.
    many, limit = 12, 40

    def __init__(self, problem: Observed, K: Floats) -> None:
        self.observed, self.K = problem, K
        self.n_iterations = self.n_factorisations = 0
        self.solver: Solver | None = None
        self.was_slow = False  # even a new preconditioner was not good enough

    # --- what the likelihood decides ----------------------------------------------------------

    @abstractmethod
    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        """Return g and what W is made of."""

    @abstractmethod
    def bend(self, W: Floats, v: Floats) -> Floats:
        """Return W v."""

    @abstractmethod
    def precondition(self, W: Floats, f: Floats) -> Solver:
        """Return a preconditioner for a W, with K^-1 + W positive definite there."""

    # --- one step -----------------------------------------------------------------------------

    def point(self, alpha: Floats) -> Point:
        """Return the iterate that has these coefficients."""
        with np.errstate(all="ignore"):  # a start may be anything
            rise = symmetric_product(self.K, alpha)
            f = self.observed.mean + rise
            return Point(alpha, f, self.observed.log_likelihood(f), _dot(alpha, rise))

    def direction(self, r: Floats, W: Floats, solver: Solver, fresh: bool) -> Direction:
        """Return d with (1 + W K) d = r, and K d; r is g - alpha, the gradient times K^-1.

        Conjugate gradients on K + K W K, whose residuals are K rho.
        """
        K = self.K
        d = p = Kd = Kp = np.zeros_like(r)
        rho = r
        energy = first = beta = enough = 0.0
        for step in range(self.limit):
            z = self.shrink(rho, solver)
            Kz = symmetric_product(K, z)
            last, energy = energy, _dot(rho, Kz)
            if step == 0:
                first = max(energy, 0.0)
                # tight near the mode, so that convergence is quadratic
                enough = first * max(min(0.1, np.sqrt(first)), 1e-8) ** 2
            else:
                beta = energy / last
            if step == 0 and not energy > 0:
                # at the top, or with a preconditioner that rounding has made indefinite
                return Direction(d, Kd, not np.any(r))
            if energy <= (enough if step else 0.0) or not np.isfinite(energy):
                return Direction(d, Kd, step <= self.many)
            p, Kp = z + beta * p, Kz + beta * Kp
            bent = p + self.bend(W, Kp)
            curvature = _dot(Kp, bent)
            if not curvature > max(1e-10 * _dot(Kp, p), 0.0):
                # not concave along p: as far as the preconditioner says, or the line search
                return Direction(d + p, Kd + Kp, False)
            a = energy / curvature
            if step == 0 and not fresh and not 1.0 / _LENGTH < a < _LENGTH:
                return Direction(a * p, a * Kp, False)
            d, Kd, rho = d + a * p, Kd + a * Kp, rho - a * bent
        return Direction(d, Kd, False)

    def shrink(self, rho: Floats, solver: Solver) -> Floats:
        """Return (1 + W K)^-1 rho for the W that the solver was made of."""
        return rho - solver.solve(symmetric_product(self.K, rho))

    def along(self, at: Point, d: Floats, Kd: Floats, t: float) -> Point:
        """Return the point at a distance t, in O(n)."""
        f = at.f + t * Kd
        square = at.square + 2.0 * t * _dot(at.alpha, Kd) + t * t * _dot(d, Kd)
        return Point(at.alpha + t * d, f, self.observed.log_likelihood(f), square)

    def line(self, at: Point, d: Floats, Kd: Floats, slope: float) -> Point | None:
        """Return a point along d that is enough of a rise, or None."""
        t = 1.0
        new = self.along(at, d, Kd, t)
        if new.value >= at.value + 1e-4 * slope:
            while t < 1e3:  # while it goes on to rise as steeply
                g, _ = self.slopes(new.f)
                if _dot(g - new.alpha, Kd) < 0.5 * slope:
                    break
                further = self.along(at, d, Kd, 2.0 * t)
                if not further.value > new.value:
                    break
                t, new = 2.0 * t, further
            return new
        for _ in range(60):
            rise = new.value - at.value
            if rise >= 1e-4 * t * slope - at.rounding and new.value > at.value:
                return new
            # the top of the parabola through both ends
            fit = slope * t * t / (2.0 * (slope * t - rise)) if np.isfinite(rise) else 0.1 * t
            t = min(max(fit, 0.1 * t), 0.5 * t)
            new = self.along(at, d, Kd, t)
        return None

    def is_last(self, at: Point, W: Floats, step: Direction, slope: float) -> bool:
        """Return whether the top is where the step ends; W is that of `at`."""
        return abs(slope) <= 1e-12 + at.rounding

    def climb(self, at: Point) -> tuple[Point, bool]:
        """Return the top, and whether it is one to rounding."""
        before = np.inf
        while self.n_iterations < _ITERATIONS:
            self.n_iterations += 1
            g, W = self.slopes(at.f)
            r = g - at.alpha
            step = None if self.solver is None else self.direction(r, W, self.solver, False)
            fresh = step is None or not step.is_good
            slow = self.was_slow
            if fresh:
                self.solver = None
                self.solver = self.precondition(W, at.f)
                step = self.direction(r, W, self.solver, True)
                self.was_slow = not step.is_good
            assert step is not None
            slope = _dot(r, step.Kd)
            if not np.any(step.d) and not step.is_good:
                if not slow:  # the next preconditioner is a better one
                    continue
                # r'K r is no less than what a Newton step could still gain
                left = _dot(r, symmetric_product(self.K, r))
                return at, left <= 1e-8 * (1.0 + abs(at.value))
            if self.is_last(at, W, step, slope):
                last = self.along(at, step.d, step.Kd, 1.0)
                return (last if last.value >= at.value - at.rounding else at), True
            new = self.line(at, step.d, step.Kd, slope) if slope > 0 else None
            if new is not None:
                at = new
                # Newton's steps make a small slope far smaller, unless values round by more than
                # it: then whatever a line search finds is luck, and can be found for ever
                if 0.5 * before < slope <= 1e-8 * (1.0 + abs(at.value)):
                    return at, True
                before = slope
            elif fresh:
                return at, abs(slope) <= 1e-8 * (1.0 + abs(at.value))
            else:
                self.solver = None
        return at, False

    def polish(self, at: Point, solver: Solver) -> Point:
        """Return the point after Newton steps with the solver that belongs to the mode."""
        r = self.slopes(at.f)[0] - at.alpha
        for _ in range(3):
            new = self.point(at.alpha + r - solver.solve(symmetric_product(self.K, r)))
            left = self.slopes(new.f)[0] - new.alpha
            if not np.max(np.abs(left)) < 0.5 * np.max(np.abs(r)):
                break
            at, r = new, left
        return at
