"""Variational inference: the Gaussian nearest to the posterior in KL(q, p), for any likelihood > 0.

The bound of Theorem 1 (BKM 21, 22 as corrected) is maximised over all Gaussians q of the latent
values, means and covariances; what it falls short of ln p(Y) is KL(q, p(f | Y)). With Gaussian
noise q is the posterior itself, and the bound the evidence.

A likelihood gives E[ln p(y | f)] under a Gaussian, `expected`. That is smooth whatever the density
is, so that noise with kinks is welcome. But the density must be positive: q reaches everywhere, and
where it meets a density of 0 the expectation is minus infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference import _ascent
from mercer.inference._ascent import Solution, State, adjoints, maximise, weighted
from mercer.inference._ascent_newton import Curvatures
from mercer.inference._problem import LatentAdjoints, LatentLeftOut, LatentProblem
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = ["LatentProblem", "Solution", "State", "evidence", "leave_one_out", "posterior", "solve"]

Floats = NDArray[np.float64]

# The part of a variance by which it is moved to find derivatives in it.
_SPREAD = 1e-4


def solve(problem: LatentProblem, start: State | None = None) -> Solution:
    """Return the best Gaussian and its bound on the log evidence.

    Parameters
    ----------
    problem : LatentProblem
    start : State, optional
        `state` of a solution at other parameters.

    Notes
    -----
    A step takes O(n^3) time and, where the likelihood has no closed form, n integrals, twice. A
    few steps do for likelihoods that are log-concave, of which the bound has one maximum; others
    may have several, and take some dozens.
    """
    return maximise(problem, _Expected(problem), start)[0]


def evidence(problem: LatentProblem, start: State | None = None) -> tuple[Solution, LatentAdjoints]:
    """Return the solution and the adjoints of its bound."""
    solution, point = maximise(problem, _Expected(problem), start)
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    likelihood = problem.likelihood.pull_expected(problem.y, point.latent, point.variance, w)
    return solution, adjoints(point, likelihood)


def posterior(
    problem: LatentProblem, mean: Mean, start: State | None = None
) -> tuple[Posterior, Solution]:
    """Return the posterior process of the best Gaussian, and the solution.

    Parameters
    ----------
    problem : LatentProblem
    mean : Mean
        The mean function, of which `problem.mean` has the values at the rows.
    start : State, optional
        `state` of a solution at other parameters.
    """
    return _ascent.posterior(problem, _Expected(problem), mean, start)


def leave_one_out(
    problem: LatentProblem, start: State | None = None
) -> tuple[Solution, LatentLeftOut]:
    """Predict each row from the others in closed form, the other rows' part in q held.

    Exact for Gaussian noise. The density is that of an observation of weight 1.
    """
    return _ascent.leave_one_out(problem, _Expected(problem), start)


class _Expected:
    """E[w ln p(y | f)] of the rows, under Gaussians."""

    def __init__(self, problem: LatentProblem) -> None:
        if not problem.likelihood.is_positive:
            raise ValueError(
                "variational inference needs a likelihood that is positive for every latent "
                f"value, and {problem.likelihood!r} is 0 for some, so that its expected logarithm "
                "is minus infinity; expectation propagation takes it"
            )
        self.problem = problem

    def values(self, mean: Floats, var: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E, dE/dmean and dE/dvar."""
        p = self.problem
        value, first, second = weighted(p, *p.likelihood.expected(p.y, mean, var))
        return value, first, second

    def curvatures(self, mean: Floats, var: Floats, first: Floats, second: Floats) -> Curvatures:
        """Return the second derivatives, those that go with the variance by differences."""
        moved = self.values(mean, var * (1.0 + _SPREAD))
        change = _SPREAD * var
        # the average of a function over a Gaussian obeys the heat equation, dE/dvar = E''/2
        return Curvatures(2.0 * second, (moved[1] - first) / change, (moved[2] - second) / change)
