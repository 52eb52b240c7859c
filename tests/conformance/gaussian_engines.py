"""Engines for any likelihood, given Gaussian noise: what `mercer.testing` has rules for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mercer.inference import LatentProblem
from mercer.inference._approximations import approximation
from mercer.inference.exact import Adjoints
from mercer.inference.iterative import IterativeProblem, Settings
from mercer.inference.low_rank import LowRankProblem
from mercer.inference.sparse import SparseProblem
from mercer.inference.sparse_laplace import SparseLatentProblem
from mercer.likelihoods import Gaussian
from mercer.params import positive
from mercer.posterior import Posterior


class RowVariances(Gaussian):
    """Gaussian noise with a variance a row, each of them a parameter: the adjoint has them all."""

    def __init__(self, noise):
        self._known, self._new = None, None
        self._set(noise=positive("noise", noise))

    def subset(self, keep):
        return RowVariances(self.noise[keep])

    def _row_variances(self, shape):
        return self.noise

    def _unweighted(self, n):
        return self.noise.copy()

    def _slopes(self, y, f):
        s, t = self.noise, y - f
        first, second, third = 0.5 * ((t / s) ** 2 - 1.0 / s), -t / s**2, 1.0 / s**2
        return {"noise": (np.diag(first), np.diag(second), np.diag(third))}

    def pull_smoothed(self, y, mean, var, g):
        t = self.noise + var
        return self._own_gradient(noise=0.5 * g * (((y - mean) / t) ** 2 - 1.0 / t))

    def pull_expected(self, y, mean, var, g):
        s = self.noise
        return self._own_gradient(noise=0.5 * g * (((y - mean) ** 2 + var) / s - 1.0) / s)


def outputs_of(kernel, X, Y, noise):
    """Return a problem for each output; the argument `problem` of `engine_rules`."""
    likelihood, zeros = RowVariances(noise), np.zeros(len(Y))
    return [LatentProblem(kernel, X, y, likelihood, zeros) for y in Y.T]


def outputs_on_all_rows(kernel, X, Y, noise):
    """Return problems whose basis points are the rows."""
    return [
        LowRankProblem(p.kernel, p.X, p.y, p.likelihood, p.mean, points=p.X)
        for p in outputs_of(kernel, X, Y, noise)
    ]


def all_rows_inducing(kernel, X, Y, noise, **regressors):
    """Return a problem of all outputs, in which the inducing inputs are the rows."""
    return SparseProblem(kernel, X, Y, noise, X, approximation("fitc"), **regressors)


def outputs_all_rows_inducing(kernel, X, Y, noise):
    """Return a problem for each output, in which the inducing inputs are the rows."""
    return [
        SparseLatentProblem(p.kernel, p.X, p.y, p.likelihood, p.mean, Z=p.X)
        for p in outputs_of(kernel, X, Y, noise)
    ]


class OnGaussianNoise:
    """An engine of one latent function, as one of several outputs with Gaussian noise."""

    def __init__(self, engine):
        self.engine = engine

    def solve(self, problems):
        return self.total(problems, map(self.engine.solve, problems))

    def total(self, problems, solutions):
        return SimpleNamespace(log_evidence=sum(map(self.value_of, problems, solutions)))

    def evidence(self, problems):
        found = [self.engine.evidence(p) for p in problems]
        # theta is the logarithm of the noise
        noise = sum(a.likelihood for _, a in found) / problems[0].likelihood.noise
        mean = np.stack([a.mean for _, a in found], axis=1)
        G = sum(self.gram_adjoint(a) for _, a in found)
        return self.total(problems, (s for s, _ in found)), Adjoints(G, 1.0, noise, mean)

    def value_of(self, problem, solution):
        return solution.log_evidence

    def gram_adjoint(self, adjoints):
        return adjoints.factor * adjoints.K

    def posterior(self, problems, mean, scale):
        found = [self.process(p, mean) for p in problems]
        alpha = np.hstack([q.alpha for q, _ in found])
        first = found[0][0]  # Gaussian noise leaves all outputs the same covariance
        process = Posterior(first.basis, alpha, first.A, first.B, first.weight, mean, scale)
        return process, self.total(problems, (s for _, s in found))

    def process(self, problem, mean):
        return self.engine.posterior(problem, mean)


class Mode(OnGaussianNoise):
    """The mode: what has adjoints is its joint density with the observations."""

    def value_of(self, problem, solution):
        if solution.log_joint is not None:
            return solution.log_joint
        K = problem.kernel(problem.X)
        return solution.log_posterior - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]


class OnAllRows(OnGaussianNoise):
    """A low-rank engine whose basis points are the rows, lifted to the full kernel."""

    def gram_adjoint(self, adjoints):
        return adjoints.basis + 0.5 * (adjoints.cross + adjoints.cross.T)

    def process(self, problem, mean):
        return self.engine.posterior(problem, mean, lift=True)


class OfParameters(OnGaussianNoise):
    """A sparse engine, which has adjoints of the kernel's parameters and none of a matrix."""

    def gram_adjoint(self, adjoints):
        return adjoints.theta


def by_iterations(kernel, X, Y, noise, **regressors):
    """Return a problem of all outputs, whose iterations go on to the last digits."""
    settings = Settings(tol=1e-24)
    return IterativeProblem(kernel, X, Y, noise, settings=settings, **regressors)


class ByIterations:
    """The iterative engine, whose adjoints are of parameters and of a factor of the noise."""

    def __init__(self, engine):
        self.solve, self.posterior = engine.solve, engine.posterior
        self._evidence = engine.evidence

    def evidence(self, problem):
        solution, adjoints = self._evidence(problem)
        return solution, Adjoints(adjoints.theta, 1.0, adjoints.log_noise, adjoints.mean)


class Sparse:
    """The sparse engine for Gaussian noise, whose adjoint of the noise is that of a factor."""

    def __init__(self, engine):
        self.solve, self.posterior = engine.solve, engine.posterior
        self._evidence = engine.evidence

    def evidence(self, problem):
        solution, adjoints = self._evidence(problem)
        return solution, Adjoints(adjoints.theta, 1.0, adjoints.noise, adjoints.beta)
