"""Weight decay: expansions whose coefficients have a Gaussian prior (BKM 99).

    F(theta, beta) = sum_i w_i loss_i(f_i) + c sum_j theta_j^2,   f = m + Phi theta + H beta,

c = unit/s^2 for the scale s of the prior. At the optimum theta = Phi'u/(2c), whatever the loss, and
all columns take part: there is nothing to be generated. For any pulls u with H'u = 0

    D(u) = -sum_i w_i loss_i*(-u_i/w_i) - u'm - |Phi'u|^2/(4c) <= F.

It is minimised over the directions that the rows tell apart (`_ridge_spectrum`), found once for all
penalties: by Newton's method (`_ridge_newton`) where the slope of the loss is continuous, and by
interior points (`_ridge_interior`) where the loss is linear in pieces, or, where these get stuck,
by the method of multipliers (`_ridge_multipliers`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import taken_in_pieces
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._ridge_bounds import above, below, enough
from mercer.inference._ridge_interior import by_interior_points
from mercer.inference._ridge_multipliers import by_multipliers
from mercer.inference._ridge_newton import Coefficients, minimise
from mercer.inference._ridge_spectrum import Spectrum

__all__ = ["Ridge", "decay"]

Floats = NDArray[np.float64]

_NEARBY = 100.0  # decay over the next that is near enough to it to begin with
_INSIDE = 1e-14  # of flat pieces their edge is aimed at, if it comes to rounding


def decay(problem: ExpansionProblem, lam: float) -> float:
    """Return c = unit/s^2 of the prior that has the penalty lam."""
    return lam * (lam / problem.loss.unit)


class Ridge:
    """The optima of a problem under weight decay, for one penalty after the other.

    All p functions are formed, once for their singular values in O(n p min(n, p)) time, and again,
    in pieces, for the certificate of each optimum. With k <= min(n, p) of these values above
    rounding a step of Newton's method takes O(n k^2), or O(n k) for squares without weights. What
    is kept are (n + p) k numbers.
    """

    def __init__(self, problem: ExpansionProblem) -> None:
        self.problem = problem
        self.H = np.empty((problem.n, 0)) if problem.H is None else problem.H
        self._spectrum: Spectrum | None = None
        # the last variables, and their decay
        self._last: Floats | None = None
        self._at = np.inf

    def solve(self, lam: float, tol: float = 1e-6) -> Expansion:
        """Return the optimum under weight decay of the scale unit/lam.

        Parameters
        ----------
        lam : float
            Positive.
        tol : float
            On the gap between F and D, relative to F.
        """
        problem, c = self.problem, decay(self.problem, lam)
        try:
            if self._spectrum is None:
                self._spectrum = Spectrum(problem.columns)
            spectrum = self._spectrum
            for near in self._towards(c):
                over = Coefficients(spectrum.values, self.H, near)
                x, u, whole = _minimised(problem, over, tol, self._last)
                self._last, self._at = x, near
                if not whole:
                    break
            found = self._found(c, x, u)
            flat = problem.loss.zone > 0.0 or problem.loss.is_of_labels
            if found.gap > tol and whole and flat and problem.loss.kind == "linear":
                x, u, whole = by_interior_points(problem, over, tol, _INSIDE)
                found = min(found, self._found(c, x, u), key=lambda each: each.gap)
        except KeyboardInterrupt:  # before there was anything, or while it was measured
            nothing = np.zeros(problem.columns.size), np.zeros(self.H.shape[1])
            found, whole = self._measured(c, *nothing, np.array(problem.mean)), False
        status = "certified" if found.gap <= tol else "stopped"
        return found._replace(status=status if whole else "interrupted")

    def _towards(self, c: float) -> list[float]:
        """Return decays that end with c, none of them far below the one before.

        From afar Newton's method takes many short steps where a loss has flat pieces. Squares have
        none, and losses that are linear in pieces have a way of their own.
        """
        assert self._spectrum is not None
        if self.problem.loss.kind in ("squares", "linear"):
            return [c]
        first = self._at
        if not np.isfinite(first):
            steepest = self.problem.loss.greatest_curvature
            first = steepest * float(np.max(self._spectrum.size, initial=0.0)) ** 2
        count = int(np.log(first / c) / np.log(_NEARBY)) if first > c else 0
        return [c * _NEARBY**k for k in range(count, -1, -1)]

    def _found(self, c: float, x: Floats, u: Floats) -> Expansion:
        """Return the solution of variables, with F as its coefficients have it, and the best D."""
        problem, columns, spectrum = self.problem, self.problem.columns, self._spectrum
        assert spectrum is not None
        k = len(spectrum.size)
        theta, beta = spectrum.coefficients(x[:k]), x[k:]
        pulls = [u, problem.balanced(spectrum.pulls(x[:k], u, c))]
        f = problem.mean + self.H @ beta
        for piece, A in taken_in_pieces(columns):
            f += A @ theta[piece]
        found = self._measured(c, theta, beta, f)
        slopes = columns.products(np.column_stack(pulls))
        duals = [
            max(problem.dual_value(u) - float(own @ (own / (4.0 * c))), 0.0)  # no loss is less
            for u, own in zip(pulls, slopes.T, strict=True)
        ]
        # the larger, unless it is above F: then rounding is in it
        best = int(np.argmin([abs(found.objective - dual) for dual in duals]))
        return found._replace(pull=pulls[best], dual=duals[best])

    def _measured(self, c: float, theta: Floats, beta: Floats, f: Floats) -> Expansion:
        """Return coefficients with F of them, and pulls that prove nothing but that it is above 0.

        f is their function at the rows.
        """
        kept, problem = np.flatnonzero(theta), self.problem
        return Expansion(
            kept,
            np.array(theta[kept]),
            beta,
            f,
            np.zeros(problem.n),
            problem.value(f) + c * float(theta @ theta),
            0.0,
            2.0 * c * np.abs(theta[kept]),
            "",
            1,
            problem.columns.size,
        )


class _Smooth:
    """A loss with a continuous slope, as Newton's method asks for it."""

    def __init__(self, problem: ExpansionProblem) -> None:
        self.value, self.pull, self.curvature = problem.value, problem.pull, problem.curvature
        self.steepest = problem.weighted(np.full(problem.n, problem.loss.greatest_curvature))


def _minimised(
    problem: ExpansionProblem, over: Coefficients, tol: float, first: Floats | None
) -> tuple[Floats, Floats, bool]:
    """Return the variables of the optimum, and its pulls.

    And whether it is the optimum: Ctrl-C leaves the best so far. Newton's method begins with the
    variables that are given, if any; interior points begin anew.
    """
    if problem.loss.kind != "linear":
        x, whole = minimise(_Smooth(problem), problem.mean, over, first)
        return x, problem.balanced(problem.pull(problem.mean + over.values(x))), whole
    x, u, whole = by_interior_points(problem, over, tol)
    if whole and _gap(problem, over, x, u) > enough(tol):
        again, pulls, whole = by_multipliers(problem, over, tol, x, u)
        if _gap(problem, over, again, pulls) < _gap(problem, over, x, u):
            x, u = again, pulls
    return x, u, whole


def _gap(problem: ExpansionProblem, over: Coefficients, x: Floats, u: Floats) -> float:
    """Return F - D of variables and of feasible pulls, relative to F."""
    F = above(problem, over, x)
    return (F - below(problem, over, u)) / F if F > 0.0 else 0.0
