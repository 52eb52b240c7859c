"""Leave-one-out for a softmax: a row's own curvature taken out again.

Not an engine of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference.softmax import SoftmaxProblem, solve

__all__ = ["CoupledLeftOut", "leave_one_out"]

Floats = NDArray[np.float64]


class CoupledLeftOut(NamedTuple):
    """Each row predicted from the others.

    mean : (n, C) of the latent values
    covariance : (n, C, C) of those of a row
    """

    mean: Floats
    covariance: Floats


def leave_one_out(problem: SoftmaxProblem, start: Floats | None = None) -> CoupledLeftOut:
    """Predict each row from the others in closed form, the other rows' curvatures held.

    With S the covariance of a row's latent values f, and W and g the curvature and the slope of
    its log likelihood there, the row has the covariance V = (S^-1 - W)^-1 = (1 - S W)^-1 S without
    itself, and the mean f - V g. O(C n^3) time, as the evidence with its gradient.
    """
    solution = solve(problem, start)
    pi = solution.sites.probabilities
    S = solution.sites.moments()[1]
    C = pi.shape[1]
    W = problem.weighted(pi[:, :, None] * (np.eye(C) - pi[:, None, :]))
    V = np.linalg.solve(np.eye(C) - S @ W, S)
    V = 0.5 * (V + V.transpose(0, 2, 1))
    mean = solution.latent - np.einsum("ipq,iq->ip", V, solution.alpha)
    return CoupledLeftOut(mean, V)
