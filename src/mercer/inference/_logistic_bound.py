"""The lower bound on the logistic function (BKM 76), and what Gaussians make of it.

Not an engine; `bounds` has the notation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from mercer.inference._ascent import weighted
from mercer.inference._ascent_newton import Curvatures
from mercer.inference._problem import LatentProblem
from mercer.likelihoods import Logistic

__all__ = ["ExpectedBound", "curvature", "labels"]

Floats = NDArray[np.float64]


def labels(problem: LatentProblem) -> Floats:
    """Return y, or refuse the problem."""
    if not isinstance(problem.likelihood, Logistic):
        raise ValueError(
            "the bounds are those of the logistic function, so the likelihood must be Logistic(), "
            f"got {problem.likelihood!r}; variational inference takes any that is positive"
        )
    wrong = np.abs(problem.y) != 1.0
    if np.any(wrong):
        raise ValueError(f"labels must be -1 or 1, got {problem.y[wrong][0]}")
    return problem.y


def curvature(nu: Floats) -> Floats:
    """Return lambda(nu) = tanh(nu/2)/(4 nu), which at 0 is 1/8."""
    small = np.abs(nu) < 1e-3
    safe = np.where(small, 1.0, nu)
    return np.where(small, 0.125 - nu**2 / 96.0, np.tanh(0.5 * safe) / (4.0 * safe))


def _curvature_slope(nu: Floats) -> Floats:
    """Return the derivative of lambda in nu^2, which is negative."""
    small = np.abs(nu) < 0.05
    safe = np.where(small, 1.0, nu)
    tanh = np.tanh(0.5 * safe)
    slope = ((1.0 - tanh**2) / (16.0 * safe) - tanh / (8.0 * safe**2)) / safe
    return np.where(small, nu**2 / 480.0 - 1.0 / 96.0, slope)


class ExpectedBound:
    """The expectation of (BKM 76) under Gaussians, at the best nu of each row."""

    def __init__(self, problem: LatentProblem) -> None:
        self.problem, self.y = problem, labels(problem)

    def values(self, mean: Floats, var: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E, dE/dmean and dE/dvar."""
        nu = np.hypot(mean, np.sqrt(var))
        bend = curvature(nu)
        value = log_expit(nu) + 0.5 * (self.y * mean - nu)
        value, first, second = weighted(
            self.problem, value, 0.5 * self.y - 2.0 * bend * mean, -bend
        )
        return value, first, second

    def curvatures(self, mean: Floats, var: Floats, first: Floats, second: Floats) -> Curvatures:
        """Return the second derivatives."""
        (slope,) = weighted(self.problem, _curvature_slope(np.hypot(mean, np.sqrt(var))))
        return Curvatures(2.0 * second - 4.0 * slope * mean**2, -2.0 * slope * mean, -slope)
