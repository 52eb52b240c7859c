"""Streams of each likelihood against moments by quadrature; likelihoods that are 0 in places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from mercer.inference import _online_rows
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    StudentT,
)
from mercer.posterior import Basis, Posterior
from mercer.posterior.factors import Dense

from .online_dense import DENSITIES, moments_site, probit_site, rbf

KERNEL = 1.5 * RBF(1.2)
X = np.array([[0.0], [0.9], [-0.7], [1.6], [0.4]])


def k(X, Z):
    return rbf(X, Z, 1.2, 1.5)


def process(likelihood, **changes):
    options = {"max_basis": 20, "tol": 1e-6}
    return OnlineProcess(KERNEL, likelihood, **(options | changes))


def log_window(y, f):
    """0 but for f within 1.2 of y, and for any f where y is above 100."""
    return np.where((np.abs(y - f) < 1.2) & (y < 100.0), -np.log(2.4), -np.inf)


def log_laplace(y, f):
    return -np.abs(y - f) / 0.4 - np.log(0.8)


WINDOW = Custom(log_window, always_positive=False, knots=lambda y: np.c_[y - 1.2, y, y + 1.2])


class Moments:
    """Rows one after another with all their points, by matching moments on the joint Gaussian."""

    def __init__(self, points):
        self.mean, self.cov = np.zeros(len(points)), k(points, points)

    def learn(self, i, y, site):
        log_z, q, r = site(y, self.mean[i], self.cov[i, i])
        s = self.cov[:, i].copy()
        self.mean = self.mean + q * s
        self.cov = self.cov + r * np.outer(s, s)
        return log_z


def smooth(density):
    return moments_site(density, lambda y: [])


def with_kinks(log_density, *offsets):
    return moments_site(lambda y, f: np.exp(log_density(y, f)), lambda y: [y + o for o in offsets])


def log_student(y, f):
    return -2.0 * np.log1p((y - f) ** 2 / (3.0 * 0.25)) + np.log(2 / (np.pi * np.sqrt(3.0) * 0.5))


def log_huber(y, f):
    t = np.abs(y - f) / 0.5
    z = np.sqrt(2 * np.pi) * (2 * ndtr(1.2) - 1) + 2 * np.exp(-0.72) / 1.2
    return np.where(t <= 1.2, -0.5 * t**2, 0.72 - 1.2 * t) - np.log(0.5 * z)


def log_dead_zone(y, f):
    return -np.maximum(0.0, np.abs(y - f) - 0.2) / 0.3 - np.log(1.0)


STREAMS = {
    "probit by (SOGP 4.5 to 4.7)": (Probit(0.7), probit_site(0.7), "labels"),
    "probit": (Probit(0.7), smooth(DENSITIES["probit"][0]), "labels"),
    "step": (Probit(0.0), moments_site(DENSITIES["step"][0], lambda y: [0.0]), "labels"),
    "logistic": (Logistic(), smooth(lambda y, f: 1 / (1 + np.exp(-y * f))), "labels"),
    "laplace": (Laplace(0.4), with_kinks(log_laplace, 0.0), "numbers"),
    "custom": (
        Custom(log_laplace, twice_differentiable=False, knots=lambda y: y[:, None]),
        with_kinks(log_laplace, 0.0),
        "numbers",
    ),
    "mixture": (
        MixtureNoise([0.7, 0.3], [0.1, -0.5], [0.2, 1.5]),
        smooth(DENSITIES["mixture"][0]),
        "numbers",
    ),
    "student": (StudentT(3.0, 0.5), smooth(lambda y, f: np.exp(log_student(y, f))), "numbers"),
    "huber": (Huber(0.5, 1.2), with_kinks(log_huber, -0.6, 0.6), "numbers"),
    "insensitive": (EpsilonInsensitive(0.2, 0.3), with_kinks(log_dead_zone, -0.2, 0.2), "numbers"),
    "poisson": (
        Poisson(),
        smooth(lambda y, f: np.exp(y * f - np.exp(f)) / np.array([1.0, 1, 2, 6])[int(y)]),
        "counts",
    ),
    "window": (WINDOW, moments_site(*DENSITIES["window"][:2]), "numbers"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_match_moments(name):
    likelihood, site, kind = STREAMS[name]
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.linspace(-6.0, 6.0, 14))[:, None]
    latent = np.sin(1.5 * rows[:, 0])
    y = {
        "labels": np.where(latent + 0.3 * rng.normal(size=14) > 0, 1.0, -1.0),
        "numbers": latent + 0.3 * rng.normal(size=14),
        "counts": np.array([0, 1, 2, 3, 1, 0, 2, 1, 0, 3, 1, 1, 0, 2.0]),
    }[kind]
    new = np.linspace(-3, 3, 5)[:, None]
    got, expected = process(likelihood, tol=1e-9), Moments(np.vstack([rows, new]))
    before = got.learn(rows, y[:, None])
    densities = [expected.learn(i, y[i], site) for i in range(14)]
    assert got.n_basis == 14
    np.testing.assert_allclose(before.log_density, densities, rtol=1e-6, atol=1e-7)
    assert got.log_evidence == pytest.approx(sum(densities), rel=1e-6)
    posterior = got.posterior()
    np.testing.assert_allclose(posterior.mean(new)[:, 0], expected.mean[14:], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        posterior.cov(new)[:, :, 0], expected.cov[14:, 14:], rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("power", [0.5, 1.5])
def test_fractional_powers_of_a_probit_by_quadrature(power):
    steps = int(np.ceil(power))
    site = smooth(lambda y, f: ndtr(y * f / 0.7) ** (power / steps))
    got, expected = process(Probit(0.7)), Moments(X)
    labels = np.array([1.0, -1.0, -1.0, 1.0, 1.0])
    before = got.learn(X, labels[:, None], np.full(5, power))
    densities = [sum(expected.learn(i, labels[i], site) for _ in range(steps)) for i in range(5)]
    np.testing.assert_allclose(before.log_density, densities, rtol=1e-7)
    np.testing.assert_allclose(got.posterior().mean(X)[:, 0], expected.mean, rtol=1e-6)
    np.testing.assert_allclose(got.posterior().cov(X)[:, :, 0], expected.cov, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in STREAMS if STREAMS[name][0].compiled_site()])
def test_compiled_averages_are_those_of_python(name, monkeypatch):
    likelihood, _, kind = STREAMS[name]
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 1)) * 2.0
    y = np.sin(rows) + 0.5 * rng.normal(size=(300, 1))
    if kind != "numbers":
        y = np.where(y > 0, 1.0, -1.0) if kind == "labels" else np.round(np.abs(y))
    w = rng.integers(0, 4, 300).astype(float)
    options = {"max_basis": 8, "tol": 1e-3, "criterion": "kl"}
    compiled, plain = process(likelihood, **options), process(likelihood, **options)
    assert likelihood.compiled_site() is not None
    a = compiled.learn(rows, y, w)
    monkeypatch.setattr(type(likelihood), "compiled_site", lambda self: None)
    b = plain.learn(rows, y, w)
    for x, z in zip(a, b, strict=True):
        np.testing.assert_allclose(x, z, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(compiled.points, plain.points)
    assert compiled.log_evidence == pytest.approx(plain.log_evidence, rel=1e-8)


# --- likelihoods that are 0 -----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_a_row_that_cannot_be_is_skipped_and_changes_nothing(weight):
    got, without = process(WINDOW), process(WINDOW)
    y = np.array([0.5, 1e4, -0.3, 101.0, 0.9])[:, None]
    possible = np.array([0, 2, 4])
    before = got.learn(X, y, np.full(5, weight))
    other = without.learn(X[possible], y[possible], np.full(3, weight))
    assert list(np.isnan(before.log_density)) == [False, True, False, True, False]
    for name in ("mean", "var", "log_density"):
        np.testing.assert_allclose(
            getattr(before, name)[possible], getattr(other, name), rtol=1e-12
        )
    assert np.all(np.isfinite(before.mean))
    assert np.all(before.var > 0)
    np.testing.assert_array_equal(got.points, without.points)
    for name in ("sums", "mu", "S", "alpha"):
        a, b = getattr(got.arrays, name), getattr(without.arrays, name)
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert np.isfinite(got.log_evidence)


def test_a_row_of_which_one_output_cannot_be_is_skipped_whole():
    got = process(WINDOW, n_outputs=2)
    got.learn(X[:2], np.array([[0.5, 0.2], [0.1, -0.4]]))
    state = got.to_state()["arrays"]
    before = got.learn(X[2:3], np.array([[0.3, 1e4]]))
    assert np.isnan(before.log_density[0])
    for name, array in got.to_state()["arrays"].items():
        np.testing.assert_array_equal(array, state[name])


@pytest.mark.parametrize("name", ["gaussian", "probit"])
def test_observations_that_overflow_are_skipped(name):
    """Compiled: log Z of an infinite or absurd observation is not finite."""
    likelihood = Gaussian(0.1) if name == "gaussian" else Probit(0.5)
    got = process(likelihood)
    good = np.array([[1.0], [-1.0]])
    got.learn(X[:2], good)
    state = got.to_state()["arrays"]
    bad = np.array([[np.nan], [1e200 if name == "gaussian" else np.nan]])
    before = got.learn(X[2:4], bad)
    assert np.all(np.isnan(before.log_density))
    for key, array in got.to_state()["arrays"].items():
        np.testing.assert_array_equal(array, state[key])


def labels_of(n=120):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y[:, None], rng.choice([0.0, 0.03, 0.4, 1.0, 1.7, 2.0], n)


@pytest.mark.parametrize(
    "likelihood", [Probit(0.7), Probit(0.0), Probit(1e155), Logistic()], ids=repr
)
@pytest.mark.parametrize("forget", [0.0, 0.02])
def test_any_weights_of_labels_are_learned_in_the_compiled_loop(likelihood, forget, monkeypatch):
    X, y, w = labels_of()
    options = {"max_basis": 15, "forget": forget}
    compiled, plain = process(likelihood, **options), process(likelihood, **options)

    def no_row(*args):
        raise AssertionError("a row was learned by Python")

    with monkeypatch.context() as patch:
        patch.setattr(_online_rows, "_learn_row", no_row)
        before = compiled.learn(X, y, w)
    monkeypatch.setattr(type(likelihood), "compiled_site", lambda self: None)
    expected = plain.learn(X, y, w)
    for a, b in zip(before, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)
    for a, b in zip(
        compiled.posterior().mean_and_var(X), plain.posterior().mean_and_var(X), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def counted_rows(monkeypatch):
    """The numbers of rows that are learned by Python."""
    calls, row = [], _online_rows._learn_row

    def counted(*args):
        calls.append(args[4])
        row(*args)

    monkeypatch.setattr(_online_rows, "_learn_row", counted)
    return calls


@pytest.mark.parametrize(
    ("likelihood", "weight"), [(Probit(1e-3), 0.5), (Logistic(), 100.5), (Poisson(), 0.5)]
)
def test_weights_that_the_compiled_loop_does_not_take(likelihood, weight, monkeypatch):
    X, y, _ = labels_of(4)
    calls = counted_rows(monkeypatch)
    process(likelihood).learn(X, np.abs(y), np.full(4, weight))
    assert calls == [0, 1, 2, 3]


def test_a_function_some_hundred_steps_wide_is_averaged_in_the_compiled_loop(monkeypatch):
    X, y, _ = labels_of(4)
    calls = counted_rows(monkeypatch)
    before = process(Probit(2e-3)).learn(X, y, np.full(4, 0.5))
    assert calls == []
    monkeypatch.setattr(Probit, "compiled_site", lambda self: None)
    expected = process(Probit(2e-3)).learn(X, y, np.full(4, 0.5))
    assert calls == [0, 1, 2, 3]
    for a, b in zip(before, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("weight", "by_python"), [(0.5, [0, 1, 2, 3]), (2.0, [])])
def test_weights_of_labels_under_a_degenerate_process(weight, by_python, monkeypatch):
    """How wide its functions are no prior variance tells."""
    X, y, _ = labels_of(4)
    basis = Basis(1e4 * RBF(1.2), X[:2])
    posterior = Posterior(basis, np.zeros((2, 1)), B=Dense(np.eye(2)), weight=0)
    degenerate = OnlineProcess.from_posterior(posterior, Logistic())
    calls = counted_rows(monkeypatch)
    degenerate.learn(X, y, np.full(4, weight))
    assert calls == by_python
