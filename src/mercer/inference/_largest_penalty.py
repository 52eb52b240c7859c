"""The penalty at which an expansion begins: the least for which all coefficients are 0.

Not an engine: `laplacian` is, and has the model and the notation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.inference._restricted import restricted

__all__ = ["TOLERANCE", "largest_penalty", "loss_without_functions"]

Floats = NDArray[np.float64]

# Rows so near to a kink, in units of what they are differences of, are at it.
_AT_KINK = 1e-10
# Conditions that are added at once to the programme of the largest penalty.
_CONDITIONS = 50
#: What the solver may leave of violations, in units of the largest slope. Of the penalty nothing
#: below that is known, and no less is returned where there are kinks.
TOLERANCE = 1e-7
# Steps at the most: of the simplex method, in units of variables and conditions, and of the other.
_PIVOTS, _INTERIOR = 10, 300


def largest_penalty(problem: ExpansionProblem) -> float:
    """Return the least lam for which all coefficients theta are 0 under the Laplacian prior.

    It is the largest slope |Phi_j'u| at the best f = m + H beta. Where rows are at kinks of the
    loss their pulls are not determined, and are those with the least such number: a small linear
    programme, whose conditions are generated.
    """
    problem = Reduced(problem).problem
    null = restricted(problem).solve(np.empty(0))
    u = null.pull
    if problem.loss.kind != "linear":
        return float(np.max(np.abs(_slopes(problem, u)), initial=0.0))
    low, high = _sides(problem, null.latent)
    least = _least_slope(problem, low, high)
    # the pulls that the programme itself has found are some of those, if not the best
    return float(np.max(np.abs(_slopes(problem, u)), initial=0.0)) if least is None else least


def loss_without_functions(problem: ExpansionProblem) -> float:
    """Return the least loss of f = m + H beta."""
    return restricted(Reduced(problem).problem).solve(np.empty(0)).objective


def _slopes(problem: ExpansionProblem, u: Floats) -> Floats:
    return problem.columns.products(u[:, None])[:, 0]


def _sides(problem: ExpansionProblem, f: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest pull at f of each row, which differ at kinks."""
    y = problem.loss.y
    size = np.abs(y) + np.abs(f) + np.abs(problem.mean)
    some = np.abs(y[y != 0.0])  # ties may be at 0, and far targets are no measure of the others
    near = _AT_KINK * (size + (np.median(some) if len(some) else 0.0))
    sides = problem.pull(f - near), problem.pull(f + near)
    return np.minimum(*sides), np.maximum(*sides)


def _least_slope(problem: ExpansionProblem, low: Floats, high: Floats) -> float | None:
    """Return the least max_j |Phi_j'u| over pulls low <= u <= high with H'u = 0.

    None where rounding has left no such pulls, as of targets that are huge beside the others, or
    they are not found within the limit of steps.
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
        excess[chosen] = 0.0  # each is added once
        new = np.argsort(-excess, kind="stable")[:_CONDITIONS]
        new = new[excess[new] > least * (1.0 + 1e-9) + 1e-15]
        if not len(new):
            return unit * least
        A = problem.columns.take(new)
        rows = np.concatenate([rows, (A[free] * width[:, None]).T / unit])
        rest = np.concatenate([rest, A.T @ (fixed + _spread(problem.n, free, middle)) / unit])
        chosen = np.concatenate([chosen, new])
        ones = np.ones((len(rest), 1))
        x = _solved(
            np.append(np.zeros(len(free)), 1.0),
            np.block([[rows, -ones], [-rows, -ones]]),
            np.concatenate([-rest, rest]),
            None if H is None else np.append(H[free].T * width, np.zeros((H.shape[1], 1)), axis=1),
            None if H is None else -H.T @ (fixed + _spread(problem.n, free, middle)),
            [(-1.0, 1.0)] * len(free) + [(0.0, None)],
        )
        if x is None:
            return None
        u = fixed + _spread(problem.n, free, middle + width * x[:-1])
        slopes, least = _slopes(problem, u), max(TOLERANCE, float(x[-1]))


def _solved(*programme: Any) -> Floats | None:
    """Return a solution of a linear programme, None where neither method finds one.

    Rounding can make the simplex method go in circles, which interior points do not know.
    """
    steps = _PIVOTS * sum(programme[1].shape)
    options = {"primal_feasibility_tolerance": TOLERANCE}
    for method, limit in (("highs-ds", steps), ("highs-ipm", _INTERIOR)):
        found: Any = linprog(*programme, method=method, options=options | {"maxiter": limit})
        if found.status == 0:
            return np.asarray(found.x)
    return None


def _spread(n: int, places: NDArray[np.intp], values: Floats) -> Floats:
    out = np.zeros(n)
    out[places] = values
    return out
