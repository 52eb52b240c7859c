"""Laplace's method with inducing variables: that of `laplace` for the sparse priors (UV Table 1).

f ~ N(m, Q + D), Q = K_fu K_uu^-1 K_uf, where D is 0 ("sor", "dtc") or the diagonal of K - Q
("fitc"). Newton's method climbs in alpha, f = m + (Q + D) alpha, by steps of (BKM 72, as corrected)

    alpha + d,   (1 + W (Q + D)) d = g - alpha,

each one factorisation of order m (`_sparse_sites`). Mode, evidence and posterior are those of
`laplace` if the inducing inputs are the rows, and those of `low_rank` where D = 0. With Gaussian
noise they are those of `sparse`. O(n m^2) time a step, O(n m) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from mercer.inference._newton import Direction, Point, Solver
from mercer.inference._problem import LatentLeftOut
from mercer.inference._reduced import down, up
from mercer.inference._scalar import ScalarNewton
from mercer.inference._sparse_latent import (
    SparseLatentAdjoints,
    SparseLatentProblem,
    process,
    pulled,
    without_own_site,
)
from mercer.inference._sparse_sites import SparsePrior, SparseSites
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "Solution",
    "SparseLatentAdjoints",
    "SparseLatentProblem",
    "SparseSearch",
    "evidence",
    "leave_one_out",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """The mode, and the evidence there.

    log_evidence : Laplace's approximation, under the sparse prior
    latent : (n,) the mode f
    alpha : (n,) f = m + (Q + D) alpha
    sites : the factorisation of (Q + D)^-1 + W at the mode, with the prior
    state : what `start` of the next evaluation may be, at hyperparameters nearby
    status : "converged", or "stopped" short of a maximum
    n_iterations, n_factorisations : what it took
    jitter : what K_uu has on its diagonal
    """

    log_evidence: float
    latent: Floats
    alpha: Floats
    sites: SparseSites
    state: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


def solve(problem: SparseLatentProblem, start: Floats | None = None) -> Solution:
    """Find the mode and the log evidence.

    Parameters
    ----------
    problem : SparseLatentProblem
        Its likelihood has derivatives.
    start : (n,) array, optional
        `state` of a solution for hyperparameters or inducing inputs nearby.
    """
    problem.require_mode("Laplace's method", "inference by 'ep'")
    prior = problem.prior()
    with prior.blas():
        search = SparseSearch(problem, prior)
        at, sites, done = search.settle(search.begin(start))
    return Solution(
        at.value - 0.5 * sites.log_determinant,
        at.f,
        at.alpha,
        sites,
        at.alpha,
        "converged" if done else "stopped",
        search.n_iterations,
        search.n_factorisations,
        prior.basis.jitter,
    )


def evidence(
    problem: SparseLatentProblem, start: Floats | None = None, *, inputs: bool = False
) -> tuple[Solution, SparseLatentAdjoints]:
    """Return the solution and the derivatives of its log evidence, the motion of the mode included.

    As in `laplace`: with Sigma = ((Q + D)^-1 + W)^-1, a = diag(Sigma) d3/2 = dL/df and
    u = (1 + W (Q + D))^-1 a,

        dL/d(Q + D) = (alpha alpha' - R + u alpha' + alpha u')/2,    dL/dm = alpha + u,
        dL/dtheta = sum_i w_i [l_i' + ((Q + D) u)_i g_i' - Sigma_ii W_i'/2].

    Parameters
    ----------
    problem, start
        As in `solve`.
    inputs : bool, default False
        Whether the derivatives in the inducing inputs are wanted.
    """
    solution = solve(problem, start)
    sites = solution.sites
    with sites.prior.blas():
        variances = sites.variances
        slope = 0.5 * variances * problem.derivatives(solution.latent)[2]
        u, _, moved = sites.increment(slope)
    likelihood = problem.likelihood
    parameters = np.empty(0)
    if likelihood.theta.size:
        w = sites.prior.weights
        parameters = likelihood.pull_derivatives(
            problem.y, solution.latent, w, w * moved, 0.5 * w * variances
        )
    return solution, pulled(problem, sites, solution.alpha, parameters, inputs, u)


def posterior(
    problem: SparseLatentProblem, mean: Mean, start: Floats | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process over the inducing inputs and the solution it was made of.

    Parameters
    ----------
    problem : SparseLatentProblem
    mean : Mean
        The mean function m(x), whose values at the rows are `problem.mean`.
    start : (n,) array, optional
        As in `solve`.
    """
    solution = solve(problem, start)
    a, _, _ = solution.sites.prior.product(solution.alpha)
    return process(problem, mean, solution.sites, a), solution


def leave_one_out(
    problem: SparseLatentProblem, start: Floats | None = None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' sites held.

    Exact for Gaussian noise. The density is that of an observation of weight 1.
    """
    solution = solve(problem, start)
    return solution, without_own_site(problem, solution.sites, solution.alpha)


class SparseSearch(ScalarNewton[SparseSites]):
    """Newton's method with Q + D for K.

    Parameters
    ----------
    problem : LatentProblem
    prior : SparsePrior
    """

    def __init__(self, problem: SparseLatentProblem, prior: SparsePrior) -> None:
        super().__init__(problem, prior.V)
        self.prior = prior

    def fresh_sites(self, precision: Floats) -> SparseSites:
        """Factorise (Q + D)^-1 + W."""
        return SparseSites(self.prior, precision)

    def point(self, alpha: Floats) -> Point:
        """Return the iterate that has these coefficients."""
        with np.errstate(all="ignore"):  # a start may be anything
            _, rise, square = self.prior.product(alpha)
            f = self.problem.mean + rise
            return Point(alpha, f, self.problem.log_likelihood(f), square)

    def direction(self, r: Floats, W: Floats, solver: Solver, fresh: bool) -> Direction:
        """Return Newton's step, and what it adds to f.

        A factorisation costs about as much as some tens of passes over V, so that nothing is gained
        by keeping to an old one: it is made anew at each step, unless W has not changed.
        """
        assert isinstance(solver, SparseSites)
        if not fresh and not np.array_equal(W, solver.precision):
            return Direction(r, r, False)
        d, _, moved = solver.increment(r)
        return Direction(d, moved, True)

    def polish(self, at: Point, solver: Solver) -> Point:
        """Return the point after Newton steps with the factorisation that belongs to the mode."""
        r = self.slopes(at.f)[0] - at.alpha
        for _ in range(3):
            new = self.point(at.alpha + self.direction(r, r, solver, True).d)
            left = self.slopes(new.f)[0] - new.alpha
            if not np.max(np.abs(left)) < 0.5 * np.max(np.abs(r)):
                break
            at, r = new, left
        return at

    def falling(self, W: Floats) -> tuple[Floats, Floats] | None:
        """Return the direction of most negative curvature, and what it adds to f.

        In units in which the prior of a and e is N(0, 1), f = m + A'z, the curvature is 1 + A W A':
        for its eigenvector z of eigenvalue s < 0 the step d = W A'z/(s - 1) has A d = z. By
        Lanczos' method, since that matrix is of order n + m.
        """
        V, root = self.prior.V, np.sqrt(self.prior.share)
        n, m = V.shape

        def curvature(z: Floats) -> Floats:
            z = np.ravel(z)
            Wf = W * (up(V, z[:m]) + root * z[m:])
            return np.concatenate([down(V, Wf), root * Wf])

        operator = LinearOperator((n + m, n + m), matvec=curvature, dtype=np.float64)
        first = np.random.default_rng(0).normal(size=n + m)
        try:
            values, vectors = eigsh(operator, 1, which="SA", v0=first, tol=1e-6)
        except ArpackError:
            return None
        z = vectors[:, 0]
        if not values[0] < -1.0:
            return None
        d = W * (up(V, z[:m]) + root * z[m:]) / values[0]
        _, moved, _ = self.prior.product(d)
        unit = np.sqrt(np.mean(self.prior.variances)) / np.max(np.abs(moved))
        return unit * d, unit * moved
