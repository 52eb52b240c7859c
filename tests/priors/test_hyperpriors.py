"""Hyperpriors and the priors they induce: closed forms, quadrature of (BKM 119), and draws."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from mercer.kernels import RBF
from mercer.params import Flat as FlatParameter
from mercer.params import Gamma, HalfNormal, InverseGamma, LogNormal
from mercer.priors import (
    CustomHyperprior,
    Flat,
    GammaPrecision,
    LaplacianMixture,
    NormalDeviation,
    PrecisionPrior,
    sample_functions,
)
from mercer.registry import from_json, to_json


def log_normal(s):
    return -np.log(s) - 0.5 * ((np.log(s) - 1.0) / 0.4) ** 2


def gamma_like(s):
    return -0.7 * np.log(s) - 5.0 * s


def between(s):  # uniform from 0.5 to 2
    return np.where((s > 0.5) & (s < 2.0), 0.0, -np.inf)


def reciprocal(s):
    return -np.log(s)


PROPER = {
    "gamma": GammaPrecision(2.0, 1.5),
    "gamma, a pole of ln s": GammaPrecision(0.3, 5.0),
    "normal deviation": NormalDeviation(0.7),
    "double Pareto": LaplacianMixture(Gamma(1.5, 0.5)),
    "log-normal rate": LaplacianMixture(LogNormal(0.5, 0.7)),
    "half-normal rate": LaplacianMixture(HalfNormal(2.0)),
    "inverse-gamma rate": LaplacianMixture(InverseGamma(2.0, 3.0)),
    "custom": CustomHyperprior(log_normal),
    "custom gamma": CustomHyperprior(gamma_like),
}
proper = pytest.mark.parametrize("prior", PROPER.values(), ids=PROPER.keys())
COEF = np.array([-7.0, -0.3, 0.01, 0.9, 3.0])


def over_logs(function, low=-60.0, high=60.0, width=2.0):
    """Return the integral of function(t), by panels that miss nothing of width 0.1."""
    edges = np.arange(low, high + width, width)
    return sum(
        integrate.quad(function, a, b, epsabs=1e-15, epsrel=1e-11, limit=200)[0]
        for a, b in pairwise(edges)
    )


@proper
def test_hyperprior_integrates_to_one(prior):
    assert prior.is_proper
    total = over_logs(
        lambda t: np.exp(prior.log_precision_density(np.exp(t)) + t), low=-200.0, high=60.0
    )
    assert total == pytest.approx(1.0, abs=1e-9)


@proper
def test_density_is_the_mixture(prior):
    def at(coef):
        def integrand(t):
            s = np.exp(t)
            normal = np.sqrt(s / (2 * np.pi)) * np.exp(-0.5 * s * coef**2)  # (BKM 118)
            return normal * np.exp(prior.log_precision_density(s) + t)

        return over_logs(integrand)

    np.testing.assert_allclose(prior.density(COEF), [at(c) for c in COEF], rtol=1e-9)
    np.testing.assert_allclose(prior.log_density(COEF), np.log(prior.density(COEF)), rtol=1e-12)


@proper
def test_density_integrates_to_one(prior):
    half = over_logs(lambda u: float(prior.density(np.exp(u))) * np.exp(u), -40.0, 120.0, 4.0)
    assert 2.0 * half == pytest.approx(1.0, abs=1e-8)


@proper
def test_a_seed_is_no_generator(prior):
    for draw in (prior.sample, prior.sample_log_precision):
        with pytest.raises(ValueError, match=r"rng must be a generator, .*; got 0$"):
            draw(0, 3)


@proper
def test_draws_have_the_density(prior):
    draws = prior.sample(np.random.default_rng(5), (100, 20))
    assert draws.shape == (100, 20)
    sizes = np.sort(np.abs(draws.ravel()))
    # the distribution function of |coef| by a fine sum over ln |coef|
    u = np.linspace(-45.0, np.log(sizes[-1]) + 1.0, 20_001)
    cdf = integrate.cumulative_simpson(2.0 * prior.density(np.exp(u)) * np.exp(u), x=u, initial=0)
    assert stats.kstest(sizes, lambda x: np.interp(np.log(x), u, cdf)).pvalue > 0.01
    assert abs(np.mean(draws > 0) - 0.5) < 4 * np.sqrt(0.25 / draws.size)
    np.testing.assert_array_equal(draws, prior.sample(np.random.default_rng(5), (100, 20)))


@proper
def test_draws_of_the_precision(prior):
    t = np.sort(prior.sample_log_precision(np.random.default_rng(2), 2000))
    places = np.linspace(min(t[0], -30.0) - 1.0, t[-1] + 1.0, 40_001)
    density = np.exp(prior.log_precision_density(np.exp(places)) + places)
    cdf = integrate.cumulative_simpson(density, x=places, initial=0)
    assert stats.kstest(t, lambda x: np.interp(x, places, cdf)).pvalue > 0.01


@pytest.mark.parametrize(
    "prior",
    [*PROPER.values(), Flat(), GammaPrecision(0.0, 2.0)],
    ids=repr,
)
def test_slope_is_the_derivative(prior):
    s, h = np.array([1e-3, 0.2, 1.0, 40.0]), 1e-5
    want = (prior.log_hyper(s * np.exp(h)) - prior.log_hyper(s * np.exp(-h))) / (2 * h)
    np.testing.assert_allclose(prior.slope(s), want, rtol=1e-6, atol=1e-6)


@proper
def test_log_hyper_is_relative_to_the_peak(prior):
    t = np.linspace(-12.0, 12.0, 240_001)
    values = prior.log_hyper(np.exp(t))
    assert np.max(values) == pytest.approx(0.0, abs=1e-8)
    away = prior.log_precision_density(np.exp(t)) + t - values
    finite = np.isfinite(values)
    np.testing.assert_allclose(away[finite], away[finite][0], atol=1e-9)


# --- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.5), (0.5, 3.0), (1e-4, 1e-4)])
def test_gamma_gives_students_t(a, b):
    """(BKM 124, as corrected)"""
    prior = GammaPrecision(a, b)
    theirs = stats.t(2 * a, scale=np.sqrt(b / a)).logpdf(COEF)
    np.testing.assert_allclose(prior.log_density(COEF), theirs, rtol=1e-10)
    constant = b**a * special.gamma(a + 0.5) / (special.gamma(a) * np.sqrt(2 * np.pi))
    want = constant * (b + COEF**2 / 2) ** -(a + 0.5)
    np.testing.assert_allclose(prior.density(COEF), want, rtol=1e-10)
    s = np.array([0.1, 1.0, 7.0])
    np.testing.assert_allclose(
        prior.log_precision_density(s), stats.gamma(a, scale=1 / b).logpdf(s), rtol=1e-9
    )


def test_large_coefficients_under_gamma():
    # whose squares are no doubles
    tail = GammaPrecision(1.0, 1.0).log_density([1e200, 1e250])
    assert tail[0] - tail[1] == pytest.approx(3.0 * np.log(1e50))


def test_normal_deviations_give_a_bessel_function():
    """(BKM 121, 122, as corrected)"""
    w = 0.7
    want = special.k0(np.abs(COEF) / w) / (np.pi * w)
    np.testing.assert_allclose(NormalDeviation(w).density(COEF), want, rtol=1e-12)
    assert NormalDeviation(w).density(0.0) == np.inf
    # ln s from the density of a standard deviation on the whole line
    sd = np.array([0.1, 0.7, 2.0])
    jacobian = 0.5 * sd**3  # |d sd/d s|
    want = 2.0 * stats.norm(scale=w).pdf(sd) * jacobian
    got = np.exp(NormalDeviation(w).log_precision_density(sd**-2))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    # far out, where K_0 itself is 0
    assert NormalDeviation(1.0).log_density(2000.0) == pytest.approx(
        -2000.0 + 0.5 * np.log(np.pi / 4000.0) - np.log(np.pi), rel=1e-6
    )


def test_laplacians_of_gamma_rates():
    """(BKM 125, as corrected)"""
    a, b = 2.0, 0.5
    prior = LaplacianMixture(Gamma(a, b))
    want = a * b**a / 2 * (b + np.abs(COEF)) ** -(a + 1)
    np.testing.assert_allclose(prior.density(COEF), want, rtol=1e-12)
    # the precision by the parabolic cylinder function, at v = 1/s
    v = np.array([0.05, 0.4, 3.0])
    z = b / np.sqrt(v)
    cylinder = np.array([special.pbdv(-(a + 2), x)[0] for x in z])
    p = b**a / special.gamma(a) / 2 * v ** -(a / 2 + 1) * special.gamma(a + 2)
    p = p * np.exp(z**2 / 4) * cylinder
    np.testing.assert_allclose(np.exp(prior.log_precision_density(1 / v)), p * v**2, rtol=1e-9)


def test_a_certain_rate_gives_the_laplacian():
    near = LaplacianMixture(Gamma(1e6, 1e6))
    np.testing.assert_allclose(near.density(COEF), 0.5 * np.exp(-np.abs(COEF)), rtol=1e-4)
    # and an exponential variance of mean 2
    s = np.array([0.1, 1.0, 20.0])
    want = 0.5 * np.exp(-0.5 / s) / s**2
    np.testing.assert_allclose(np.exp(near.log_precision_density(s)), want, rtol=1e-4)


def test_custom_is_what_it_is_given():
    # an exponential density, with a constant that does not matter, and its derivative
    prior = CustomHyperprior(lambda s: 17.0 - 2.0 * s, derivative=lambda s: np.full_like(s, -2.0))
    gamma = GammaPrecision(1.0, 2.0)
    s = np.geomspace(1e-6, 1e3, 10)
    np.testing.assert_allclose(prior.log_density(COEF), gamma.log_density(COEF), rtol=1e-11)
    np.testing.assert_allclose(prior.log_hyper(s), gamma.log_hyper(s), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(prior.slope(s), gamma.slope(s), rtol=1e-9, atol=1e-12)
    by_differences = CustomHyperprior(lambda s: -2.0 * s)
    np.testing.assert_allclose(by_differences.slope(s), gamma.slope(s), rtol=1e-9, atol=1e-9)


def test_custom_far_narrow_and_with_two_peaks():
    def narrow(s):
        return -np.log(s) - 0.5 * ((np.log(s) - 37.123) / 1e-4) ** 2

    s = np.exp(37.123)
    got = CustomHyperprior(narrow).density(0.5 / np.sqrt(s))
    assert got == pytest.approx(stats.norm.pdf(0.5) * np.sqrt(s), rel=1e-6)

    def two(s):
        t = np.log(s)
        return -t + np.logaddexp(-0.5 * ((t + 20) / 0.01) ** 2, -0.5 * ((t - 30) / 0.01) ** 2)

    got = CustomHyperprior(two).density(np.exp(10.0))
    want = 0.5 * stats.norm(scale=np.exp(10.0)).pdf(np.exp(10.0))
    assert got == pytest.approx(want, rel=1e-3)


def test_custom_with_edges():
    prior = CustomHyperprior(between)

    def at(coef):
        return integrate.quad(
            lambda s: np.sqrt(s / (2 * np.pi)) * np.exp(-0.5 * s * coef**2) / 1.5, 0.5, 2.0
        )[0]

    np.testing.assert_allclose(prior.density(COEF), [at(c) for c in COEF], rtol=1e-6)
    s = np.exp(prior.sample_log_precision(np.random.default_rng(1), 2000))
    assert stats.kstest(s, stats.uniform(0.5, 1.5).cdf).pvalue > 0.01
    best, gain = prior.best_precision(1.0, [0.1, 2.0, 30.0])
    assert gain[0] == 0.0 and 0.5 < best[1] < 2.0 and best[2] == pytest.approx(0.5, rel=5e-3)


def test_a_pole_at_zero():
    # p(s) = (1 + s)^-1.2/5: an integral of sqrt(s) p(s) that does not exist
    prior = CustomHyperprior(lambda s: -1.2 * np.log1p(s))
    assert prior.density(0.0) == np.inf
    assert np.isfinite(prior.density(1e-9))


def test_vague_draws():
    prior = GammaPrecision()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"8\d% of the coefficients.*sample_log_precision"):
        prior.sample(rng, 1000)
    t = prior.sample_log_precision(rng, 4000)
    # ln s is next to exponential below 1/b, of mean -1/a
    assert np.mean(t) == pytest.approx(-1e4, rel=0.05)


# --- improper ones, and arguments -------------------------------------------------------------


@pytest.mark.parametrize(
    "prior",
    [Flat(), GammaPrecision(0.0, 0.0), GammaPrecision(0.0, 1.0), CustomHyperprior(reciprocal)],
    ids=repr,
)
def test_what_improper_hyperpriors_refuse(prior):
    assert not prior.is_proper
    rng = np.random.default_rng(0)
    for ask in (
        lambda: prior.log_density(COEF),
        lambda: prior.density(COEF),
        lambda: prior.sample(rng, 3),
        lambda: prior.sample_log_precision(rng, 3),
        lambda: prior.log_precision_density(1.0),
    ):
        with pytest.raises(ValueError, match=r"improper.*integral"):
            ask()
    assert np.all(np.isfinite(prior.log_hyper([1e-5, 1.0, 1e5])))


@pytest.mark.parametrize("prior", [Flat(), GammaPrecision(0.0, 0.0), CustomHyperprior(reciprocal)])
def test_flat_ones_say_nothing(prior):
    s = np.geomspace(1e-9, 1e9, 7)
    np.testing.assert_allclose(prior.log_hyper(s), 0.0, atol=1e-12)
    np.testing.assert_allclose(prior.slope(s), 0.0, atol=1e-10)


def test_tails_that_vanish_slowly():
    def log_cauchy(s):
        return -np.log(s) - np.log1p(np.log(s) ** 2)

    with pytest.raises(ValueError, match="too slowly"):
        CustomHyperprior(log_cauchy).density(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GammaPrecision(-1.0, 1.0), "a must be a number of at least 0"),
        (lambda: GammaPrecision(1.0, np.nan), "b must be a number of at least 0"),
        (lambda: GammaPrecision(1.0, 0.0), "b = 0 with a = 1"),
        (lambda: NormalDeviation(0.0), "width must be a positive number"),
        (lambda: NormalDeviation("wide"), "width must be a positive number"),
        (lambda: LaplacianMixture(FlatParameter()), "rate must be one of Gamma"),
        (lambda: LaplacianMixture(2.0), "rate must be one of Gamma"),
        (lambda: LaplacianMixture(Gamma([1.0, 2.0], 1.0)), "numbers for arguments"),
        (lambda: CustomHyperprior(3.0), "log_p must be a function"),
        (lambda: CustomHyperprior(reciprocal, 3.0), "derivative must be a function"),
        (lambda: CustomHyperprior(lambda s: 1.0), "array of the shape"),
        (lambda: CustomHyperprior(lambda s: s * np.nan), "must be a number or -inf"),
        (lambda: CustomHyperprior(lambda s: 0.0 * s - np.inf), "not -inf at all"),
        (lambda: CustomHyperprior(lambda s: 0.0 * s), "grows without end"),
        (lambda: CustomHyperprior(lambda s: -2.0 * np.log(s)), "grows faster"),
        (lambda: Flat().log_hyper([1.0, -1.0]), "precisions must be positive"),
        (lambda: NormalDeviation().density([np.nan]), "coefficients"),
    ],
)
def test_arguments_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


STORED = [
    Flat(),
    GammaPrecision(2.0, 0.25),
    NormalDeviation(0.3),
    LaplacianMixture(Gamma(2.0, 3.0)),
]


@pytest.mark.parametrize("prior", STORED, ids=repr)
def test_the_object(prior):
    assert isinstance(prior, PrecisionPrior)
    prior.best_precision([1.0], [2.0])  # what is kept for searches is no part of the object
    for same in (from_json(to_json(prior)), pickle.loads(pickle.dumps(prior)), copy.copy(prior)):
        assert same is not prior and same == prior and hash(same) == hash(prior)
    with pytest.raises(AttributeError, match="make a new one"):
        prior.a = 2.0
    with pytest.raises(AttributeError, match="stays"):
        del prior.a
    assert [p == prior for p in STORED].count(True) == 1


def test_text():
    assert repr(GammaPrecision()) == "GammaPrecision(a=0.0001, b=0.0001)"
    assert repr(Flat()) == "Flat()"
    assert GammaPrecision(1.0, 1.0) != GammaPrecision(1.0, 2.0) != "GammaPrecision"


def test_custom_is_stored_by_name():
    prior = CustomHyperprior(gamma_like)
    same = pickle.loads(pickle.dumps(prior))
    assert same == prior
    again = from_json(to_json(prior), objects={"gamma_like": gamma_like})
    assert again == prior


def test_functions_from_them():
    X = np.linspace(0.0, 1.0, 5)[:, None]
    f = sample_functions(NormalDeviation(), RBF(0.2), X, X, n_samples=3)
    assert f.shape == (5, 3) and np.all(np.isfinite(f))
