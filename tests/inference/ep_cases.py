"""Problems for expectation propagation, and what its solutions must hold to."""

from __future__ import annotations

import numpy as np

from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace, Logistic, Poisson, Probit, StudentT

KERNEL = 1.7 * RBF([0.8, 1.5])
LIKELIHOODS = {
    "gaussian": Gaussian(0.2),
    "probit": Probit(0.7),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "student": StudentT(3.0, 0.4),
    "laplace": Laplace(0.5),
}


def make(kind, n=20, seed=0, weights=None, mean=True, kernel=KERNEL, outliers=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = 1.5 * np.sin(1.5 * X[:, 0])
    if kind in ("probit", "logistic"):
        y = np.where(f + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    elif kind == "poisson":
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + 0.3 * rng.normal(size=n)
        if kind == "student":
            y[:outliers] += 4.0
    m = 0.4 * np.cos(X[:, 0]) if mean else np.zeros(n)
    if weights == "random":
        weights = rng.uniform(0.2, 2.5, n)
    return LatentProblem(kernel, X, y, LIKELIHOODS[kind], m, weights)


def assert_right(solution):
    assert solution.status == "converged"
    assert solution.residual <= 1e-6
    for value in solution[:5]:
        assert np.all(np.isfinite(value))
