"""Laplacian processes: the most probable expansion in given functions (BKM 5).

Observations y_i ~ p(y | f_i) of f = m + Phi theta + H beta, where m is a fixed mean, the columns of
Phi are kernel sections or any functions, theta has a factorising prior, and functions H, if any,
have coefficients without one. Minus the logarithm of the posterior, times a unit that makes the
loss free of the noise's scale (`_losses`), is (BKM 102, 109)

    F(theta, beta) = sum_i w_i loss_i(f_i) + unit sum_j gamma(theta_j/s),    lam = unit/s,

    "laplacian"           gamma(t) = |t|               (BKM 100)  lam |theta_j|
    "weight_decay"        gamma(t) = t^2               (BKM 99)   (lam^2/unit) theta_j^2
    "feature_selection"   gamma(t) = 1 - exp(-|t|)     (BKM 98, corrected)  not convex

The Laplacian prior makes most coefficients 0, and only columns that may have others are ever
formed (`_l1_generation`): by a homotopy for squares (`_l1_squares`), Newton's method for other
losses with a continuous slope (`_l1_newton`), linear programmes for the rest (`_l1_programme`).
`_reweighted` and `_ridge` have the other priors.

The pulls u = -w loss'(f) of the rows give a lower bound of all F, the value of the dual problem

    D(u) = -sum_i w_i loss_i*(-u_i/w_i) - u'm,     |Phi_j'u| <= lam_j,  H'u = 0,

and F - D is the certificate of a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._l1_generation import Generated, Generation, Restricted
from mercer.inference._l1_newton import Newton
from mercer.inference._l1_path import solve_path
from mercer.inference._l1_programme import Programme
from mercer.inference._l1_squares import Squares
from mercer.inference._reweighted import solve_reweighted
from mercer.inference._ridge import decay, solve_ridge

__all__ = ["PRIORS", "Expansion", "ExpansionProblem", "largest_penalty", "path", "solve"]

Floats = NDArray[np.float64]
Report = Callable[[Expansion], None]

PRIORS = ("laplacian", "weight_decay", "feature_selection")

# Rounding of a loss, in units of the pulls times what residuals are differences of.
_ROUNDING = 8.0 * float(np.finfo(float).eps)
# What F - D may be of the loss of labels at f = 0: so much of the tolerance, and at least.
_NOTHING, _LEAST = 1e-6, 1e-9
# Weight decay so small, or as large as its inverse, is out of range.
_FAR = 1e-100
# Rows so near to a kink, in units of what they are differences of, are at it.
_AT_KINK = 1e-10
# Conditions that are added at once to the programme of the largest penalty.
_CONDITIONS = 50


def solve(
    problem: ExpansionProblem,
    prior: str = "laplacian",
    lam: float = 1.0,
    tol: float = 1e-6,
    start: Expansion | None = None,
    max_active: int | None = None,
    report: Report | None = None,
) -> Expansion:
    """Return the most probable expansion.

    Parameters
    ----------
    problem : ExpansionProblem
    prior : {"laplacian", "weight_decay", "feature_selection"}
    lam : float
        Positive: unit/s, with s the scale of the prior.
    tol : float
        F - D, relative to F, that is enough. Under "feature_selection" the dual is that of the last
        of several convex problems, and certifies a stationary point. Under "weight_decay" a loss
        with a continuous slope is minimised to rounding, and this decides on the status alone.
    start : Expansion, optional
        The solution of a problem nearby. It saves work alone, but under "feature_selection", where
        it decides in part which stationary point is found.
    max_active : int, optional
        How many columns may be formed, at the most; under "weight_decay" all of them are.
    report : function, optional
        Called with the solution so far after each pass over the columns, or each convex problem.
        A KeyboardInterrupt, of its own or from outside, ends the search with the solution so far.
    """
    _check(problem, prior, [lam], tol, max_active)
    _check_start(problem, start)
    work = Reduced(problem)
    if prior == "weight_decay":
        return _decayed(work, lam, tol, start, report)
    generation = _generation(work, tol, start, max_active, report, prior)
    if prior == "feature_selection":
        begun = None if start is None else work.reduced(start)
        return _selected(work, generation, lam, begun, report)
    return _judged(work, Expansion(*generation.solve(lam)), tol)


def path(
    problem: ExpansionProblem,
    lams: Sequence[float] | Floats,
    tol: float = 1e-6,
    prior: str = "laplacian",
    start: Expansion | None = None,
    max_active: int | None = None,
    report: Report | None = None,
) -> list[Expansion]:
    """Return the most probable expansions for penalties that descend.

    Columns that were formed are kept, and each solution begins where the last one ended; those of
    squares come of one homotopy (`_l1_path`). Under "feature_selection" each begins with the
    Laplacian prior's. After an interruption those of lower penalties may be missing.

    Parameters
    ----------
    problem, tol, prior, start, max_active, report :
        As in `solve`.
    lams : sequence of float
        Positive, each at most the one before.
    """
    values = [float(lam) for lam in np.asarray(lams, dtype=float).reshape(-1)]
    _check(problem, prior, values, tol, max_active)
    if any(a < b for a, b in pairwise(values)):
        raise ValueError(f"penalties of a path must descend, got {values!r}")
    _check_start(problem, start)
    work = Reduced(problem)
    if prior == "laplacian":
        generation = _generation(work, tol, start, max_active, report, prior)
        return [_judged(work, Expansion(*one), tol) for one in solve_path(generation, values)]
    found: list[Expansion] = []
    if prior == "feature_selection":
        generation = _generation(work, tol, start, max_active, report, prior)
    for lam in values:
        if prior == "weight_decay":
            start = _decayed(work, lam, tol, start, report)
        else:
            start = _selected(work, generation, lam, None, report)
        found.append(start)
        if start.status == "interrupted":
            break
    return found


def largest_penalty(problem: ExpansionProblem) -> float:
    """Return the least lam for which all coefficients theta are 0 under the Laplacian prior.

    It is the largest slope |Phi_j'u| at the best f = m + H beta. Where rows are at kinks of the
    loss their pulls are not determined, and are those with the least such number: a small linear
    programme, whose conditions are generated.
    """
    problem = Reduced(problem).problem
    null = _restricted(problem).solve(np.empty(0))
    u = null.pull
    if problem.loss.kind != "linear":
        return float(np.max(np.abs(_slopes(problem, u)), initial=0.0))
    low, high = _sides(problem, null.latent)
    least = _least_slope(problem, low, high)
    # the pulls that the programme itself has found are some of those, if not the best
    return float(np.max(np.abs(_slopes(problem, u)), initial=0.0)) if least is None else least


def _restricted(problem: ExpansionProblem) -> Restricted:
    """Return the solver over some columns that suits the loss."""
    kind = problem.loss.kind
    if kind == "squares":
        return Squares(problem.loss.y, problem.mean, problem.H, problem.weights)
    return Programme(problem) if kind == "linear" else Newton(problem)


def _generation(
    work: Reduced,
    tol: float,
    start: Expansion | None,
    max_active: int | None,
    report: Report | None,
    prior: str,
) -> Generation:
    tell = None
    if report is not None and prior == "laplacian":

        def tell(found: Generated) -> None:
            report(work.restored(Expansion(*found)))

    return Generation(
        work.problem.columns,
        _restricted(work.problem),
        tol=tol,
        start=None if start is None else start.indices,
        max_active=max_active,
        report=tell,
    )


def _selected(
    work: Reduced,
    generation: Generation,
    lam: float,
    start: Expansion | None,
    report: Report | None,
) -> Expansion:
    tell = None
    if report is not None:

        def tell(found: Expansion) -> None:
            report(work.restored(found))

    found = solve_reweighted(work.problem, generation, lam, start, tell)
    return _judged(work, found, generation.tol)


def _decayed(
    work: Reduced,
    lam: float,
    tol: float,
    start: Expansion | None,
    report: Report | None,
) -> Expansion:
    found = solve_ridge(work.problem, lam, tol, None if start is None else start.pull)
    found = _judged(work, found, tol)
    if report is not None:
        report(found)
    return found


def _judged(work: Reduced, found: Expansion, tol: float) -> Expansion:
    """Return a solution of the problem that was given, with its status.

    It is certified also where F is next to nothing, which no relative gap can tell: where the
    functions without a penalty pass through all observations, F is what rounding of them and of f
    makes of nothing; where they separate labels, F falls for ever, towards 0. It is not where D is
    above F, of which no more than rounding can be true.
    """
    found, problem = work.restored(found), work.given
    if found.status == "interrupted":
        return found
    objective, loss = found.objective, problem.loss
    if found.dual - objective > tol * abs(objective):
        found = found._replace(status="stopped")
    if found.status == "stopped":
        size = np.abs(loss.y) + np.abs(problem.mean) + np.abs(found.latent)
        nothing = _ROUNDING * float(np.abs(problem.pull(found.latent)) @ size)
        if loss.is_of_labels:
            least = max(tol * _NOTHING, _LEAST) * problem.value(np.zeros(problem.n))
            nothing = max(nothing, least)
            objective -= max(found.dual, 0.0)
        if objective <= nothing:
            found = found._replace(status="certified")
    return found


def _slopes(problem: ExpansionProblem, u: Floats) -> Floats:
    return problem.columns.products(u[:, None])[:, 0]


def _sides(problem: ExpansionProblem, f: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest pull at f of each row, which differ at kinks."""
    y = problem.loss.y
    size = np.abs(y) + np.abs(f) + np.abs(problem.mean)
    near = _AT_KINK * (size + np.mean(size))
    sides = problem.pull(f - near), problem.pull(f + near)
    return np.minimum(*sides), np.maximum(*sides)


def _least_slope(problem: ExpansionProblem, low: Floats, high: Floats) -> float | None:
    """Return the least max_j |Phi_j'u| over pulls low <= u <= high with H'u = 0.

    None where rounding has left no such pulls: of targets that are huge beside the others.
    """
    free = np.flatnonzero(high > low)
    u = 0.5 * (low + high)
    slopes = _slopes(problem, u)
    if not len(free):
        return float(np.max(np.abs(slopes), initial=0.0))
    H = None if not problem.n_free else problem.H
    fixed = u.copy()
    fixed[free] = 0.0
    width = 0.5 * (high - low)[free]
    middle = u[free]
    rows = np.empty((0, len(free)))
    rest = np.empty(0)
    chosen = np.empty(0, dtype=np.intp)
    least = 0.0
    # u_free = middle + width x, |x| <= 1; the last variable is the slope, in units of the largest
    unit = float(np.max(np.abs(slopes))) or 1.0
    while True:
        excess = np.abs(slopes) / unit
        excess[chosen] = 0.0
        new = np.argsort(-excess, kind="stable")[:_CONDITIONS]
        new = new[excess[new] > least * (1.0 + 1e-9) + 1e-15]
        if not len(new):
            return unit * least
        A = problem.columns.take(new)
        rows = np.concatenate([rows, (A[free] * width[:, None]).T / unit])
        rest = np.concatenate([rest, A.T @ (fixed + _spread(problem.n, free, middle)) / unit])
        chosen = np.concatenate([chosen, new])
        ones = np.ones((len(rest), 1))
        found: Any = linprog(
            np.append(np.zeros(len(free)), 1.0),
            np.block([[rows, -ones], [-rows, -ones]]),
            np.concatenate([-rest, rest]),
            None if H is None else np.append(H[free].T * width, np.zeros((H.shape[1], 1)), axis=1),
            None if H is None else -H.T @ (fixed + _spread(problem.n, free, middle)),
            [(-1.0, 1.0)] * len(free) + [(0.0, None)],
            method="highs",
        )
        if found.x is None:
            return None
        u = fixed + _spread(problem.n, free, middle + width * found.x[:-1])
        slopes, least = _slopes(problem, u), float(found.x[-1])


def _spread(n: int, places: NDArray[np.intp], values: Floats) -> Floats:
    out = np.zeros(n)
    out[places] = values
    return out


def _check_start(problem: ExpansionProblem, start: Expansion | None) -> None:
    """Raise ValueError for a start that cannot be one of the problem's."""
    if start is None:
        return
    if len(start.indices) and (
        np.min(start.indices) < 0 or np.max(start.indices) >= problem.columns.size
    ):
        raise ValueError(
            f"start has functions up to number {np.max(start.indices)}, "
            f"but the problem has {problem.columns.size}"
        )
    if len(start.beta) != problem.n_free or len(start.pull) != problem.n:
        raise ValueError(
            f"start must be of {problem.n} rows and {problem.n_free} functions without a penalty, "
            f"got {len(start.pull)} and {len(start.beta)}"
        )


def _check(
    problem: ExpansionProblem, prior: str, lams: list[float], tol: float, max_active: Any
) -> None:
    """Raise ValueError for options that are none."""
    if prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(map(repr, PRIORS))}, got {prior!r}")
    if not lams:
        raise ValueError("at least one penalty is wanted, got none")
    for lam in lams:
        if not (np.isfinite(lam) and lam > 0):
            raise ValueError(f"lam must be positive and finite, got {lam!r}")
        if prior == "weight_decay" and not _FAR < decay(problem, lam) < 1.0 / _FAR:
            raise ValueError(
                f"lam = {lam!r} makes weight decay of {decay(problem, lam):.3g} theta^2, beyond "
                "what doubles can hold"
            )
    if not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be positive, got {tol!r}")
    if max_active is None:
        return
    whole = isinstance(max_active, int | np.integer) and not isinstance(max_active, bool)
    if not whole or max_active < 1:
        raise ValueError(f"max_active must be a whole number, at least 1, got {max_active!r}")
    if prior == "weight_decay" and max_active < problem.columns.size:
        raise ValueError(
            f"weight decay forms all {problem.columns.size} columns, got max_active={max_active!r}"
        )
