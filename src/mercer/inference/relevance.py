"""Relevance vector machines for Gaussian noise (BKM 6.3), and for noise of heavy tails (BKM 126).

    y = m + Phi theta + e,   theta_j ~ N(0, 1/s_j) (BKM 118),   e_i ~ N(0, v/w_i)

with Phi the values of M functions at n rows, kernel sections or any others. Given s and v the
posterior of theta is normal, with Xi = (S + Phi'Phi/v)^-1 and mu = Xi Phi'(y - m)/v (BKM 131). The
precisions s and the noise v are those of the highest penalised evidence: ln p(y | s, v) (BKM 127)
plus the log densities of ln s_j and of ln 1/v (BKM 132, 133 corrected). Most s_j are infinite
there, and their functions absent: a function that is absent adds nothing to the sum.

A weight w_i is a power of the likelihood, as everywhere: of weight 2 is a row that is there twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from mercer.compute import blas_for
from mercer.errors import BoundWarning, UndeterminedWarning, warn
from mercer.inference._relevance_evidence import Terms
from mercer.inference._relevance_fast import Fast
from mercer.inference._relevance_problem import Hyperprior, Relevance, RelevanceProblem, Report
from mercer.inference._relevance_robust import Heavy
from mercer.inference._relevance_rows import Rows
from mercer.inference._relevance_run import checked_limit, require_memory, run, warn_of_stop
from mercer.inference._relevance_updates import Updates
from mercer.inference._relevance_variational import Variational

__all__ = [
    "ALGORITHMS",
    "Hyperprior",
    "Relevance",
    "RelevanceProblem",
    "Robust",
    "robust",
    "solve",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: How the penalised evidence is maximised.
ALGORITHMS = ("fast", "fixed_point", "em", "greedy", "variational")
_LOG_2PI = float(np.log(2.0 * np.pi))


class Robust(NamedTuple):
    """A fit whose rows have variances of their own.

    fit : Relevance; its noise is (n,)
    scale : v, what the rows' variances are about
    weights : (n,) v over a row's variance: small at outliers, above 1 at no row by much
    """

    fit: Relevance
    scale: float
    weights: Floats


def solve(
    problem: RelevanceProblem,
    algorithm: str = "fast",
    *,
    tol: float = 1e-2,
    max_iter: int | None = None,
    start: Relevance | None = None,
    report: Report | None = None,
) -> Relevance:
    """Return the functions, precisions and noise of a local maximum of the penalised evidence.

    Ctrl-C, also from within `report`, ends the search, and the best model so far is returned.

    Parameters
    ----------
    problem : RelevanceProblem
    algorithm : {"fast", "fixed_point", "em", "greedy", "variational"}
        "fast" adds, changes and removes single functions by what gains most: O(kM) a step and a
        pass over the columns for each that is added; memory O((n + M) k) beside the columns. The
        others keep the Gram matrix of all functions, and begin, but for "greedy", with all of them:
        O(nM^2 + M^3) at first. "fixed_point" is (BKM 134, 135), "em" never needs to look back and
        takes longest, "greedy" tests one function after the other as (BKM 6.3) describes,
        "variational" integrates over s and v too, and its history is its bound, which lacks
        constants where hyperpriors are flat.
    tol : float
        Steps that gain less, in nats, are not looked for.
    max_iter : int, optional
        Steps at most.
    start : Relevance, optional
        A fit of the same functions to begin with.
    report : function, optional
        Called with the number of steps, the penalised evidence and the number of functions.
    """
    if algorithm not in ALGORITHMS:
        names = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"algorithm must be one of {names}, got {algorithm!r}")
    limit = checked_limit(tol, max_iter)
    with blas_for(0 if algorithm == "fast" else problem.columns.size):
        if algorithm != "fast":
            require_memory(problem.columns, algorithm)
        rows = Rows(problem)
        work: Any
        if algorithm == "fast":
            work = Fast(problem, rows, tol, report)
        elif algorithm == "variational":
            work = Variational(problem, rows, tol, report)
        else:
            work = Updates(problem, rows, algorithm, tol, report)
        status = run(work, _beginning(start), limit)
        return _finished(problem, rows, work, status)


def robust(
    problem: RelevanceProblem,
    *,
    degrees: float | None = 4.0,
    tol: float = 1e-2,
    max_iter: int | None = None,
    start: Relevance | None = None,
    report: Report | None = None,
) -> Robust:
    """Return a fit with a variance t_i^2 for each row (BKM 126, and the slides).

    1/t_i^2 has a Gamma density with the mean 1/v, so that the noise, integrated over t_i, is
    Student's t with so many degrees of freedom and scale v; v is learned unless it is given.
    Precisions, functions and variances are updated in turn, and the evidence, penalised by the
    densities of all ln s_j and ln 1/t_i^2, never decreases. Of a row of weight w it counts w times.

    Parameters
    ----------
    problem : RelevanceProblem
    degrees : float or None
        Degrees of freedom, above 0. With None the density of ln t_i is flat, as on the slides; the
        evidence has no bound then, as soon as some rows are fitted exactly, and the floor of the
        noise is all that holds it.
    tol, max_iter, start, report
        As for `solve`, by the algorithm "fast".
    """
    if degrees is not None and not (np.isfinite(degrees) and degrees > 0):
        raise ValueError(f"degrees must be a positive number or None, got {degrees!r}")
    limit = checked_limit(tol, max_iter)
    with blas_for(0):
        work = Heavy(problem, degrees, tol, report)
        status = run(work, _beginning(start), limit)
        fit = _finished(problem, work.rows, work, status)
        variances, scale = work.variances, work.scale
        if work.is_at_floor:
            _warn_of_floor(problem, fit.indices)
    return Robust(fit._replace(noise=variances), scale, scale / variances)


def _beginning(start: Relevance | None) -> tuple[Indices, Floats, float] | None:
    if start is None:
        return None
    return start.indices, start.precisions, float(np.mean(start.noise))


def _warn_of_floor(problem: RelevanceProblem, indices: Indices) -> None:
    """Warn of targets that are fitted exactly, by functions or by the mean alone."""
    if np.all(np.isin(indices, problem.always)):
        warn(
            "the targets are constant, or the mean passes through all of them: no function was "
            "fitted, and their noise is the least there can be. Error bars are not to be trusted; "
            "give `noise` if it is known",
            UndeterminedWarning,
        )
        return
    warn(
        f"the noise variance is at its floor, {problem.noise_floor:.3g} of the targets' variance: "
        "the functions fit the targets, all but exactly. Error bars are not to be trusted; give "
        "`noise` if it is known",
        BoundWarning,
    )


def _finished(problem: RelevanceProblem, rows: Rows, work: Any, status: str) -> Relevance:
    """Return the solution, with a factor that comes of the columns and not of their squares."""
    terms: Terms = work.terms
    order = np.argsort(work.indices, kind="stable")
    indices, s, v = work.indices[order], work.point.s[order], work.point.v
    A = np.vstack([rows.take(indices) / np.sqrt(v), np.diag(np.sqrt(s))])
    Q, R = qr(A, mode="economic", overwrite_a=True, check_finite=False)
    sign = np.where(np.diagonal(R) < 0, -1.0, 1.0)
    R = np.triu(sign[:, None] * R)
    mu = solve_triangular(R, sign * (rows.z @ Q[: len(rows.z)]) / np.sqrt(v))
    residual = rows.z - rows.take(indices) @ mu
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(R)))) - float(np.sum(np.log(s)))
    fit = float(residual @ residual) / v + float(s @ mu**2)
    evidence = rows.offset - 0.5 * (rows.weight * (_LOG_2PI + float(np.log(v))) + fit + log_det)
    history = np.array(work.history)
    if isinstance(work, Variational):
        evidence = float(history[-1])
    if terms.learns and v <= terms.floor * (1.0 + 1e-9):
        _warn_of_floor(problem, indices)
    warn_of_stop(status, work.n_steps)
    latent = problem.mean + problem.columns.take(indices) @ mu
    return Relevance(
        indices=indices,
        mean=mu,
        factor=R,
        precisions=s,
        noise=v,
        latent=latent,
        log_evidence=evidence,
        history=history,
        status=status,
        n_iterations=work.n_steps,
        objective=float(history[-1]),
    )
