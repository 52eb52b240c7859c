"""The Gaussian that the sites of expectation propagation make: its marginals and cavities.

Not an engine; `ep` has the model and the notation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inference._sites import Sites, factorise, symmetric_product

__all__ = ["WIDEST", "DenseMarginals", "Marginals"]

Floats = NDArray[np.float64]

#: A cavity wider than this many prior variances is no place to expect anything of.
WIDEST = 1e3


class Marginals(ABC):
    """q for sites exp(b g - S g^2/2): its marginals, and what cavities are made of.

    sites : the factorisation that they come of
    mean, var : (n,) its marginals, the mean less the prior's
    alpha : (n,) the mean's coefficients
    prior : (n,) the prior's variances
    is_convex : whether no site has a negative precision
    """

    sites: Any
    mean: Floats
    var: Floats
    alpha: Floats
    prior: Floats
    is_convex: bool

    @abstractmethod
    def move(self, b: Floats) -> None:
        """Change b, and with it the mean only."""

    @abstractmethod
    def kept(self, part: Floats) -> Floats:
        """Return the marginal variances over those without these parts of the rows' own sites."""

    def cavities(self, part: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the rows with these parts of their own sites taken out.

        And the marginal variances as parts of them: 0 where there is no cavity, for the other
        sites leave no Gaussian; mean and variance are the marginal's then.
        """
        kept = self.kept(part)
        good = (kept > 0) & (self.var <= WIDEST * self.prior * kept)
        var = self.var / np.where(good, kept, 1.0)
        if self.is_convex:
            var = np.minimum(var, self.prior)  # above only by rounding
        mean = self.mean - np.where(good, part * self.alpha * var, 0.0)
        return mean, var, np.where(good, kept, 0.0)


class DenseMarginals(Marginals):
    """That for a prior whose covariance K is written out."""

    sites: Sites

    def __init__(
        self, K: Floats, S: Floats, b: Floats, jitter: float | None, memory: Floats
    ) -> None:
        self.sites = factorise(K, S, jitter, memory)
        self.var = self.sites.marginal_variances()
        self.prior = np.diagonal(K).copy()
        self.is_convex = bool(np.all(S >= 0))
        # 1 - S_i Sigma_ii, on which a cavity rests; for a sharp site the difference has no digits
        self.left = 1.0 - S * self.var
        some = np.abs(S) * self.prior > 1e-2
        self.left[some] = np.diagonal(self.sites.inverse())[some] / S[some]
        self.move(b)

    def move(self, b: Floats) -> None:
        """Change b, and with it the mean only. O(n^2).

        alpha = (1 + S K)^-1 b is R b/S for a sharp site and b - R K b for a flat one; with rows of
        both kinds the two add.
        """
        K, S = self.sites.K, self.sites.precision
        sharp = S * self.prior > 1.0
        flat = np.where(sharp, 0.0, b)
        v = np.zeros(len(b))
        v[sharp] = b[sharp] / S[sharp]
        if np.any(flat):
            v -= symmetric_product(K, flat)
        self.alpha = flat + self.sites.solve(v)
        self.mean = symmetric_product(K, self.alpha)

    def kept(self, part: Floats) -> Floats:
        """Return the marginal variances over those without these parts of the rows' own sites."""
        return np.asarray((1.0 - part) + part * self.left)
