"""Hyperpriors against SciPy's densities, finite differences and their own samples."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mercer.params import Flat, Gamma, HalfNormal, InverseGamma, InverseHalfNormal, LogNormal
from mercer.registry import from_json, to_json

# Each hyperprior beside the same density in SciPy, at arguments away from 1.
PAIRS = {
    "LogNormal": (LogNormal(0.7, 0.4), stats.lognorm(0.4, scale=np.exp(0.7))),
    "wide LogNormal": (LogNormal(-2.0, 3.0), stats.lognorm(3.0, scale=np.exp(-2.0))),
    "Gamma": (Gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3.0)),
    "Gamma below 1": (Gamma(0.5, 0.2), stats.gamma(0.5, scale=5.0)),
    "InverseGamma": (InverseGamma(3.5, 0.7), stats.invgamma(3.5, scale=0.7)),
    "HalfNormal": (HalfNormal(1.7), stats.halfnorm(scale=1.7)),
}
pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS.keys())
X = np.array([1e-3, 0.02, 0.3, 1.0, 2.5, 9.0, 40.0])


@pairs
def test_density(ours, theirs):
    np.testing.assert_allclose(ours.log_density(X), theirs.logpdf(X), rtol=1e-12, atol=1e-12)


@pairs
def test_derivative(ours, theirs):
    # Central differences of SciPy's density in log x, where it is smooth at every scale: a step
    # of 1e-5 errs by 1e-10 of the density's higher derivatives and by 1e-11 in rounding.
    h = 1e-5
    slope = (theirs.logpdf(X * np.exp(h)) - theirs.logpdf(X * np.exp(-h))) / (2 * h)
    np.testing.assert_allclose(X * ours.derivative(X), slope, rtol=1e-8, atol=1e-9)


@pairs
def test_samples(ours, theirs):
    draws = ours.sample(np.random.default_rng(3), 2000)
    assert draws.shape == (2000,)
    # Kolmogorov-Smirnov; the seed is fixed, so this is no gamble.
    assert stats.kstest(draws, theirs.cdf).pvalue > 0.01


@pairs
def test_samples_repeat(ours, theirs):
    a, b = (ours.sample(np.random.default_rng(5), 3) for _ in range(2))
    np.testing.assert_array_equal(a, b)


VECTORS = [
    (LogNormal([0.0, 1.0, -1.0], [1.0, 2.0, 0.5]), lambda a, b: LogNormal(a, b)),
    (Gamma([1.0, 2.0, 3.0], [0.5, 2.0, 1.0]), lambda a, b: Gamma(a, b)),
    (InverseGamma([1.0, 2.0, 3.0], [0.5, 2.0, 1.0]), lambda a, b: InverseGamma(a, b)),
    (HalfNormal([1.0, 2.0, 3.0]), lambda a: HalfNormal(a)),
    (InverseHalfNormal([1.0, 2.0, 3.0]), lambda a: InverseHalfNormal(a)),
    (LogNormal([0.0, 1.0, -1.0], 0.3), lambda a, b: LogNormal(a, b)),
]


@pytest.mark.parametrize(("prior", "make"), VECTORS)
def test_vector_arguments_are_one_density_a_component(prior, make):
    x = np.array([0.3, 1.0, 4.0])
    arguments = [np.broadcast_to(v, 3) for v in prior.to_state().values()]
    single = [make(*row) for row in zip(*arguments, strict=True)]
    for method in ("log_density", "derivative"):
        want = [getattr(p, method)(x[i : i + 1])[0] for i, p in enumerate(single)]
        np.testing.assert_allclose(getattr(prior, method)(x), want, rtol=1e-14)
    assert prior.sample(np.random.default_rng(0), 3).shape == (3,)


def test_flat():
    prior = Flat()
    np.testing.assert_array_equal(prior.log_density(X), np.zeros(7))
    np.testing.assert_array_equal(prior.derivative(X), np.zeros(7))
    with pytest.raises(ValueError, match="improper"):
        prior.sample(np.random.default_rng(0), 1)


def test_inverse_half_normal_is_half_normal_in_the_inverse():
    prior, of_inverse = InverseHalfNormal(1.7), stats.halfnorm(scale=1 / 1.7)
    want = of_inverse.logpdf(1 / X)
    np.testing.assert_allclose(prior.log_density(X), want, rtol=1e-12, atol=1e-12)
    h = 1e-5
    slope = (of_inverse.logpdf(np.exp(h) / X) - of_inverse.logpdf(np.exp(-h) / X)) / (2 * h)
    np.testing.assert_allclose(X * prior.derivative(X), -slope, rtol=1e-8, atol=1e-9)
    draws = prior.sample(np.random.default_rng(3), 2000)
    assert stats.kstest(1 / draws, of_inverse.cdf).pvalue > 0.01
    # level where x is long: a column that does not matter costs nothing
    assert np.ptp(prior.log_density(np.array([1e4, 1e8]))) < 1e-7


@pytest.mark.parametrize(
    "prior", [Flat(), *(p for p, _ in PAIRS.values()), *(p for p, _ in VECTORS)], ids=repr
)
def test_storage_equality_and_repr(prior):
    back = from_json(to_json(prior))
    assert back == prior and hash(back) == hash(prior)
    assert type(prior).__name__ in repr(prior)


def test_inequality():
    assert LogNormal(0.0, 1.0) != LogNormal(0.0, 2.0)
    assert Gamma(2.0, 1.0) != InverseGamma(2.0, 1.0)
    assert LogNormal([0.0, 1.0], 1.0) != LogNormal(0.0, 1.0)
    assert Flat() != 1


def test_arguments_are_copied_and_read_only():
    location = np.array([0.0, 1.0])
    prior = LogNormal(location, 1.0)
    location[0] = 9.0
    np.testing.assert_array_equal(prior.location, [0.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        prior.location[0] = 9.0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: LogNormal(0.0, 0.0), "LogNormal: scale must be a positive number"),
        (lambda: LogNormal(np.nan, 1.0), "LogNormal: location must be a finite number"),
        (lambda: Gamma(-1.0, 1.0), "Gamma: shape must be a positive"),
        (lambda: Gamma(1.0, np.inf), "Gamma: rate must be a positive"),
        (lambda: InverseGamma(1.0, [1.0, -2.0]), "InverseGamma: scale must be a positive"),
        (lambda: InverseHalfNormal(0.0), "InverseHalfNormal: scale must be a positive"),
        (lambda: HalfNormal([[1.0]]), "HalfNormal: scale must be a positive number or a vector"),
    ],
)
def test_bad_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@settings(deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 3), st.floats(0.01, 100))
def test_lognormal_is_normal_in_the_logarithm(location, scale, x):
    # The density of x carries the Jacobian 1/x.
    want = stats.norm(location, scale).logpdf(np.log(x)) - np.log(x)
    got = LogNormal(location, scale).log_density(np.array([x]))[0]
    assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


def test_hyperpriors_do_not_change():
    prior = LogNormal([0.0, 1.0], 2.0)
    for name in ("scale", "location", "shape"):
        with pytest.raises(AttributeError, match="LogNormal objects do not change"):
            setattr(prior, name, 3.0)
    with pytest.raises(AttributeError, match="LogNormal objects do not change"):
        del prior.scale
    with pytest.raises(ValueError, match="read-only"):
        prior.location[0] = 3.0
    for same in (copy.copy(prior), copy.deepcopy(prior), pickle.loads(pickle.dumps(prior))):
        assert same == prior and hash(same) == hash(prior)
        with pytest.raises(AttributeError, match="do not change"):
            same.scale = 3.0
