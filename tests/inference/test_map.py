"""The mode against support vector regression, Laplace's method, dense formulas and differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.svm import SVR

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import LatentProblem, exact, laplace
from mercer.inference import map as mode
from mercer.kernels import RBF, Linear, Matern
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    Poisson,
    StudentT,
)

from .latent import gram_adjoint_by_differences, with_gram

KINKED = {
    "laplace": Laplace(0.4),
    "insensitive": EpsilonInsensitive(0.15, 0.4),
    "huber": Huber(0.3, threshold=1.2),
}
SMOOTH = {"student": StudentT(4.0, 0.3), "gaussian": Gaussian(0.1), "logistic": Logistic()}
ALL = KINKED | SMOOTH


def make(kind, n=25, weights=False, mean=False, kernel=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = 1.5 * np.sin(1.5 * X[:, 0])
    y = f + 0.3 * rng.standard_t(2, size=n)
    if kind == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    kernel = 1.7 * Matern([0.8, 1.5], nu=1.5) if kernel is None else kernel
    m = 0.4 * np.cos(X[:, 0]) if mean else np.zeros(n)
    w = rng.uniform(0.3, 2.5, n) if weights else None
    return LatentProblem(kernel, X, y, ALL[kind], m, w)


def value(p, f):
    """The log posterior at latent values f, by the density itself (BKM 52)."""
    w = np.ones(p.n) if p.weights is None else p.weights
    K = p.kernel(p.X)
    r = f - p.mean
    return np.sum(w * p.likelihood.log_density(p.y, f)) - 0.5 * r @ np.linalg.solve(K, r)


def moved(p, **parts):
    return mode.evidence(replace(p, **parts))[0].log_joint


# --- the mode ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_support_vector_regression(epsilon, weights):
    """With its offset for a prior mean it is the same programme, C being 1/s.

    It keeps the Gram matrix in single precision, which is therefore given to both.
    """
    p = make("laplace", 80, weights)
    K = p.kernel(p.X).astype(np.float32).astype(float)
    svr = SVR(kernel="precomputed", C=2.0, epsilon=epsilon, tol=1e-10)
    svr.fit(K, p.y, sample_weight=p.weights)
    likelihood = EpsilonInsensitive(epsilon, 0.5) if epsilon else Laplace(0.5)
    p = replace(p, likelihood=likelihood, mean=np.full(80, svr.intercept_[0]))
    process, s = mode.posterior(with_gram(p, K), means.Constant(svr.intercept_[0], estimate=None))
    theirs = np.zeros(80)
    theirs[svr.support_] = svr.dual_coef_[0]
    np.testing.assert_allclose(s.alpha, theirs, atol=1e-8)
    np.testing.assert_allclose(s.latent, svr.predict(K), atol=1e-8)
    rows = np.arange(80.0)[:, None]
    np.testing.assert_allclose(process.mean(rows)[:, 0], svr.predict(K), atol=1e-8)
    assert process.n_basis == svr.support_.size
    assert (process.n_basis < 80) == (epsilon > 0)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n", [1, 2, 40])
@pytest.mark.parametrize("kind", ALL)
def test_no_latent_values_are_better(kind, n, weights):
    p = make(kind, n, weights, mean=True)
    s = mode.solve(p)
    assert s.status == "converged" and s.log_joint is None
    np.testing.assert_allclose(s.latent, p.mean + p.kernel(p.X) @ s.alpha, atol=1e-12)
    assert s.log_posterior == pytest.approx(value(p, s.latent), rel=1e-9, abs=1e-9)
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(p.kernel(p.X))
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            assert value(p, s.latent + size * L @ rng.normal(size=n)) < s.log_posterior


def test_one_row_in_closed_form():
    kernel, y = 2.0 * RBF(), np.array([3.0])
    for likelihood, wanted in (
        (Laplace(0.5), 3.0),  # 3 / 2 is within [-2, 2]
        (Laplace(1.0), 2.0),
        (EpsilonInsensitive(0.4, 0.5), 2.6),
        (EpsilonInsensitive(4.0, 0.5), 0.0),
        (Huber(1.0, threshold=5.0), 3.0 * 2.0 / 3.0),
        (Huber(1.0, threshold=0.5), 1.0),
    ):
        p = LatentProblem(kernel, np.zeros((1, 1)), y, likelihood, np.zeros(1))
        np.testing.assert_allclose(mode.solve(p).latent, wanted, atol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_huber_by_newton(weights):
    """Its loss is smooth enough for the other method."""
    p = make("huber", 60, weights, mean=True)
    np.testing.assert_allclose(mode.solve(p).latent, laplace.solve(p).latent, atol=1e-9)


@pytest.mark.parametrize("kind", SMOOTH)
def test_smooth_noise_is_that_of_laplaces_method(kind):
    p = make(kind, mean=True)
    a, b = mode.solve(p), laplace.solve(p)
    np.testing.assert_array_equal(a.alpha, b.alpha)
    assert a.gap is None
    X = np.random.default_rng(3).normal(size=(6, 2))
    ours, theirs = (engine.posterior(p, means.Zero())[0] for engine in (mode, laplace))
    np.testing.assert_array_equal(ours.mean(X), theirs.mean(X))
    np.testing.assert_array_equal(ours.cov(X), theirs.cov(X))


@pytest.mark.parametrize("kind", KINKED)
def test_gap(kind):
    """It bounds what is missing, at any tolerance."""
    p = make(kind, 120, kernel=3.0 * RBF(0.9))
    best = mode.solve(p)
    assert best.gap <= 1e-10
    for tolerance in (0.5, 1e-1, 1e-2):
        s = mode.solve(p, tolerance=tolerance)
        assert best.log_posterior - s.log_posterior <= s.gap + 1e-9


@pytest.mark.parametrize("kind", ALL)
def test_weight_2_is_the_row_twice(kind):
    p = make(kind, 15, mean=True)
    w = np.ones(15)
    w[[2, 7]] = 2.0, 3.0
    rows = np.repeat(np.arange(15), w.astype(int))
    twice = replace(p, X=p.X[rows], y=p.y[rows], mean=p.mean[rows])
    a, b = mode.solve(replace(p, weights=w)), mode.solve(twice)
    assert a.log_posterior == pytest.approx(b.log_posterior, rel=1e-9)
    np.testing.assert_allclose(a.latent[rows], b.latent, atol=1e-7)
    X = np.random.default_rng(3).normal(size=(6, 2))
    first, second = (mode.posterior(q, means.Zero())[0] for q in (replace(p, weights=w), twice))
    np.testing.assert_allclose(first.mean(X), second.mean(X), atol=1e-7)
    np.testing.assert_allclose(first.var(X), second.var(X), atol=1e-7)
    without = np.flatnonzero(np.arange(15) != 4)
    w = np.ones(15)
    w[4] = 0.0
    fewer = replace(p, X=p.X[without], y=p.y[without], mean=p.mean[without])
    zero = mode.solve(replace(p, weights=w))
    assert zero.log_posterior == pytest.approx(mode.solve(fewer).log_posterior, rel=1e-9)


@pytest.mark.parametrize("kind", KINKED)
def test_units(kind):
    """y and f in other units: alpha goes with their inverse, log p loses a constant."""
    p, u = make(kind, mean=True), 1e3
    theta = p.likelihood.theta + np.log(u)
    if kind == "huber":
        theta[1] -= np.log(u)
    q = replace(
        p,
        kernel=u**2 * p.kernel,
        y=u * p.y,
        mean=u * p.mean,
        likelihood=p.likelihood.with_theta(theta),
    )
    a, b = mode.solve(p), mode.solve(q)
    np.testing.assert_allclose(b.latent, u * a.latent, rtol=1e-9)
    np.testing.assert_allclose(u * b.alpha, a.alpha, atol=1e-9)
    assert b.log_posterior == pytest.approx(a.log_posterior - p.n * np.log(u), rel=1e-10)


def test_smooth_kernels_and_rows_that_repeat():
    p = make("insensitive", 60, kernel=RBF(2.0))
    X = np.concatenate([p.X, p.X[:20]])
    y = np.concatenate([p.y, p.y[:20] + 0.5])
    for likelihood in KINKED.values():
        q = LatentProblem(p.kernel, X, y, likelihood, np.zeros(80))
        process, s = mode.posterior(q, means.Zero())
        assert s.status == "converged" and s.jitter == 0.0
        np.testing.assert_allclose(process.mean(X)[:, 0], s.latent, atol=1e-9)
        assert np.all(process.var(X) >= 0)
        # a kink holds its row, in both places where it is
        if not isinstance(likelihood, Huber):
            assert np.all(process.var(X[s.inside]) < 1e-7)


@pytest.mark.parametrize("kind", ALL)
def test_warm_start(kind):
    p = make(kind, 50)
    cold = mode.solve(p)
    warm = mode.solve(p, cold.state)
    np.testing.assert_allclose(warm.latent, cold.latent, atol=1e-9)
    assert warm.n_factorisations <= min(2, cold.n_factorisations)
    for start in (np.zeros(3), np.full(50, np.nan)):
        np.testing.assert_allclose(mode.solve(p, start).latent, cold.latent, atol=1e-9)


# --- the posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINKED)
def test_posterior_by_dense_formulas(kind, weights):
    p = make(kind, 30, weights, mean=True)
    mean = means.Function(lambda X: 0.4 * np.cos(X[:, 0]))
    process, s = mode.posterior(p, mean)
    X = np.random.default_rng(3).normal(size=(6, 2))
    rows = np.flatnonzero(s.inside)
    w = np.ones(30) if p.weights is None else p.weights
    d = 0.3**2 / w[rows] if kind == "huber" else np.zeros(rows.size)
    Kf = p.kernel(X, p.X[rows])
    middle = np.linalg.inv(p.kernel(p.X[rows]) + np.diag(d))
    np.testing.assert_allclose(
        process.mean(X)[:, 0], mean(X)[:, 0] + p.kernel(X, p.X) @ s.alpha, atol=1e-11
    )
    np.testing.assert_allclose(process.cov(X)[..., 0], p.kernel(X) - Kf @ middle @ Kf.T, atol=1e-10)
    np.testing.assert_allclose(process.mean(p.X)[:, 0], s.latent, atol=1e-11)
    if kind == "huber":
        inside = np.abs(p.y - s.latent) < 1.2 * 0.3
        np.testing.assert_array_equal(s.inside, inside)
    else:
        edge = p.likelihood.epsilon if kind == "insensitive" else 0.0
        np.testing.assert_allclose(np.abs(p.y - s.latent)[rows], edge, atol=1e-10)


def test_wide_huber_is_gaussian_noise():
    p = make("huber", 20, weights=True)
    p = replace(p, likelihood=Huber(0.3, threshold=1e4))
    variances = Gaussian(0.09).variances(20, p.weights)
    other, _ = exact.posterior(
        exact.ExactProblem(p.kernel, p.X, p.y[:, None], variances), means.Zero(), np.ones(1)
    )
    process, _ = mode.posterior(p, means.Zero())
    X = np.random.default_rng(3).normal(size=(6, 2))
    np.testing.assert_allclose(process.mean(X), other.mean(X), atol=1e-10)
    np.testing.assert_allclose(process.cov(X), other.cov(X), atol=1e-10)


def test_nothing_outside_the_zone_is_the_prior():
    p = replace(make("insensitive"), likelihood=EpsilonInsensitive(1e3, 1.0))
    process, s = mode.posterior(p, means.Constant(2.0, estimate=None))
    X = np.random.default_rng(3).normal(size=(6, 2))
    assert process.n_basis == 0 and not s.inside.any() and s.gap == 0.0
    np.testing.assert_array_equal(process.mean(X), 2.0)
    np.testing.assert_allclose(process.cov(X)[..., 0], p.kernel(X))


def test_all_rows_at_the_faces_leave_the_variance_alone():
    """A constant that every row pulls upwards has no kink to come to rest at."""
    X = np.zeros((5, 1))
    p = LatentProblem(RBF(), X, np.full(5, 100.0), Laplace(1.0), np.zeros(5))
    process, s = mode.posterior(p, means.Zero())
    np.testing.assert_allclose(s.latent, 5.0)
    np.testing.assert_allclose(process.var(X), 1.0)


# --- the joint density and its adjoints -------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_joint_density(kind):
    p = make(kind, weights=True, mean=True)
    s, adjoints = mode.evidence(p)
    prior = multivariate_normal(p.mean, p.kernel(p.X))
    wanted = np.sum(p.weights * p.likelihood.log_density(p.y, s.latent)) + prior.logpdf(s.latent)
    assert s.log_joint == pytest.approx(wanted, rel=1e-9)
    np.testing.assert_array_equal(adjoints.mean, s.alpha)
    at, beside = mode.joint(p, s.latent)
    assert at == pytest.approx(wanted, rel=1e-9)
    np.testing.assert_allclose(np.tril(beside.K), np.tril(adjoints.K), atol=1e-7)
    f = np.random.default_rng(0).normal(size=p.n)
    wanted = np.sum(p.weights * p.likelihood.log_density(p.y, f)) + prior.logpdf(f)
    assert mode.joint(p, f)[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_adjoints_of_the_mode_by_differences(kind):
    p = make(kind, 12, weights=True, mean=True)
    _, adjoints = mode.evidence(p)
    K = p.kernel(p.X)
    wanted = gram_adjoint_by_differences(lambda K: mode.evidence(with_gram(p, K))[0].log_joint, K)
    scale = np.max(np.abs(wanted))
    ours = adjoints.factor * np.tril(adjoints.K)
    np.testing.assert_allclose(ours, wanted, atol=1e-6 * scale)
    for name, own in (("mean", adjoints.mean), ("likelihood", adjoints.likelihood)):
        at = p.mean if name == "mean" else p.likelihood.theta

        def to(x, name=name):
            return moved(p, **{name: x if name == "mean" else p.likelihood.with_theta(x)})

        steps = 1e-5 * np.eye(at.size)
        slopes = [(to(at + e) - to(at - e)) / 2e-5 for e in steps]
        np.testing.assert_allclose(own, slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["laplace", "huber", "student"])
def test_adjoints_at_fixed_values_by_differences(kind):
    p = make(kind, 10, weights=True, mean=True)
    f = p.y + 0.1 * np.cos(np.arange(10))
    _, adjoints = mode.joint(p, f)
    wanted = gram_adjoint_by_differences(lambda K: mode.joint(with_gram(p, K), f)[0], p.kernel(p.X))
    ours = adjoints.factor * np.tril(adjoints.K)
    np.testing.assert_allclose(ours, wanted, atol=1e-6 * np.max(np.abs(wanted)))
    slopes = [
        (
            mode.joint(replace(p, mean=p.mean + e), f)[0]
            - mode.joint(replace(p, mean=p.mean - e), f)[0]
        )
        / 2e-5
        for e in 1e-5 * np.eye(10)
    ]
    np.testing.assert_allclose(adjoints.mean, slopes, rtol=1e-5, atol=1e-6)
    theta = p.likelihood.theta
    slopes = [
        (
            mode.joint(replace(p, likelihood=p.likelihood.with_theta(theta + e)), f)[0]
            - mode.joint(replace(p, likelihood=p.likelihood.with_theta(theta - e)), f)[0]
        )
        / 2e-5
        for e in 1e-5 * np.eye(theta.size)
    ]
    np.testing.assert_allclose(adjoints.likelihood, slopes, rtol=1e-6, atol=1e-6)


def test_singular_prior():
    """The mode needs no inverse; the joint density says what it was given, or refuses."""
    p = make("laplace", 60, kernel=RBF(3.0))
    assert mode.solve(p).jitter == 0.0
    s, _ = mode.evidence(p)
    assert 0 < s.jitter <= 1e-6
    K = p.kernel(p.X) + s.jitter * np.eye(60)
    np.testing.assert_allclose(s.latent, K @ s.alpha, atol=1e-9)
    normaliser = 0.5 * np.linalg.slogdet(2.0 * np.pi * K)[1]
    wanted = np.sum(p.likelihood.log_density(p.y, s.latent)) - 0.5 * s.alpha @ K @ s.alpha
    assert s.log_joint == pytest.approx(wanted - normaliser, rel=1e-6)
    held = replace(p, jitter=s.jitter)
    assert moved(held) == pytest.approx(s.log_joint, rel=1e-9)
    with pytest.raises(NotPositiveDefiniteError, match="singular to rounding"):
        mode.evidence(replace(p, jitter=0.0))
    with pytest.raises(NotPositiveDefiniteError, match="length scale is too long"):
        mode.joint(replace(p, kernel=Linear(), jitter=1e-12), np.zeros(60))


# --- what is refused, and purity --------------------------------------------------------------


def test_refusals():
    p = make("laplace")
    blunt = Custom(lambda y, f: -np.abs(y - f), twice_differentiable=False)
    with pytest.raises(ValueError, match=r"Custom|derivatives"):
        mode.solve(replace(p, likelihood=blunt))
    for likelihood in (Laplace(), EpsilonInsensitive(), Huber()):
        with pytest.raises(ValueError, match="not chosen yet"):
            mode.solve(replace(p, likelihood=likelihood))
    K = p.kernel(p.X)
    for kind in KINKED:
        with pytest.raises(NotPositiveDefiniteError):
            mode.solve(with_gram(make(kind), K - 5.0 * np.eye(len(K))))


def test_counts_are_taken():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    p = LatentProblem(RBF(), X, rng.poisson(2.0, 30).astype(float), Poisson(), np.zeros(30))
    np.testing.assert_array_equal(mode.solve(p).latent, laplace.solve(p).latent)


@pytest.mark.parametrize("kind", ALL)
def test_purity(kind):
    p = make(kind, weights=True, mean=True)
    for array in (p.X, p.y, p.mean, p.weights):
        array.setflags(write=False)
    first, second = mode.evidence(p), mode.evidence(p)
    assert first[0].log_joint == second[0].log_joint
    np.testing.assert_array_equal(first[0].alpha, second[0].alpha)
    order = np.random.default_rng(1).permutation(p.n)
    q = replace(p, X=p.X[order], y=p.y[order], mean=p.mean[order], weights=p.weights[order])
    np.testing.assert_allclose(mode.solve(q).latent, first[0].latent[order], atol=1e-9)
