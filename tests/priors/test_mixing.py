"""From priors back to what they mix (BKM 120, 125), and round trips."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from mercer.params import Gamma
from mercer.priors import (
    CustomHyperprior,
    FeatureSelection,
    Flat,
    GammaPrecision,
    Laplacian,
    LaplacianMixture,
    MixingDensity,
    NormalDeviation,
    WeightDecay,
    mixing_density,
)

AT = np.array([[0.02, 0.1, 0.5], [1.0, 3.0, 9.0]])


def students_t(coef, a=1.7, b=0.8):
    constant = b**a * special.gamma(a + 0.5) / (special.gamma(a) * np.sqrt(2 * np.pi))
    return constant * (b + coef**2 / 2) ** -(a + 0.5)


def bessel(coef):
    return special.kv(0, coef) / np.pi


def pareto(coef, a=3.0, b=2.0):
    return a * b**a / 2 * (b + coef) ** -(a + 1)


EXACT = {
    "laplacian": (Laplacian(0.7), "variance", stats.expon(scale=2 * 0.7**2)),
    "student": (students_t, "precision", stats.gamma(1.7, scale=1 / 0.8)),
    "student, variance": (students_t, "variance", stats.invgamma(1.7, scale=0.8)),
    "student of scipy": (stats.t(3.0), "precision", stats.gamma(1.5, scale=1 / 1.5)),
    "bessel": (bessel, "variance", stats.chi2(1)),
    "pareto": (pareto, "rate", stats.gamma(3.0, scale=1 / 2.0)),
}


@pytest.mark.parametrize(("prior", "of", "theirs"), EXACT.values(), ids=EXACT.keys())
def test_known_mixtures(prior, of, theirs):
    found = mixing_density(prior, AT, of=of)
    assert isinstance(found, MixingDensity) and found.method == "talbot"
    assert found.density.shape == found.error.shape == AT.shape
    off = np.abs(found.density - theirs.pdf(AT))
    assert np.all(off <= found.error + 1e-15) and np.max(found.error) < 1e-8


@pytest.mark.parametrize(("prior", "of", "theirs"), EXACT.values(), ids=EXACT.keys())
def test_from_real_arguments_alone(prior, of, theirs):
    found = mixing_density(prior, AT, of=of, method="stehfest")
    off = np.abs(found.density - theirs.pdf(AT))
    assert np.all(off <= 2.0 * found.error) and np.max(found.error * AT) < 0.02


def test_densities_that_are_not_analytic_are_seen():
    for prior in (stats.laplace(scale=0.7), lambda x: np.exp(-np.abs(x) / 0.7) / 1.4):
        found = mixing_density(prior, AT)
        assert found.method == "stehfest"
        want = stats.expon(scale=2 * 0.7**2).pdf(AT)
        assert np.max(np.abs(found.density - want)) < 2e-3
        with pytest.raises(ValueError, match="complex arguments"):
            mixing_density(prior, AT, method="talbot")


@pytest.mark.parametrize(
    "prior",
    [GammaPrecision(1.7, 0.8), NormalDeviation(0.6), LaplacianMixture(Gamma(3.0, 2.0))],
    ids=repr,
)
def test_hyperpriors_know_their_own(prior):
    """And what they know is what their densities give by inversion."""
    for of in ("variance", "precision"):
        exact = mixing_density(prior, AT, of=of)
        assert exact.method == "exact"
        found = mixing_density(prior, AT, of=of, method="stehfest")
        np.testing.assert_array_less(
            np.abs(found.density - exact.density), 2.0 * found.error + 1e-12
        )
    s = np.exp(prior.log_precision_density(AT))
    np.testing.assert_allclose(mixing_density(prior, AT, of="precision").density, s)
    np.testing.assert_allclose(mixing_density(prior, 1 / AT).density, s * AT**2)


def test_rates_of_a_mixture_of_laplacians():
    found = mixing_density(LaplacianMixture(Gamma(3.0, 2.0)), AT, of="rate")
    assert found.method == "talbot"
    np.testing.assert_allclose(found.density, stats.gamma(3.0, scale=0.5).pdf(AT), atol=1e-9)


def test_round_trip_of_a_density_without_a_closed_form():
    """The logistic density mixes variances 4 K^2, K as in Kolmogorov's statistic."""

    def logistic(coef):
        return 0.25 / np.cosh(coef / 2) ** 2

    found = mixing_density(logistic, [1.0, 2.0, 8.0])
    k = np.sqrt(np.array([1.0, 2.0, 8.0])) / 2
    np.testing.assert_allclose(found.density, stats.kstwobign.pdf(k) / (8 * k), rtol=1e-6)

    # and forward again
    def back(coef):
        def integrand(u):
            v = np.exp(u)
            m = mixing_density(logistic, v).density
            return float(stats.norm(scale=np.sqrt(v)).pdf(coef) * m * v)

        return integrate.quad(integrand, np.log(0.3), np.log(80.0), epsabs=1e-8)[0]

    assert back(1.0) == pytest.approx(logistic(1.0), rel=1e-5)


def test_from_density_to_hyperprior_to_density():
    def log_p(s):
        m = mixing_density(students_t, np.clip(s, 1e-3, 40.0), of="precision").density
        inside = (s > 1e-3) & (s < 40.0)
        return np.where(inside, np.log(np.maximum(m, 1e-300)), -np.inf)

    coef = np.array([0.3, 1.0, 2.0])
    got = CustomHyperprior(log_p).density(coef)
    np.testing.assert_allclose(got, students_t(coef), rtol=1e-3)


def two_normals(coef):
    return 0.5 * stats.norm.pdf(0) * (np.exp(-(coef**2) / 2) + 0.5 * np.exp(-(coef**2) / 8))


@pytest.mark.parametrize(
    ("prior", "of", "message"),
    [
        (stats.uniform(-1.0, 2.0), "variance", "density is 0"),
        (stats.gennorm(4.0), "variance", r"not convex in coef\^2"),
        (stats.norm(1.0), "variance", "rises with"),
        (stats.norm(), "variance", r"linear in coef\^2.*single number"),
        (WeightDecay(), "variance", "single number"),
        (Laplacian(), "rate", r"linear in \|coef\|.*single number"),
        (stats.norm(), "rate", r"not convex in \|coef\|"),
        (FeatureSelection(), "variance", "improper"),
        (Flat(), "variance", "improper"),
        (two_normals, "variance", "probability of its own"),
        (lambda coef: 1.0, "variance", "shape"),
        (lambda coef: -np.exp(-coef), "variance", "less than 0"),
        ("laplace", "variance", "a density, got"),
        (Laplacian(1e-9), "variance", "next to no mass"),
    ],
)
def test_what_is_refused(prior, of, message):
    with pytest.raises(ValueError, match=message):
        mixing_density(prior, AT, of=of)


def test_negative_densities_are_refused():
    # log-convex in coef^2, yet the transform of exp(-x) (1 + 1.3 cos 3x)
    def p(coef):
        z = 1.0 + coef**2
        return 1.0 / z + 1.3 * z / (z**2 + 9.0)

    with pytest.raises(
        ValueError, match=r"no mixture of normal.*variance that would be needed is -"
    ):
        mixing_density(p, np.geomspace(0.2, 2.0, 20))


def test_arguments_that_are_refused():
    for bad in ([0.0], [-1.0], [np.inf], [np.nan]):
        with pytest.raises(ValueError, match="positive numbers"):
            mixing_density(Laplacian(), bad)
    with pytest.raises(ValueError, match="of must be one of"):
        mixing_density(Laplacian(), 1.0, of="scale")
    with pytest.raises(ValueError, match="method must be one of"):
        mixing_density(Laplacian(), 1.0, method="euler")


def test_nothing_asked():
    assert mixing_density(Laplacian(), np.empty(0)).density.shape == (0,)
