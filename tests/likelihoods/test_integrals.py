"""Averages over a Gaussian, against brute force in long double, for every scalar likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import Likelihood, Logistic, MixtureNoise, Poisson, Probit, StudentT
from mercer.params import Parameter

from . import oracle
from .densities import CASES, huber, insensitive, laplace, mixture, poisson, student

MEANS = [-30.0, -7.0, -1.0, -0.2, 0.4, 2.5, 12.0, 30.0]
VARIANCES = [1e-6, 1e-3, 0.05, 1.0, 20.0, 1e3, 1e4]

every = pytest.mark.parametrize("case", CASES, ids=str)
positive = pytest.mark.parametrize("case", [c for c in CASES if c.likelihood.is_positive], ids=str)


def grid(case, means=MEANS, variances=VARIANCES):
    rows = [(y, m, v) for y in case.ys for m in means for v in variances]
    return rows, np.array(rows).T


def agree(got, want, tolerance):
    """Hold all entries to a tolerance that is absolute up to 1 and relative beyond."""
    got, want = np.asarray(got), np.asarray(want)
    error = np.abs(got - want) / np.maximum(1.0, np.abs(want))
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error.ravel()[worst] <= tolerance, (worst, got.ravel()[worst], want.ravel()[worst])


# ---------------------------------------------------------------------------------------- smoothed


@every
def test_smoothed(case):
    rows, arguments = grid(case)
    want = [
        oracle.smoothed(lambda f, y=y: case.log_p(y, f), m, v, case.places(y)) for y, m, v in rows
    ]
    for got, column in zip(case.likelihood.smoothed(*arguments), np.array(want).T, strict=True):
        agree(got, column, 1e-8)


@pytest.mark.parametrize(
    "case",
    [
        laplace(1e-3),
        insensitive(1e-3, 1e-4),
        insensitive(50.0, 1e-2),
        huber(1e-2, 0.5),
        huber(1.0, 0.01),
        huber(0.05, 20.0),
    ],
    ids=str,
)
def test_smoothed_by_narrow_noise(case):
    # The slopes are as large as 1/s: the tolerance is in units of the Gaussian here.
    rows, arguments = grid(case, [-3.0, 0.3, 25.0], [1e-4, 0.5, 1e4])
    got = case.likelihood.smoothed(*arguments)
    sd = np.sqrt(arguments[2])
    want = [
        oracle.smoothed(lambda f, y=y: case.log_p(y, f), m, v, case.places(y)) for y, m, v in rows
    ]
    for a, b, unit in zip(got, np.array(want).T, (1.0, sd, sd**2), strict=True):
        agree(a * unit, b * unit, 1e-8)


@every
def test_closed_forms_are_what_quadrature_gives(case):
    _, arguments = grid(case, [-4.0, 0.4, 2.0], [1e-3, 0.7, 40.0])
    sd = np.sqrt(arguments[2])
    got = case.likelihood.smoothed(*arguments)
    want = Likelihood.smoothed(case.likelihood, *arguments)
    for a, b, unit in zip(got, want, (1.0, sd, sd**2), strict=True):
        agree(a * unit, b * unit, 1e-9)


@pytest.mark.parametrize("case", [laplace(0.7), insensitive(0.4, 0.2), huber(0.4, 1.2)], ids=str)
def test_smoothed_is_even_in_the_residual(case):
    y, v = np.array([0.3, 2.0, 40.0]), np.array([0.2, 5.0, 1.0])
    up, down = case.likelihood.smoothed(y, 0.0, v), case.likelihood.smoothed(-y, 0.0, v)
    for a, b, sign in zip(up, down, (1, -1, 1), strict=True):
        np.testing.assert_array_equal(a, sign * b)


def test_a_step_smoothed_is_a_probit():
    y, m, v = np.array([1.0, -1.0, 1.0]), np.array([0.3, 2.0, -9.0]), np.array([0.5, 4.0, 1.0])
    for a, b in zip(
        Probit(0.0).smoothed(y, m, v + 0.25), Probit(0.5).smoothed(y, m, v), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    log_z, first, second = Probit(0.0).smoothed([1.0, -1.0, 1.0], [0.5, 0.5, 0.0], 0.0)
    np.testing.assert_array_equal(log_z, [0.0, -np.inf, np.log(0.5)])
    assert np.all(np.isnan(first)) and np.all(np.isnan(second))


@every
def test_small_variances_lead_to_the_density_itself(case):
    if case.likelihood.missing("derivatives"):
        return
    y, f = case.ys[0], np.array([-1.1, 0.13, 1.7])
    zero, small = (case.likelihood.smoothed(y, f, v) for v in (0.0, 1e-10))
    want = (case.likelihood.log_density(y, f), *case.likelihood.derivatives(y, f)[:2])
    for a, b, c in zip(zero, small, want, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-13)
        np.testing.assert_allclose(b, c, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("likelihood", [Logistic(), Probit(0.7), Probit(4.0)], ids=str)
def test_equal_steps_are_as_good_as_adapted_ones(likelihood):
    # At the ends of each group of standard deviations, and beyond the last.
    unit = getattr(likelihood, "noise_std", 1.0)
    sd = unit * np.array([1e-3, 0.49, 0.51, 1.0, 1.01, 2.0, 3.99, 4.01, 7.99, 8.01, 30.0])
    mean = unit * np.array([-61.0, -59.0, -20.0, -3.0, 0.0, 1.0, 15.0, 59.0])
    y, mean, var = np.meshgrid([-1.0, 1.0], mean, sd**2)
    # (Probit's `smoothed` is closed.)
    for name in ("smoothed", "expected") if likelihood == Logistic() else ("expected",):
        got = getattr(likelihood, name)(y, mean, var)
        want = getattr(Likelihood, name)(likelihood, y, mean, var)
        assert all(g.shape == y.shape for g in got)
        for a, b in zip(got, want, strict=True):
            agree(a, b, 1e-8)
    # blocks of rows change nothing
    many = likelihood.expected(1.0, np.repeat(mean[0, 0], 300), np.repeat(var[0, 0], 300))
    one = likelihood.expected(1.0, mean[0, 0], var[0, 0])
    for a, b in zip(many, one, strict=True):
        np.testing.assert_allclose(a, np.repeat(b, 300), rtol=1e-12)


@pytest.mark.parametrize("df", [0.5, 1.0, 4.0, 30.0, 1000.0])
def test_equal_steps_over_heavy_tails(df):
    # From far narrower than the noise to where quadrature takes over, y near and far.
    likelihood = StudentT(df, 0.3)
    y, mean, sd = np.meshgrid(
        [0.0, 0.4, 2.0, 9.0, 1e4], [-0.1], 0.3 * 2.0 ** np.arange(-12, 6, 0.7)
    )
    got = likelihood.smoothed(y, mean, sd**2)
    want = Likelihood.smoothed(likelihood, y, mean, sd**2)
    for a, b, unit in zip(got, want, (1.0, sd, sd**2), strict=True):
        assert a.shape == y.shape
        agree(a * unit, b * unit, 1e-10)


# ---------------------------------------------------------------------------------------- expected


def expected_by_brute_force(case, y, m, v):
    sd = np.sqrt(np.longdouble(v))
    at = case.log_p(y, np.longdouble(m))
    places = case.places(y)

    def moments(f):
        z = (f - np.longdouble(m)) / sd
        return (case.log_p(y, f) - at) * np.stack([np.ones_like(z), z, z**2 - 1])

    value, first, second = oracle.expectation(moments, m, v, places)
    return float(at) + value, first / float(sd), second / (2 * v)


@positive
def test_expected(case):
    means, variances = [-20.0, -1.0, 0.4, 3.0], [1e-4, 0.05, 1.0, 20.0, 100.0]
    if case.likelihood == poisson().likelihood:
        variances = variances[:4]  # exp(var) overflows soon after
    if isinstance(case.likelihood, MixtureNoise):
        means, variances = [-4.0, 0.4], [0.05, 1.0, 20.0]  # quadrature, in small steps
    rows, arguments = grid(case, means, variances)
    want = np.array([expected_by_brute_force(case, *row) for row in rows]).T
    for got, column in zip(case.likelihood.expected(*arguments), want, strict=True):
        agree(got, column, 1e-8)


@positive
def test_expected_without_variance(case):
    y, f = case.ys[0], np.array([-1.1, 0.13, 1.7])
    value, first, second = case.likelihood.expected(y, f, 0.0)
    np.testing.assert_allclose(value, case.likelihood.log_density(y, f), rtol=1e-13)
    want = case.likelihood.derivatives(y, f)
    np.testing.assert_allclose(first, want[0], rtol=1e-12)
    np.testing.assert_allclose(second, 0.5 * want[1], rtol=1e-12)


def test_a_step_has_no_expected_log_density():
    for method in (Probit(0.0).expected, Probit(Parameter(0.0)).expected):
        with pytest.raises(ValueError, match=r"density 0 .* minus infinity"):
            method(1.0, 0.0, 1.0)


# ------------------------------------------------------------------- derivatives in the parameters

LEARNED = [
    case.likelihood
    for case in (
        laplace(0.3),
        insensitive(0.4, 0.2),
        insensitive(0.0, 0.5),
        huber(0.5, 0.8),
        huber(2.0, 2.0),
        student(3.0, 0.4),
        student(2000.0, 0.4),
        mixture([0.6, 0.4], [-0.3, 0.8], [0.2, 1.1]),
    )
] + [Probit(Parameter(0.7)), CASES[0].likelihood]
learned = pytest.mark.parametrize("likelihood", LEARNED, ids=str)

Y = np.array([0.4, -1.2, 3.0, 0.1])
MEAN = np.array([0.3, 0.5, -0.6, 2.0])
VAR = np.array([0.2, 1e-3, 3.0, 0.0])
G = np.array([0.7, -1.3, 0.4, 2.0])


def labels(likelihood):
    return np.sign(Y) if isinstance(likelihood, Probit) else Y


def slope(likelihood, function, h=1e-4):
    theta = likelihood.theta
    out = []
    for step in h * np.eye(theta.size):
        rise = function(likelihood.with_theta(theta + step)) - function(
            likelihood.with_theta(theta - step)
        )
        out.append(rise / (2 * h))
    return np.array(out)


@learned
def test_pull_derivatives(likelihood):
    y = labels(likelihood)
    g = np.random.default_rng(3).normal(size=(3, 4))

    def total(moved):
        first, second, _ = moved.derivatives(y, MEAN)
        return np.sum(g[0] * moved.log_density(y, MEAN) + g[1] * first + g[2] * second)

    got = likelihood.pull_derivatives(y, MEAN, *g)
    np.testing.assert_allclose(got, slope(likelihood, total), rtol=1e-6, atol=1e-6)


@learned
def test_pull_smoothed(likelihood):
    y = labels(likelihood)
    got = likelihood.pull_smoothed(y, MEAN, VAR, G)
    want = slope(likelihood, lambda moved: np.sum(G * moved.smoothed(y, MEAN, VAR)[0]))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@learned
def test_pull_expected(likelihood):
    y = labels(likelihood)
    got = likelihood.pull_expected(y, MEAN, VAR, G)
    want = slope(likelihood, lambda moved: np.sum(G * moved.expected(y, MEAN, VAR)[0]))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@learned
def test_pulls_far_out(likelihood):
    # The mode of p N is up to 60 standard deviations away, where p/Z overflows.
    y = 1.0 if isinstance(likelihood, Probit) else 0.0
    mean, var = np.array([-30.0, 30.0]), np.array([0.25, 100.0])
    got = likelihood.pull_smoothed(y, mean, var, 1.0)
    want = slope(likelihood, lambda moved: np.sum(moved.smoothed(y, mean, var)[0]))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@learned
def test_pulls_run_over_what_is_free(likelihood):
    y = labels(likelihood)
    first = next(iter(likelihood.parameters))
    whole = likelihood.parameters[first]
    held = likelihood.with_parameters(**{first: whole.replace(fixed=True)})
    gone = whole.size if whole.is_free else 0
    for pull, arguments in (
        ("pull_derivatives", (y, MEAN, G, G, 0.0)),
        ("pull_smoothed", (y, MEAN, VAR, G)),
        ("pull_expected", (y, MEAN, VAR, G)),
    ):
        every = getattr(likelihood, pull)(*arguments)
        assert every.shape == likelihood.theta.shape
        some = getattr(held, pull)(*arguments)
        np.testing.assert_allclose(some, every[gone:], rtol=1e-9, atol=1e-12)


@positive
def test_pulls_without_parameters(case):
    likelihood = case.likelihood
    for name, parameter in likelihood.parameters.items():
        likelihood = likelihood.with_parameters(**{name: parameter.replace(fixed=True)})
    y = case.ys[0]
    assert likelihood.pull_derivatives(y, MEAN, G, G, G).shape == (0,)
    assert likelihood.pull_smoothed(y, MEAN, VAR, G).shape == (0,)
    assert likelihood.pull_expected(y, MEAN, VAR, G).shape == (0,)


class ByDifferences(Likelihood):
    """What somebody writes who gives nothing but the density and its derivatives."""

    def __init__(self, inner):
        self._set(inner)

    def log_density(self, y, f):
        return self._children[0].log_density(y, f)

    def derivatives(self, y, f):
        return self._children[0].derivatives(y, f)

    def knots(self, y):
        return self._children[0].knots(y)


@pytest.mark.parametrize("likelihood", [LEARNED[3], LEARNED[5]], ids=str)
def test_defaults_by_differences(likelihood):
    plain, g = ByDifferences(likelihood), np.random.default_rng(3).normal(size=(3, 4))
    for pull, arguments in (
        ("pull_derivatives", (Y, MEAN, *g)),
        ("pull_smoothed", (Y, MEAN, VAR, G)),
        ("pull_expected", (Y, MEAN, VAR, G)),
    ):
        got = getattr(plain, pull)(*arguments)
        np.testing.assert_allclose(got, getattr(likelihood, pull)(*arguments), rtol=0, atol=1e-7)


def test_arguments_broadcast():
    likelihood = LEARNED[0]
    one = likelihood.pull_smoothed(0.4, MEAN[:, None], VAR[:3], 2.0)
    want = sum(2.0 * likelihood.pull_smoothed(0.4, m, v, 1.0) for m in MEAN for v in VAR[:3])
    np.testing.assert_allclose(one, want, rtol=1e-12)
    for values in (likelihood.expected(0.4, MEAN[:, None], VAR[:3]),):
        assert all(v.shape == (4, 3) for v in values)
    with pytest.raises(ValueError, match="var must be finite and not negative"):
        likelihood.pull_expected(0.4, 0.0, -1.0, 1.0)


@pytest.mark.parametrize("level", [1e-6, 0.025, 0.5, 0.975, 1.0 - 1e-6])
def test_quantiles_of_counts_are_the_least_that_suffice(level):
    noise = Poisson()
    mean, var = (a.ravel() for a in np.meshgrid([-5.0, 0.0, 2.0, 9.0], [0.0, 0.01, 1.0, 9.0]))
    found = noise.quantile(mean, var, level)
    assert np.all(found == np.floor(found)) and np.all(found >= 0)
    slack = 1e-10 * min(level, 1.0 - level)
    assert np.all(noise.predictive_cdf(found, mean, var) >= level - slack)
    below = found > 0
    assert np.all(noise.predictive_cdf(found - 1.0, mean, var)[below] < level - slack)


@pytest.mark.parametrize(
    ("y", "mean", "var", "want"),  # by quadrature of 50 digits
    [
        (1e9, 20.75, 1e-6, (-371.73570170810774, -26707.45645326052, -999001.0256539115)),
        (1e12, 27.5, 1.0, (-28.558542915543228, 0.13102111592791718, -0.999999999999)),
        (1e15, 34.5, 1e-2, (-33.23031027523482, 3.8776394910680883, -99.99999999999)),
    ],
)
def test_many_events_lose_no_digits(y, mean, var, want):
    """y mean, exp(mean) and log y! are large numbers with a small sum."""
    found = Poisson().smoothed(y, mean, var)
    np.testing.assert_allclose(found, want, rtol=1e-10)
    peak = -0.5 * np.log(2 * np.pi * y)
    np.testing.assert_allclose(Poisson().log_density(y, np.log(y)), peak, rtol=1e-10)
    np.testing.assert_allclose(Poisson().expected(y, np.log(y), 0.0)[0], peak, rtol=1e-10)


@pytest.mark.parametrize(
    ("y", "mean", "var", "want"),  # by quadrature of 50 digits
    [
        (1e4, -5.0, 2.4e-7, -0.006754138281303899),
        (1e4, 0.0, 1e-8, -1.0000999899966665),
        (1e5, 0.0, 1e-11, -1.0000009999855),
        (1e4, -5.0, 2.6e-7, -0.0067554893097769774),
        (1e5, -5.0, 2.6e-9, -0.006739699101592983),
        (1e4, 9.25, 1e-8, -10403.441251217062),
    ],
)
def test_many_events_of_a_latent_value_that_is_known_well(y, mean, var, want):
    """Far from the peak and at it rounding comes from different terms."""
    found = Poisson().smoothed(y, mean, var)[2]
    assert found == pytest.approx(want, rel=1e-7)


def test_many_events_at_their_peak():
    at_peak = Poisson().smoothed(1e9, np.log(1e9), 1e-17)[0]
    assert at_peak == pytest.approx(-0.5 * np.log(2e9 * np.pi), rel=1e-9)
