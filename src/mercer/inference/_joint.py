"""The joint density of observations and latent values, and its adjoints.

    J(f) = sum_i w_i log p(y_i | f_i) + log N(f; m, K)

is what is maximised where latent function and hyperparameters are found together (BKM 3.6). At
fixed f, with alpha = K^-1 (f - m),

    dJ/dK = (alpha alpha' - K^-1)/2,    dJ/dm = alpha,    dJ/dtheta = sum_i w_i dlog p(y_i | f_i).

Not an engine of its own: `map` goes on from it.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._problem import LatentAdjoints, LatentProblem
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import JITTERS, Factorisation, cholesky, inverse_lower, solve_lower

__all__ = ["adjoints_of", "factor_prior", "joint", "log_normaliser"]

Floats = NDArray[np.float64]


# The least pivot of K, in units of the mean of its diagonal.
_SINGULAR = 1e-9


def joint(problem: LatentProblem, latent: Floats) -> tuple[float, LatentAdjoints]:
    """Return J at latent values f (n,), and its adjoints there; alpha is the adjoint of the mean.

    O(n^3), one matrix of n^2 beside K. K must be positive definite by more than rounding;
    `problem.jitter` None lets it have what it lacks.
    """
    n, likelihood = problem.n, problem.likelihood
    with blas_for(n):
        factor = factor_prior(problem, problem.gram())
        root = solve_lower(factor.L, latent - problem.mean)
        alpha = solve_lower(factor.L, root, transpose=True)
        value = problem.log_likelihood(latent) - 0.5 * float(root @ root) - log_normaliser(factor)
        weights = problem.weighted(np.ones(n))
        own = likelihood.pull_derivatives(problem.y, latent, weights, 0.0, 0.0)
        return value, adjoints_of(factor, alpha, own)


def factor_prior(problem: LatentProblem, K: Floats) -> Factorisation:
    """Factorise K = `problem.gram()` into memory of its own, for ln det K and K^-1.

    Of a K whose pivots go below 1e-9 times the mean of its diagonal, as smooth kernels and equal
    rows have them, ln det K is made of rounding. If `problem.jitter` is None, 1e-10, 1e-8 or 1e-6
    times that mean **are added to K**; otherwise, or if that is not enough, it is refused.

    Raises
    ------
    NotPositiveDefiniteError
        Where ln det K is no number to go by.
    """
    diagonal = np.diagonal(K).copy()
    unit = float(np.mean(diagonal))
    L = np.empty_like(K, order="F")
    for added in JITTERS if problem.jitter is None else JITTERS[:1]:
        L[:] = K
        with suppress(NotPositiveDefiniteError):
            factor = cholesky(L, added * unit)
            if np.min(np.diagonal(L)) ** 2 >= _SINGULAR * unit:
                np.fill_diagonal(K, diagonal + factor.jitter)
                return factor
    raise NotPositiveDefiniteError(
        f"the Gram matrix of {problem.kernel!r} is singular to rounding, and the joint density has "
        "no finite value: rows are the same to the kernel, or its length scale is too long"
    )


def log_normaliser(factor: Factorisation) -> float:
    """Return half of ln det(2 pi K)."""
    return 0.5 * (factor.log_determinant() + len(factor.L) * LOG_2PI)


def adjoints_of(factor: Factorisation, alpha: Floats, likelihood: Floats) -> LatentAdjoints:
    """Return the adjoints from those of the likelihood; the factor is overwritten."""
    G = dsyr(-1.0, alpha, lower=1, a=inverse_lower(factor.L), overwrite_a=1)
    return LatentAdjoints(np.asarray(G), -0.5, likelihood, alpha)
