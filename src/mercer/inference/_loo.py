"""Leave-one-out for exact inference: each row predicted from all the others, in closed form.

Not an engine of its own: it goes on from what `exact.solve` factorises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr2k

from mercer.compute import blas_for
from mercer.inference.exact import Adjoints, ExactProblem, Solution, solve
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import inverse_lower, mirror_lower, update_lower

__all__ = ["LeftOut", "leave_one_out", "left_out", "log_density", "loo"]

Floats = NDArray[np.float64]

# Of a row's 1/(Q^-1)_ii, the part that is not its own noise, below which that noise is not simply
# subtracted: three digits would be lost by it.
_SHARE = 1e-3


class LeftOut(NamedTuple):
    """Rows predicted from all the others, hyperparameters held.

    residual : (m, P) the targets less their predictions
    variance : (m,) that of a new observation at the row, with the noise of a row of weight 1
    D : (m,) diagonal of P = Q^-1 - V V', which is Q^-1 where there are no regressors
    """

    residual: Floats
    variance: Floats
    D: Floats


def left_out(
    problem: ExactProblem,
    solution: Solution,
    plain: Floats,
    weights: Floats | None = None,
    rows: NDArray[np.intp] | slice = slice(None),
) -> LeftOut:
    """Predict rows from the others, `plain` (m,) being their part of the diagonal of Q^-1.

    The coefficients of the mean are found again without the row: its residual is alpha_i/P_ii.
    Estimated ones are taken as known in the variance, 1/(Q^-1)_ii, as in any prediction;
    integrated ones are not, 1/P_ii. A row without which they are not determined has D of NaN.
    """
    D = plain - np.sum(solution.V[rows] ** 2, axis=1)
    D = np.where(D > len(problem.Y) * np.finfo(float).eps * plain, D, np.nan)
    variance = 1.0 / (D if problem.integrate else plain)
    if weights is not None:
        noise = problem.noise[rows]
        # at least the noise of a row of weight 1, which rounding may lose beside noise/weight
        variance = np.maximum(variance + noise * (weights[rows] - 1.0), noise * weights[rows])
    return LeftOut(solution.alpha[rows] / D[:, None], variance, D)


def _light_rows(
    problem: ExactProblem, solution: Solution, inverse: Floats, left: LeftOut, weights: Floats
) -> LeftOut:
    """Return the variances without cancellation, where the noise of a row of little weight is huge.

    What 1/(Q^-1)_ii has beside the noise is (K Q^-1)_ii/(Q^-1)_ii. Of integrated coefficients, as
    (Q P)_ii = 1 - (H root')_i V_i, it is [(K P)_ii + (H root')_i V_i]/P_ii.
    """
    noise, V = problem.noise, solution.V
    diagonal = left.D if problem.integrate else np.diagonal(inverse)
    rows = np.flatnonzero(noise * diagonal > 1.0 - _SHARE)
    variance = left.variance.copy()
    for i in rows:
        column = np.concatenate([inverse[i, :i], inverse[i:, i]])
        if problem.integrate:
            column = column - V @ V[i]
        k = problem.kernel(problem.X[i : i + 1], problem.X)[0]
        share = float(k @ column) + solution.factor.jitter * column[i]
        if problem.integrate and problem.H is not None:
            share += float(problem.H[i] @ solution.root.T @ V[i])
        variance[i] = max(share, 0.0) / column[i] + noise[i] * weights[i]
    return left._replace(variance=variance)


def _leave(
    problem: ExactProblem, weights: Floats | None, out: Floats | None
) -> tuple[Solution, Floats, LeftOut]:
    """Return the solution, the lower triangle of Q^-1, and each row predicted from the others."""
    solution = solve(problem, out)
    with blas_for(len(problem.Y)):
        inverse = inverse_lower(solution.factor.L)
    left = left_out(problem, solution, np.diagonal(inverse).copy(), weights)
    lost = np.flatnonzero(np.isnan(left.D))
    if lost.size:
        raise ValueError(
            f"row {lost[0]} cannot be left out: without it the coefficients of the mean are not "
            "determined; use a mean with fewer regressors, or more rows"
        )
    if weights is not None:
        left = _light_rows(problem, solution, inverse, left, weights)
    return solution, inverse, left


def leave_one_out(
    problem: ExactProblem, weights: Floats | None = None, out: Floats | None = None
) -> tuple[Solution, LeftOut]:
    """Predict each row from the others in closed form. O(n^3) time, n^2 memory.

    The factor of the returned solution has been overwritten.
    """
    solution, _, left = _leave(problem, weights, out)
    return solution, left


def log_density(left: LeftOut, weights: Floats | None = None) -> float:
    """Return the leave-one-out log density, sum_i w_i sum_p ln N(r_ip; 0, v_i)."""
    outputs = left.residual.shape[1]
    rows = outputs * (np.log(left.variance) + LOG_2PI)
    rows = rows + np.sum(left.residual**2, axis=1) / left.variance
    return -0.5 * float(np.sum(rows if weights is None else weights * rows))


def loo(
    problem: ExactProblem, weights: Floats | None = None, out: Floats | None = None
) -> tuple[Solution, float, Adjoints]:
    """Return the solution, the leave-one-out log density and its adjoints.

    L is `log_density`. With D and E the diagonals of P and Q^-1, g = dL/dD, h = dL/dE and
    a = dL/dalpha, dL/dQ = -P diag(g) P - Q^-1 diag(h) Q^-1 - (P a alpha' + alpha a' P)/2.
    O(n^3) time; four matrices of n^2 at the most.
    """
    solution, inverse, left = _leave(problem, weights, out)
    alpha, V = solution.alpha, solution.V
    n, outputs = alpha.shape
    w = np.ones(n) if weights is None else weights
    residual, v, D = left
    plain = np.diagonal(inverse)
    dv = -0.5 * w * (outputs / v - np.sum(residual**2, axis=1) / v**2)
    dresidual = -(w / v)[:, None] * residual
    a = dresidual / D[:, None]
    g = -np.sum(dresidual * residual, axis=1) / D
    h = np.zeros(n)
    if problem.integrate or not V.shape[1]:
        g -= dv / D**2
    else:
        h -= dv / plain**2
    with blas_for(n):
        whole = mirror_lower(inverse)  # Q^-1, in place
        G = np.zeros((n, n), order="F")
        _add_square(G, whole, h)
        whole -= V @ V.T  # P
        _add_square(G, whole, g)
        Pa = whole @ a
        G = dsyr2k(-0.5, Pa, alpha, 1.0, G, lower=1, overwrite_c=1)
    noise = np.diagonal(G) + dv * (w - 1.0)
    return solution, log_density(left, weights), Adjoints(G, 1.0, noise, -Pa)


def _add_square(G: Floats, M: Floats, d: Floats) -> None:
    """Subtract M diag(d) M from the lower triangle of G in place, M symmetric."""
    for sign in (1.0, -1.0):
        some = sign * d > 0
        if np.any(some):
            part = np.asfortranarray(M[:, some] * np.sqrt(np.abs(d[some])))
            update_lower(-sign, part, 1.0, G)
