"""Going over rows again, once an on-line process has learned them.

A row's likelihood stands in the process as a Gaussian site: exp(nu g - tau g^2/2), g = f - m, with
tau and nu from the derivatives of log Z at what was known when the row came (SOGP 2.7). What came
later would have made another site of it. `refine` holds the basis and finds the sites again, each
against all others: expectation propagation on the prior of FITC with these points. With all rows
among the points that is `ep`. No row counts twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference import sparse_ep
from mercer.inference._online_rows import fitting, prior_variances
from mercer.inference._online_takeover import joined
from mercer.inference.online import Before, OnlineProcess
from mercer.posterior import Basis

__all__ = ["Refined", "first_sites", "refine"]

Floats = NDArray[np.float64]


class Refined(NamedTuple):
    """A process with sites that are right, or nearer to it.

    process : OnlineProcess, whose log evidence and projection loss are those of the first pass
    converged : whether all sites have settled
    residual : how far marginals are from what their sites should make them, at the worst row: in
        the mean, by standard deviations, or in the variance, as a part of it
    """

    process: OnlineProcess
    converged: bool
    residual: float


def first_sites(process: OnlineProcess, X: Any, Y: Floats, before: Before) -> list[Any]:
    """Return the sites that rows had when they were learned, one `SiteState` for each output.

    In units of `process.scale`. A row of another weight than 1 has the site here that it would have
    had with weight 1, and one that was skipped a flat one: places to begin at.
    """
    s = process.scale
    prior = process.mean_function(X, len(s)) / s
    states = []
    for p in range(len(s)):
        y, mean, var = Y[:, p] / s[p], before.mean[:, p] / s[p], before.var[:, p] / s[p] ** 2
        with np.errstate(all="ignore"):
            _, q, r = process.likelihood.smoothed(y, mean, var)
            left = 1.0 + var * r
            tau, nu = -r / left, (q - r * (mean - prior[:, p])) / left
        good = np.isfinite(tau) & np.isfinite(nu) & (left > 0)
        tau, nu = np.where(good, tau, 0.0), np.where(good, nu, 0.0)
        states.append(sparse_ep.SiteState(tau, nu, prior[:, p]))
    return states


def refine(
    process: OnlineProcess,
    X: Any,
    Y: Floats,
    weights: Floats | None,
    before: Before,
    max_iterations: int,
) -> Refined:
    """Return the process with its basis held and the sites of all rows found again.

    Parameters
    ----------
    process : OnlineProcess
        After a pass over these rows and no others; it is left as it is.
    X, Y, weights : the rows, as `OnlineProcess.learn` takes them
    before : Before
        What `learn` returned of them.
    max_iterations : int
        How many times all sites are moved, at the most.

    Notes
    -----
    O(n m^2) time an iteration and output, and an array of n x m.
    """
    if process.rules.keep < 1.0:
        raise ValueError(
            "a process that forgets has no posterior of all rows whose sites could be found again"
        )
    s = process.scale
    X, points = process.kernel.inputs(X), process.points
    with np.errstate(over="ignore", invalid="ignore"):
        prior = process.mean_function(X, len(s)) / s
    fits = fitting(prior_variances(process.kernel, X), np.empty((len(X), 0)), prior)
    if not np.all(fits):  # the others were skipped, and have no site
        X, Y, before = X[fits], Y[fits], Before(*(each[fits] for each in before))
        weights = None if weights is None else np.asarray(weights)[fits]
        prior = prior[fits]
    solutions, converged, residual = [], True, 0.0
    for p, start in enumerate(first_sites(process, X, Y, before)):
        problem = sparse_ep.SparseLatentProblem(
            process.kernel, X, Y[:, p] / s[p], process.likelihood, prior[:, p], weights, Z=points
        )
        found, solution = sparse_ep.posterior(
            problem, process.mean_function, start, max_iterations=max_iterations
        )
        solutions.append(found)
        converged = converged and solution.status == "converged"
        residual = max(residual, solution.residual)
    basis, mean = Basis(process.kernel, process.points), process.mean_function
    together = joined(solutions, process.likelihood, basis=basis, mean=mean, scale=s)
    return Refined(process.replaced(together), converged, residual)
