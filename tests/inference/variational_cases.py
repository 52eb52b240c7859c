"""Problems for variational inference."""

from __future__ import annotations

import numpy as np

from mercer.inference import variational
from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    StudentT,
)


def steep(y, f):
    """A density to be given as a function."""
    return -np.log(np.cosh(y - f)) - np.log(np.pi)


LIKELIHOODS = {
    "logistic": Logistic(),
    "probit": Probit(0.7),
    "poisson": Poisson(),
    "laplace": Laplace(0.4),
    "insensitive": EpsilonInsensitive(0.3, 0.2),
    "huber": Huber(0.4, 0.8),
    "student": StudentT(4.0, 0.4),
    "mixture": MixtureNoise([0.8, 0.2], [0.0, 0.0], [0.4, 2.0]),
    "custom": Custom(steep),
}
KINDS = list(LIKELIHOODS)
CONCAVE = [k for k in KINDS if k not in ("student", "mixture")]
FAST = ["logistic", "poisson", "laplace", "student"]


def make(kind, n=12, seed=0, weights=False, mean=False, kernel=None, outliers=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = 1.5 * np.sin(1.5 * X[:, 0])
    if kind in ("logistic", "probit"):
        y = np.where(f + rng.logistic(size=n) > 0, 1.0, -1.0)
    elif kind == "poisson":
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + 0.3 * rng.normal(size=n)
        y[:outliers] += 5.0
    kernel = 1.7 * RBF([0.8, 1.5]) if kernel is None else kernel
    m = 0.4 * np.cos(X[:, 0]) if mean else np.zeros(n)
    w = rng.uniform(0.3, 2.5, n) if weights else None
    likelihood = Gaussian(0.3) if kind == "gaussian" else LIKELIHOODS[kind]
    return LatentProblem(kernel, X, y, likelihood, m, w)


def value_of(problem, start=None):
    solution = variational.solve(problem, start)
    assert solution.status == "converged"
    return solution.log_evidence


def assert_monotone(solution):
    bounds = np.array(solution.bounds)
    assert len(bounds) == solution.n_iterations + 1
    assert np.all(np.diff(bounds) >= -1e-11 * (1 + np.max(np.abs(bounds))))
    assert solution.log_evidence == bounds[-1]
