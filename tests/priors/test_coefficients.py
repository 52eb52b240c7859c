"""Priors on coefficients against their formulas, quadrature, SciPy's densities and their draws."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from mercer.errors import StorageError
from mercer.priors import CoefficientPrior, FeatureSelection, Laplacian, WeightDecay
from mercer.registry import from_json, to_json

# gamma as the paper prints it, (BKM 98) with its sign put right, of coef/scale.
GAMMAS = {
    "laplacian": (Laplacian(0.3), lambda t: abs(t)),
    "weight decay": (WeightDecay(1.7), lambda t: t * t),
    "feature selection": (FeatureSelection(2.5), lambda t: 1.0 - np.exp(-abs(t))),
}
gammas = pytest.mark.parametrize(("prior", "gamma"), GAMMAS.values(), ids=GAMMAS.keys())
# The proper ones beside the same density in SciPy.
PROPER = {
    "laplacian": (Laplacian(0.3), stats.laplace(scale=0.3)),
    "weight decay": (WeightDecay(1.7), stats.norm(scale=1.7 / np.sqrt(2.0))),
}
proper = pytest.mark.parametrize(("prior", "theirs"), PROPER.values(), ids=PROPER.keys())
COEF = np.array([-7.0, -0.8, -1e-9, 0.0, 0.05, 0.3, 2.0, 11.0])


@gammas
def test_gamma_is_the_papers(prior, gamma):
    want = [gamma(c / prior.scale) for c in COEF]
    np.testing.assert_allclose(prior.gamma(COEF), want, rtol=1e-6, atol=1e-15)
    assert prior.gamma(0.0) == 0.0


def test_small_coefficients_keep_their_digits():
    # 1 - exp(-t) loses them; t - t^2/2 has an error of t^3/6
    t = np.array([1e-12, 1e-7])
    np.testing.assert_allclose(FeatureSelection(3.0).gamma(3.0 * t), t - t**2 / 2, rtol=1e-14)


@gammas
def test_slope_is_the_derivative_in_the_absolute_value(prior, gamma):
    size = np.array([0.01, 0.3, 1.0, 4.0])
    h = 1e-6
    want = [(gamma((s + h) / prior.scale) - gamma((s - h) / prior.scale)) / (2 * h) for s in size]
    np.testing.assert_allclose(prior.slope(size), want, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(prior.slope(-size), prior.slope(size))


def test_slopes_at_zero():
    # what the first L1 problem of a series has for penalties
    np.testing.assert_allclose(FeatureSelection(2.5).slope([0.0]), Laplacian(2.5).slope([0.0]))
    assert WeightDecay(2.5).slope(0.0) == 0.0


@gammas
def test_the_tangent_in_the_absolute_value_bounds_a_concave_gamma(prior, gamma):
    """Which makes successive L1 problems go downhill; a convex gamma is bounded from below."""
    at, other = np.meshgrid(np.linspace(0.0, 5.0, 11), np.linspace(0.0, 5.0, 23))
    tangent = prior.gamma(at) + prior.slope(at) * (other - at)
    gap = tangent - prior.gamma(other)
    sign = 1.0 if isinstance(prior, FeatureSelection) else -1.0
    assert np.all(sign * gap >= -1e-12)


@proper
def test_densities(prior, theirs):
    assert prior.is_proper
    np.testing.assert_allclose(prior.log_density(COEF), theirs.logpdf(COEF), rtol=1e-12)


@proper
def test_densities_integrate_to_one(prior, theirs):
    half, _ = integrate.quad(lambda c: float(np.exp(prior.log_density(c))), 0.0, np.inf)
    assert 2.0 * half == pytest.approx(1.0, abs=1e-8)


@proper
def test_a_seed_is_no_generator(prior, theirs):
    with pytest.raises(ValueError, match=r"rng must be a generator, .*default_rng\(0\).*; got 0$"):
        prior.sample(0, 3)


@proper
def test_draws(prior, theirs):
    draws = prior.sample(np.random.default_rng(3), (400, 50))
    assert draws.shape == (400, 50)
    assert stats.kstest(draws.ravel(), theirs.cdf).pvalue > 0.01
    # 20,000 draws: the standard error of their variance is at most sqrt(5/20000) of it, 1.6%
    assert prior.variance == pytest.approx(theirs.var(), rel=1e-12)
    assert np.var(draws) == pytest.approx(prior.variance, rel=0.05)
    np.testing.assert_array_equal(draws, prior.sample(np.random.default_rng(3), (400, 50)))


@proper
def test_estimate_has_the_greatest_likelihood(prior, theirs):
    coef = np.concatenate([prior.sample(np.random.default_rng(0), 40), np.zeros(9)])
    best = type(prior).estimate(coef)
    found = optimize.minimize_scalar(
        lambda u: -float(np.sum(type(prior)(np.exp(u)).log_density(coef))),
        bounds=(-8.0, 8.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert best.scale == pytest.approx(np.exp(found.x), rel=1e-6)
    # its own scale comes back, within three standard errors of either (1/sqrt(n) or less)
    many = prior.sample(np.random.default_rng(1), 10_000)
    assert type(prior).estimate(many).scale == pytest.approx(prior.scale, rel=0.03)


@pytest.mark.parametrize("cls", [Laplacian, WeightDecay])
def test_estimate_in_other_units(cls):
    coef = np.array([0.3, -2.0, 0.0, 0.7])
    for unit in (1e-200, 1e200):  # whose squares are no doubles
        assert cls.estimate(unit * coef).scale == pytest.approx(
            unit * cls.estimate(coef).scale, rel=1e-12
        )


@pytest.mark.parametrize("cls", [Laplacian, WeightDecay])
def test_no_scale_for_zeros(cls):
    for none in (np.zeros(3), np.empty(0)):
        with pytest.raises(ValueError, match="all 0"):
            cls.estimate(none)


def test_what_an_improper_prior_refuses():
    prior = FeatureSelection(2.0)
    assert not prior.is_proper
    rng = np.random.default_rng(0)
    for ask in (
        lambda: prior.sample(rng, 3),
        lambda: prior.log_density(COEF),
        lambda: prior.variance,
        lambda: FeatureSelection.estimate(COEF),
        lambda: FeatureSelection.estimate(np.zeros(2)),
    ):
        with pytest.raises(ValueError, match=r"improper.*finite integral"):
            ask()
    # as the reason says: the mass up to c grows with c
    mass = [integrate.quad(lambda c: np.exp(-prior.gamma(c)), 0.0, c)[0] for c in (10.0, 100.0)]
    assert mass[1] - mass[0] > 90.0 * np.exp(-1.0)


@pytest.mark.parametrize("cls", [Laplacian, WeightDecay, FeatureSelection])
def test_the_object(cls):
    prior = cls(0.25)
    assert prior == cls(scale=0.25) != cls(0.5)
    assert hash(prior) == hash(cls(0.25))
    assert repr(prior) == f"{cls.__name__}(scale=0.25)"
    for same in (from_json(to_json(prior)), pickle.loads(pickle.dumps(prior)), copy.copy(prior)):
        assert type(same) is cls and same == prior
    with pytest.raises(AttributeError, match="make a new one"):
        prior.scale = 2.0
    with pytest.raises(AttributeError, match="stays"):
        del prior.scale
    with pytest.raises(StorageError, match="rebuilt"):
        from_json(to_json(prior).replace("0.25", "-1"))


def test_kinds_differ():
    assert len({Laplacian(), WeightDecay(), FeatureSelection()}) == 3
    assert Laplacian() != WeightDecay() and Laplacian() != "laplacian"
    with pytest.raises(TypeError, match="abstract"):
        CoefficientPrior()


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, "wide", None, [1.0, 2.0]])
def test_scales_that_are_refused(wrong):
    with pytest.raises(ValueError, match="scale must be a positive number"):
        Laplacian(wrong)


def test_coefficients_that_are_refused():
    for wrong in ([1.0, np.nan], [np.inf], ["a"]):
        with pytest.raises(ValueError, match="coefficients"):
            Laplacian().gamma(wrong)
