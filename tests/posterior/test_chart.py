"""Explicit functions in coordinates of covariance 1, and what comes back of them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor, means
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.posterior import Basis, Dense, Posterior
from mercer.posterior.chart import charted
from mercer.registry import decode, encode

RNG = np.random.default_rng(0)
POINTS, NEW = RNG.normal(size=(4, 2)), RNG.normal(size=(6, 2))


def degenerate(B, outputs=1):
    return Posterior(Basis(RBF(1.0), POINTS), RNG.normal(size=(4, outputs)), B=B, weight=0)


def covariance(chart, b, a, H):
    """Return what images of the coefficients say of f = a'h + F h'z."""
    F = chart.features(H)
    return [
        sum(
            sign * F @ images[p].rows[:, : chart.size].T @ images[p].rows[:, : chart.size] @ F.T
            for sign, images in ((1.0, b), (-1.0, a))
            if images
        )
        for p in range(max(len(b), len(a)))
    ]


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (4, 4), (7, 4), (2, 3)])
def test_functions_of_a_degenerate_posterior(rows, columns):
    posterior = degenerate(Dense(RNG.normal(size=(rows, columns))))
    chart, b, a = charted(posterior, np.empty((0, 4)))
    H = posterior.basis.phi(NEW)
    assert chart.size == min(rows, 4) and not a
    np.testing.assert_allclose(H @ chart.coef, posterior.mean(NEW))
    np.testing.assert_allclose(b[0].rows.T @ b[0].rows, np.eye(chart.size), atol=1e-12)
    np.testing.assert_allclose(covariance(chart, b, a, H)[0], posterior.cov(NEW)[..., 0])
    V = RNG.normal(size=(chart.size, 3))
    np.testing.assert_allclose(H @ chart.pull(V), chart.features(H) @ V)


def test_outputs_with_a_covariance_each_share_functions():
    B = [Dense(np.vstack([RNG.normal(size=(5, 4)), np.zeros((5, 4))])) for _ in range(2)]
    posterior = degenerate(B, outputs=2)
    chart, b, a = charted(posterior, np.empty((0, 4)))
    assert chart.size == 4
    found = covariance(chart, b, a, posterior.basis.phi(NEW))
    wanted = posterior.cov(NEW)
    for p in range(2):
        np.testing.assert_allclose(found[p], wanted[:, p, :, p])


@pytest.mark.parametrize("shared", [False, True])
def test_functions_beside_sections(shared):
    """If A has to do with them too, there is no root of the difference: they stay as they are."""
    A = np.hstack([0.1 * np.eye(4), np.full((4, 3), 0.1 * shared)])
    basis = Basis(RBF(1.0), POINTS, means.Linear())
    B = np.hstack([RNG.normal(size=(5, 4)), 3.0 * RNG.normal(size=(5, 3))])
    posterior = Posterior(basis, RNG.normal(size=(7, 1)), Dense(A), Dense(B))
    rows = np.zeros((2, 7))
    rows[:, :4] = RNG.normal(size=(2, 4))
    chart, b, a = charted(posterior, rows)
    H = basis.features.features(NEW)
    own = np.hstack([np.zeros((6, 4)), H])
    wanted = [own @ (B.T @ B - A.T @ A) @ each.T for each in (own, rows)]
    np.testing.assert_allclose(covariance(chart, b, a, H)[0], wanted[0], atol=1e-12)
    parts = (b[0].rows, a[0].rows)
    across = chart.features(H) @ np.subtract(*(part[:, :3].T @ part[:, 3:] for part in parts))
    np.testing.assert_allclose(across, wanted[1], atol=1e-12)


def test_coefficients_that_are_known():
    posterior = Posterior(Basis(RBF(1.0), POINTS), RNG.normal(size=(4, 1)), weight=0)
    chart, b, a = charted(posterior, np.empty((0, 4)))
    assert chart.size == 0 and not b and not a
    assert chart.features(posterior.basis.phi(NEW)).shape == (6, 0)
    np.testing.assert_array_equal(chart.pull(np.empty((0, 2))), np.zeros((4, 2)))


def test_it_is_kept():
    chart = charted(degenerate(Dense(RNG.normal(size=(3, 4)))), np.empty((0, 4)))[0]
    kept = encode(chart)
    again = decode(kept.tree, kept.arrays)
    np.testing.assert_array_equal(again.coef, chart.coef)
    np.testing.assert_array_equal(again.factor.M, chart.factor.M)


@pytest.mark.parametrize("offset", [1e5, 1e7, 1e9])
def test_pruning_beside_columns_far_from_0(offset):
    """What is lost does not depend on where a column has its 0."""
    t = np.round(np.sort(np.random.default_rng(1).uniform(0, 20, 40)) * 64) / 64
    new = np.arange(0.0, 20.0, 1.0)[:, None]
    found = []
    for start in (-10.0, offset):
        model = GPRegressor(
            RBF(2.0), Gaussian(0.01), mean=means.Linear(estimate="integrate"), optimizer=None
        ).fit((t + start)[:, None], np.sin(t) + 0.1 * t)
        small, loss = model.posterior_.prune(12)
        found.append([*small.mean_and_var(new + start), loss])
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-5)
    np.testing.assert_allclose(np.sqrt(found[1][1]), np.sqrt(found[0][1]), rtol=1e-4)
    assert found[1][2] == pytest.approx(found[0][2], rel=1e-4)
