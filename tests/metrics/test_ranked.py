"""The continuous ranked probability score of any likelihood, against references of other kinds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import beta, gammaincc, gammaln, ndtr
from scipy.stats import laplace, norm, poisson, t

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Custom, EpsilonInsensitive, Laplace, MixtureNoise, Poisson, StudentT
from mercer.metrics import ranked
from mercer.metrics.predictions import predictions
from mercer.metrics.ranked import crps_under

Y = np.array([0.2, 0.1, -3.0, 1.0, 50.0])
MEAN = np.full(5, 0.2)


def at(likelihood, var, y=Y, mean=MEAN):
    return crps_under(likelihood, y, mean, np.full(len(y), var))


def by_trapezoid(cdf, y, reach=60.0, n=20001):
    """The integral over x on either side of y, closer points nearer to it."""
    out = []
    away = np.sinh(np.linspace(0.0, np.arcsinh(reach / 0.1), n)) * 0.1
    for i, target in enumerate(y):
        below, above = cdf(i, target - away), cdf(i, target + away)
        out.append(np.trapezoid(below**2, away) + np.trapezoid((1.0 - above) ** 2, away))
    return np.array(out)


def smoothed(cdf, mean, var):
    """The distribution function of f + e, f Gaussian and e with the given one."""
    z, w = hermegauss(60)
    return lambda i, x: cdf(x[:, None] - mean[i] - np.sqrt(var) * z) @ w / w.sum()


def test_laplace_noise_in_closed_form():
    z = np.abs(Y - MEAN) / 0.5
    np.testing.assert_allclose(at(Laplace(0.5), 0.0), 0.5 * (z + np.exp(-z) - 0.75), rtol=1e-5)


@pytest.mark.parametrize("df", [1.2, 1.5, 4.0, 100.0])
def test_student_noise_in_closed_form(df):
    # A. Jordan, F. Krueger and S. Lerch (2019), Evaluating probabilistic forecasts
    z = (Y - MEAN) / 0.3
    constant = 2.0 * np.sqrt(df) / (df - 1) * beta(0.5, df - 0.5) / beta(0.5, 0.5 * df) ** 2
    want = z * (2.0 * t.cdf(z, df) - 1) + 2.0 * t.pdf(z, df) * (df + z**2) / (df - 1) - constant
    np.testing.assert_allclose(at(StudentT(df, 0.3), 0.0), 0.3 * want, rtol=1e-5)


def test_noise_without_a_mean():
    # of Cauchy's distribution around y: 2 s log(2)/pi, by parts
    centre = slice(0, 1)
    got = at(StudentT(1.0, 0.3), 0.0, Y[centre], MEAN[centre])
    np.testing.assert_allclose(got, 0.6 * np.log(2.0) / np.pi, rtol=1e-5)
    assert np.all(at(StudentT(0.5, 0.3), 0.0) == np.inf)
    assert np.all(np.isfinite(at(StudentT(0.6, 0.3), 0.0)))


@pytest.mark.parametrize(
    "likelihood, cdf",
    [
        (Laplace(0.5), lambda x: laplace.cdf(x, scale=0.5)),
        (StudentT(4.0, 1.0), lambda x: t.cdf(x, 4.0)),
    ],
    ids=["laplace", "student"],
)
def test_noise_upon_a_function_that_is_not_certain(likelihood, cdf):
    y, mean = Y[1:4], MEAN[1:4]
    want = by_trapezoid(smoothed(cdf, mean, 0.3), y, n=2001)
    # 60 nodes know a kink of the noise to four digits
    np.testing.assert_allclose(at(likelihood, 0.3, y, mean), want, rtol=1e-4)


def test_kinks_are_found():
    noise = EpsilonInsensitive(0.3, 0.2)
    want = by_trapezoid(lambda i, x: noise.conditional_cdf(x, MEAN[i]), Y)
    np.testing.assert_allclose(at(noise, 0.0), want, rtol=2e-5)


@pytest.mark.parametrize("var", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize(
    "weights, means, scales",
    [
        ([0.95, 0.05], [0.0, 0.0], [1e-3, 10.0]),
        ([0.5, 0.5], [-1.0, 1.0], [1e-3, 1e-2]),
        ([1.0, 4e-6], [0.0, 0.0], [1.0, 1e5]),
        ([1.0, 1e-6], [0.0, 0.0], [1.0, 1e5]),
    ],
    ids=["outliers", "apart", "rare", "rarer"],
)
def test_mixtures_in_closed_form(weights, means, scales, var):
    def spread(m, s):  # E|e|
        return 2.0 * s * norm.pdf(m / s) + m * (2.0 * ndtr(m / s) - 1.0)

    w, m, s = weights / np.sum(weights), np.array(means), np.sqrt(np.square(scales) + var)
    pairs = spread(m[:, None] - m, np.hypot(s[:, None], s))
    want = spread((Y - MEAN)[:, None] - m, s) @ w - 0.5 * w @ pairs @ w
    np.testing.assert_allclose(at(MixtureNoise(weights, means, scales), var), want, rtol=1e-5)


def by_sums(F, y):
    """The sum over whole numbers from 0 on, of which F has the distribution function."""
    k = np.arange(F.size)
    share = np.clip(y[:, None] - k, 0.0, 1.0)
    return share @ F**2 + (1.0 - share) @ (1.0 - F) ** 2


@pytest.mark.parametrize("rate", [1.5e-6, 0.05, 3.0, 300.0, 1e4, 1e6])
def test_counts_by_sums(rate):
    y = np.array([0.0, np.floor(rate), np.ceil(rate + 2.0 * np.sqrt(rate)), rate + 0.3])
    F = poisson.cdf(np.arange(int(rate + 10.0 * np.sqrt(rate) + 30)), rate)
    got = at(Poisson(), 0.0, y, np.full(4, np.log(rate)))
    np.testing.assert_allclose(got, by_sums(F, y), rtol=1e-5 if rate > 1e3 else 1e-9)


@pytest.mark.parametrize("mean, var", [(0.0, 1.0), (5.0, 0.1), (5.0, 0.6)])
def test_counts_of_a_rate_that_is_not_certain(mean, var):
    y = np.array([0.0, 1.0, np.ceil(np.exp(mean)), np.ceil(np.exp(mean + np.sqrt(var)))])
    z = np.linspace(-6.0, 6.0, 401)
    w = np.exp(-0.5 * z**2)
    k = np.arange(np.floor(np.exp(mean + 5.0 * np.sqrt(var))))
    F = sum(
        share * gammaincc(k + 1.0, rate)
        for share, rate in zip(w, np.exp(mean + np.sqrt(var) * z), strict=True)
    )
    got = at(Poisson(), var, y, np.full(4, mean))
    np.testing.assert_allclose(got, by_sums(F / w.sum(), y), rtol=2e-5)


def test_counts_by_a_function_are_seen_to_be_counts():
    # no event with probability 0.9, or else a wide distribution of them
    def log_density(y, f):
        there = y * np.log(3000.0) - 3000.0 - gammaln(y + 1.0)
        return np.where(y == 0, np.log(0.9), np.log(0.1) + there) + 0.0 * f

    def cdf(y, f):
        return np.where(y < 0, 0.0, 0.9 + 0.1 * poisson.cdf(np.floor(y), 3000.0)) + 0.0 * f

    y = np.array([0.0, 5.0, 2900.0])
    got = at(Custom(log_density, conditional_cdf=cdf), 0.0, y, np.zeros(3))
    np.testing.assert_allclose(got, by_sums(cdf(np.arange(4000.0), 0.0), y), rtol=1e-5)


def test_every_target_of_a_model_block_by_block(monkeypatch):
    monkeypatch.setattr(ranked, "_BLOCK", 16)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (40, 1))
    y = np.sin(X[:, 0]) + rng.laplace(scale=0.1, size=40)
    model = GPRegressor(RBF(), Laplace(0.1), optimizer=None).fit(X, y)
    mean, std = model.predict(X, return_std=True, latent=True)
    got = predictions(model, X, y).crps()
    assert got.shape == y.shape
    np.testing.assert_allclose(got, crps_under(model.likelihood_, y, mean, std**2), rtol=1e-6)
    np.testing.assert_allclose(got[::-1], predictions(model, X[::-1], y[::-1]).crps(), rtol=1e-9)
