"""Problems with missing labels, and the free energy as it is written."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from mercer.inference.transductive import TransductiveProblem
from mercer.kernels import RBF
from mercer.likelihoods import Logistic, Probit, Softmax

KINDS = {"logistic": Logistic(), "probit": Probit(0.8), "softmax": Softmax(3)}
METHODS = ("em", "joint")


def make(kind="logistic", n=24, seed=0, weights=False, mean=False, kernel=None, known=0.3):
    """A problem whose classes are stripes of a plane."""
    rng = np.random.default_rng(seed)
    likelihood = KINDS.get(kind, kind)
    C = getattr(likelihood, "n_classes", 2)
    X = rng.normal(size=(n, 2))
    codes = np.searchsorted(np.linspace(-0.8, 0.8, C + 1)[1:-1], X[:, 0] + 0.3 * X[:, 1])
    labels = np.where(rng.uniform(size=n) < known, codes, -1)
    labels[:C] = np.arange(C)
    outputs = C if isinstance(likelihood, Softmax) else 1
    m = 0.4 * rng.normal(size=(n, outputs)) if mean else np.zeros((n, outputs))
    w = rng.uniform(0.3, 2.5, n) if weights else None
    kernel = 3.0 * RBF(0.9) if kernel is None else kernel
    return TransductiveProblem(kernel, X, labels, likelihood, m, w)


def log_probabilities(likelihood, F):
    if isinstance(likelihood, Softmax):
        return log_softmax(F, axis=1)
    return np.column_stack([likelihood.log_density(label, F[:, 0]) for label in (-1.0, 1.0)])


def value(problem, F, Q, T):
    """The free energy as the docstring writes it, by a dense inverse; T None is (BKM 61)."""
    n, w = len(F), np.ones(len(F)) if problem.weights is None else problem.weights
    logs = log_probabilities(problem.likelihood, F)
    rows = np.zeros(n)
    for i in range(n):
        if problem.labels[i] >= 0:
            rows[i] = logs[i, problem.labels[i]]
        elif T is None:
            rows[i] = np.sum(np.exp(logs[i]) * logs[i])
        else:
            q = Q[i][Q[i] > 0]
            rows[i] = np.sum(q * logs[i][Q[i] > 0]) - T * np.sum(q * np.log(q))
    K = problem.kernel(problem.X) + 1e-10 * np.eye(n)
    away = F - problem.mean
    return w @ rows - 0.5 * np.sum(away * np.linalg.solve(K, away))


def slope(function, at, step=1e-5):
    """The gradient by central differences."""
    out = np.empty(at.shape)
    for i in np.ndindex(at.shape):
        e = np.zeros(at.shape)
        e[i] = step
        out[i] = (function(at + e) - function(at - e)) / (2 * step)
    return out
