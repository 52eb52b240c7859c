"""Derivatives of a relevance model's evidence in the values of its functions (UV 10.2).

Not an engine: what `kernel.pullback` makes gradients in a kernel's parameters and in its centres
of. Precisions and noise are held; at their best values the evidence does not depend on them to
first order, so that these are also the derivatives of the evidence with the best ones.

With C = V + Phi S^-1 Phi' and z = y - m it is C^-1 z = V^-1 (z - Phi mu) = r and C^-1 Phi =
V^-1 Phi Xi S, so that for Gaussian noise (BKM 127)

    dL/dPhi = (C^-1 z z' C^-1 - C^-1) Phi S^-1 = r mu' - V^-1 Phi Xi,   dL/dm = r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from mercer.inference._relevance_problem import Relevance, RelevanceProblem

__all__ = ["ColumnAdjoints", "adjoints"]

Floats = NDArray[np.float64]


class ColumnAdjoints(NamedTuple):
    """Derivatives of the log evidence L of a fit.

    columns : (n, k) dL/dPhi at the functions in the model, in their order; 0 at rows of weight 0
    mean : (n,) dL/dm
    """

    columns: Floats
    mean: Floats


def adjoints(problem: RelevanceProblem, fit: Relevance) -> ColumnAdjoints:
    """Return the derivatives of `fit.log_evidence`, precisions and noise held; O(n k^2).

    Parameters
    ----------
    problem : RelevanceProblem
    fit : Relevance
        Of this problem, by any algorithm but "variational", whose evidence is a bound; of
        `relevance.robust` it is the `fit`.
    """
    Phi = problem.columns.take(fit.indices)  # (n, k)
    precision = (1.0 if problem.weights is None else problem.weights) / np.asarray(fit.noise)
    r = precision * (problem.y - problem.mean - Phi @ fit.mean)
    spread = dpotrs(fit.factor, Phi.T, lower=0)[0].T  # Phi Xi
    columns = np.multiply.outer(r, fit.mean)
    columns -= np.broadcast_to(precision, r.shape)[:, None] * spread
    return ColumnAdjoints(columns, r)
