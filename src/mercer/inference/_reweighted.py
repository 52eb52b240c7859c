"""The feature-selection prior: successive L1-penalised problems, each from the last solution.

    F(theta, beta) = sum_i w_i loss_i(f_i) + unit sum_j (1 - exp(-|theta_j|/s))

(BKM 98, corrected: the paper lacks the sign in the exponent) has a penalty that is concave in
|theta_j|, so that its tangent at the last coefficients lies above it: minimising

    C(theta, beta) = sum_i w_i loss_i(f_i) + sum_j lam_j |theta_j|,   lam_j = lam exp(-|theta_j|/s)

with lam = unit/s makes F no larger, and smaller unless theta is stationary. There are many such
points; the first problem is that of the Laplacian prior, from whose solution it goes on, and, of
least squares, from those for smaller penalties: the lowest point that was proved is kept.

At a stationary point C is the least there is with its own penalties. How much less C could be is
what the dual of the last problem certifies: a certificate of stationarity, not of a global minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._l1_generation import Generation, shrinkage
from mercer.inference._l1_simplex import UnsolvedError

__all__ = ["solve_reweighted"]

Floats = NDArray[np.float64]

_ROUNDS = 200
# Penalties below this part of lam are taken for none: slopes as small as that are rounding.
_NONE = 1e-6
# F may fall by this part of the tolerance and count as stationary.
_SETTLED = 1e-3
# Penalties, as parts of lam, of Laplacian solutions that are tried after that for lam, each if the
# one before it led to a lower F.
_RICHER = (1e-2, 1e-4, 1e-6)
# F is next to nothing in units of the loss of f = m.
_NOTHING = 1e-6
_TINY = float(np.finfo(float).tiny)


def solve_reweighted(
    problem: ExpansionProblem,
    generation: Generation,
    lam: float,
    start: Expansion | None = None,
    report: Callable[[Expansion], None] | None = None,
) -> Expansion:
    """Return a stationary point of F that is no worse than the start.

    Some ten problems with an L1 penalty, over columns that are kept. A problem that is
    interrupted, or for which there are not columns enough, is the last. So is one that the
    programme's solver gives up, which unpenalised columns that are all but alike can bring it
    to: what came before it is kept, and nothing is proved of that.

    Parameters
    ----------
    problem : ExpansionProblem
    generation : Generation
        For that problem.
    lam : float
        Positive; the scale of the prior is unit/lam.
    start : Expansion, optional
        Where to begin: solutions for the Laplacian prior without it. Its latent values are
        those of its coefficients in this problem.
    report : function, optional
        Called with each solution.
    """
    work = _Reweighting(problem, generation, lam)
    if start is None:
        found = generation.solve(lam)
        best = work.expansion(found, found.n_passes)
        if found.status == "interrupted":
            return best._replace(status="interrupted")
    else:
        best = work.measured(start)
    best = work.settled(best, report)
    # of other losses it takes too long, and those of labels ask for no large coefficients
    if start is not None or best.status != "certified" or problem.loss.kind != "squares":
        return best
    return work.from_richer(best, report)


class _Reweighting:
    """The prior's part in F, and its tangents."""

    def __init__(self, problem: ExpansionProblem, generation: Generation, lam: float) -> None:
        self.problem, self.generation, self.lam = problem, generation, lam
        self.size, self.scale = generation.columns.size, problem.scale(lam)

    def settled(
        self, best: Expansion, report: Callable[[Expansion], None] | None = None
    ) -> Expansion:
        """Return the stationary point to which tangents lead, with a status."""
        try:
            for _ in range(_ROUNDS):
                best = self.followed(best)
                if report is not None:
                    report(best)
                if best.status != "":
                    return best
        except KeyboardInterrupt:
            return best._replace(status="interrupted")
        return best._replace(status="stopped")

    def from_richer(self, best: Expansion, report: Callable[[Expansion], None] | None) -> Expansion:
        """Return a lower stationary point if Laplacian solutions with more functions lead to one.

        The prior has no more than its unit against a function, and the Laplacian one lam |theta_j|:
        where coefficients are far larger than s it leaves out functions that the rows ask for, and
        tangents do not bring them back.
        """
        try:
            for share in _RICHER:
                found = self.generation.solve(share * self.lam)
                if found.status == "interrupted":
                    raise KeyboardInterrupt
                other = self.settled(self.expansion(found, best.n_passes + found.n_passes))
                if other.status == "interrupted":
                    raise KeyboardInterrupt
                if other.status != "certified" or other.objective >= best.objective:
                    return best._replace(n_passes=other.n_passes, n_columns=other.n_columns)
                best = other
                if report is not None:
                    report(best)
        except KeyboardInterrupt:
            return best._replace(status="interrupted")
        return best

    def followed(self, best: Expansion) -> Expansion:
        """Return the solution after one more problem, with a status if it is the last."""
        penalties = self.penalties(best)
        try:
            found = self.generation.solve(penalties)
        except UnsolvedError:  # a linear programme that rounding leaves without a basis
            return best._replace(dual=0.0, status="stopped")
        # What C could fall by at the most.
        tangent = float(penalties[best.indices] @ np.abs(best.coef))
        bound = self.bound(found, penalties)
        left = max(self.problem.value(best.latent) + tangent - bound, 0.0)
        new = self.expansion(found, best.n_passes + found.n_passes)
        fall = best.objective - new.objective
        enough = self.generation.tol * max(abs(best.objective), _TINY)
        # Where labels can be told apart without a penalty F falls for ever, towards 0.
        least = self.generation.tol * _NOTHING * self.problem.value(self.problem.mean)
        least = least if new.objective <= least else 0.0
        status = ""
        if found.status == "interrupted":
            status = "interrupted"
        elif fall <= max(_SETTLED * enough, least):
            status = "certified" if left <= enough else "stopped"
        kept = new if fall >= 0.0 else best
        return kept._replace(
            dual=max(kept.objective - left, 0.0),
            status=status,
            n_passes=new.n_passes,
            n_columns=new.n_columns,
        )

    def bound(self, found: Expansion, penalties: Floats) -> float:
        """Return a value of the dual problem: no C with these penalties is less.

        Columns without a penalty have slope 0 in a solution, but for rounding, and their
        coefficients may be as large as is wanted of that: pulls for a proof have none at all,
        where those of `found` were shrunk by the other columns only.
        """
        free = np.flatnonzero(penalties == 0.0)
        if not len(free):
            return found.dual
        H, A = self.problem.H, self.generation.columns.take(free)
        resting = replace(self.problem, H=A if H is None else np.hstack([H, A]))
        u = resting.balanced(found.pull)
        slopes = np.abs(self.generation.columns.products(u[:, None])[:, 0])
        u = shrinkage(slopes, penalties) * u
        return max(self.generation.restricted.dual(each) for each in (u, np.zeros_like(u)))

    def slopes(self, coef: Floats) -> Floats:
        """Return the penalties of the tangent at coefficients."""
        return np.asarray(self.lam * np.exp(-np.abs(coef) / self.scale))

    def penalties(self, at: Expansion) -> Floats:
        """Return lam_j of all columns, (size,)."""
        out = np.full(self.size, self.lam)
        slopes = self.slopes(at.coef)
        out[at.indices] = np.where(slopes > _NONE * self.lam, slopes, 0.0)
        return out

    def expansion(self, found: Expansion, n_passes: int) -> Expansion:
        return self.measured(found._replace(n_passes=n_passes, status=""))

    def measured(self, at: Expansion) -> Expansion:
        """Return an expansion with F of this prior, of which its dual proves nothing: 0."""
        prior = -self.problem.loss.unit * float(np.sum(np.expm1(-np.abs(at.coef) / self.scale)))
        objective = self.problem.value(at.latent) + prior
        return at._replace(objective=objective, dual=0.0, penalties=self.slopes(at.coef))
