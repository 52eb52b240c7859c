"""Probabilities of classes from Gaussian latent values, against integrals by other means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import norm

from mercer.likelihoods import Logistic, Probit
from mercer.likelihoods.class_probabilities import (
    bounded,
    link_probabilities,
    softmax_probabilities,
)


def problems(C, n, scale, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, C, C))
    cov = scale**2 * (A @ A.transpose(0, 2, 1) / C + 0.2 * np.eye(C))
    return scale * rng.normal(size=(n, C)), cov


def by_tensor_product(mean, cov, order):
    """Gauss-Hermite in all coordinates: exact to many digits for small spreads and few classes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    L = np.linalg.cholesky(cov)
    out = np.zeros_like(mean)
    grid = itertools.product(zip(nodes, weights, strict=True), repeat=len(mean))
    for point in grid:
        z, w = np.array(point).T
        out += np.prod(w) * softmax(mean + L @ z)
    return out / np.sum(weights) ** len(mean)


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_softmax_against_a_tensor_product(scale):
    mean, cov = problems(3, 5, scale)
    got = softmax_probabilities(mean, cov)
    wanted = np.array([by_tensor_product(m, S, 16) for m, S in zip(mean, cov, strict=True)])
    assert np.all(got.error <= 1e-4)
    np.testing.assert_allclose(got.values, wanted, rtol=0, atol=1.5e-4)


def test_independent_classes_against_one_integral():
    """With equal spreads and C = 4: P(c) = E[exp(f_c)/sum], one coordinate after the other."""
    rng = np.random.default_rng(3)
    mean = np.array([[1.0, -0.5, 0.2, 0.0]])
    F = mean + 1.3 * rng.normal(size=(1_000_000, 4))
    got = softmax_probabilities(mean, 1.69 * np.eye(4)[None]).values[0]
    np.testing.assert_allclose(got, softmax(F, axis=1).mean(axis=0), rtol=0, atol=6e-4)


@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
def test_two_classes_of_a_softmax_are_logistic(scale):
    mean, cov = problems(2, 6, scale)
    got = softmax_probabilities(mean, cov)
    assert np.all(got.error <= 1e-8)
    for P, m, S in zip(got.values, mean, cov, strict=True):
        gap, sd = m[1] - m[0], np.sqrt(S[0, 0] + S[1, 1] - 2 * S[0, 1])
        wanted = quad(
            lambda z, gap=gap, sd=sd: norm.pdf(z) * expit(gap + sd * z),
            -12,
            12,
            limit=400,
            points=[np.clip(-gap / sd, -11, 11)],
        )[0]
        assert P[1] == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("C", "scale"), [(3, 6.0), (5, 2.0), (10, 1.5)])
def test_the_error_that_is_told_is_one(C, scale):
    """Against ten times as exact sums, which points of another seed would give too."""
    mean, cov = problems(C, 4, scale, seed=1)
    coarse, fine = (softmax_probabilities(mean, cov, t) for t in (2e-3, 5e-5))
    assert np.all(coarse.error <= 2e-3) and np.all(fine.error < coarse.error)
    off = np.max(np.abs(coarse.values - fine.values), axis=1)
    assert np.all(off <= 2.0 * coarse.error)
    assert np.all(coarse.error <= 2e-3) and np.any(off > 1e-6)


def test_what_all_classes_share_and_their_order_do_not_matter():
    mean, cov = problems(5, 6, 2.0)
    plain = softmax_probabilities(mean, cov).values
    shared = softmax_probabilities(mean + 7.0, cov + 40.0).values
    np.testing.assert_allclose(shared, plain, rtol=0, atol=2e-4)
    order = np.array([3, 0, 4, 1, 2])
    moved = softmax_probabilities(mean[:, order], cov[:, order][:, :, order]).values
    np.testing.assert_allclose(moved, plain[:, order], rtol=0, atol=1e-12)


def test_no_spread_and_much_of_it():
    mean = np.array([[0.0, 1.0, 2.0], [0.0, -800.0, 3e8], [0.0, 0.0, 0.0]])
    got = softmax_probabilities(mean, np.zeros((3, 3, 3)))
    np.testing.assert_allclose(got.values, softmax(mean, axis=1), rtol=0, atol=1e-6)
    assert np.all(got.error < 1e-6)
    wide = softmax_probabilities(mean[2:], 1e8 * np.eye(3)[None]).values[0]
    np.testing.assert_allclose(wide, 1.0 / 3.0, atol=1e-3)


def test_rows_do_not_see_each_other():
    mean, cov = problems(4, 40, 2.0)
    together = softmax_probabilities(mean, cov)
    for i in (0, 17, 39):
        alone = softmax_probabilities(mean[i : i + 1], cov[i : i + 1])
        np.testing.assert_array_equal(alone.values[0], together.values[i])
        assert alone.error[0] == together.error[i]


def test_links():
    mean, var = np.array([[0.4], [-3.0]]), np.array([[2.0], [0.5]])
    P = link_probabilities([Probit()], mean, var).values
    np.testing.assert_allclose(P[:, 1], norm.cdf(mean[:, 0] / np.sqrt(1 + var[:, 0])), atol=1e-10)
    several = link_probabilities(
        [Probit(), Logistic(), Probit(2.0)], np.repeat(mean, 3, axis=1), np.repeat(var, 3, axis=1)
    ).values
    alone = [
        link_probabilities([each], mean, var).values[:, 1]
        for each in (Probit(), Logistic(), Probit(2.0))
    ]
    np.testing.assert_allclose(several, np.transpose(alone) / np.sum(alone, axis=0)[:, None])


def test_a_step_that_is_against_all_classes_says_nothing():
    P = link_probabilities([Probit(0.0)] * 3, np.full((1, 3), -2.0), np.zeros((1, 3))).values
    np.testing.assert_allclose(P, 1.0 / 3.0)


def test_bounds_on_probabilities():
    P = bounded(np.array([[0.0, 3.0], [1e-300, 1e-320], [1.0, 1.0]]))
    assert np.all((P >= 1e-15) & (P <= 1 - 1e-15))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_no_label_is_more_than_certain():
    assert Logistic().log_predictive(1.0, 59.9, 0.3) <= 0.0
