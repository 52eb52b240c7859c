"""Lemma 1: rows of any likelihood, one at a time, against integrals over all latent values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian, Laplace, MixtureNoise, Probit
from mercer.posterior import Basis, Dense, Posterior

from .online_dense import DENSITIES, panels, rbf

KERNEL = 1.5 * RBF(1.2)
X = np.array([[0.0], [0.9], [-0.7], [1.6], [0.4]])


def k(X, Z):
    return rbf(X, Z, 1.2, 1.5)


def log_window(y, f):
    return np.where(np.abs(y - f) < 1.2, -np.log(2.4), -np.inf)


LIKELIHOODS = {
    "probit": Probit(0.7),
    "laplace": Laplace(0.4),
    "step": Probit(0.0),
    "window": Custom(log_window, always_positive=False, knots=lambda y: np.c_[y - 1.2, y, y + 1.2]),
    "mixture": MixtureNoise([0.7, 0.3], [0.1, -0.5], [0.2, 1.5]),
}


def process(likelihood, **changes):
    options = {"max_basis": 20, "tol": 1e-6}
    return OnlineProcess(KERNEL, likelihood, **(options | changes))


def brute_force(mean, cov, seen, cuts, pieces=60, nodes=60):
    """log Z, mean and covariance of N(f; mean, cov) seen(f), by a grid over all of f.

    The first entry of f has panels, cut where the density jumps; the others, given it, a rule that
    is exact for what a density of the first leaves of them.
    """
    n, sd = len(mean), np.sqrt(cov[0, 0])
    first, weights = panels(mean[0] - 12 * sd, mean[0] + 12 * sd, cuts, pieces)
    weights = weights * np.exp(-0.5 * ((first - mean[0]) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    axes, masses = [(first - mean[0]) / sd] + [z] * (n - 1), [weights] + [w / np.sum(w)] * (n - 1)
    grid = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")])
    mass = np.prod([a.ravel() for a in np.meshgrid(*masses, indexing="ij")], axis=0)
    f = mean[:, None] + np.linalg.cholesky(cov) @ grid
    mass = mass * seen(f)
    Z = np.sum(mass)
    centre = f @ mass / Z
    return np.log(Z), centre, (f - centre[:, None]) * mass @ (f - centre[:, None]).T / Z


def differences(function, x, step):
    """Gradient and matrix of second derivatives."""
    n, E = len(x), step * np.eye(len(x))
    gradient = np.array([function(x + e) - function(x - e) for e in E]) / (2 * step)
    second = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            ends = [function(x + a * E[i] + b * E[j]) * a * b for a in (1, -1) for b in (1, -1)]
            second[i, j] = sum(ends) / (4 * step**2)
    return gradient, second


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("kind", DENSITIES)
def test_a_row_gives_the_moments_of_the_true_posterior(kind, n):
    """What the engine's Gaussian of n values and the row's true likelihood come to, on a grid."""
    density, cuts, y = DENSITIES[kind]
    got = process(LIKELIHOODS[kind])
    for i in range(3):
        around = X[[i, *[j for j in range(5) if j != i][: n - 1]]]  # the row, and others
        before = got.posterior()
        mean, cov = before.mean(around)[:, 0], before.cov(around)[:, :, 0]
        said = got.learn(X[i : i + 1], np.array([[y[i]]]))
        log_z, centre, spread = brute_force(
            mean, cov, lambda f, y=y[i]: density(y, f[0]), cuts(y[i])
        )
        assert said.mean[0, 0] == pytest.approx(mean[0], abs=1e-12)
        assert said.var[0, 0] == pytest.approx(cov[0, 0], rel=1e-10)
        assert said.log_density[0] == pytest.approx(log_z, abs=1e-8)
        after = got.posterior()
        np.testing.assert_allclose(after.mean(around)[:, 0], centre, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(after.cov(around)[:, :, 0], spread, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kind", DENSITIES)
def test_q_and_r_are_the_derivatives_of_log_z(kind):
    density, cuts, y = DENSITIES[kind]
    got = process(LIKELIHOODS[kind])
    for i in range(3):
        before = got.posterior()
        mean, cov = before.mean(X[i : i + 2])[:, 0], before.cov(X[i : i + 2])[:, :, 0]
        got.learn(X[i : i + 1], np.array([[y[i]]]))

        def log_z(m, cov=cov, y=y[i]):
            return brute_force(m, cov, lambda f: density(y, f[0]), cuts(y))[0]

        q, R = differences(log_z, mean, 1e-4)
        np.testing.assert_allclose(q, [got.arrays.q[0], 0.0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(R, [[got.arrays.r[0], 0.0], [0.0, 0.0]], atol=2e-6)


@pytest.mark.parametrize("n", [2, 3])
def test_alpha_and_C_are_the_derivatives_of_the_evidence(n):
    """Lemma 1 for n rows at once, where the recursion is exact."""
    got = process(Gaussian(0.3))
    y = np.array([0.8, -1.1, 0.4])[:n]
    got.learn(X[:n], y[:, None])
    K = k(X[:n], X[:n])

    def log_z(prior_mean):
        return brute_force(
            prior_mean,
            K,
            lambda f: (
                np.exp(-0.5 * np.sum((y[:, None] - f) ** 2, axis=0) / 0.3)
                / (0.6 * np.pi) ** (n / 2)
            ),
            [],
            pieces=12,
            nodes=30,
        )[0]

    q, R = differences(log_z, np.zeros(n), 1e-3)
    np.testing.assert_allclose(got.posterior().alpha[:, 0], q, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got.posterior().C, R, rtol=1e-4, atol=1e-5)
    assert got.log_evidence == pytest.approx(log_z(np.zeros(n)), abs=1e-8)


def test_lemma_1_is_the_common_form_of_a_posterior():
    """Two probit rows together: q and R, differences of log Z, give the true moments elsewhere."""
    y, points = np.array([1.0, -1.0]), X[:3]
    K = k(points, points)

    def seen(f):
        return ndtr(y[0] * f[0]) * ndtr(y[1] * f[1])

    q, R = differences(lambda m: brute_force(m, K[:2, :2], seen, [])[0], np.zeros(2), 1e-3)
    root = np.linalg.cholesky(-0.5 * (R + R.T)).T
    posterior = Posterior(Basis(KERNEL, points[:2]), q[:, None], Dense(root))
    _, centre, spread = brute_force(np.zeros(3), K, seen, [])
    np.testing.assert_allclose(posterior.mean(points)[:, 0], centre, rtol=1e-5)
    np.testing.assert_allclose(posterior.cov(points)[:, :, 0], spread, rtol=1e-5, atol=1e-5)
