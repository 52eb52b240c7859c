"""Laplace's method for many classes: a softmax of C latent functions, coupled by the data.

p(y_i = c | f_i) = pi_ic = exp(f_ic)/sum_k exp(f_ik), and each f_c ~ N(m_c, K) with the same K.
Labels are distributions Y_i over the classes (a one for the class that is known), and the log
likelihood is sum_i w_i sum_c Y_ic ln pi_ic: the cross-entropy. At the mode F = m + K alpha,
alpha = w (Y - pi), the evidence and the covariance are those of `laplace`, with W as in `_coupled`.
The mean of the posterior is moved from the mode towards the middle, see `centre`.

This is the usual softmax; that of (BKM 54 to 56), of f/2, is the same with the kernel divided by 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr2k
from scipy.special import log_softmax, softmax

from mercer.compute import blas_for
from mercer.inference._coupled import CoupledSites
from mercer.inference._newton import Newton, Point, Solver
from mercer.inference._single import single
from mercer.inference._sites import factorise, symmetric_product
from mercer.kernels import Kernel
from mercer.likelihoods import Softmax
from mercer.means import Mean
from mercer.posterior import Basis, Posterior

__all__ = ["Adjoints", "SoftmaxProblem", "Solution", "centre", "evidence", "posterior", "solve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxProblem:
    """Classification into C classes, in arrays.

    kernel : Kernel, the same for each class
    X : inputs, n rows
    Y : (n, C) a distribution over the classes for each row
    mean : (n, C) prior means of the latent functions
    weights : (n,) powers of the likelihood, at least 0; None stands for ones
    jitter : what to add to the diagonal of K; None lets the first factorisation that fails decide
    """

    kernel: Kernel
    X: Floats
    Y: Floats
    mean: Floats
    weights: Floats | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        n = len(self.X)
        if np.ndim(self.Y) != 2 or len(self.Y) != n or np.shape(self.Y)[1] < 2 or n == 0:
            raise ValueError(
                f"Y must have a row for each of the {n} rows of X, at least one, and a column for "
                f"each of at least two classes, got shape {np.shape(self.Y)}"
            )
        if np.any(~(self.Y >= 0)) or not np.allclose(np.sum(self.Y, axis=1), 1.0, 0.0, 1e-8):
            raise ValueError("each row of Y must be a distribution: not negative, with sum 1")
        if np.shape(self.mean) != self.Y.shape or not np.all(np.isfinite(self.mean)):
            raise ValueError(
                f"mean must be finite, of shape {self.Y.shape}, got {np.shape(self.mean)}"
            )
        w = self.weights
        if w is not None and (np.shape(w) != (n,) or not np.all(np.isfinite(w) & (w >= 0))):
            raise ValueError(f"weights must be {n} finite numbers, none of them negative, got {w}")

    def gram(self) -> Floats:
        """Return the lower triangle of K, Fortran order, with `jitter` on its diagonal."""
        K = self.kernel.gram_lower(self.X)
        if self.jitter:
            K.reshape(-1, order="F")[:: len(K) + 1] += self.jitter
        return K

    def log_likelihood(self, F: Floats) -> float:
        """Return sum_i w_i sum_c Y_ic ln pi_ic; -inf where that is no number."""
        with np.errstate(all="ignore"):
            rows = np.sum(self.Y * log_softmax(F, axis=1), axis=1)
            total = float(np.sum(rows if self.weights is None else self.weights * rows))
        return total if np.isfinite(total) else -np.inf

    def weighted(self, values: Floats) -> Floats:
        """Return values (n, ...) times the weights."""
        if self.weights is None:
            return values
        return np.asarray(self.weights.reshape(-1, *(1,) * (values.ndim - 1)) * values)


class Solution(NamedTuple):
    """The mode, and the evidence there; see :class:`mercer.inference.laplace.Solution`.

    latent, alpha, state : (n, C)
    sites : the factorisation of K^-1 + W at the mode
    """

    log_evidence: float
    latent: Floats
    alpha: Floats
    sites: CoupledSites
    state: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


class Adjoints(NamedTuple):
    """Derivatives of the log evidence L in what the engine was given.

    K : (n, n) Fortran order, lower triangle; dL/dK is `factor` times it, summed over the classes
    factor : what would otherwise cost a pass over the matrix
    mean : (n, C) dL/d(prior means)
    """

    K: Floats
    factor: float
    mean: Floats


class _Contrasts:
    """A preconditioner of one factorisation: a curvature that is the same for all contrasts.

    That is w_i (1 - |pi_i|^2)/(C - 1), the mean of the eigenvalues of W_i; what all classes have in
    common has none. It is W itself where all are equally likely.
    """

    def __init__(self, common: Solver) -> None:
        self._common = common

    def solve(self, v: Floats) -> Floats:
        return self._common.solve(v - np.mean(v, axis=1, keepdims=True))


class _Search(Newton):
    """Newton's method, first with the cheap preconditioner and, where that is slow, with W."""

    # a factorisation for all classes is worth about n/8 steps
    many, limit = 40, 120

    def __init__(self, problem: SoftmaxProblem, K: Floats) -> None:
        super().__init__(problem, K)
        self.problem = problem
        self.jitter = problem.jitter or 0.0
        self._coupled = False

    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        pi = softmax(f, axis=1)
        return self.problem.weighted(self.problem.Y - pi), pi

    def bend(self, W: Floats, v: Floats) -> Floats:
        return self.problem.weighted(Softmax.curvature_times(W, v))

    def precondition(self, W: Floats, f: Floats) -> Solver:
        self._coupled |= self.was_slow
        if self._coupled:
            return self.factorise(W)
        self.n_factorisations += 1
        mean = self.problem.weighted(1.0 - np.sum(W**2, axis=1)) / (W.shape[1] - 1)
        mean = np.maximum(mean, 0.0)
        rough = single(self.K, mean)
        if rough is not None:
            return _Contrasts(rough)
        sites = factorise(self.K, mean, self.problem.jitter)
        self.jitter += sites.jitter
        return _Contrasts(sites)

    def factorise(self, pi: Floats, keep_factors: bool = False) -> CoupledSites:
        self.solver = None
        problem = self.problem
        self.n_factorisations += pi.shape[1] + 1
        sites = CoupledSites(self.K, pi, problem.weights, problem.jitter, keep_factors)
        self.jitter += sites.jitter
        return sites

    def begin(self, start: Floats | None) -> Point:
        shape = self.problem.Y.shape
        best = self.point(np.zeros(shape, order="F"))
        if start is not None and start.shape == shape and np.all(np.isfinite(start)):
            # what the classes have in common is 0 at the mode, and stays so
            given = self.point(np.asfortranarray(start - np.mean(start, axis=1, keepdims=True)))
            return given if given.value > best.value else best
        return best

    def settle(self, at: Point, keep_factors: bool) -> tuple[Point, CoupledSites, bool]:
        """Climb, and factorise at the top."""
        while True:
            at, done = self.climb(at)
            at = self.point(at.alpha)  # without the rounding of many steps
            pi = self.slopes(at.f)[1]
            sites = self.factorise(pi, keep_factors)
            at = self.polish(at, sites)
            # steps that the rounding of alpha has hidden may be left
            moved = float(np.max(np.abs(self.slopes(at.f)[1] - pi)))
            if moved <= 1e-7 or not done or self.n_iterations > 100:
                return at, sites, done
            self.solver = sites


def solve(problem: SoftmaxProblem, start: Floats | None = None) -> Solution:
    """Find the mode and the log evidence.

    A few factorisations of O(n^3/3), and C + 1 with their inverses, O(C n^3), at the mode. C + 2
    matrices of n^2.

    Parameters
    ----------
    problem : SoftmaxProblem
    start : (n, C) array, optional
        `state` of a solution for hyperparameters nearby.
    """
    return _solve(problem, start, False)


def _solve(problem: SoftmaxProblem, start: Floats | None, keep_factors: bool) -> Solution:
    with blas_for(len(problem.X)):
        search = _Search(problem, problem.gram())
        at, sites, done = search.settle(search.begin(start), keep_factors)
    square = float(np.sum(at.alpha * (at.f - problem.mean)))
    return Solution(
        at.log_likelihood - 0.5 * square - 0.5 * sites.log_determinant,
        at.f,
        at.alpha,
        sites,
        at.alpha,
        "converged" if done else "stopped",
        search.n_iterations,
        search.n_factorisations,
        search.jitter,
    )


def evidence(problem: SoftmaxProblem, start: Floats | None = None) -> tuple[Solution, Adjoints]:
    """Return the solution and the adjoints of its log evidence, the motion of the mode included.

    With u = (1 + W K)^-1 a, a = -1/2 d ln det(1 + K W)/dF as in ``CoupledSites.lean``,

        dL/dK = sum_c (alpha_c alpha_c' - M_cc + u_c alpha_c' + alpha_c u_c')/2
        dL/dm = alpha + u.

    O(C n^3); 2C + 4 matrices of n^2.
    """
    solution = solve(problem, start)
    sites, alpha = solution.sites, solution.alpha
    with blas_for(len(alpha)):
        G, S = sites.moments()
        u = sites.lean(S)
        # -2 dL/dK = sum_c M_cc - alpha (alpha/2 + u)' - (alpha/2 + u) alpha'
        G = dsyr2k(-1.0, alpha, 0.5 * alpha + u, 1.0, G, lower=1, overwrite_c=1)
    return solution, Adjoints(np.asarray(G), -0.5, np.asarray(alpha + u))


def centre(solution: Solution, S: Floats) -> Floats:
    """Return the coefficients alpha (n, C) of the posterior mean, to first order beyond the mode.

    The posterior leans away from even odds, so that its mode is not in its middle. Its exact mean
    is m + K dL/dm with the exact log evidence L. With Laplace's that is m + K (alpha + u), u as in
    `evidence`: the mode moved by Sigma a, the third derivatives' share of the mean. The terms that
    follow are not small where the kernel is large, so u is cut down until it moves no latent value
    by more than sqrt(3) prior deviations. That is a rule of thumb: in one dimension no unimodal
    density has its mean further from its mode, and this likelihood makes deviations no larger than
    the prior's, but a coordinate of a joint mode is not the mode of its marginal.

    Two classes stay at the mode: they are the logistic with twice the kernel, which does.

    Parameters
    ----------
    solution : Solution
    S : (n, C, C) array
        The covariances of the classes at each row.
    """
    if S.shape[1] == 2:
        return solution.alpha
    K, u = solution.sites.K, solution.sites.lean(S)
    furthest = np.sqrt(3.0 * np.maximum(np.diagonal(K), np.finfo(float).tiny))[:, None]
    alpha = solution.alpha + u / max(1.0, np.max(np.abs(symmetric_product(K, u)) / furthest))
    return alpha if np.all(np.isfinite(alpha)) else solution.alpha


def posterior(
    problem: SoftmaxProblem, mean: Mean, start: Floats | None = None, at_mode: bool = False
) -> tuple[Posterior, Solution]:
    """Return the posterior process, of C coupled outputs, and the solution it was made of.

    Its covariance is that at the mode, its mean that of `centre`. It has 2C matrices of n^2.

    Parameters
    ----------
    problem : SoftmaxProblem
    mean : Mean
        The mean functions, whose values at the rows are `problem.mean`.
    start : (n, C) array, optional
        As in `solve`.
    at_mode : bool, default False
        Whether the mean is the mode instead, as in Laplace's method pure and simple.
    """
    solution = _solve(problem, start, True)
    sites, alpha = solution.sites, solution.alpha
    images = sites.images()
    if not at_mode:
        alpha = centre(solution, sites.row_covariances(images))
    A, B = sites.factors(images)
    return Posterior(Basis(problem.kernel, problem.X), alpha, A, B, 1, mean), solution
