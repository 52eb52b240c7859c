"""Adaptive quadrature against closed forms, and against SciPy's scalar quadrature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, gammaln, log_expit, log_ndtr

from mercer.linalg.quadrature import expectation, smoothed

# The promise of the module: log Z, sd dlogZ and var d2logZ to 1e-8.
PROMISE = 1e-8


def scaled(result, var):
    """The three results in the units in which they are promised."""
    log_z, first, second = result
    return np.stack([log_z, first * np.sqrt(var), second * var])


def gaussian_log_density(y, s):
    return lambda row, f: -0.5 * (y[row] - f) ** 2 / s[row] - 0.5 * np.log(2 * np.pi * s[row])


log10 = st.floats(-8, 8)


@settings(deadline=None)
@given(st.floats(-100, 100), log10, log10, st.floats(-30, 30))
def test_gaussian_closed_form(mean, log_var, log_s, offset):
    # Likelihoods from 1e8 times narrower to 1e8 times wider than the Gaussian, 30 sd away.
    var, s = np.array([10.0**log_var]), np.array([10.0**log_s])
    m = np.array([mean])
    t = var + s
    y = m + offset * np.sqrt(t)
    got = smoothed(gaussian_log_density(y, s), m, var)
    want = stats.norm.logpdf(y, m, np.sqrt(t)), (y - m) / t, -1 / t
    # f = mean + sd z is itself rounded: eps |mean| in f is eps |mean| slope in log p.
    slope = np.abs(offset) / np.sqrt(t) + 10 / np.sqrt(np.maximum(s, var))
    rounding = 100 * np.finfo(float).eps * (np.abs(m) + np.abs(y)) * slope
    np.testing.assert_allclose(
        scaled(got, var), scaled(want, var), rtol=1e-10, atol=PROMISE + rounding.max()
    )


def test_probit_closed_form():
    rng = np.random.default_rng(0)
    n = 400
    mean = rng.normal(size=n) * 10 ** rng.uniform(-3, 1.3, n)
    var = 10 ** rng.uniform(-6, 6, n)
    got = smoothed(lambda row, f: log_ndtr(f), mean, var)
    t = np.sqrt(1 + var)
    u = mean / t
    log_z = log_ndtr(u)
    h = np.exp(stats.norm.logpdf(u) - log_z)
    want = log_z, h / t, -h * (h + u) / t**2
    np.testing.assert_allclose(scaled(got, var), scaled(want, var), rtol=0, atol=PROMISE)


def test_jump_closed_form():
    # The step likelihood, whose jump is not named and may lie anywhere between the nodes.
    rng = np.random.default_rng(1)
    n = 400
    var = 10 ** rng.uniform(-4, 4, n)
    u = rng.uniform(-12, 6, n)
    got = smoothed(lambda row, f: np.where(f > 0, 0.0, -np.inf), u * np.sqrt(var), var, knots=None)
    log_z = log_ndtr(u)
    h = np.exp(stats.norm.logpdf(u) - log_z)
    want = np.stack([log_z, h, -h * (h + u)])
    np.testing.assert_allclose(scaled(got, var), want, rtol=0, atol=PROMISE)


def laplace_closed_form(y, b, mean, var):
    """Z = (A + B)/(2b), A and B the parts below and above the kink."""
    s = np.sqrt(var)
    a = var / (2 * b**2) - (y - mean) / b + log_ndtr((y - mean) / s - s / b)
    c = var / (2 * b**2) + (y - mean) / b + log_ndtr(-(y - mean) / s - s / b)
    total = np.logaddexp(a, c)
    first = (np.exp(a - total) - np.exp(c - total)) / b
    peak = np.exp(stats.norm.logpdf(y, mean, s) - total)
    return total - np.log(2 * b), first, 1 / b**2 - 2 * peak / b - first**2


@pytest.mark.parametrize("named", [False, True])
def test_kink_closed_form(named):
    rng = np.random.default_rng(2)
    n = 300
    mean, var = rng.normal(size=n), 10 ** rng.uniform(-2, 2, n)
    b = 10 ** rng.uniform(-1, 1, n) * np.sqrt(var)
    y = mean + np.sqrt(var) * rng.uniform(-5, 5, n)
    knots = y[:, None] if named else None
    got = smoothed(lambda i, f: -np.abs(y[i] - f) / b[i] - np.log(2 * b[i]), mean, var, knots)
    want = laplace_closed_form(y, b, mean, var)
    np.testing.assert_allclose(scaled(got, var), scaled(want, var), rtol=0, atol=PROMISE)


# It is asked for more than rounding allows, to be the better of the two.
quad_rounds = pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")


def by_quad(log_density, mean, var, points):
    """Moments by SciPy's adaptive quadrature, one row; `points` cut the range."""
    sd = np.sqrt(var)
    edges = sorted({mean - 12 * sd, *points, mean + 12 * sd})
    top = max(log_density(p) - 0.5 * (p - mean) ** 2 / var for p in edges)

    def moment(power):
        def g(f):
            z = (f - mean) / sd
            return z**power * np.exp(log_density(f) - 0.5 * z**2 - top)

        parts = [
            integrate.quad(g, a, b, epsabs=0, epsrel=1e-13, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        ]
        return sum(parts) / (sd * np.sqrt(2 * np.pi))

    z0, z1, z2 = (moment(p) for p in range(3))
    return np.array([np.log(z0) + top, z1 / z0, z2 / z0 - (z1 / z0) ** 2 - 1])


@quad_rounds
@pytest.mark.parametrize(
    ("mean", "var", "y", "scale"),
    [(0.0, 1.0, 0.5, 0.3), (0.0, 1.0, 8.0, 0.3), (2.0, 25.0, -20.0, 1.0), (0.0, 4.0, 30.0, 1e-2)],
)
def test_heavy_tails_with_a_named_peak(mean, var, y, scale):
    # Student's t, 3 degrees of freedom: two peaks where the Gaussian and the datum disagree.
    def log_density(f):
        return stats.t.logpdf(f, 3.0, y, scale)

    got = smoothed(lambda _, f: log_density(f), np.array([mean]), np.array([var]), np.array([[y]]))
    points = [y + k * scale for k in (-30, -3, 0, 3, 30)] + [mean + k for k in (-2, 0, 2)]
    want = by_quad(log_density, mean, var, points)
    np.testing.assert_allclose(scaled(got, var)[:, 0], want, rtol=0, atol=PROMISE)


def test_spike_on_a_plain_that_only_its_name_reveals():
    # log p = -100 everywhere but for a Gaussian of width 1e-6 at 3.3 sd, a millionth of the line.
    y, s = 3.3, 1e-6

    def log_density(_, f):
        return np.logaddexp(-100.0, stats.norm.logpdf(f, y, s))

    log_z, first, second = smoothed(log_density, np.array([0.0]), np.array([1.0]), np.array([[y]]))
    # The plain adds exp(-100), beside which the spike is all.
    assert log_z[0] == pytest.approx(stats.norm.logpdf(y, 0.0, np.sqrt(1 + s**2)), abs=PROMISE)
    assert first[0] == pytest.approx(y / (1 + s**2), abs=PROMISE)
    assert second[0] == pytest.approx(-1 / (1 + s**2), abs=PROMISE)


@quad_rounds
@pytest.mark.parametrize("y", [0, 3, 1000])
@pytest.mark.parametrize(("mean", "var"), [(0.0, 1.0), (-3.0, 4.0), (5.0, 0.01), (0.0, 100.0)])
def test_poisson(y, mean, var):
    # y = 1000 from a Gaussian centred on a rate of 1: the mode is 7 sd out and narrow.
    def log_density(f):
        return y * f - np.exp(f) - gammaln(y + 1)

    got = smoothed(lambda _, f: log_density(f), np.array([mean]), np.array([var]))
    # The mode of the integrand by Newton's method on its logarithm, from above.
    f = max(mean, np.log(y + 1.0)) + 1.0
    for _ in range(100):
        f -= (y - np.exp(f) - (f - mean) / var) / (-np.exp(f) - 1 / var)
    width = 1 / np.sqrt(np.exp(f) + 1 / var)
    want = by_quad(log_density, mean, var, [f + k * width for k in (-12, -4, 0, 4, 12)])
    np.testing.assert_allclose(scaled(got, var)[:, 0], want, rtol=0, atol=PROMISE)


def test_weak_likelihood_keeps_relative_precision():
    # sd = 1e-4 and log p of slope 0.4: the derivatives are those of log p, though <z> and
    # <z^2> - 1 are 1e-4 and 1e-8.
    mean, var = np.linspace(-1, 1, 7), np.full(7, 1e-8)
    log_z, first, second = smoothed(lambda _, f: log_expit(f), mean, var)
    p = expit(mean)
    np.testing.assert_allclose(log_z, log_expit(mean), rtol=0, atol=1e-8)
    np.testing.assert_allclose(first, 1 - p, rtol=1e-7)
    np.testing.assert_allclose(second, -p * (1 - p), rtol=1e-5)


def test_constant_likelihood():
    log_z, first, second = smoothed(
        lambda _, f: np.full_like(f, -3.0), np.array([2.0, -1.0]), np.array([4.0, 1e-6])
    )
    np.testing.assert_allclose(log_z, -3.0, rtol=1e-14)
    np.testing.assert_allclose(first, 0.0, atol=1e-12)
    np.testing.assert_allclose(second, 0.0, atol=1e-12)


def test_impossible_observation():
    log_z, first, second = smoothed(
        lambda row, f: np.where(row == 0, -np.inf, log_ndtr(f)), np.zeros(2), np.ones(2)
    )
    assert log_z[0] == -np.inf and np.isnan(first[0]) and np.isnan(second[0])
    assert log_z[1] == pytest.approx(np.log(0.5), abs=1e-12)


def test_rows_do_not_influence_each_other():
    # More rows than one block holds, and the same rows alone.
    rng = np.random.default_rng(3)
    n = 1500
    mean, var = rng.normal(size=n), 10 ** rng.uniform(-3, 3, n)
    y = rng.choice([-1.0, 1.0], n)
    together = smoothed(lambda i, f: log_expit(y[i] * f), mean, var)
    some = [0, 1023, *range(1024, 1064), 1499]
    ys = y[some]
    alone = smoothed(lambda i, f: log_expit(ys[i] * f), mean[some], var[some])
    np.testing.assert_allclose(np.array(together)[:, some], alone, rtol=1e-14, atol=1e-14)
    got = expectation(lambda i, f: y[i] * f**2, mean, var)
    np.testing.assert_allclose(got, y * (mean**2 + var), rtol=1e-12)


def test_no_rows():
    assert all(r.shape == (0,) for r in smoothed(lambda _, f: f, np.empty(0), np.empty(0)))
    assert expectation(lambda _, f: f, np.empty(0), np.empty(0)).shape == (0,)


# ----------------------------------------------------------------------------------- expectation


@settings(max_examples=50, deadline=None)
@given(st.floats(-20, 20), st.just(0.0) | st.floats(1e-6, 10))
def test_moments(mean, sd):
    m, v = np.array([mean]), np.array([sd**2])
    scale = np.abs(mean) + sd + 1e-9
    got = [expectation(lambda _, f, k=k: (f / scale) ** k, m, v)[0] for k in range(5)]
    a, b = mean / scale, sd / scale
    want = [1.0, a, a**2 + b**2, a**3 + 3 * a * b**2, a**4 + 6 * a**2 * b**2 + 3 * b**4]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)


@settings(deadline=None)
@given(st.floats(-20, 20), st.floats(0, 15))
def test_exponential_lives_far_from_the_mean(mean, sd):
    # E[exp f] is made at mean + sd^2, up to 15 sd out.
    got = expectation(lambda _, f: np.exp(f), np.array([mean]), np.array([sd**2]))
    np.testing.assert_allclose(got, np.exp(mean + sd**2 / 2), rtol=1e-11)


def test_narrow_transition():
    # E[Phi(f/s)] = Phi(mean/sqrt(s^2 + var)) with s down to 1e-10.
    rng = np.random.default_rng(4)
    n = 200
    mean, var, s = rng.normal(size=n), 10 ** rng.uniform(-2, 2, n), 10 ** rng.uniform(-10, 1, n)
    got = expectation(lambda i, f: stats.norm.cdf(f / s[i]), mean, var)
    want = stats.norm.cdf(mean / np.sqrt(s**2 + var))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


def test_signed_functions_cancel():
    got = expectation(lambda _, f: np.sin(3 * f), np.array([0.0, 0.4]), np.array([2.0, 2.0]))
    want = np.sin(3 * np.array([0.0, 0.4])) * np.exp(-9.0)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_undefined_functions_stay_undefined():
    def function(row, f):
        return np.where(row == 0, np.nan, np.where(row == 1, np.inf, 0.0 * f))

    got = expectation(function, np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(got, [np.nan, np.inf, 0.0])
