"""Leave-one-out for a softmax: a row's own curvature taken out again.

Not an engine of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._sites import symmetric_product
from mercer.inference.softmax import SoftmaxProblem, centre, solve

__all__ = ["CoupledLeftOut", "leave_one_out"]

Floats = NDArray[np.float64]


class CoupledLeftOut(NamedTuple):
    """Each row predicted from the others.

    mean : (n, C) of the latent values
    covariance : (n, C, C) of those of a row
    """

    mean: Floats
    covariance: Floats


def leave_one_out(
    problem: SoftmaxProblem, start: Floats | None = None, at_mode: bool = False
) -> CoupledLeftOut:
    """Predict each row from the others in closed form, the other rows' curvatures held.

    With S the covariance of a row's latent values, W the curvature of its log likelihood, alpha
    those of `centre` (with `at_mode` those of the mode) and f = m + K alpha, the row has without
    itself the covariance V = (S^-1 - W)^-1 = (1 - S W)^-1 S and the mean f - V alpha. O(C n^3).
    """
    solution = solve(problem, start)
    sites = solution.sites
    pi = sites.probabilities
    S = sites.row_covariances(sites.images())
    alpha = solution.alpha if at_mode else centre(solution, S)
    f = solution.latent + symmetric_product(sites.K, alpha - solution.alpha)
    C = pi.shape[1]
    W = problem.weighted(pi[:, :, None] * (np.eye(C) - pi[:, None, :]))
    V = np.linalg.solve(np.eye(C) - S @ W, S)
    V = 0.5 * (V + V.transpose(0, 2, 1))
    mean = f - np.einsum("ipq,iq->ip", V, alpha)
    return CoupledLeftOut(mean, V)
