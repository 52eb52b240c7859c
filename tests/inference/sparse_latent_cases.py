"""Problems for the engines with inducing variables, and the same with Q + D written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inference._approximations import APPROXIMATIONS
from mercer.inference._sparse_latent import SparseLatentProblem
from mercer.kernels import Matern

from .latent import with_gram

ROUGH = 1.7 * Matern([0.8, 1.5], nu=1.5)
NEW = np.random.default_rng(3).normal(size=(5, 2))


def sparse(p, kind, m=6, Z=None):
    """The problem with inducing inputs, of which some are rows and others not."""
    if Z is None:
        Z = np.vstack([p.X[: m - 2], p.X[-2:] + 0.3])
    return SparseLatentProblem(
        p.kernel,
        p.X,
        p.y,
        p.likelihood,
        p.mean,
        p.weights,
        p.jitter,
        Z=Z,
        kind=APPROXIMATIONS[kind],
    )


def dense_gram(p):
    K, K_uf, K_uu = p.kernel(p.X), p.kernel(p.Z, p.X), p.kernel(p.Z)
    Q = K_uf.T @ np.linalg.solve(K_uu, K_uf)
    return Q + np.diag(np.diag(K - Q)) if p.kind.training == "independent" else Q


def as_dense(p):
    """The problem of a dense engine that has Q + D for its Gram matrix."""
    return with_gram(p, dense_gram(p))


def repeated(p, times):
    """The problem with its rows repeated, and with these weights instead."""
    rows = np.repeat(np.arange(p.n), times)
    more = replace(p, X=p.X[rows], y=p.y[rows], mean=p.mean[rows], weights=None)
    return more, replace(p, weights=np.asarray(times, dtype=float))


def assert_dense_at_the_rows(engine, dense, p, kind, atol, mean, **options):
    """With the inducing inputs at the rows, the dense engine's result in all that it returns."""
    wanted, adjoints = dense.evidence(p, **options)
    q = sparse(p, kind, Z=p.X)
    got, own = engine.evidence(q, inputs=True, **options)
    assert got.status == wanted.status == "converged"
    np.testing.assert_allclose(got.log_evidence, wanted.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(got.latent, wanted.latent, atol=atol)
    np.testing.assert_allclose(got.alpha, wanted.alpha, atol=atol)
    theta = p.kernel.pullback(p.X, None, adjoints.factor * adjoints.K).theta
    np.testing.assert_allclose(own.theta, theta, atol=10 * atol)
    np.testing.assert_allclose(own.mean, adjoints.mean, atol=10 * atol)
    np.testing.assert_allclose(own.likelihood, adjoints.likelihood, atol=10 * atol, rtol=1e-6)
    process, reference = (
        e.posterior(problem, mean, **options)[0] for e, problem in ((engine, q), (dense, p))
    )
    np.testing.assert_allclose(process.mean(NEW), reference.mean(NEW), atol=10 * atol)
    np.testing.assert_allclose(process.cov(NEW), reference.cov(NEW), atol=10 * atol)


def assert_dense_of_gram(engine, dense, q, atol, **options):
    """The dense engine's result for the matrix Q + D."""
    wanted, adjoints = dense.evidence(as_dense(q), **options)
    got, own = engine.evidence(q, **options)
    assert got.status == wanted.status == "converged"
    assert own.Z is None
    np.testing.assert_allclose(got.log_evidence, wanted.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(got.latent, wanted.latent, atol=atol)
    np.testing.assert_allclose(own.mean, adjoints.mean, atol=10 * atol)
    np.testing.assert_allclose(own.likelihood, adjoints.likelihood, atol=10 * atol, rtol=1e-6)


def assert_slopes(value, q, adjoints, step=1e-5, **close):
    """The adjoints, by differences of the evidence."""

    def slope(make, x, j):
        e = np.zeros_like(x)
        e.flat[j] = step
        return (value(make(x + e)) - value(make(x - e))) / (2 * step)

    kernel, likelihood = q.kernel, q.likelihood
    for got, make, x, some in (
        (adjoints.theta, lambda t: replace(q, kernel=kernel.with_theta(t)), kernel.theta, 9),
        (adjoints.Z, lambda Z: replace(q, Z=Z), q.Z, 2),
        (adjoints.mean, lambda m: replace(q, mean=m), q.mean, 1),
        (
            adjoints.likelihood,
            lambda t: replace(q, likelihood=likelihood.with_theta(t)),
            likelihood.theta,
            9,
        ),
    ):
        assert got.shape == x.shape
        for j in range(max(x.size - some, 0), x.size):
            np.testing.assert_allclose(got.flat[j], slope(make, x, j), **close)
