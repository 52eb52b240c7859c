"""Densities, their derivatives in f, what they say of observations, and where they give out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods import (
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    SoftLabels,
    StudentT,
)
from mercer.likelihoods.additive import AdditiveNoise
from mercer.likelihoods.mills import gap, inverse, log_tail_derivatives
from mercer.params import LogNormal, Parameter
from mercer.registry import from_json, to_json

from . import oracle
from .densities import CASES, huber, insensitive, laplace, probit, step

every = pytest.mark.parametrize("case", CASES, ids=str)
smooth = pytest.mark.parametrize(
    "case", [c for c in CASES if not c.likelihood.missing("derivatives")], ids=str
)
noises = pytest.mark.parametrize(
    "case", [c for c in CASES if c.ys == (0.4, -3.0) and "Custom" not in str(c)], ids=str
)

LABELS = {Logistic: [-1.0, 1.0], Probit: [-1.0, 1.0], SoftLabels: [0.0, 1.0]}
F = np.array([-40.0, -3.3, -0.9, 0.17, 0.61, 5.2, 31.0])


@every
def test_log_density(case):
    for y in case.ys:
        want = np.asarray(case.log_p(y, F), dtype=float)
        np.testing.assert_allclose(case.likelihood.log_density(y, F), want, rtol=1e-12, atol=1e-13)


@noises
def test_densities_of_noise_integrate_to_one(case):
    # In y, on panels of all sizes around f and the kinks. The Cauchy density's tail is 1e-5 of s
    # at the last one.
    for f in (-3.0, 0.4):
        edges = np.unique([c + w * oracle.LADDER for c, w in [(f, 1.0), *case.places(f)]])
        half = 0.5 * np.diff(edges)[:, None]
        y = edges[:-1, None] + half + half * oracle.NODES
        p = np.exp(case.likelihood.log_density(np.asarray(y, dtype=float), f))
        heavy = isinstance(case.likelihood, StudentT) and case.likelihood.df < 3
        total = float(np.sum(half * oracle.WEIGHTS * p))
        assert total == pytest.approx(1.0, abs=1e-4 if heavy else 1e-10)


@pytest.mark.parametrize("f", [-30.0, -1.0, 0.0, 2.0, 6.0])
def test_densities_of_outcomes_sum_to_one(f):
    for likelihood in (Logistic(), Probit(), Probit(0.3), Probit(0.0)):
        assert np.exp(likelihood.log_density([-1, 1], f)).sum() == pytest.approx(1.0, abs=1e-15)
    counts = np.arange(2000.0)
    assert np.exp(Poisson().log_density(counts, f)).sum() == pytest.approx(1.0, abs=1e-11)


def test_densities_against_scipy():
    y = np.array([-2.0, 0.1, 0.9, 30.0])
    np.testing.assert_allclose(
        Laplace(0.7).log_density(y, 0.4), stats.laplace.logpdf(y, 0.4, 0.7), rtol=1e-13
    )
    for df in (0.3, 4.0, 999.0, 1001.0, 1e6, 1e10):
        got = StudentT(df, 0.7).log_density(y[:3], 0.4)
        # scipy's gamma functions lose digits from 1e6 on
        want = (
            stats.t.logpdf(y[:3], df, 0.4, 0.7) if df < 1e5 else stats.norm.logpdf(y[:3], 0.4, 0.7)
        )
        np.testing.assert_allclose(got, want, rtol=1e-11 if df < 1e5 else 1e-4)
    k = np.array([0.0, 3.0, 400.0])
    np.testing.assert_allclose(
        Poisson().log_density(k, 1.3), stats.poisson.logpmf(k, np.exp(1.3)), rtol=1e-12
    )
    np.testing.assert_allclose(
        Poisson().conditional_cdf([-0.5, 0.0, 3.7, 4.0], 1.3),
        stats.poisson.cdf([-0.5, 0.0, 3.7, 4.0], np.exp(1.3)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_hubers_density_as_printed(sigma):
    # (BKM 12) with one parameter, normalised by Z of the errata
    xi = np.linspace(-9.0, 9.0, 41)
    plain = np.where(abs(xi) <= sigma, np.exp(-(xi**2) / (2 * sigma)), np.exp(sigma / 2 - abs(xi)))
    Z = np.sqrt(2 * np.pi * sigma) * (2 * stats.norm.cdf(np.sqrt(sigma)) - 1)
    Z += 2 * np.exp(-sigma / 2)
    got = Huber(np.sqrt(sigma), np.sqrt(sigma)).log_density(xi, 0.0)
    np.testing.assert_allclose(np.exp(got), plain / Z, rtol=1e-12)


def test_the_insensitive_density_as_printed():
    # (BKM 13)
    xi, e = np.linspace(-5.0, 5.0, 31), 0.8
    want = np.exp(-np.maximum(0, abs(xi) - e)) / (2 * (1 + e))
    np.testing.assert_allclose(
        np.exp(EpsilonInsensitive(e, 1.0).log_density(xi, 0.0)), want, rtol=1e-13
    )
    np.testing.assert_allclose(
        EpsilonInsensitive(0.0, 0.7).log_density(xi, 0.1), Laplace(0.7).log_density(xi, 0.1)
    )


def test_probabilities_as_printed():
    # (BKM 14, 15, 17)
    f = np.array([-2.0, 0.3, 5.0])
    for y in (-1.0, 1.0):
        want = np.exp(f * y) / (1 + np.exp(f * y))
        np.testing.assert_allclose(np.exp(Logistic().log_density(y, f)), want, rtol=1e-13)
        want = stats.norm.cdf(y * f / 0.7)
        np.testing.assert_allclose(np.exp(Probit(0.7).log_density(y, f)), want, rtol=1e-12)
    odds = Logistic().log_density(1.0, f) - Logistic().log_density(-1.0, f)
    np.testing.assert_allclose(odds, f, rtol=1e-13)


# ------------------------------------------------------------------------------------- derivatives


@smooth
def test_derivatives(case):
    # Five-point differences in long double of the plain formula, and of each derivative the next.
    for y in case.ys:
        h = np.longdouble(1e-3 if "scale=0.1" not in str(case) else 1e-4)
        f = np.longdouble(1) * np.array([-3.31, -0.93, 0.171, 0.613, 5.27])

        def five(function, f=f, h=h):
            near = function(f + h) - function(f - h)
            far = function(f + 2 * h) - function(f - 2 * h)
            return np.asarray((8 * near - far) / (12 * h), dtype=float)

        got = case.likelihood.derivatives(y, f.astype(float))
        size = np.maximum(1.0, np.max(np.abs(got), axis=0))
        want = five(lambda x, y=y: case.log_p(y, x))
        assert np.all(np.abs(got[0] - want) <= 1e-7 * size), (got[0], want)
        for k in (0, 1):
            lower = lambda x, y=y, k=k: case.likelihood.derivatives(y, x.astype(float))[k]  # noqa: E731
            error = np.abs(got[k + 1] - five(lower))
            # differences of Custom's own differences: good to 1e-8 and 1e-6, over the step
            loose = 1e3 if "Custom" in str(case) else 1.0
            assert np.all(error <= loose * 1e-6 * size), (k, got[k + 1], five(lower))


@pytest.mark.parametrize("z", [-40.0, -25.0, -6.0, -3.9, -1.0, 2.0, 9.0])
def test_probit_derivatives_keep_their_digits(z):
    # Far out the second and third are what is left of large numbers that cancel; with u = 1/z^2
    # log Phi = -z^2/2 - log abs(z) - u + 5/2 u^2 - 37/3 u^3 + ... + const.
    first, second, third = Probit().derivatives(1.0, z)
    if z <= -25.0:
        u = 1 / z**2
        series = 1 - 6 * u + 50 * u**2 - 518 * u**3 + 6354 * u**4 - 89782 * u**5
        assert second == pytest.approx(-1 + u * series, rel=1e-12)
        series = 1 - 12 * u + 150 * u**2 - 2072 * u**3 + 31770 * u**4
        assert third == pytest.approx(-2 / z**3 * series, rel=1e-8)
    h = 1e-3
    slopes = [Probit().derivatives(1.0, z + k * h) for k in (-2, -1, 1, 2)]
    for k, got in ((0, second), (1, third)):
        a, b, c, d = (s[k] for s in slopes)
        assert got == pytest.approx((8 * (c - b) - (d - a)) / (12 * h), rel=1e-6, abs=1e-10)
    assert np.isfinite(first)


def test_mills_ratio():
    # mpmath, 40 digits: 1/M = npdf(x)/ncdf(-x), and 1/M - x
    for x, ratio, rest in (
        (-3.0, 0.0044378390421256638, 3.0044378390421257),
        (0.0, 0.7978845608028654, 0.7978845608028654),
        (3.9999, 4.2255118118625939, 0.22561181186259411),
        (4.0001, 4.2257024772949112, 0.22560247729491145),
        (30.0, 30.033259667433677, 0.033259667433677037),
        (1e8, 1e8, 1e-8),
    ):
        at = np.array(x)
        assert inverse(at) == pytest.approx(ratio, rel=1e-12)
        assert gap(at) == pytest.approx(rest, rel=1e-12)
    near = [np.array(log_tail_derivatives(np.array(x))) for x in (4 - 1e-9, 4.0)]
    np.testing.assert_allclose(near[0], near[1], rtol=1e-8)


@smooth
def test_fisher_is_the_expected_curvature(case):
    it = case.likelihood
    if it.missing("fisher"):
        return
    for f in (-0.7, 1.3):
        if not isinstance(it, (AdditiveNoise, Gaussian)):
            y = np.arange(200.0) if isinstance(it, Poisson) else np.array(LABELS[type(it)])
            p = np.exp(it.log_density(y, f))
        else:
            edges = np.unique([c + w * oracle.LADDER for c, w in [(f, 1.0), *case.places(f)]])
            half = 0.5 * np.diff(edges)[:, None]
            y = np.asarray(edges[:-1, None] + half + half * oracle.NODES, dtype=float)
            p = np.exp(it.log_density(y, f)) * (half * oracle.WEIGHTS)
        first, second, _ = it.derivatives(y, f)
        got = float(it.fisher(f))
        assert got == pytest.approx(float(np.sum(p * first**2)), rel=1e-8)
        if it.has_curvature:
            assert got == pytest.approx(float(-np.sum(p * second)), rel=1e-7)


def test_flags():
    flags = {
        Gaussian(1.0): (True, True, True),
        Laplace(): (True, False, True),
        EpsilonInsensitive(): (True, False, True),
        Huber(): (True, True, True),
        StudentT(): (False, True, True),
        Logistic(): (True, True, True),
        Probit(): (True, True, True),
        Probit(0.0): (True, False, False),
        Poisson(): (True, True, True),
        MixtureNoise([0.5, 0.5], [0, 0], [1, 2]): (False, True, True),
    }
    for it, wanted in flags.items():
        assert (it.is_log_concave, it.has_curvature, it.is_positive) == wanted, it
        assert it.is_unimodal == (not isinstance(it, MixtureNoise))
    assert Probit(0.0).missing("derivatives", "fisher", "sample") == ["derivatives", "fisher"]
    for call in (lambda: Probit(0.0).derivatives(1.0, 0.2), lambda: Probit(0.0).fisher(0.2)):
        with pytest.raises(NotImplementedError, match="Probit has no"):
            call()


@every
def test_curvature_has_the_sign_that_the_flag_says(case):
    if case.likelihood.missing("derivatives"):
        return
    second = np.concatenate([case.likelihood.derivatives(y, F)[1] for y in case.ys])
    if case.likelihood.is_log_concave:
        assert np.all(second <= 1e-9)
    else:
        assert np.any(second > 0)


# ------------------------------------------------------------------------------------ observations


@noises
def test_quantiles_and_moments_of_noise(case):
    it = case.likelihood
    level = np.array([0.01, 0.5, 0.97])
    q = it.quantile(0.3, 0.0, level)
    np.testing.assert_allclose(it.conditional_cdf(q, 0.3), level, rtol=0, atol=1e-9)
    mean, var = it.predictive_mean(0.3, 2.0), it.predictive_var(0.3, 2.0)
    if np.isfinite(var):
        draws = it.sample(np.full(200_000, 0.3), np.random.default_rng(5))
        assert abs(draws.mean() - mean) < 5 * np.sqrt(var / draws.size)
        assert var == pytest.approx(it.conditional_var(0.3) + 2.0, rel=1e-12)


def test_moments_that_do_not_exist():
    assert np.isnan(StudentT(1.0, 0.5).predictive_mean(0.0, 1.0))
    assert np.isnan(StudentT(1.0, 0.5).predictive_var(0.0, 1.0))
    assert StudentT(1.5, 0.5).predictive_mean(2.0, 1.0) == 2.0
    assert StudentT(1.5, 0.5).predictive_var(2.0, 1.0) == np.inf


def test_labels():
    for it in (Logistic(), Probit(0.4), Probit(0.0)):
        level = np.array([0.1, 0.9])
        np.testing.assert_array_equal(it.quantile(-8.0, 0.1, level), [-1.0, -1.0])
        np.testing.assert_array_equal(it.quantile(8.0, 0.1, level), [1.0, 1.0])
        np.testing.assert_array_equal(it.quantile(0.0, 1.0, level), [-1.0, 1.0])
        np.testing.assert_array_equal(it.initial([1.0, -1.0]), [0.0, 0.0])
        with pytest.raises(ValueError, match="labels must be -1 or 1, got 0, 2"):
            it.log_density([0.0, 1.0, 2.0], 0.3)
        with pytest.raises(ValueError, match="labels must be -1 or 1"):
            it.smoothed(0.5, 0.3, 1.0)


def test_counts():
    it = Poisson()
    np.testing.assert_allclose(it.initial([0, 9]), np.log([0.5, 9.5]))
    for y, wrong in ((-1.0, "-1"), (2.5, "2.5"), ([1.0, 0.1], "0.1")):
        with pytest.raises(ValueError, match=f"whole numbers of at least 0, got {wrong}"):
            it.log_density(y, 0.0)
    rate = np.exp(1.0 + 0.25)
    assert it.predictive_mean(1.0, 0.5) == pytest.approx(rate, rel=1e-14)
    want = rate + np.expm1(0.5) * rate**2
    assert it.predictive_var(1.0, 0.5) == pytest.approx(want, rel=1e-13)
    assert it.predictive_var(1.0, 0.0) == pytest.approx(np.e, rel=1e-14)
    assert it.predictive_var(-300.0, 200.0) == pytest.approx(np.exp(-200.0), rel=1e-12)
    for call in (lambda: it.predictive_mean(800.0, 0.0), lambda: it.predictive_var(0.0, 500.0)):
        with pytest.raises(ValueError, match=r"of Poisson cannot be computed .* it overflows"):
            call()
    draws = it.sample(np.log([1e17] * 1000), np.random.default_rng(0))
    assert abs(draws.mean() / 1e17 - 1.0) < 5e-9 / np.sqrt(1000) + 1e-9
    with pytest.raises(ValueError, match=r"exp\(f\) overflows for f = 800"):
        it.sample([0.0, 800.0], np.random.default_rng(0))
    q = it.quantile([2.0, -3.0], [0.3, 1.0], [[0.2], [0.999]])
    assert np.all(q == np.floor(q))


# ---------------------------------------------------------------------------------------- extremes


@every
def test_extremes_give_no_nan(case):
    it = case.likelihood
    f = np.array([0.0, 1e3, 1e8, 1e150])
    f = np.concatenate([-f, f])
    far = case.ys if case.ys[0] != 0.4 else (*case.ys, 1e8, -1e100)
    for y in far:
        values = [it.log_density(y, f)]
        if not it.missing("derivatives") and "Custom" not in str(case):
            values += it.derivatives(y, f)
        assert not any(np.any(np.isnan(v)) for v in values)
        assert np.all(values[0] < 20.0)
    mean, var = np.meshgrid([-1e6, -50.0, 0.0, 1e6], [1e-12, 1.0, 1e8])
    for y in case.ys:
        for value in it.smoothed(y, mean, var):
            assert not np.any(np.isnan(value)), value
        second = it.smoothed(y, mean, var)[2]
        if it.is_log_concave:
            assert np.all(second <= 1e-9 / var)
            # a variance is never negative; a rate of exp(1e6) leaves none
            assert np.all((second * var >= -1.0 - 1e-9) | np.isinf(second))


@pytest.mark.parametrize(
    "case", [laplace(1.0), insensitive(0.5, 0.1), huber(1.0, 0.3), probit(5.0), step()], ids=str
)
def test_closed_forms_at_any_distance(case):
    mean, var = np.meshgrid([-1e150, -1e30, 1e30, 1e150], [1e-100, 1.0, 1e100])
    for value in case.likelihood.smoothed(case.ys[1], mean, var):
        assert not np.any(np.isnan(value)), value


# -------------------------------------------------------------------------------------- parameters


@every
def test_theta_goes_there_and_back(case):
    it = case.likelihood
    moved = it.with_theta(it.theta + 0.3)
    back = moved.with_theta(moved.theta - 0.3)
    np.testing.assert_allclose(back.theta, it.theta, atol=1e-15)
    assert type(back) is type(it)
    objects = {"log_sech": case.log_p}
    assert from_json(to_json(moved), objects) == moved


def test_bounds_and_hyperpriors_are_kept():
    it = StudentT(Parameter(3.0, bounds=(2.5, 9.0)), Parameter(0.2, prior=LogNormal(0.0, 1.0)))
    back = from_json(to_json(it))
    assert back == it and back.parameter_names == ["df", "scale"]
    np.testing.assert_allclose(back.bounds[0], np.log([2.5, 9.0]))
    assert back.log_prior() == it.log_prior() != 0.0
    # what has no units is bounded without the data's help, and a given value is within
    np.testing.assert_allclose(StudentT().bounds[0], np.log([1.0, 1e3]))
    np.testing.assert_allclose(StudentT(0.5).bounds[0], np.log([0.5, 1e3]))
    np.testing.assert_allclose(Huber(1.0, 20.0).bounds[1], np.log([0.1, 20.0]))
    assert Probit().theta.size == 0 and Probit(Parameter(2.0)).theta == np.log(2.0)
    assert EpsilonInsensitive(0.0, 1.0).parameter_names == ["scale"]
    names = ["means[0]", "means[1]", "scales[0]", "scales[1]"]
    assert MixtureNoise([1, 1], [0, 1], [1, 2]).parameter_names == names


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Laplace(0.0), "scale must be positive"),
        (lambda: Laplace([1.0, 2.0]), "scale must be one number"),
        (lambda: Laplace("wide"), "finite number"),
        (lambda: EpsilonInsensitive(-0.1), "epsilon must be at least 0"),
        (lambda: EpsilonInsensitive(0.1, -1.0), "scale must be positive"),
        (lambda: Huber(1.0, 0.0), "threshold must be positive"),
        (lambda: Huber(1.0, [1.0, 2.0]), "threshold must be one number"),
        (lambda: StudentT(-1.0), "df must be positive"),
        (lambda: StudentT(np.nan), "finite number"),
        (lambda: Probit(-1.0), "noise_std must be at least 0"),
        (lambda: MixtureNoise([0.5, -0.5], [0, 0], [1, 1]), "weights must be a vector of positive"),
        (lambda: MixtureNoise([], [], []), "weights must be"),
        (lambda: MixtureNoise("ab", [0], [1]), "weights must be"),
        (lambda: MixtureNoise([0.5, 0.5], [0.0], [1, 1]), "means must have one entry .* 2 weights"),
        (lambda: MixtureNoise([0.5, 0.5], [0.0, 1.0], 1.0), "scales must have one entry"),
        (lambda: MixtureNoise([0.5, 0.5], [0.0, 1.0], [1, 0]), "scales must be positive"),
    ],
)
def test_bad_parameters(make, match):
    with pytest.raises(ValueError, match=match):
        make()
