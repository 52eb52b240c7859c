"""Adjoints of the low-rank engine against differences, and against those of Laplace's method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.inference import laplace, low_rank
from mercer.likelihoods import Gaussian, Huber, Logistic, Poisson, Probit, StudentT

from .latent import LIKELIHOODS
from .low_rank_cases import as_dense, case


def value_of(p):
    return low_rank.solve(p).log_evidence


def pulled(p, adjoints):
    """dL/dtheta of the kernel, dL/dX and dL/d(points)."""
    cross = p.kernel.pullback(p.X, p.points, adjoints.cross)
    basis = p.kernel.pullback(p.points, None, adjoints.basis)
    return cross.theta + basis.theta, cross.X, cross.Z + basis.X


def slope(value, x, j, step=1e-5):
    e = np.zeros_like(x)
    e.flat[j] = step
    return (value(x + e) - value(x - e)) / (2 * step)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("kind", "likelihood"),
    [
        ("logistic", Logistic()),
        ("logistic", Probit(0.3)),
        ("poisson", Poisson()),
        ("student", StudentT(3.0, 0.4)),
        ("student", Huber(0.5, 0.7)),
        ("student", Gaussian(0.3)),
    ],
    ids=repr,
)
def test_adjoints_by_differences(kind, likelihood, weights):
    p = replace(case(kind, 20, 5, weights=weights, mean=True), likelihood=likelihood)
    solution, adjoints = low_rank.evidence(p)
    assert solution.status == "converged"
    if isinstance(likelihood, StudentT):
        assert np.any(solution.sites.precision < 0)
    step = 1e-6 if isinstance(likelihood, Huber) else 1e-5  # no row may pass the kink
    close = {"rel": 1e-5, "abs": 1e-6}
    theta, of_X, of_points = pulled(p, adjoints)
    for j in range(theta.size):
        wanted = slope(
            lambda t: value_of(replace(p, kernel=p.kernel.with_theta(t))), p.kernel.theta, j, step
        )
        assert theta[j] == pytest.approx(wanted, **close)
    for j in (0, 3, 9):
        wanted = slope(lambda Z: value_of(replace(p, points=Z)), p.points, j, step)
        assert of_points.flat[j] == pytest.approx(wanted, **close)
        wanted = slope(lambda X: value_of(replace(p, X=X)), p.X, j, step)
        assert of_X.flat[j] == pytest.approx(wanted, **close)
        wanted = slope(lambda m: value_of(replace(p, mean=m)), p.mean, j, step)
        assert adjoints.mean[j] == pytest.approx(wanted, **close)
    assert adjoints.likelihood.shape == likelihood.theta.shape
    for j in range(likelihood.theta.size):
        wanted = slope(
            lambda t: value_of(replace(p, likelihood=likelihood.with_theta(t))),
            likelihood.theta,
            j,
            step,
        )
        assert adjoints.likelihood[j] == pytest.approx(wanted, **close)


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_adjoints_by_laplaces(kind):
    """dL/dK~ of Laplace's method, taken through K~ = K_nm K_mm^-1 K_mn by hand."""
    p = case(kind, weights=True, mean=True)
    _, adjoints = low_rank.evidence(p)
    _, dense = laplace.evidence(as_dense(p))
    G = dense.factor * (np.tril(dense.K) + np.tril(dense.K, -1).T)
    U = np.linalg.solve(p.kernel(p.points), p.kernel(p.points, p.X))
    np.testing.assert_allclose(adjoints.cross, 2 * G @ U.T, atol=1e-7)
    np.testing.assert_allclose(adjoints.basis, -U @ G @ U.T, atol=1e-7)
    np.testing.assert_array_equal(adjoints.basis, adjoints.basis.T)
    np.testing.assert_allclose(adjoints.mean, dense.mean, atol=1e-8)
    np.testing.assert_allclose(adjoints.likelihood, dense.likelihood, rtol=1e-6, atol=1e-8)
