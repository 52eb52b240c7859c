"""Leave-one-out for the engines that end in Gaussian sites: a row's own site taken out again.

Not an engine of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference._problem import LatentLeftOut, LatentProblem
from mercer.inference._sites import FLOOR, Sites

__all__ = ["without_own_site"]

Floats = NDArray[np.float64]


def without_own_site(
    problem: LatentProblem, sites: Sites, latent: Floats, slope: Floats
) -> LatentLeftOut:
    """Predict each row from the others, whose sites are held.

    A site has the precision S_i, and pulls its row by `slope` g_i: without it the row has the
    variance v = Sigma_ii/(1 - S_i Sigma_ii) = Sigma_ii S_i/R_ii and the mean f_i - v g_i. Exact
    for Gaussian noise. The density of y_i is that of a row of weight 1. The factor of the sites is
    overwritten.
    """
    problem.require("leave-one-out", "log_density")
    with blas_for(problem.n):
        R = np.diagonal(sites.inverse()).copy()
    S = sites.precision
    # 1 - S Sigma, the part that the row's own site has left of its precision. Of a site that is
    # too weak for its inverse (`FLOOR`) it is all.
    flat = np.abs(S) <= FLOOR
    left = np.where(flat, 1.0, R / np.where(flat, 1.0, S))
    variance = sites.marginal_variances() / left
    # A negative site may hold up the others' rounding: then the prior is all that is known.
    prior = np.diagonal(sites.K)
    variance = np.where((variance > 0) & np.isfinite(variance), variance, prior)
    mean = latent - variance * slope
    log_density = problem.likelihood.smoothed(problem.y, mean, variance)[0]
    return LatentLeftOut(mean, variance, log_density)
