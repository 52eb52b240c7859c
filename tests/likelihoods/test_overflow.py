"""Quadrature where a rate of exp(f) is out of hand, and quantiles far from 0.

The oracle is the trapezoidal rule on a fine grid, in logarithms: it converges exponentially.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, ndtr, ndtri, pdtr

from mercer.likelihoods import Likelihood


class PoissonExample(Likelihood):
    """Counts with rate exp(f), as someone would write it who thinks of no overflow."""

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

    def conditional_cdf(self, y, f):
        return np.where(y < 0, 0.0, pdtr(np.maximum(np.floor(y), 0.0), np.exp(f)))


class NormalExample(Likelihood):
    """y = f + e, by quadrature."""

    def __init__(self, noise):
        self.sd = np.sqrt(noise)
        self._set()

    def conditional_cdf(self, y, f):
        return ndtr((y - f) / self.sd)


class SigmoidExample(Likelihood):
    """A mean that is NaN where the exponential overflows."""

    def __init__(self):
        self._set()

    def conditional_mean(self, f):
        return np.exp(f) / (1.0 + np.exp(f))


def grid(mean, var):
    z = np.linspace(-40.0, 40.0, 400_001)
    return mean + np.sqrt(var) * z, -0.5 * z**2 - 0.5 * np.log(2 * np.pi) + np.log(z[1] - z[0])


def brute_log_predictive(y, mean, var):
    f, log_w = grid(mean, var)
    with np.errstate(over="ignore"):
        return logsumexp(log_w + y * f - np.exp(f) - gammaln(y + 1))


def brute_cdf(y, mean, var):
    f, log_w = grid(mean, var)
    with np.errstate(over="ignore"):
        return np.exp(log_w) @ pdtr(y, np.exp(f))


POISSON = PoissonExample()
# Up to rates of exp(2000), which no float holds.
WIDE = [(0.0, 1.0), (3.0, 0.01), (-2.0, 25.0), (0.0, 400.0), (5.0, 2000.0), (40.0, 1e4)]


@pytest.mark.parametrize(("mean", "var"), [*WIDE, (-100.0, 9.0), (720.0, 1e4)])
@pytest.mark.parametrize("y", [0.0, 3.0, 1000.0])
def test_log_predictive(mean, var, y):
    got = POISSON.log_predictive(y, mean, var)
    assert got == pytest.approx(brute_log_predictive(y, mean, var), rel=1e-9, abs=1e-8)
    slopes = POISSON.smoothed(y, mean, var)[1:]
    assert np.all(np.isfinite(slopes))


def test_log_predictive_hundreds_of_deviations_away():
    # At mean 800 and variance 1 the rate is brought down to y at a cost of (800 - log rate)^2/2.
    f = np.linspace(-10.0, 20.0, 300_001)
    log_p = 3.0 * f - np.exp(f) - gammaln(4.0) - 0.5 * (f - 800.0) ** 2
    want = logsumexp(log_p) + np.log(f[1] - f[0]) - 0.5 * np.log(2 * np.pi)
    assert POISSON.log_predictive(3.0, 800.0, 1.0) == pytest.approx(want, rel=1e-11)


def test_log_predictive_without_variance_is_minus_infinity_at_worst():
    assert POISSON.log_predictive(3.0, 800.0, 0.0) == -np.inf


@pytest.mark.parametrize(
    ("mean", "var"), [(0.0, 1.0), (3.0, 0.01), (-2.0, 25.0), (0.0, 100.0), (-300.0, 100.0)]
)
def test_moments_that_floats_hold(mean, var):
    rate = np.exp(mean + var / 2)
    assert POISSON.predictive_mean(mean, var) == pytest.approx(rate, rel=1e-9)
    expected = rate + np.expm1(var) * rate**2
    assert POISSON.predictive_var(mean, var) == pytest.approx(expected, rel=1e-8)


def test_a_mean_that_the_rate_just_reaches():
    # E = exp(225); the integrand peaks at f = 450 and has died away before exp(f) overflows.
    assert POISSON.predictive_mean(0.0, 450.0) == pytest.approx(np.exp(225.0), rel=1e-8)


@pytest.mark.parametrize(
    ("mean", "var"),
    [
        (0.0, 600.0),  # a millionth of it is beyond the largest rate
        (0.0, 1000.0),  # exp(500), but the integrand lives at f = 1000
        (700.0, 100.0),  # exp(750)
        (800.0, 1e-4),  # infinite at the mean
        (800.0, 0.0),
    ],
)
def test_moments_that_overflow_are_refused(mean, var):
    means, variances = np.array([0.0, mean]), np.array([1.0, var])
    for method, name in [(POISSON.predictive_mean, "mean"), (POISSON.predictive_var, "(mean|var)")]:
        with pytest.raises(
            ValueError,
            match=rf"predictive {name}.* PoissonExample cannot be computed .* mean of {mean:.6g} "
            rf"and variance of {var:.6g}: it overflows",
        ):
            method(means, variances)


def test_a_variance_that_overflows_beside_a_mean_that_does_not():
    assert POISSON.predictive_mean(0.0, 400.0) == pytest.approx(np.exp(200.0), rel=1e-8)
    with pytest.raises(ValueError, match="the predictive variance of PoissonExample"):
        POISSON.predictive_var(0.0, 400.0)


@pytest.mark.filterwarnings("error")
def test_moments_without_variance_are_the_conditional_ones():
    mean, var = np.array([700.0, 1.0, -3.0]), np.array([0.0, 0.5, 0.0])
    for method in (POISSON.predictive_mean, POISSON.predictive_var):
        got = method(mean, var)
        np.testing.assert_array_equal(got[[0, 2]], np.exp([700.0, -3.0]))
        assert got[1] == pytest.approx(method(1.0, 0.5), rel=1e-14)
    got = POISSON.predictive_cdf(3.0, mean, var)
    np.testing.assert_array_equal(got[[0, 2]], POISSON.conditional_cdf(3.0, mean[[0, 2]]))


def test_undefined_values_are_left_out_only_beyond_the_gaussians_reach():
    sigmoid = SigmoidExample()
    assert sigmoid.predictive_mean(0.0, 1.0) == pytest.approx(0.5, abs=1e-10)
    assert sigmoid.predictive_mean(0.0, 100.0) == pytest.approx(0.5, abs=1e-10)
    with pytest.raises(ValueError, match="undefined"):
        sigmoid.predictive_mean(0.0, 1e6)


# -------------------------------------------------------------------------------------- quantiles


@pytest.mark.parametrize(("mean", "var"), [(0.0, 1.0), (3.0, 0.01), (-2.0, 25.0), (2.0, 0.0)])
@pytest.mark.parametrize("level", [0.025, 0.5, 0.9])
def test_quantiles_of_counts(mean, var, level):
    # The least count whose distribution function reaches the level.
    want = bisect_left(range(2000), level, key=lambda y: brute_cdf(y, mean, var))
    got = POISSON.quantile(mean, var, level)
    assert got >= want
    assert got == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(("mean", "var"), [(5.0, 2000.0), (0.0, 400.0)])
def test_the_distribution_function_where_rates_overflow(mean, var):
    for y in (0.0, 10.0, 1000.0):
        assert POISSON.predictive_cdf(y, mean, var) == pytest.approx(
            brute_cdf(y, mean, var), abs=1e-9
        )
    assert 0.0 <= POISSON.quantile(mean, var, 0.25) < 1e-9
    # Half of the counts are below exp(mean), give or take one.
    assert abs(POISSON.quantile(mean, var, 0.5) - np.exp(mean)) < 1.0


@pytest.mark.parametrize("mean", [0.0, 1e6, -1e6])
@pytest.mark.parametrize(("var", "noise"), [(5e-7, 5e-7), (1e-6 - 1e-9, 1e-9), (0.0, 1e-6)])
def test_quantiles_are_as_exact_as_the_spread_asks(mean, var, noise):
    # A spread of 1e-3 around 1e6: floats there are 1.2e-10 apart, and so is the latent value.
    level = np.array([1e-3, 0.025, 0.5, 0.8, 0.999])
    got = NormalExample(noise).quantile(mean, var, level)
    want = mean + 1e-3 * ndtri(level)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 if mean == 0.0 else 1e-9)


@pytest.mark.parametrize("tail", [1e-6, 1e-9, 1e-12])
def test_tails_of_quantiles(tail):
    likelihood = NormalExample(0.5)
    assert likelihood.quantile(0.0, 0.5, tail) == pytest.approx(ndtri(tail), rel=1e-9)
    # Above 1/2 the distribution function has only the digits that 1 leaves it.
    upper = ndtr(-likelihood.quantile(0.0, 0.5, 1.0 - tail))
    assert upper == pytest.approx(1.0 - (1.0 - tail), abs=2e-15, rel=1e-9)


@pytest.mark.parametrize("spread", [1e-150, 1e150])
def test_quantiles_of_any_spread(spread):
    level = np.array([0.025, 0.5, 0.8])
    got = NormalExample(0.5 * spread**2).quantile(0.0, 0.5 * spread**2, level)
    np.testing.assert_allclose(got, spread * ndtri(level), rtol=1e-9, atol=1e-9 * spread)
