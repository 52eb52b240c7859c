"""Bounds on the evidence of logistic classification (Jaakkola and Jordan; BKM 76 and 77).

The logistic function lies between two functions that a Gaussian can be integrated against,

    ln 1/(1 + e^-t)  >=  ln 1/(1 + e^-nu) + (t - nu)/2 - lambda(nu) (t^2 - nu^2)      (BKM 76)
    ln 1/(1 + e^-t)  <=  mu t - H(mu)                                                (BKM 77)

with lambda(nu) = tanh(nu/2)/(4 nu) and H the entropy of a coin. nu is any real number (the paper
has it in [0, 1]), the lower bound being tight at t = +-nu; mu is in [0, 1], the upper one being
tight at t = ln((1 - mu)/mu). Each row has its own nu and mu, by which the bounds on the evidence
are made as tight as they get. The class of y = -1 has t = -f.

The lower bound is an engine: for given nu it is the evidence of a Gaussian process with Gaussian
sites, whose posterior serves for predictions. Maximising over nu and over the Gaussian are one
problem: for a Gaussian with moments mu_i and v_i the best nu_i is sqrt(mu_i^2 + v_i), and what is
left is the bound of Theorem 1 with (BKM 76) in the place of the likelihood. It is therefore never
above that of `variational`, but takes no quadrature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, expit, log_expit

from mercer.compute import blas_for
from mercer.inference import _ascent
from mercer.inference._ascent import Solution, State, adjoints, maximise
from mercer.inference._logistic_bound import ExpectedBound, curvature, labels
from mercer.inference._mode import find_mode
from mercer.inference._problem import LatentAdjoints, LatentLeftOut, LatentProblem
from mercer.inference._sites import symmetric_product
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "LatentProblem",
    "Solution",
    "State",
    "UpperBound",
    "evidence",
    "leave_one_out",
    "log_lower",
    "log_upper",
    "posterior",
    "solve",
    "upper_bound",
]

Floats = NDArray[np.float64]

_GAP = 1e-6  # of an upper bound that has converged, in units of 1 + its size


class UpperBound(NamedTuple):
    """An upper bound on the log evidence.

    log_evidence : the bound
    mu : (n,) the parameters of (BKM 77) that make it least
    gap : by how much it may still be above the least
    status : "converged" if the gap is next to nothing, else "stopped"; a bound in either case
    n_iterations : Newton steps that were taken
    """

    log_evidence: float
    mu: Floats
    gap: float
    status: str
    n_iterations: int


def log_lower(t: ArrayLike, nu: ArrayLike) -> Floats:
    """Return the logarithm of the lower bound (BKM 76) on 1/(1 + e^-t).

    Examples
    --------
    >>> from mercer.inference.bounds import log_lower
    >>> log_lower([-1.0, 0.0, 1.0], nu=1.0).round(4)
    array([-1.3133, -0.6977, -0.3133])
    """
    t, nu = np.asarray(t, dtype=float), np.asarray(nu, dtype=float)
    return np.asarray(log_expit(nu) + 0.5 * (t - nu) - curvature(nu) * (t - nu) * (t + nu))


def log_upper(t: ArrayLike, mu: ArrayLike) -> Floats:
    """Return the logarithm of the upper bound (BKM 77) on 1/(1 + e^-t); mu is in [0, 1].

    Examples
    --------
    >>> from mercer.inference.bounds import log_upper
    >>> log_upper([-1.0, 0.0, 1.0], mu=0.5).round(4)
    array([-1.1931, -0.6931, -0.1931])
    """
    t, mu = np.asarray(t, dtype=float), np.asarray(mu, dtype=float)
    if not np.all((mu >= 0) & (mu <= 1)):
        raise ValueError(f"mu must be between 0 and 1, got {mu[~((mu >= 0) & (mu <= 1))][:3]}")
    return np.asarray(mu * t - entr(mu) - entr(1.0 - mu))


def solve(problem: LatentProblem, start: State | None = None) -> Solution:
    """Return the tightest lower bound on the log evidence, and its Gaussian.

    Parameters
    ----------
    problem : LatentProblem
        Its likelihood is `Logistic`, and y is -1 or 1.
    start : State, optional
        `state` of a solution at other parameters.

    Notes
    -----
    nu of the rows is sqrt(latent^2 + variance) of the solution. A step takes O(n^3) time.
    """
    return maximise(problem, ExpectedBound(problem), start)[0]


def evidence(problem: LatentProblem, start: State | None = None) -> tuple[Solution, LatentAdjoints]:
    """Return the solution and the adjoints of the lower bound; the likelihood has no parameters."""
    solution, point = maximise(problem, ExpectedBound(problem), start)
    return solution, adjoints(point, np.zeros(0))


def posterior(
    problem: LatentProblem, mean: Mean, start: State | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process of the lower bound's Gaussian, and the solution.

    Parameters
    ----------
    problem : LatentProblem
    mean : Mean
        The mean function, of which `problem.mean` has the values at the rows.
    start : State, optional
        `state` of a solution at other parameters.
    """
    return _ascent.posterior(problem, ExpectedBound(problem), mean, start)


def leave_one_out(
    problem: LatentProblem, start: State | None = None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' part in the Gaussian held.

    The density is that of an observation of weight 1.
    """
    return _ascent.leave_one_out(problem, ExpectedBound(problem), start)


def upper_bound(problem: LatentProblem) -> UpperBound:
    """Return the tightest upper bound on the log evidence that (BKM 77) gives.

    With a_i = w_i y_i mu_i it is a'm + a'K a/2 - sum_i w_i H(mu_i). Over mu that is convex, and
    its minimum the dual of the search for the mode: mu_i is the probability which the mode f gives
    to the other class. The bound is therefore the joint density of y and f at the mode, less the
    prior's normaliser.

    Parameters
    ----------
    problem : LatentProblem
        Its likelihood is `Logistic`, and y is -1 or 1.

    Notes
    -----
    It is never above 0, the bound of mu = 0, and rises towards it as the prior gets vague. O(n^3)
    time.
    """
    y = labels(problem)
    with blas_for(problem.n):
        K = problem.gram()
        mode = find_mode(problem, K)
        f = mode.latent
        a = problem.weighted(y * expit(-y * f))
        cost = problem.weighted(entr(expit(-y * f)) + entr(expit(y * f)))
        value = float(a @ problem.mean + 0.5 * a @ symmetric_product(K, a) - np.sum(cost))
    reached = mode.log_likelihood - 0.5 * float(mode.alpha @ (f - problem.mean))
    mu = expit(-y * f)
    if not value <= 0:
        value, mu = 0.0, np.zeros_like(y)
    gap = value - reached
    status = "converged" if abs(gap) <= _GAP * (1.0 + abs(value)) else "stopped"
    return UpperBound(value, mu, max(gap, 0.0), status, mode.n_iterations)
