"""Leave-one-out for sparse approximations: each row predicted from all the others.

Not an engine of its own: it goes on from what `sparse.solve` finds, inducing inputs held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._conditionals import Rows, sections
from mercer.inference._loo import LeftOut
from mercer.inference._sparse_rows import Passes, row_solution
from mercer.inference.sparse import SparseProblem, SparseSolution, solve
from mercer.linalg import solve_lower

__all__ = ["leave_one_out"]

Floats = NDArray[np.float64]


def leave_one_out(problem: SparseProblem) -> LeftOut:
    """Predict each row from the others in closed form: O(n m^2).

    With Sigma = Q + Lambda a row's residual is E_i/P_ii, as in exact inference, P = Sigma^-1 less
    what coefficients of the mean take. (Sigma^-1)_ii = (1 - s_i/l_i)/l_i where l = Lambda_ii and
    s_i = k_i' A^-1 k_i, the variance that u has there; without the row that is s_i/(1 - s_i/l_i).
    """
    if problem.kind.training == "blocks":
        raise ValueError(
            "leave-one-out in closed form is for rows that are independent given the inducing "
            f"variables; those of a block of {problem.kind.name!r} are not"
        )
    solution = solve(problem)
    parts = Passes(problem).map(lambda rows: _own_share(problem, solution, rows))
    s, own, unexplained = np.concatenate(parts).T
    residuals, regressors = row_solution(problem, solution)
    plain = np.maximum(1.0 - s / own, np.finfo(float).eps) / own
    D = plain
    if problem.beta is None and regressors.shape[1]:
        D = plain - np.sum((regressors @ solution.root.T) ** 2, axis=1)
        lost = np.flatnonzero(D <= len(D) * np.finfo(float).eps * plain)
        if lost.size:
            raise ValueError(
                f"row {lost[0]} cannot be left out: without it the coefficients of the mean are "
                "not determined; use a mean with fewer regressors, or more rows"
            )
    latent = np.maximum(1.0 / D - own, 0.0) if problem.integrate else s / (own * plain)
    variance = latent + problem.noise
    if problem.kind.test != "deterministic":
        variance = variance + unexplained
    return LeftOut(residuals / D[:, None], variance, D)


def _own_share(problem: SparseProblem, solution: SparseSolution, rows: Rows) -> Floats:
    """Return s, Lambda's diagonal, and k_ii - q_ii of a block of rows, (b, 3)."""
    V = solve_lower(solution.L, sections(problem.kernel, rows.X, problem.Z), overwrite=True)
    d = np.maximum(problem.kernel.diag(rows.X) - np.einsum("ij,ij->j", V, V), 0.0)
    U = solve_lower(solution.LB, V, overwrite=True)
    s = np.einsum("ij,ij->j", U, U)
    return np.column_stack([s, (rows.noise + problem.kind.power * d) / rows.weights, d])
