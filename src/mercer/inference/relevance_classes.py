"""Relevance vector machines for labels (BKM 6.4), by Laplace's approximation.

    ln p(y | theta) = sum_i w_i ln p(y_i | t_i),   t = m + Phi theta,   theta_j ~ N(0, 1/s_j)

with Phi the values of M functions at n rows, and p the logistic function (BKM 14) or another
log-concave likelihood. Given s, the posterior of theta is taken to be normal around its mode
(BKM 136 to 139, with K' for K in 137 and 139): Xi = (S + Phi'W Phi)^-1, W the curvature of the
likelihood there. The precisions are those of the highest penalised evidence, Laplace's

    ln p(y | theta) - theta'S theta/2 + sum_j ln(s_j)/2 - ln det(S + Phi'W Phi)/2,

plus the log densities of ln s_j. Most s_j are infinite there, and their functions absent.

`multinomial` is the same for P classes at once. The classes of a function share its precision, so
that a function is in the model for all of them or for none: that is what its cost at prediction
goes by, the model does not depend on the order of the classes, and what they have in common, on
which no label depends, stays at 0. With a precision for each pair the evidence would leave
out one class of each function, whichever, for the same probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf, dtrtri

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._expansion_posterior import expansion_posterior
from mercer.inference._relevance_classes_fast import Sequential
from mercer.inference._relevance_classes_problem import (
    ClassesProblem,
    MultinomialProblem,
    MultinomialRelevance,
)
from mercer.inference._relevance_classes_updates import ClassUpdates
from mercer.inference._relevance_mode import Mode, curvature
from mercer.inference._relevance_multinomial import Coupled
from mercer.inference._relevance_problem import Relevance, Report
from mercer.inference._relevance_run import checked_limit, require_memory, run, warn_of_stop
from mercer.inference._relevance_sites import ClassSites, ScalarSites
from mercer.inference._relevance_table import Table
from mercer.means import Mean
from mercer.posterior import Basis, Posterior
from mercer.posterior.factors import Dense

__all__ = [
    "ALGORITHMS",
    "ClassesProblem",
    "MultinomialProblem",
    "MultinomialRelevance",
    "multinomial",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: How the penalised evidence is maximised.
ALGORITHMS = ("fast", "fixed_point", "em")


def solve(
    problem: ClassesProblem,
    algorithm: str = "fast",
    *,
    tol: float = 1e-2,
    max_iter: int | None = None,
    start: Relevance | None = None,
    report: Report | None = None,
) -> Relevance:
    """Return the functions and precisions of a local maximum of the penalised Laplace evidence.

    Ctrl-C, also from within `report`, ends the search, and the best model so far is returned. Rows
    that functions can separate bound no coefficient; the precisions do, and have a floor at which a
    latent number has a prior deviation of 10, in units of the noise of a probit likelihood.

    Parameters
    ----------
    problem : ClassesProblem
    algorithm : {"fast", "fixed_point", "em"}
        "fast" adds, changes and removes single functions by what gains most: O(nMk) for each time
        that the mode is computed, and O(nk^2) for that; memory O((n + M) k) beside the columns. The
        others begin with all functions, O(nM^2 + M^3) at first: "fixed_point" is (BKM 134), "em"
        is EM's step in its place. Steps that would lower the evidence are not made.
    tol : float
        Steps that gain less, in nats, are not looked for.
    max_iter : int, optional
        Steps at most.
    start : Relevance, optional
        A fit of the same functions to begin with.
    report : function, optional
        Called with the number of steps, the penalised evidence and the number of functions.

    Returns
    -------
    Relevance
        `mean` is the mode, `factor` that of (BKM 138), `noise` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference._columns import KernelColumns
    >>> from mercer.inference.relevance_classes import ClassesProblem, solve
    >>> from mercer.kernels import RBF
    >>> from mercer.priors import Flat
    >>> X = np.linspace(-3.0, 3.0, 60)[:, None]
    >>> y = np.where(np.sin(2.0 * X[:, 0]) + 0.3 * np.cos(37.0 * X[:, 0]) > 0, 1.0, -1.0)
    >>> fit = solve(ClassesProblem(KernelColumns(RBF(0.7), X), y, np.zeros(60), None, Flat()))
    >>> len(fit.indices) < 8, bool(np.mean(np.sign(fit.latent) == y) > 0.9)
    (True, True)
    """
    if algorithm not in ALGORITHMS:
        names = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"algorithm must be one of {names} for labels, got {algorithm!r}")
    limit = checked_limit(tol, max_iter)
    with blas_for(0 if algorithm == "fast" else problem.columns.size):
        if algorithm != "fast":
            require_memory(problem.columns, algorithm)
        table = Table(problem.columns, problem.weights)
        kept = slice(None) if table.kept is None else table.kept
        sites = ScalarSites(problem.likelihood, problem.y[kept], problem.mean[kept], table.weights)
        work: Any
        hyperprior, always = problem.hyperprior, np.asarray(problem.always, dtype=np.intp)
        if algorithm == "fast":
            work = Sequential(table, sites, hyperprior, always, tol, report)
        else:
            work = ClassUpdates(table, sites, hyperprior, problem.always, algorithm, tol, report)
        status = run(work, None if start is None else (start.indices, start.precisions), limit)
        indices, at = _sorted(work)
        Phi = table.plain(indices)
        A = np.vstack([np.sqrt(at.bend[0, 0])[:, None] * Phi, np.diag(np.sqrt(at.s))])
        R = qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: len(indices)]
        R = np.triu(np.where(np.diagonal(R) < 0, -1.0, 1.0)[:, None] * R)
    warn_of_stop(status, work.n_steps)
    return Relevance(
        indices=indices,
        mean=at.mu,
        factor=R,
        precisions=at.s,
        noise=0.0,
        latent=problem.mean + problem.columns.take(indices) @ at.mu,
        log_evidence=at.evidence,
        history=np.array(work.history),
        status=status,
        n_iterations=work.n_steps,
        objective=float(work.history[-1]),
    )


def multinomial(
    problem: MultinomialProblem,
    *,
    tol: float = 1e-2,
    max_iter: int | None = None,
    start: MultinomialRelevance | None = None,
    report: Report | None = None,
) -> MultinomialRelevance:
    """Return the functions and precisions for P classes, as `solve` does for two.

    O(n k^2 P^2 + k^3 P^3) for each of Newton's steps. For two classes it is `solve` with the
    logistic likelihood and half the precisions. The floor of the precisions is at a prior deviation
    of 10.

    Parameters
    ----------
    problem : MultinomialProblem
    tol, max_iter, start, report
        As for `solve`, by the algorithm "fast".
    """
    limit = checked_limit(tol, max_iter)
    with blas_for(0):
        table = Table(problem.columns, problem.weights)
        kept = slice(None) if table.kept is None else table.kept
        sites = ClassSites(problem.Y[kept], problem.mean[kept], table.weights)
        always = np.asarray(problem.always, dtype=np.intp)
        work = Coupled(table, sites, problem.hyperprior, always, tol, report)
        status = run(work, None if start is None else (start.indices, start.precisions), limit)
        indices, at = _sorted(work)
        H = curvature(table.plain(indices), sites.bend_of_classes(at.t), at.s)
        R, info = dpotrf(H, lower=0, clean=1)
        if info:
            raise NotPositiveDefiniteError(
                f"the curvature of {len(indices)} functions for {problem.Y.shape[1]} classes has "
                "no factor: they are too alike; give a hyperprior that is not flat"
            )
    warn_of_stop(status, work.n_steps)
    mean = at.theta @ sites.U.T
    return MultinomialRelevance(
        indices=indices,
        mean=mean,
        factor=np.asarray(R),
        precisions=at.s,
        latent=problem.mean + problem.columns.take(indices) @ mean,
        log_evidence=at.evidence,
        history=np.array(work.history),
        status=status,
        n_iterations=work.n_steps,
        objective=float(work.history[-1]),
    )


def _sorted(work: Any) -> tuple[Indices, Mode]:
    """Return the functions of a model in their order, and its mode."""
    order = np.argsort(work.indices, kind="stable")
    at: Mode = work.point
    return work.indices[order], at._replace(s=at.s[order], theta=at.theta[order])


def posterior(
    fit: Relevance | MultinomialRelevance, basis: Basis, mean: Mean | None = None
) -> Posterior:
    """Return the posterior process of a fit, in its degenerate form; of P coupled outputs.

    The likelihood's predictive probabilities, of its means and variances, integrate over the
    weights (of `Softmax`, those of its means and covariances).

    Parameters
    ----------
    fit : Relevance or MultinomialRelevance
    basis : Basis
        The functions in the model, in the order of `fit.indices`.
    mean : Mean, optional
        The mean functions, whose values at the rows were given.
    """
    if isinstance(fit, Relevance):
        return expansion_posterior(basis, fit.mean, fit.spread, mean=mean)
    k, P = fit.mean.shape
    F = dtrtri(fit.factor, lower=0)[0].T
    parts = tuple(Dense(np.ascontiguousarray(F[:, c * k : (c + 1) * k])) for c in range(P))
    return Posterior(basis, fit.mean, None, parts, 0, mean)
