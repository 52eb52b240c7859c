"""The mode of the posterior of a latent function, for noise with curvature and without.

f ~ N(m, K) and observations of weight w_i have their most probable latent values f = m + K alpha
where sum_i w_i log p(y_i | f_i) - alpha'K alpha/2 is largest (BKM 52). Where log p is smooth that
is the mode of Laplace's method (BKM 70 to 72). `Laplace`, `EpsilonInsensitive` and `Huber` noise
(BKM 10, 12, 13) have kinks, or jumps of the curvature, but make the problem a quadratic programme
in alpha, whose box is |alpha_i| <= w_i/s, or w_i k/s for `Huber` (`_box`). Its duality gap says how
good the solution is.

The mean of the posterior process is m(x) + k(x)'alpha. Its covariance is what the curvature of
log p at the mode makes of it. A row strictly inside the box is held at its kink by forces that
balance, and acts as an observation without noise; in the middle of `Huber`'s loss it has the noise
s^2/w_i. Rows at the faces, and those within the zone of `EpsilonInsensitive`, pull or do nothing
with no curvature, and do not reduce the variance. For the rows F inside

    cov(x, x') = k(x, x') - k_F(x)'(K_FF + diag(d_F))^-1 k_F(x'),    d_i = 0, or s^2/w_i:

the error bars of support vector regression by Gao, Gunn, Harris and Brown (2002). They tell where
there are data, and know of the noise no more than that: where a kink is, the variance is 0. EP and
variational inference have better ones.

There is no evidence. What has adjoints here is the joint density of y and the mode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from mercer.compute import blas_for
from mercer.inference._box import Box, solve_box
from mercer.inference._joint import adjoints_of, factor_prior, joint, log_normaliser
from mercer.inference._mode import find_mode
from mercer.inference._problem import LatentAdjoints, LatentProblem
from mercer.inference._sites import Sites
from mercer.likelihoods import EpsilonInsensitive, Huber, Laplace
from mercer.means import Mean
from mercer.posterior import Basis, InverseTriangular, Posterior

__all__ = ["Solution", "evidence", "joint", "posterior", "solve"]

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """The mode.

    log_posterior : sum_i w_i log p(y_i | f_i) - alpha'K alpha/2, the log density of the posterior
        at its mode but for what does not depend on f
    log_joint : the same with the normaliser of N(m, K), so that it is log p(y, f); from `evidence`
        alone, None otherwise
    latent : (n,) the mode f
    alpha : (n,) f = m + K alpha
    inside : (n,) the rows with curvature
    gap : the duality gap: by so much log_posterior is too small, at the most; None for a smooth
        likelihood, which has no dual here
    state : what `start` of the next evaluation may be, at hyperparameters nearby
    status : "converged", or "stopped" short of a maximum
    n_iterations, n_factorisations : what it took
    jitter : what K has on its diagonal
    """

    log_posterior: float
    log_joint: float | None
    latent: Floats
    alpha: Floats
    inside: NDArray[np.bool_]
    gap: float | None
    state: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


class _Found(NamedTuple):
    """A solution, and what a posterior is made of."""

    solution: Solution
    K: Floats
    sites: Sites | None  # of a smooth likelihood
    box: Box | None  # of the other ones


def solve(problem: LatentProblem, start: Floats | None = None, tolerance: float = 1e-8) -> Solution:
    """Find the mode.

    Some ten factorisations of O(n^3/3) from a cold start, fewer from a warm one; two or three
    arrays of n x n.

    Parameters
    ----------
    problem : LatentProblem
        Its likelihood has derivatives and curvature, or is one of those named above.
    start : (n,) array, optional
        `state` of a solution for hyperparameters nearby.
    tolerance : float
        For noise without curvature: on the duality gap, in units of 1 + alpha'K alpha/2.
    """
    return _find(problem, start, tolerance).solution


def evidence(
    problem: LatentProblem, start: Floats | None = None
) -> tuple[Solution, LatentAdjoints]:
    """Return the mode and the adjoints of its `log_joint`: an evidence there is not.

    L = log p(y, f) at the mode of f (BKM 52), with the normaliser of the prior. As L is stationary
    in f, its derivatives are those at fixed f,

        dL/dK = (alpha alpha' - K^-1)/2,    dL/dm = alpha,    dL/dtheta = sum_i w_i l_i',

    where the derivative l_i' of log p in theta jumps at a kink, by that between its two sides that
    the dual has: with e the zone of `EpsilonInsensitive`, w_i dl_i/de is |alpha_i| - w_i/(s + e).

    K must be positive definite here, and by more than rounding: see `factor_prior`. The mode is
    that of the K with jitter. O(n^3).
    """
    _require(problem)
    with blas_for(problem.n):
        K = problem.gram()
        factor = factor_prior(problem, K)
        jitter = factor.jitter + (problem.jitter or 0.0)
        found = _find(replace(problem, jitter=jitter), start, K=K)
        solution = found.solution
        value = solution.log_posterior - log_normaliser(factor)
        adjoints = adjoints_of(factor, solution.alpha, _pull_likelihood(problem, found))
    return solution._replace(log_joint=value), adjoints


def posterior(
    problem: LatentProblem, mean: Mean, start: Floats | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process and the solution it was made of.

    Its basis has the rows with alpha other than 0 alone, for noise without curvature.

    Parameters
    ----------
    problem : LatentProblem
    mean : Mean
        The mean function m(x), whose values at the rows are `problem.mean`.
    start : (n,) array, optional
        As in `solve`.
    """
    found = _find(problem, start)
    solution, alpha = found.solution, found.solution.alpha
    if found.sites is not None:
        A, B = found.sites.factors()
        basis = Basis(problem.kernel, problem.X)
        return Posterior(basis, alpha[:, None], A, B, 1, mean), solution
    with blas_for(problem.n):
        rows, L = _independent(found)
    others = np.setdiff1d(np.flatnonzero(alpha), rows)
    order = np.concatenate([rows, others])
    factor = InverseTriangular(L) if rows.size else None
    basis = Basis(problem.kernel, problem.X[order])
    return Posterior(basis, alpha[order, None], factor, None, 1, mean), solution


def _find(
    problem: LatentProblem,
    start: Floats | None = None,
    tolerance: float = 1e-8,
    K: Floats | None = None,
) -> _Found:
    """Return the mode by the method that suits the likelihood; `K` is `problem.gram()`."""
    _require(problem)
    with blas_for(problem.n):
        K = problem.gram() if K is None else K
        box = _box(problem)
        return (
            _smooth(problem, K, start)
            if box is None
            else _kinked(problem, K, box, start, tolerance)
        )


def _smooth(problem: LatentProblem, K: Floats, start: Floats | None) -> _Found:
    mode = find_mode(problem, K, start)
    square = float(mode.alpha @ (mode.latent - problem.mean))
    solution = Solution(
        mode.log_likelihood - 0.5 * square,
        None,
        mode.latent,
        mode.alpha,
        mode.sites.precision != 0,
        None,
        mode.alpha,
        mode.status,
        mode.n_iterations,
        mode.n_factorisations,
        mode.jitter,
    )
    return _Found(solution, K, mode.sites, None)


def _kinked(
    problem: LatentProblem, K: Floats, box: Box, start: Floats | None, tolerance: float
) -> _Found:
    if start is not None and (start.shape != (problem.n,) or not np.all(np.isfinite(start))):
        start = None
    found = solve_box(K, box, start, problem.jitter, tolerance)
    latent = problem.mean + found.shift
    solution = Solution(
        problem.log_likelihood(latent) - 0.5 * float(found.alpha @ found.shift),
        None,
        latent,
        found.alpha,
        found.inside,
        found.gap,
        found.alpha,
        "converged" if found.is_solved(tolerance) else "stopped",
        found.n_iterations,
        found.n_factorisations,
        found.jitter + (problem.jitter or 0.0),
    )
    return _Found(solution, K, None, box)


def _box(problem: LatentProblem) -> Box | None:
    """Return the programme of a likelihood, None for one that has no need of it."""
    likelihood, w = problem.likelihood, problem.weighted(np.ones(problem.n))
    zone = variance = 0.0
    if isinstance(likelihood, Huber):
        scale = _given(likelihood.scale, "scale")
        steepest, variance = likelihood.threshold / scale, scale**2
    elif isinstance(likelihood, EpsilonInsensitive):
        zone = _given(likelihood.epsilon, "epsilon")
        steepest = 1.0 / _given(likelihood.scale, "scale")
    elif isinstance(likelihood, Laplace):
        steepest = 1.0 / _given(likelihood.scale, "scale")
    else:
        return None
    noise = variance / np.where(w > 0, w, 1.0)
    return Box(problem.y - problem.mean, w * steepest, zone, noise)


def _given(value: float | None, name: str) -> float:
    if value is None:
        raise ValueError(f"the {name} of the noise is not chosen yet: take it from begun(y)")
    return value


def _independent(found: _Found) -> tuple[NDArray[np.intp], Floats]:
    """Return those rows inside that the others do not determine, and the factor for them.

    A pivoted factorisation: of rows that are the same to the kernel one is kept. Nothing is added
    to the matrix.
    """
    assert found.box is not None
    rows = np.flatnonzero(found.solution.inside)
    if not rows.size:
        return rows, np.empty((0, 0))
    M = np.asfortranarray(found.K[np.ix_(rows, rows)])
    np.fill_diagonal(M, np.diagonal(M) + found.box.noise[rows])
    L, pivots, rank, _ = dpstrf(M, lower=1, overwrite_a=1)
    return rows[pivots[:rank] - 1], np.asfortranarray(L[:rank, :rank])


def _pull_likelihood(problem: LatentProblem, found: _Found) -> Floats:
    """Return dL/dtheta of the likelihood's parameters."""
    likelihood, solution, box = problem.likelihood, found.solution, found.box
    if not likelihood.theta.size:
        return np.empty(0)
    y, f, w = problem.y, solution.latent, problem.weighted(np.ones(problem.n))
    if box is None or box.zone == 0:
        return likelihood.pull_derivatives(y, f, w, 0.0, 0.0)
    # a row at the edge of the zone counts as outside by the part that alpha has of its bound
    on, share = solution.inside, np.zeros(problem.n)
    share[on] = np.abs(solution.alpha[on]) / box.bound[on]
    edge = np.sign(solution.alpha[on]) * box.zone
    off = 8.0 * np.finfo(float).eps * (np.abs(y[on]) + box.zone)  # what rounding cannot undo
    sides = [
        (y[~on], f[~on], w[~on]),
        (y[on], y[on] - edge - np.sign(edge) * off, (w * share)[on]),
        (y[on], y[on] - edge + np.sign(edge) * off, (w * (1.0 - share))[on]),
    ]
    return np.asarray(sum(likelihood.pull_derivatives(*s, 0.0, 0.0) for s in sides))


def _require(problem: LatentProblem) -> None:
    """Raise ValueError for a likelihood whose mode is not found here."""
    likelihood = problem.likelihood
    problem.require("the mode", "log_density", "derivatives")
    if not likelihood.has_curvature and _box(problem) is None:
        raise ValueError(
            f"the mode is found by the curvature of the likelihood, and that of "
            f"{type(likelihood).__name__} is 0 almost everywhere; without curvature Laplace, "
            "EpsilonInsensitive and Huber are taken"
        )
