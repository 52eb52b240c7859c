"""The quadrature defaults, on likelihoods whose integrals are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, log_ndtr, ndtr

from mercer.likelihoods import Gaussian, Likelihood
from mercer.likelihoods.quantiles import bracket, root


class ProbitExample(Likelihood):
    """y = -1 or 1 with probability Phi(y f)."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return log_ndtr(y * f)

    def conditional_mean(self, f):
        return 2 * ndtr(f) - 1

    def conditional_var(self, f):
        return 4 * ndtr(f) * ndtr(-f)


class PoissonExample(Likelihood):
    """Counts with rate exp(f)."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return y * f - np.exp(f) - gammaln(y + 1)

    def derivatives(self, y, f):
        rate = np.exp(f)
        return y - rate, -rate, -rate

    def conditional_mean(self, f):
        return np.exp(f)

    conditional_var = conditional_mean


class CauchyExample(Likelihood):
    """Heavy tails: not log-concave, no moments, its peak named."""

    def __init__(self, scale):
        self.scale = scale
        self._set()

    def log_density(self, y, f):
        return stats.cauchy.logpdf(y, f, self.scale)

    def conditional_cdf(self, y, f):
        return stats.cauchy.cdf(y, f, self.scale)

    def conditional_mean(self, f):
        return np.full(np.shape(f), np.nan)

    def knots(self, y):
        return y[:, None]


MEAN = np.array([[0.0, 0.3, -2.0], [1.0, 4.0, -0.5]])
VAR = np.array([[1.0, 0.01, 9.0], [1e-4, 25.0, 0.5]])


def test_smoothed_keeps_shapes_and_broadcasts():
    likelihood = ProbitExample()
    log_z, first, second = likelihood.smoothed(1.0, MEAN, VAR)
    u = MEAN / np.sqrt(1 + VAR)
    np.testing.assert_allclose(log_z, log_ndtr(u), rtol=0, atol=1e-10)
    h = np.exp(stats.norm.logpdf(u) - log_ndtr(u))
    np.testing.assert_allclose(first, h / np.sqrt(1 + VAR), rtol=0, atol=1e-10)
    np.testing.assert_allclose(second, -h * (h + u) / (1 + VAR), rtol=0, atol=1e-10)
    row = likelihood.smoothed(np.array([1.0, -1.0]), 0.5, np.array([[1.0], [4.0]]))
    assert all(r.shape == (2, 2) for r in row)
    assert all(r.shape == () for r in likelihood.smoothed(1.0, 0.0, 1.0))


def test_smoothed_derivatives_are_derivatives():
    # A small step in the mean; log Z is good to 1e-11 or better, so h = 1e-3 leaves 1e-8 of
    # rounding in the first derivative and 1e-5 in the second difference.
    likelihood, y, h = PoissonExample(), np.array([0.0, 2.0, 30.0]), 1e-3
    mean, var = np.array([0.1, -1.0, 2.0]), np.array([0.5, 2.0, 4.0])
    below, at, above = (likelihood.smoothed(y, mean + s * h, var) for s in (-1, 0, 1))
    np.testing.assert_allclose(at[1], (above[0] - below[0]) / (2 * h), rtol=0, atol=1e-6)
    np.testing.assert_allclose(at[2], (above[1] - below[1]) / (2 * h), rtol=0, atol=1e-6)


def test_smoothed_without_variance():
    likelihood = PoissonExample()
    y, mean, var = np.array([3.0, 3.0]), np.array([1.0, 1.0]), np.array([0.0, 1e-9])
    log_z, first, second = likelihood.smoothed(y, mean, var)
    want = [v[0] for v in (likelihood.log_density(y, mean), *likelihood.derivatives(y, mean)[:2])]
    np.testing.assert_allclose([log_z[0], first[0], second[0]], want, rtol=1e-14)
    # and it is the limit of small variances
    np.testing.assert_allclose(log_z[1], want[0], rtol=1e-8)
    np.testing.assert_allclose(first[1], want[1], rtol=1e-6)
    no_derivatives = ProbitExample().smoothed(1.0, 0.7, 0.0)
    assert no_derivatives[0] == pytest.approx(log_ndtr(0.7), rel=1e-14)
    assert np.isnan(no_derivatives[1]) and np.isnan(no_derivatives[2])


def test_log_predictive_is_smoothed():
    likelihood = PoissonExample()
    got = likelihood.log_predictive(2.0, MEAN, VAR)
    np.testing.assert_array_equal(got, likelihood.smoothed(2.0, MEAN, VAR)[0])


def test_predictive_densities_sum_to_one():
    mean, var = np.array([[0.5], [1.5]]), np.array([[1.0], [0.2]])
    p = np.exp(PoissonExample().log_predictive(np.arange(400.0), mean, var))
    # The second Gaussian's counts stay below 400 but for 1e-10; the first's for 1e-8.
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-6)


def test_predictive_moments():
    # E[exp f] = exp(m + v/2); Var = E + (exp v - 1) exp(2m + v).
    likelihood = PoissonExample()
    rate = np.exp(MEAN + VAR / 2)
    np.testing.assert_allclose(likelihood.predictive_mean(MEAN, VAR), rate, rtol=1e-10)
    want = rate + np.expm1(VAR) * rate**2
    np.testing.assert_allclose(likelihood.predictive_var(MEAN, VAR), want, rtol=1e-9)
    probit = ProbitExample()
    p = ndtr(MEAN / np.sqrt(1 + VAR))
    np.testing.assert_allclose(probit.predictive_mean(MEAN, VAR), 2 * p - 1, rtol=0, atol=1e-10)
    np.testing.assert_allclose(probit.predictive_var(MEAN, VAR), 4 * p * (1 - p), atol=1e-10)


def test_moments_that_do_not_exist():
    assert np.isnan(CauchyExample(1.0).predictive_mean(0.0, 1.0))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0])
def test_quantiles_invert_the_distribution_function(scale):
    likelihood = CauchyExample(scale)
    level = np.array([0.01, 0.3, 0.5, 0.975])
    q = likelihood.quantile(0.7, 2.0, level)
    np.testing.assert_allclose(likelihood.predictive_cdf(q, 0.7, 2.0), level, rtol=0, atol=1e-9)
    assert q[2] == pytest.approx(0.7, abs=1e-9)  # by symmetry


def test_predictive_cdf_is_the_integral_of_the_density():
    # A Gaussian smoothed by a Cauchy density is smooth at the scale of the Gaussian.
    likelihood = CauchyExample(0.5)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    p = np.exp(likelihood.log_predictive(0.5 + 3.5 * nodes, 0.7, 2.0))
    ends = likelihood.predictive_cdf(np.array([-3.0, 4.0]), 0.7, 2.0)
    assert np.diff(ends)[0] == pytest.approx(3.5 * weights @ p, abs=1e-10)


def test_voigt_profile():
    from scipy.special import voigt_profile

    y = np.array([-40.0, -1.0, 0.7, 3.0, 500.0])
    got = CauchyExample(0.5).log_predictive(y, 0.7, 2.0)
    want = np.log(voigt_profile(y - 0.7, np.sqrt(2.0), 0.5))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8)


# --------------------------------------------------------------------------------- what is missing


def test_missing_methods_are_listed():
    assert ProbitExample().missing("log_density", "derivatives", "fisher") == [
        "derivatives",
        "fisher",
    ]
    assert Gaussian(1.0).missing("log_density", "derivatives", "fisher", "sample") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda lik: lik.log_density(1.0, 0.0),
        lambda lik: lik.derivatives(1.0, 0.0),
        lambda lik: lik.fisher(0.0),
        lambda lik: lik.sample(0.0, np.random.default_rng(0)),
        lambda lik: lik.conditional_mean(0.0),
        lambda lik: lik.conditional_var(0.0),
        lambda lik: lik.conditional_cdf(1.0, 0.0),
        lambda lik: lik.quantile(0.0, 1.0, 0.5),
        lambda lik: lik.smoothed(1.0, 0.0, 1.0),
    ],
)
def test_missing_methods_say_so(call):
    with pytest.raises(NotImplementedError, match="Likelihood has no "):
        call(Likelihood())


@pytest.mark.parametrize("likelihood", [ProbitExample(), Gaussian(0.3)], ids=["base", "Gaussian"])
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((1.0, 0.0, -1.0), "var must be finite and not negative, got .*-1"),
        ((1.0, 0.0, np.nan), "var must be finite"),
        ((1.0, np.inf, 1.0), "mean must be finite"),
        ((np.nan, 0.0, 1.0), "y must be finite"),
        ((np.zeros(3), np.zeros(2), 1.0), "shapes that fit"),
        (("a", 0.0, 1.0), "must be numbers"),
    ],
)
def test_bad_arguments(likelihood, arguments, match):
    for method in (likelihood.smoothed, likelihood.log_predictive):
        with pytest.raises(ValueError, match=match):
            method(*arguments)


@pytest.mark.parametrize("likelihood", [CauchyExample(1.0), Gaussian(0.3)])
@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, [0.5, 1.5]])
def test_bad_levels(likelihood, level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        likelihood.quantile(0.0, 1.0, level)


# ----------------------------------------------------------------------------------- root finding


def test_roots_of_smooth_steep_and_flat_functions():
    target = np.array([-3.0, 0.0, 1e-12, 5.0, 1e8])

    def cubic(row, x):
        return (x - target[row]) ** 3 + 1e-3 * (x - target[row])

    def jump(row, x):
        return np.where(x < target[row], -1.0, 1.0)

    for function in (cubic, jump):
        low, high = bracket(function, np.zeros(5), np.full(5, 0.1))
        assert np.all(low <= target) and np.all(target <= high)
        got = root(function, low, high)
        np.testing.assert_allclose(got, target, rtol=1e-12, atol=1e-15)


def test_roots_end_at_the_tolerance_of_the_values():
    def slope(row, x):
        return np.tanh(1e3 * (x - 1e6))

    low, high = np.array([1e6 - 3.0]), np.array([1e6 + 5.0])
    got = root(slope, low, high, tolerance=np.array([1e-4]))
    assert abs(slope(0, got)[0]) <= 1e-4
    assert abs(root(slope, low, high)[0] - 1e6) <= 3e-10


def test_a_jump_is_left_on_its_upper_side():
    target = np.array([0.0, 3.0, -2.0, 1e9])

    def jump(row, x):
        return np.where(x < target[row], -0.9, 0.1)

    got = root(jump, target - 7.0, target + 4.0)
    assert np.all(got >= target)
    np.testing.assert_allclose(got, target, rtol=1e-15, atol=3e-15)


def test_no_bracket():
    with pytest.raises(ValueError, match="too large"):
        bracket(lambda row, x: np.full(row.shape, -1.0), np.zeros(1), np.ones(1))
