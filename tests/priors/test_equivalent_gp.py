"""Theorem 5 (BKM 113 to 117): an expansion of many independent coefficients is a Gaussian process.

Its coefficients have mean 0 and variance 1, and it is divided by the root of their number.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import erf

from mercer.kernels import RBF, EquivalentGP, Exponential, Tanh
from mercer.priors import Laplacian, WeightDecay, sample_functions

# Of variance 1.
PRIORS = {"laplacian": Laplacian(np.sqrt(0.5)), "weight decay": WeightDecay(np.sqrt(2.0))}
KERNELS = {"gaussian": RBF(0.2), "exponential": Exponential(0.3), "tanh": Tanh(10.0, 1.0)}
kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
X = np.array([[0.1], [0.35], [0.4], [0.9]])


def drawn(prior, kernel, m, n_samples, seed):
    """Return centres uniform in [0, 1], and draws of (BKM 113) at X, shape (4, n_samples)."""
    centres = np.random.default_rng([seed, m]).uniform(size=(m, 1))
    f = sample_functions(prior, kernel, centres, X, n_samples, seed)
    return centres, f / np.sqrt(m)


# --- the covariance at given centres (BKM 116) ----------------------------------------------------


@kernels
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize("m", [3, 50])
def test_the_covariance_is_that_of_the_equivalent_process(prior, kernel, m):
    n = 40_000
    centres, f = drawn(prior, kernel, m, n, 2)
    want = EquivalentGP(kernel, centres)(X)
    size = np.sqrt(np.diag(want))
    # the standard error of a covariance is at most sqrt((2 + kurtosis)/n) < 1.2% of the variances
    np.testing.assert_allclose(f @ f.T / n / np.outer(size, size), want / np.outer(size, size),
                               rtol=0.0, atol=0.05)  # fmt: skip


def test_coefficients_of_different_kinds():
    """The theorem asks for independence and variance 1, not for one distribution."""
    n, m = 40_000, 30
    rng = np.random.default_rng(4)
    centres = rng.uniform(size=(m, 1))
    coef = np.concatenate([prior.sample(rng, (m // 2, n)) for prior in PRIORS.values()])
    f = KERNELS["tanh"](X, centres) @ coef / np.sqrt(m)
    want = EquivalentGP(KERNELS["tanh"], centres)(X)
    np.testing.assert_allclose(f @ f.T / n, want, rtol=0.0, atol=0.05 * np.max(want))


# --- Gaussianity (BKM 115) ------------------------------------------------------------------------


@kernels
def test_kurtosis_falls_with_the_number_of_centres(kernel):
    """Excess kurtosis of sum_i c_i coef_i: that of coef, 3, times sum c^4 / (sum c^2)^2."""
    n, sizes = 100_000, np.array([4, 16, 64, 256])
    exact = []
    for m in sizes:
        centres, f = drawn(PRIORS["laplacian"], kernel, m, n, 7)
        c = kernel(X, centres)
        want = 3.0 * np.sum(c**4, axis=1) / np.sum(c**2, axis=1) ** 2
        # the standard error is sqrt(24/n) = 0.015 for a normal variable, and 5 times that for one
        # of kurtosis 3
        np.testing.assert_allclose(stats.kurtosis(f, axis=1), want, rtol=0.15, atol=0.06)
        exact.append(np.mean(want))
    # like 1/m: a line of slope -1 in the logarithms, but for which centres were drawn
    slope = np.polyfit(np.log(sizes), np.log(exact), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)


@kernels
def test_linear_combinations_become_normal(kernel):
    """Cramer's device: any sum over points of weights times values, few centres beside many."""
    weights = np.array([1.0, -2.0, 0.5, 1.5])
    p = {}
    for m in (2, 1000):
        centres, f = drawn(PRIORS["laplacian"], kernel, m, 20_000, 11)
        variance = weights @ EquivalentGP(kernel, centres)(X) @ weights
        p[m] = stats.kstest(weights @ f / np.sqrt(variance), "norm").pvalue
    assert p[2] < 1e-6 < 0.01 < p[1000]


def test_gaussian_coefficients_are_normal_at_once():
    _, f = drawn(PRIORS["weight decay"], KERNELS["gaussian"], 2, 200_000, 3)
    np.testing.assert_allclose(stats.kurtosis(f, axis=1), 0.0, atol=0.04)


# --- the limit for a known density of the inputs (BKM 114, 117) -----------------------------------


def uniform_rbf(width):
    """Return the integral of k(x, t) k(x', t) over t in [0, 1], Gaussian kernels, closed."""
    middle = 0.5 * (X + X.T)
    mass = 0.5 * np.sqrt(np.pi) * width * (erf((1.0 - middle) / width) + erf(middle / width))
    return np.exp(-((X - X.T) ** 2) / (4.0 * width**2)) * mass


def by_quadrature(k):
    def entry(a, b):
        kinks = sorted({a, b})
        return integrate.quad(lambda t: k(a, t) * k(b, t), 0.0, 1.0, points=kinks)[0]

    return np.array([[entry(a, b) for b in X[:, 0]] for a in X[:, 0]])


LIMITS = {
    "gaussian": lambda: uniform_rbf(0.2),
    "exponential": lambda: by_quadrature(lambda a, t: np.exp(-abs(a - t) / 0.3)),
    "tanh": lambda: by_quadrature(lambda a, t: np.tanh(10.0 * a * t + 1.0)),
}


def test_the_closed_form_is_the_integral():
    want = by_quadrature(lambda a, t: np.exp(-((a - t) ** 2) / (2.0 * 0.2**2)))
    np.testing.assert_allclose(uniform_rbf(0.2), want, rtol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_the_limit_is_the_integral(name):
    """By a rule of points that is exact in the limit: an error of 1/m^2, for kinks 1/m."""
    limit = LIMITS[name]()
    m = 20_000
    middles = (np.arange(m)[:, None] + 0.5) / m
    np.testing.assert_allclose(EquivalentGP(KERNELS[name], middles)(X), limit, rtol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_drawn_centres_converge_like_the_root_of_their_number(name):
    limit = LIMITS[name]()
    sizes = np.array([50, 200, 800, 3200])
    errors = []
    for m in sizes:
        rng = np.random.default_rng([5, m])
        draws = [EquivalentGP(KERNELS[name], rng.uniform(size=(m, 1)))(X) for _ in range(60)]
        errors.append(np.sqrt(np.mean((np.array(draws) - limit) ** 2)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_more_inputs_where_their_density_is_high():
    """The covariance of standard normal inputs, closed: a Gaussian in x + x' and in x - x'."""
    width, m = 0.7, 400_000
    centres = np.random.default_rng(0).normal(size=(m, 1))
    spread = 1.0 + 0.5 * width**2
    limit = (
        np.sqrt(0.5 * width**2 / spread)
        * np.exp(-((X - X.T) ** 2) / (4.0 * width**2))
        * np.exp(-((0.5 * (X + X.T)) ** 2) / (2.0 * spread))
    )
    # the standard error of a mean of numbers within [0, 1] is below 0.5/sqrt(m)
    np.testing.assert_allclose(EquivalentGP(RBF(width), centres)(X), limit, atol=2.5 / np.sqrt(m))
