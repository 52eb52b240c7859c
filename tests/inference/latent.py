"""Likelihoods as the textbook writes them, and the problems that tests of latent engines share."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln

from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF, Precomputed
from mercer.likelihoods.base import Likelihood
from mercer.params import positive


class _Plain(Likelihood):
    """Derivatives in the parameters by differences, which is what engines are tested with."""

    is_log_concave, has_curvature = True, True

    def pull_derivatives(self, y, f, g0, g1, g2):
        out, step = np.zeros(self.theta.size), 1e-5

        def total(theta):
            other = self.with_theta(theta)
            first, second, _ = other.derivatives(y, f)
            return np.sum(g0 * other.log_density(y, f) + g1 * first + g2 * second)

        for j in range(out.size):
            e = step * np.eye(out.size)[j]
            out[j] = (total(self.theta + e) - total(self.theta - e)) / (2 * step)
        return out

    def initial(self, y):
        return np.array(y, dtype=float)


class PlainLogistic(_Plain):
    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return -np.logaddexp(0.0, -y * f)

    def derivatives(self, y, f):
        p = expit(f)
        v = p * expit(-f)
        return (y + 1) / 2 - p, -v, -v * (1 - 2 * p)

    def fisher(self, f):
        return expit(f) * expit(-f)


class PlainPoisson(_Plain):
    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return y * f - np.exp(f) - gammaln(y + 1)

    def derivatives(self, y, f):
        rate = np.exp(f)
        return y - rate, -rate, -rate

    def fisher(self, f):
        return np.exp(f)


class PlainStudentT(_Plain):
    is_log_concave = False

    def __init__(self, df=4.0, scale=0.5):
        self._set(df=positive("df", df, vector=False), scale=positive("scale", scale, vector=False))

    def _with(self, parameters, children):
        return type(self)(**(self._parameters | parameters))

    @property
    def values(self):
        return self._parameters["df"].value, self._parameters["scale"].value

    def log_density(self, y, f):
        df, s = self.values
        front = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(s)
        return front - (df + 1) / 2 * np.log1p((y - f) ** 2 / (df * s**2))

    def derivatives(self, y, f):
        df, s = self.values
        r, b = y - f, df * s**2
        q = b + r**2
        return (
            (df + 1) * r / q,
            (df + 1) * (r**2 - b) / q**2,
            (df + 1) * 2 * r * (r**2 - 3 * b) / q**3,
        )

    def fisher(self, f):
        df, s = self.values
        return np.full(np.shape(f), (df + 1) / (df + 3) / s**2)


LIKELIHOODS = {"logistic": PlainLogistic(), "poisson": PlainPoisson(), "student": PlainStudentT()}


def make(kind, n=25, d=2, seed=0, weights=False, mean=False, outliers=4, kernel=None):
    """A problem of one of the kinds of `LIKELIHOODS`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = 1.5 * np.sin(1.5 * X[:, 0])
    if kind == "logistic":
        y = np.where(rng.uniform(size=n) < expit(2 * f), 1.0, -1.0)
    elif kind == "poisson":
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + 0.3 * rng.normal(size=n)
        y[:outliers] += 6.0 * np.where(np.arange(min(outliers, n)) % 2, 1.0, -1.0)
    kernel = 1.7 * RBF(np.linspace(0.8, 1.5, d)) if kernel is None else kernel
    m = 0.4 * np.cos(X[:, 0]) if mean else np.zeros(n)
    w = rng.uniform(0.3, 2.5, n) if weights else None
    return LatentProblem(kernel, X, y, LIKELIHOODS[kind], m, w)


def with_gram(problem, K):
    """The same problem with a Gram matrix given, whatever that is."""
    X = np.arange(problem.n, dtype=float)[:, None]
    return LatentProblem(
        Precomputed(K, is_mercer=False),
        X,
        problem.y,
        problem.likelihood,
        problem.mean,
        problem.weights,
        problem.jitter,
    )


def gram_adjoint_by_differences(value, K, step=1e-5):
    """dL/dK in the lower triangle, by moving each pair of entries."""
    n = len(K)
    G = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            E = np.zeros((n, n))
            E[i, j] = E[j, i] = step
            G[i, j] = (value(K + E) - value(K - E)) / (2 * step) / (1 if i == j else 2)
    return G
