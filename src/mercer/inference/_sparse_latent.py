"""What engines for a latent function with inducing variables are given, and what they give back.

Not an engine: Laplace's method, expectation propagation and the logistic bounds share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dtrmm

from mercer.compute import blas_for
from mercer.inference._approximations import APPROXIMATIONS, Approximation
from mercer.inference._problem import LatentLeftOut, LatentProblem
from mercer.inference._reduced import down, up
from mercer.inference._sparse_sites import SparsePrior, SparseSites
from mercer.linalg import inverse_lower, mirror_lower, solve_lower
from mercer.means import Mean
from mercer.posterior import Basis, InverseTriangular, Posterior
from mercer.selection import nystrom

__all__ = [
    "SparseLatentAdjoints",
    "SparseLatentProblem",
    "process",
    "pulled",
    "require_prior",
    "without_own_site",
]

Floats = NDArray[np.float64]


def require_prior(kind: Approximation) -> None:
    """Raise ValueError for an approximation that is no prior of independent rows given u."""
    if kind.training == "blocks" or kind.penalised:
        raise ValueError(
            f"noise that is not Gaussian goes with the priors of 'sor', 'dtc' and 'fitc', got "
            f"{kind.name!r}: blocks couple the latent values of rows, and a penalty is part of no "
            "prior"
        )


@dataclass(frozen=True)
class SparseLatentProblem(LatentProblem):
    """A `LatentProblem`, with the inducing inputs and what is assumed of f given u = f(Z).

    Z : (m, d) inducing inputs
    kind : Approximation, "sor", "dtc" or "fitc"
    jitter : what to add to the diagonal of K_uu; None lets the factorisation decide
    """

    Z: Any = field(kw_only=True)
    kind: Approximation = field(kw_only=True, default=APPROXIMATIONS["fitc"])

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.Z) == 0:
            raise ValueError("at least one inducing input is wanted, got none")
        require_prior(self.kind)

    def prior(self) -> SparsePrior:
        """Return the prior of the latent values: O(n m^2) time, an array of n x m."""
        basis = nystrom(self.kernel, self.X, self.Z, self.jitter)
        return SparsePrior(self, basis, self.kind.training == "independent")


class SparseLatentAdjoints(NamedTuple):
    """Derivatives of the log evidence L in what the engine was given.

    theta : (p,) in the kernel's free parameters
    Z : (m, d) in the inducing inputs, or None
    likelihood : (q,) in the likelihood's free parameters
    mean : (n,) in the prior mean
    """

    theta: Floats
    Z: Floats | None
    likelihood: Floats
    mean: Floats


def pulled(
    problem: SparseLatentProblem,
    sites: SparseSites,
    alpha: Floats,
    likelihood: Floats,
    inputs: bool,
    u: Floats | None = None,
) -> SparseLatentAdjoints:
    """Pull dL/d(Q + D) = G = (alpha alpha' - R + u alpha' + alpha u')/2 back to kernel and Z.

    D = diag(K - Q) has the adjoint g = diag(G), so that dL/dQ = G - g. Of the former only products
    with V are wanted; since R V = p V B^-1, and with a = V'alpha and b = V'u,

        2 G V    = (alpha + u) a' + alpha b' - p V B^-1,
        2 V'G V  = a a' + b a' + a b' - 1 + B^-1,
        dL/dK_fu = 2 (G - g) V L^-1,   dL/dK_uu = -L^-T V'(G - g) V L^-1,   dL/dm = alpha + u.

    O(n m^2) time, and memory for a few blocks of rows of V.

    Parameters
    ----------
    problem : SparseLatentProblem
    sites : SparseSites
    alpha : (n,) array
    likelihood : (q,) array
        dL/dtheta of the likelihood.
    inputs : bool
        Whether dL/dZ is wanted.
    u : (n,) array, optional
        What the evidence has through the motion of a point at which it is not stationary.
    """
    prior, kernel = sites.prior, problem.kernel
    V, L, p, w = prior.V, prior.basis.L, sites.effective, prior.weights
    u = np.zeros_like(alpha) if u is None else u
    X, Z = kernel.inputs(problem.X), kernel.inputs(problem.Z, "Z")
    with prior.blas():
        ab = np.array([down(V, alpha), down(V, u)])
        ends = np.array([alpha + u, alpha])
        theta, dZ = np.zeros(kernel.theta.size), np.zeros(np.shape(Z) if inputs else 0)
        VgV = np.zeros((V.shape[1],) * 2)
        g = np.zeros_like(alpha)
        if prior.independent:
            # each of w rows has its own part of D; the determinant counts all of them
            g = alpha**2 + 2.0 * u * alpha - w * p + p**2 * sites.leverages
            g = np.where(w > 0, 0.5 * g / np.where(w > 0, w, 1.0), 0.0)
        for rows in prior.blocks():
            VT = V[rows].T  # (m, b), Fortran order
            G = solve_lower(sites.L, VT)
            G = solve_lower(sites.L, G, transpose=True, overwrite=True)
            G *= -p[rows]
            G = dgemm(1.0, ab.T, ends[:, rows], 1.0, G, overwrite_c=1)
            if prior.independent:
                gV = g[rows] * VT
                VgV += dgemm(1.0, gV, VT, trans_b=1)
                G -= 2.0 * gV
                theta += kernel.pullback_diag(X[rows], g[rows], inputs=False).theta
            G = solve_lower(L, G, transpose=True, overwrite=True)
            own = kernel.pullback(X[rows], Z, G.T, inputs=inputs)
            theta += own.theta
            if own.Z is not None:
                dZ += own.Z
        a, b = ab
        M = mirror_lower(inverse_lower(sites.L.copy(order="F")))  # B^-1
        M += np.outer(a, 0.5 * a + b) + np.outer(0.5 * a + b, a) - VgV - VgV.T
        np.fill_diagonal(M, np.diagonal(M) - 1.0)
        M = solve_lower(L, np.asfortranarray(M), transpose=True, overwrite=True)
        M = solve_lower(L, np.asfortranarray(M.T), transpose=True, overwrite=True)
        own = kernel.pullback(Z, None, -0.25 * (M + M.T), inputs=inputs)
        if own.X is not None:
            dZ += own.X
    return SparseLatentAdjoints(theta + own.theta, dZ if inputs else None, likelihood, alpha + u)


def process(problem: SparseLatentProblem, mean: Mean, sites: SparseSites, a: Floats) -> Posterior:
    """Return the posterior process over the inducing inputs (UV 20b, 24b).

    The inducing variables are L z with z ~ N(a, B^-1), a = V'alpha: the mean is k_u(x)'L^-T a and
    the covariance k(x, x') - k_u'(K_uu^-1 - (L B L')^-1) k_u, without its first two terms for
    "sor" (UV 16b).
    """
    L = sites.prior.basis.L
    coefficients = solve_lower(L, a, transpose=True)
    with blas_for(len(L)):
        both = dtrmm(1.0, L, np.asfortranarray(np.tril(sites.L)), lower=1)
    degenerate = problem.kind.test == "deterministic"
    A = None if degenerate else InverseTriangular(L)
    B = InverseTriangular(both)
    basis = Basis(problem.kernel, problem.Z)
    return Posterior(basis, coefficients[:, None], A, B, 0 if degenerate else 1, mean)


def without_own_site(
    problem: SparseLatentProblem, sites: SparseSites, alpha: Floats
) -> LatentLeftOut:
    """Predict each row from the others, whose sites are held; exact for Gaussian noise. O(n m^2).

    A row has the part p v v' in B, v being its row of V. V a has there the variance s = v'B^-1 v,
    and c = s/(1 - p s) without the row; the mean is then v'a - c alpha_i. What a new point has
    beside V a is added. A row of any weight is taken out as a whole, and the density of y_i is that
    of a row of weight 1.
    """
    if problem.likelihood.missing("smoothed"):  # then it comes of the density
        problem.require("leave-one-out", "log_density")
    prior = sites.prior
    with prior.blas():
        s = sites.leverages
        rise = up(prior.V, down(prior.V, alpha))
    left = 1.0 - sites.effective * s
    # Other sites that are negative may leave no Gaussian: then the prior is all that is known. It
    # also is where the row is nearly all that is known of V a, and rounding takes the rest.
    good = left > 0
    widest = np.einsum("ij,ij->i", prior.V, prior.V)
    c = np.where(good, s / np.where(good, left, 1.0), widest)
    if np.all(sites.precision >= 0):
        c = np.minimum(c, widest)
    mean = problem.mean + np.where(good, rise - c * alpha, 0.0)
    variance = c if problem.kind.test == "deterministic" else c + prior.basis.residual
    log_density = problem.likelihood.smoothed(problem.y, mean, variance)[0]
    return LatentLeftOut(mean, variance, log_density)
