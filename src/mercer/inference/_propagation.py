"""Sites on their way to being right: the steps of expectation propagation.

Not an engine; `ep` has the model and the notation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._marginals import WIDEST, DenseMarginals, Marginals
from mercer.inference._problem import LatentProblem
from mercer.inference._tilted import Tilted

__all__ = ["DensePropagation", "Moments", "Propagation"]

Floats = NDArray[np.float64]

# 1 + c r is taken to be at least this: a site cannot be sharper than rounding tells.
_SHARPEST = 1e-12
# How often a step is halved before it is given up.
_HALVINGS = 40
# How often the means are moved at one factorisation, and by how much each time must help.
_MOVES = 10
_HELP = 0.9


class Moments(NamedTuple):
    """The cavities, and what the likelihood makes of them; each (n,).

    u, c : mean, less the prior's, and variance of the cavity
    kept : marginal variance over c
    log_z, q, r : log Z and its first two derivatives in u
    """

    u: Floats
    c: Floats
    kept: Floats
    log_z: Floats
    q: Floats
    r: Floats


class Propagation(ABC):
    """Sites, the Gaussian that they make, and the ways to go on from them.

    tau, nu : (n,) the sites, of weight 1 each
    eta : (n,) their powers
    part : (n,) what eta is of all sites of a row, eta/w
    copies : (n,) its inverse, 0 for a row of weight 0
    q : the Gaussian; made by the first `go`
    jitter : what the covariance has on its diagonal by now
    """

    q: Marginals
    jitter: float

    def __init__(self, problem: LatentProblem, power: Floats) -> None:
        n = problem.n
        self.problem = problem
        self.weights = np.ones(n) if problem.weights is None else problem.weights
        self.some = self.weights > 0
        self.eta = np.where(self.some, np.minimum(power, self.weights), power)
        self.part = np.where(self.some, self.eta / np.where(self.some, self.weights, 1.0), 0.0)
        self.copies = np.asarray(self.weights / self.eta)
        self.tilted = Tilted(problem.likelihood, problem.y, self.eta)
        self.tau, self.nu = np.zeros(n), np.zeros(n)

    # --- where the sites are --------------------------------------------------------------------

    def moments(self) -> Moments:
        """Return the moments at the sites as they are."""
        u, c, kept = self.q.cavities(self.part)
        return Moments(u, c, kept, *self.tilted.moments(self.problem.mean + u, c))

    def prior_moments(self) -> Moments:
        """Return the moments at flat sites, for which nothing is factorised."""
        c = self.prior_variances()
        zero = np.zeros(len(c))
        return Moments(zero, c, zero + 1.0, *self.tilted.moments(self.problem.mean, c))

    def residual(self, m: Moments) -> tuple[float, float]:
        """Return how far marginals are from the moments to be matched, at the worst rows.

        In the mean, by standard deviations, and in the variance, as a part of it: the one is
        c (q - part alpha), the other (1 + c r)/kept - 1.
        """
        rows = self.matched(m)[2] & (self.q.var > 0) & (m.kept > 0)
        if not np.any(rows):
            return 0.0, 0.0
        c, kept, sd = m.c[rows], m.kept[rows], np.sqrt(self.q.var[rows])
        # of a row that counts as many, each misses by a part of what they miss together
        many = np.maximum(self.copies[rows], 1.0)
        mean = many * c * np.abs(m.q[rows] - self.part[rows] * self.q.alpha[rows]) / sd
        # what rounding leaves of a difference of ones is no error
        var = np.maximum(np.abs(1.0 + c * m.r[rows] - kept) - _SHARPEST, 0.0) / kept
        return float(np.max(mean)), float(np.max(var))

    def log_evidence(self, m: Moments) -> float:
        """Return ln Z; kept is 1/(1 + eta tau c)."""
        some = self.some & (m.kept > 0)
        rows = m.log_z[some] - 0.5 * np.log(m.kept[some])
        value = -0.5 * self.q.sites.log_determinant - 0.5 * float(np.sum(self.q.alpha * m.u))
        value += float(np.sum(self.copies[some] * rows))
        return value if np.isfinite(value) else -np.inf

    # --- where they should be -------------------------------------------------------------------

    def matched(self, m: Moments) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the sites that match the moments, and where there are such; else the old ones."""
        with np.errstate(all="ignore"):
            narrowed = np.maximum(1.0 + m.c * m.r, _SHARPEST)
            tau = -m.r / narrowed / self.eta
            nu = (m.q - m.r * m.u) / narrowed / self.eta
        good = self.some & np.isfinite(tau) & np.isfinite(nu) & (m.kept > 0)
        return np.where(good, tau, self.tau), np.where(good, nu, self.nu), good

    def move_means(self, m: Moments, residual: tuple[float, float]) -> Moments:
        """Move nu at fixed tau until the means are matched, or that helps no more.

        All that is coupled closely is so through the means, and a move of these needs no new
        factorisation: half of the factorisations are enough then.
        """
        mean, goal = residual[0], 0.03 * residual[1]
        for _ in range(_MOVES):
            good = self.matched(m)[2]
            if mean <= goal or not np.all(good | ~self.some):
                break
            old = self.nu, self.q.alpha, self.q.mean
            self.nu = np.where(good, m.q / np.where(good, m.kept, 1.0) / self.eta, 0.0)
            self.nu += np.where(good, self.tau * m.u, old[0])
            self.q.move(self.weights * self.nu)
            new = self.moments()
            reached = self.residual(new)[0]
            if not (reached < _HELP * mean and np.all(self.matched(new)[2] | ~self.some)):
                self.nu, self.q.alpha, self.q.mean = old
                break
            m, mean = new, reached
        return m

    # --- going there ----------------------------------------------------------------------------

    def go(self, tau: Floats, nu: Floats, step: float) -> bool:
        """Go a step towards these sites, a shorter one where it leaves no Gaussian; or not."""
        old = self.tau, self.nu
        for _ in range(_HALVINGS):
            self.tau = old[0] + step * (tau - old[0])
            self.nu = old[1] + step * (nu - old[1])
            step *= 0.5
            if self._factorise():
                return True
        self.tau, self.nu = old
        self._factorise()
        return False

    @abstractmethod
    def prior_variances(self) -> Floats:
        """Return the variances of the latent values before any site."""

    @abstractmethod
    def _factorise(self) -> bool:
        """Make the Gaussian; False if there is none, or a row has no cavity in it."""


class DensePropagation(Propagation):
    """The steps with a covariance K that is written out."""

    q: DenseMarginals

    def __init__(self, problem: LatentProblem, power: Floats) -> None:
        super().__init__(problem, power)
        self.K = problem.gram()
        self.jitter = problem.jitter or 0.0
        self.memory = np.empty((problem.n,) * 2, order="F")  # of whatever was factorised last

    def prior_variances(self) -> Floats:
        """Return the variances of the latent values before any site."""
        c = np.diagonal(self.K).copy()
        if np.min(c) < 0:
            raise NotPositiveDefiniteError(
                f"the Gram matrix is not positive semidefinite: its diagonal has {np.min(c):.3g}"
            )
        return c

    def _factorise(self) -> bool:
        """Make the Gaussian; False if there is none, or a row has no cavity in it."""
        S = self.weights * self.tau
        try:
            q = DenseMarginals(self.K, S, self.weights * self.nu, self.problem.jitter, self.memory)
        except NotPositiveDefiniteError:
            if np.all(S >= 0):
                raise
            return False
        self.jitter += q.sites.jitter
        self.q = q
        return bool(q.is_convex or np.all(q.cavities(self.part)[2] > 0))

    def sweep(self, step: float) -> tuple[Floats, Floats]:
        """Return the sites after a pass over the rows, q changed after each by rank one."""
        Sigma, mean = self.q.sites.covariance(), self.q.mean.copy()
        tau, nu = self.tau.copy(), self.nu.copy()
        for i in map(int, np.flatnonzero(self.some)):
            w, part, eta, var = self.weights[i], self.part[i], self.eta[i], Sigma[i, i]
            kept = 1.0 - part * w * tau[i] * var
            if not (var > 0 and kept > 0 and var <= WIDEST * self.q.prior[i] * kept):
                continue  # no cavity; the other rows' sites may yet give it one
            u, c = (mean[i] - part * w * nu[i] * var) / kept, var / kept
            centre = self.problem.mean[i : i + 1] + u
            _, q, r = (float(z[0]) for z in self.tilted.row(i).moments(centre, np.array([c])))
            narrowed = max(1.0 + c * r, _SHARPEST)
            change = step * (-r / narrowed / eta - tau[i])
            shift = step * ((q - r * u) / narrowed / eta - nu[i])
            if not (np.isfinite(change) and np.isfinite(shift)):
                continue
            while 1.0 + w * change * var < 1e-3:  # the variance would explode, or be none
                change, shift = 0.5 * change, 0.5 * shift
            tau[i] += change
            nu[i] += shift
            column = np.concatenate([Sigma[i, :i], Sigma[i:, i]])
            shrink = w / (1.0 + w * change * var)
            mean += shrink * (shift - change * mean[i]) * column
            dsyr(-shrink * change, column, lower=1, a=Sigma, overwrite_a=1)
        return tau, nu
