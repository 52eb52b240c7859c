"""The coefficients of the mean among iterative solves: generalised least squares by solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "estimate", "first_estimate"]

Floats = NDArray[np.float64]

# Eigenvalues of H'Q^-1 H below this part of the largest are 0: those of regressors that depend on
# others, which get the smallest coefficients.
_DEPENDENT = 1e-12


class Estimate(NamedTuple):
    """What the regressors explain, all in units of the noise, regressors as they are `conditioned`.

    beta : (r, P) the coefficients
    E : (r, k) with (H'Q^-1 H)^-1 = E E', on the k that are independent
    log_determinant : of H'Q^-1 H, on these
    """

    beta: Floats
    E: Floats
    log_determinant: float


def first_estimate(Y: Floats, H: Floats, precondition: Callable[[Floats], Floats]) -> Floats:
    """Return coefficients (r, P) near the estimate: that under the preconditioner in place of Q."""
    S = precondition(H)
    return _estimate(S.T @ H, S.T @ Y).beta


def estimate(Y: Floats, H: Floats, A: Floats, S: Floats, R: Floats, RH: Floats) -> Estimate:
    """Return generalised least squares from solutions A of Q A = Y and S of Q S = H.

    What they lack, R = Y - Q A and RH = H - Q S, makes the products right to the second order:
    H'Q^-1 H = S'(H + RH) + RH'Q^-1 RH, and H'Q^-1 Y = S'Y + RH'A + RH'Q^-1 R.
    """
    return _estimate(S.T @ (H + RH), S.T @ Y + RH.T @ A)


def _estimate(G: Floats, right: Floats) -> Estimate:
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    kept = values > _DEPENDENT * max(values[-1], 0.0)
    E = vectors[:, kept] / np.sqrt(values[kept])
    return Estimate(E @ (E.T @ right), E, float(np.sum(np.log(values[kept]))))
