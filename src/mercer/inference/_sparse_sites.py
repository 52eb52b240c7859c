"""Gaussian sites on a sparse prior: what the engines for inducing variables end in.

The prior of the latent values is f = m + V a + e, a ~ N(0, 1) of order m and e ~ N(0, D): with
V = K_fu L^-T, L L' = K_uu, its covariance is Q + D. D is 0 for a training conditional that is
deterministic and the diagonal of K - Q for one that is independent. Sites of precisions S, which
may be negative, are observations with the noise variances 1/S, so that all of it is sparse
regression with Lambda = D + 1/S (UV 30), written without a division by S:

    h = 1/(1 + D S),   p = h S = 1/Lambda,   B = 1 + V'p V                    = L_B L_B'
    R     = (Q + Lambda)^-1 = p - p V B^-1 V'p
    Sigma = ((Q + D)^-1 + S)^-1 = D h + h V B^-1 V'h
    ln det(1 + (Q + D) S) = sum_i ln(1 + D_i S_i) + ln det B

and (Q + D)^-1 + S is positive definite if and only if all 1 + D S and B are.

A row of weight w counts as w rows that are the same: they share a, but each has an e of its own.
Of these only the mean matters to a, and it has the variance D/w; `share` is that. Alpha and S are
those of the w rows together, latent values and variances those of one of them.

Not an engine of its own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for, row_blocks
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._problem import LatentProblem
from mercer.inference._reduced import down, middle, up
from mercer.linalg import cholesky, solve_lower
from mercer.selection import Nystrom

__all__ = ["SparsePrior", "SparseSites"]

Floats = NDArray[np.float64]

# Entries of V that are worked on at once.
_ENTRIES = 2**20


class SparsePrior:
    """The prior N(m, Q + D) of the latent values at n rows.

    Parameters
    ----------
    problem : LatentProblem
        Whose weights it takes.
    basis : Nystrom
        V, L and the diagonal of K - Q.
    independent : bool
        Whether D is that diagonal, or 0.

    Attributes
    ----------
    V : (n, m) array, C order
    D : (n,) array
    weights : (n,) array
    share : (n,) array
        D over the weights; D itself for a row of weight 0, whose sites are flat.
    variances : (n,) array
        The diagonal of Q + D.
    """

    def __init__(self, problem: LatentProblem, basis: Nystrom, independent: bool) -> None:
        n = problem.n
        self.basis, self.V = basis, basis.V
        self.independent = independent
        self.D = basis.residual if independent else np.zeros(n)
        self.weights = np.ones(n) if problem.weights is None else problem.weights
        self.share = self.D / np.where(self.weights > 0, self.weights, 1.0)
        self.variances = np.einsum("ij,ij->i", self.V, self.V) + self.D

    def product(self, alpha: Floats) -> tuple[Floats, Floats, float]:
        """Return a = V'alpha (m,), f - m = V a + share alpha (n,), and alpha'(f - m). O(n m)."""
        a = down(self.V, alpha)
        rise = up(self.V, a) + self.share * alpha
        return a, rise, float(a @ a) + float(np.sum(self.share * alpha**2))

    def blocks(self) -> list[slice]:
        """Return rows of V that are worked on at once."""
        n, m = self.V.shape
        return row_blocks(n, max(1, _ENTRIES // m))

    def blas(self) -> AbstractContextManager[None]:
        """Return `blas_for` a matrix whose product takes as long as V'V does."""
        return blas_for(int(np.cbrt(float(self.V.size) * self.V.shape[1])))


class SparseSites:
    """A factorisation of (Q + D)^-1 + S: O(n m^2).

    Parameters
    ----------
    prior : SparsePrior
    precision : (n,) array
        The diagonal of S, of any sign.

    Attributes
    ----------
    kept : (n,) array
        h
    effective : (n,) array
        p
    L : (m, m) array
        L_B, lower triangle
    log_determinant : float
        ln det(1 + (Q + D) S), over all rows that the weights count

    Raises
    ------
    NotPositiveDefiniteError
        Where (Q + D)^-1 + S is not positive definite.
    """

    def __init__(self, prior: SparsePrior, precision: Floats) -> None:
        self.prior, self.precision = prior, precision
        growth = prior.share * precision
        if not np.all(np.isfinite(growth)):
            raise ValueError("the precisions of the sites must be finite, got NaN or infinity")
        if np.any(growth <= -1.0):
            raise self._indefinite()
        self.kept = 1.0 / (1.0 + growth)
        self.effective = self.kept * precision
        try:
            factor = cholesky(middle(prior.V, self.effective), 0.0)
        except NotPositiveDefiniteError:
            raise self._indefinite() from None
        self.L = factor.L
        rows = float(np.sum(prior.weights * np.log1p(growth)))
        self.log_determinant = rows + factor.log_determinant()

    def _indefinite(self) -> NotPositiveDefiniteError:
        negative = int(np.sum(self.precision < 0))
        reason = f"{negative} of {len(self.precision)} sites are negative, and outweigh the prior"
        if not negative:
            reason = f"the largest site, {np.max(self.precision):.3g}, rounds the prior away"
        return NotPositiveDefiniteError(
            f"the prior's precision and the sites' together are not positive definite: {reason}"
        )

    def coefficients(self, v: Floats) -> Floats:
        """Return B^-1 v for v (m,)."""
        return solve_lower(self.L, solve_lower(self.L, v), transpose=True)

    def solve(self, v: Floats) -> Floats:
        """Return R v for v (n,). O(n m)."""
        V, p = self.prior.V, self.effective
        return np.asarray(p * v - p * up(V, self.coefficients(down(V, p * v))))

    def increment(self, r: Floats) -> tuple[Floats, Floats, Floats]:
        """Return alpha = (1 + S (Q + D))^-1 r, V'alpha (m,), and (Q + D) alpha. O(n m).

        Sites exp(b'g - g'S g/2), g = f - m, have the mean that r = b gives.
        """
        V, hr = self.prior.V, self.kept * r
        a = self.coefficients(down(V, hr))
        Va = up(V, a)
        return hr - self.effective * Va, a, self.kept * Va + self.prior.share * hr

    @cached_property
    def leverages(self) -> Floats:
        """The diagonal of V B^-1 V', (n,). O(n m^2)."""
        V = self.prior.V
        out = np.empty(len(V))
        for rows in self.prior.blocks():
            T = solve_lower(self.L, V[rows].T)
            out[rows] = np.einsum("ij,ij->j", T, T)
        return out

    @property
    def variances(self) -> Floats:
        """The diagonal of Sigma, (n,). A sum of positive terms, whatever the sites."""
        return np.asarray(self.kept * (self.prior.D + self.kept * self.leverages))
