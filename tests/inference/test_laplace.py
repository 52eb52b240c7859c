"""Laplace's method against exact inference, dense formulas, differences, and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk

from mercer import means
from mercer.inference import LatentProblem, exact, laplace
from mercer.inference import leave_one_out as exact_leave_one_out
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Huber, Logistic, Poisson, Probit, StudentT

from .laplace_cases import KINDS, dense_parts, value_of
from .latent import gram_adjoint_by_differences, make, with_gram

# --- Gaussian noise ---------------------------------------------------------------------------


def gaussian(weights=False, mean=False, noise=0.3):
    p = replace(make("student", n=20, weights=weights, mean=mean), likelihood=Gaussian(noise))
    variances = p.likelihood.variances(p.n, p.weights)
    return p, exact.ExactProblem(p.kernel, p.X, (p.y - p.mean)[:, None], variances)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_gaussian_noise_is_exact(weights, mean):
    p, e = gaussian(weights, mean)
    solution, adjoints = laplace.evidence(p)
    wanted, wanted_adjoints = exact.evidence(e)
    constant = p.likelihood.weight_constant(p.n, p.weights)
    assert solution.log_evidence == pytest.approx(wanted.log_evidence + constant, rel=1e-11)
    assert solution.status == "converged" and solution.jitter == 0.0
    assert solution.n_factorisations == 1
    np.testing.assert_allclose(solution.alpha, wanted.alpha[:, 0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        adjoints.factor * np.tril(adjoints.K),
        wanted_adjoints.factor * np.tril(wanted_adjoints.K),
        rtol=1e-8,
        atol=1e-9,
    )
    np.testing.assert_allclose(adjoints.mean, wanted_adjoints.mean[:, 0], rtol=1e-8, atol=1e-10)
    wanted_noise = p.likelihood.pull_variances(wanted_adjoints.noise, p.weights)
    if p.weights is not None:
        wanted_noise = wanted_noise + p.likelihood.weight_constant_gradient(p.n, p.weights)
    np.testing.assert_allclose(adjoints.likelihood, wanted_noise, rtol=1e-8)
    X = np.random.default_rng(3).normal(size=(6, 2))
    process, _ = laplace.posterior(p, means.Zero())
    other, _ = exact.posterior(e, means.Zero(), np.ones(1))
    np.testing.assert_allclose(process.mean(X), other.mean(X), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(process.cov(X), other.cov(X), atol=1e-10)


def test_known_variances_a_row():
    rng = np.random.default_rng(0)
    s = rng.uniform(0.1, 2.0, 20)
    p, e = gaussian(noise=s)
    assert laplace.solve(p).log_evidence == pytest.approx(exact.solve(e).log_evidence, rel=1e-11)
    _, left = laplace.leave_one_out(p)
    _, wanted = exact_leave_one_out(e)
    np.testing.assert_allclose(left.variance + s, wanted.variance, rtol=1e-9)


@pytest.mark.parametrize("mean", [False, True])
def test_leave_one_out_of_gaussian_noise_is_exact(mean):
    p, e = gaussian(mean=mean)
    _, left = laplace.leave_one_out(p)
    _, wanted = exact_leave_one_out(e)
    np.testing.assert_allclose(p.y - left.mean, wanted.residual[:, 0], rtol=1e-8)
    np.testing.assert_allclose(left.variance + 0.3, wanted.variance, rtol=1e-9)
    density = -0.5 * (wanted.residual[:, 0] ** 2 / wanted.variance)
    density -= 0.5 * np.log(2 * np.pi * wanted.variance)
    np.testing.assert_allclose(left.log_density, density, rtol=1e-9)


# --- the mode and the evidence ----------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n", [1, 2, 25, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_mode_and_evidence_by_dense_formulas(kind, n, weights):
    p = make(kind, n, weights=weights, mean=True)
    s = laplace.solve(p)
    g, W, K, _, _ = dense_parts(p, s.latent)
    assert s.status == "converged"
    np.testing.assert_allclose(s.latent, p.mean + K @ s.alpha, atol=1e-11)
    np.testing.assert_allclose(s.alpha, g, atol=1e-9)
    value = p.log_likelihood(s.latent) - 0.5 * g @ K @ g
    value -= 0.5 * np.linalg.slogdet(np.eye(n) + K * W)[1]
    assert s.log_evidence == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_mode_is_that_of_a_general_optimiser(kind):
    p = make(kind, n=12)
    K = p.kernel(p.X)

    def minus(alpha):
        f = K @ alpha
        g = p.derivatives(f)[0]
        return 0.5 * alpha @ f - p.log_likelihood(f), K @ (alpha - g)

    solution = laplace.solve(p)
    start = np.zeros(12) if kind != "student" else 0.9 * solution.alpha
    found = minimize(minus, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(solution.latent, K @ found.x, atol=1e-5)


def test_evidence_of_one_row_against_quadrature():
    """Laplace's method is close where the posterior is nearly Gaussian, and not exact."""
    p = make("logistic", n=1, kernel=RBF())
    f = np.linspace(-12, 12, 4001)
    integrand = np.exp(p.likelihood.log_density(p.y[0], f) - 0.5 * f**2) / np.sqrt(2 * np.pi)
    exactly = np.log(np.sum(integrand) * (f[1] - f[0]))
    assert laplace.solve(p).log_evidence == pytest.approx(exactly, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_2_is_the_row_twice(kind):
    p = make(kind, n=15, mean=True)
    w = np.ones(15)
    w[[2, 7]] = 2.0, 3.0
    rows = np.repeat(np.arange(15), w.astype(int))
    twice = replace(p, X=p.X[rows], y=p.y[rows], mean=p.mean[rows])
    a, b = laplace.evidence(replace(p, weights=w)), laplace.evidence(twice)
    assert a[0].log_evidence == pytest.approx(b[0].log_evidence, rel=1e-9)
    np.testing.assert_allclose(a[0].latent[rows], b[0].latent, atol=1e-8)
    np.testing.assert_allclose(a[1].likelihood, b[1].likelihood, rtol=1e-6)
    without = np.flatnonzero(np.arange(15) != 4)
    w = np.ones(15)
    w[4] = 0.0
    fewer = replace(p, X=p.X[without], y=p.y[without], mean=p.mean[without])
    zero = laplace.solve(replace(p, weights=w))
    assert zero.log_evidence == pytest.approx(laplace.solve(fewer).log_evidence, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows(kind):
    p = make(kind, n=40)
    order = np.random.default_rng(1).permutation(40)
    moved = replace(p, X=p.X[order], y=p.y[order], mean=p.mean[order])
    a, b = laplace.solve(p), laplace.solve(moved)
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-10)
    np.testing.assert_allclose(a.latent[order], b.latent, atol=1e-8)


@pytest.mark.parametrize("variance", [0.5, 4.0, 400.0])
def test_scikit_learn_agrees(variance):
    """Its mode stops when the evidence moves by 1e-10, its evidence is that of its mode."""
    p = make("logistic", n=60, kernel=variance * RBF(0.9))
    model = GaussianProcessClassifier(
        sk.ConstantKernel(variance) * sk.RBF(0.9), optimizer=None, max_iter_predict=200
    ).fit(p.X, p.y > 0)
    base = model.base_estimator_
    value, gradient = base.log_marginal_likelihood(base.kernel_.theta, eval_gradient=True)
    solution, adjoints = laplace.evidence(p)
    assert solution.log_evidence == pytest.approx(value, rel=1e-7)
    pulled = adjoints.factor * p.kernel.pullback(p.X, None, adjoints.K, inputs=False).theta
    np.testing.assert_allclose(pulled, gradient, rtol=1e-4, atol=1e-5)
    process, _ = laplace.posterior(p, means.Zero())
    X = np.random.default_rng(5).normal(size=(9, 2))
    mean, var = process.mean(X)[:, 0], process.var(X)[:, 0]
    np.testing.assert_array_equal(mean > 0, model.predict(X))
    K = p.kernel(p.X)
    np.testing.assert_allclose(K @ (base.y_train_ - base.pi_), solution.latent, rtol=1e-4)
    v = np.linalg.solve(base.L_, base.W_sr_[:, None] * p.kernel(p.X, X))
    np.testing.assert_allclose(var, variance - np.sum(v**2, axis=0), rtol=1e-4)


# --- adjoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_adjoints_by_differences(kind, weights):
    p = make(kind, n=8, weights=weights, mean=True, seed=3, outliers=2)
    K = p.kernel(p.X)
    given_K = with_gram(p, K)
    solution, adjoints = laplace.evidence(given_K)
    if kind == "student":
        assert np.any(solution.sites.precision < 0) and np.any(solution.sites.precision > 0)
    wanted = gram_adjoint_by_differences(lambda M: value_of(with_gram(p, M)), K)
    np.testing.assert_allclose(adjoints.factor * np.tril(adjoints.K), wanted, rtol=1e-5, atol=1e-7)
    step = 1e-5
    for i in range(8):
        e = step * np.eye(8)[i]
        rise = value_of(replace(p, mean=p.mean + e)) - value_of(replace(p, mean=p.mean - e))
        assert adjoints.mean[i] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-8)
    theta = p.likelihood.theta
    assert adjoints.likelihood.shape == theta.shape
    for j in range(theta.size):
        e = step * np.eye(theta.size)[j]
        rise = value_of(replace(p, likelihood=p.likelihood.with_theta(theta + e)))
        rise -= value_of(replace(p, likelihood=p.likelihood.with_theta(theta - e)))
        assert adjoints.likelihood[j] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_adjoints_reach_the_kernel(kind):
    p = make(kind, n=40, weights=True)
    _, adjoints = laplace.evidence(p)
    got = adjoints.factor * p.kernel.pullback(p.X, None, adjoints.K, inputs=False).theta
    theta, step = p.kernel.theta, 1e-5
    for j in range(theta.size):
        e = step * np.eye(theta.size)[j]
        rise = value_of(replace(p, kernel=p.kernel.with_theta(theta + e)))
        rise -= value_of(replace(p, kernel=p.kernel.with_theta(theta - e)))
        assert got[j] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("kind", "likelihood"),
    [
        ("logistic", Logistic()),
        ("logistic", Probit()),
        ("logistic", Probit(0.3)),
        ("poisson", Poisson()),
        ("student", StudentT(3.0, 0.4)),
        ("student", Huber(0.5, 0.7)),
        ("student", Gaussian(0.3)),
    ],
    ids=repr,
)
def test_adjoints_of_every_likelihood(kind, likelihood, weights):
    p = replace(make(kind, n=25, weights=weights, mean=True), likelihood=likelihood)
    solution, adjoints = laplace.evidence(p)
    assert solution.status == "converged"
    step = 1e-6 if isinstance(likelihood, Huber) else 1e-5  # no row may pass the kink
    pulled = adjoints.factor * p.kernel.pullback(p.X, None, adjoints.K, inputs=False).theta
    for theta, got, part in (
        (p.kernel.theta, pulled, "kernel"),
        (likelihood.theta, adjoints.likelihood, "likelihood"),
    ):
        assert got.shape == theta.shape
        for j in range(theta.size):
            e = step * np.eye(theta.size)[j]
            moved = [
                value_of(replace(p, **{part: getattr(p, part).with_theta(theta + s)}))
                for s in (e, -e)
            ]
            slope = (moved[0] - moved[1]) / (2 * step)
            assert got[j] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "likelihood"),
    [("logistic", Logistic()), ("poisson", Poisson()), ("student", StudentT(4.0, 0.5))],
    ids=repr,
)
def test_likelihoods_are_those_of_the_textbook(kind, likelihood):
    p = make(kind, n=30, weights=True, mean=True)
    a, b = laplace.evidence(p), laplace.evidence(replace(p, likelihood=likelihood))
    assert a[0].log_evidence == pytest.approx(b[0].log_evidence, rel=1e-10)
    np.testing.assert_allclose(a[0].latent, b[0].latent, atol=1e-9)
    np.testing.assert_allclose(a[1].likelihood, b[1].likelihood, rtol=1e-6)


# --- the posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_posterior_by_dense_formulas(kind):
    p = make(kind, n=30, weights=True, mean=False)
    mean = means.Constant(0.7, estimate=None)
    p = replace(p, mean=np.full(30, 0.7))
    process, solution = laplace.posterior(p, mean)
    g, W, _, Sigma, R = dense_parts(p, solution.latent)
    if kind == "student":
        assert np.any(W < 0) and np.any(W > 0)
    X = np.vstack([np.random.default_rng(5).normal(size=(8, 2)), p.X[:3], 100 + p.X[:1]])
    k = p.kernel(X, p.X)
    cov = p.kernel(X) - k @ R @ k.T
    np.testing.assert_allclose(process.mean(X)[:, 0], 0.7 + k @ g, atol=1e-9)
    np.testing.assert_allclose(process.cov(X)[:, :, 0], cov, atol=1e-9)
    np.testing.assert_allclose(process.var(X)[:, 0], np.diag(cov), atol=1e-9)
    np.testing.assert_allclose(process.var(p.X)[:, 0], np.diag(Sigma), atol=1e-9)
    np.testing.assert_allclose(process.mean(p.X)[:, 0], solution.latent, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_takes_the_rows_site_away(kind):
    p = make(kind, n=30, mean=True)
    solution, left = laplace.leave_one_out(p)
    g, W, K, _, _ = dense_parts(p, solution.latent)
    # sites N(f_i; z_i, 1/W_i) with z = f + g/W: a Gaussian problem without row i
    for i in (0, 5, 29):
        others = np.arange(30) != i
        B = np.eye(29) + K[np.ix_(others, others)] * W[others]
        gain = K[i, others] @ (W[others, None] * np.linalg.inv(B))
        target = (solution.latent + g / W - p.mean)[others]
        assert left.mean[i] == pytest.approx(p.mean[i] + gain @ target, abs=1e-8)
        assert left.variance[i] == pytest.approx(K[i, i] - gain @ K[others, i], rel=1e-8)
    again = p.likelihood.log_predictive(p.y, left.mean, left.variance)
    np.testing.assert_allclose(left.log_density, again)


def test_leave_one_out_under_large_weights():
    """The slope at the mode is a small difference there, times the weights."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    X[4] = X[5]
    problem = LatentProblem(RBF(0.2), X, y, Gaussian(0.01), np.zeros(20), np.full(20, 1e6))
    left = laplace.leave_one_out(problem)[1]
    R = np.linalg.inv(problem.kernel(X) + 1e-8 * np.eye(20))
    deviations = (left.mean - (y - R @ y / np.diag(R))) * np.sqrt(np.diag(R))
    np.testing.assert_allclose(deviations, 0.0, atol=1e-3)


def test_leave_one_out_is_close_to_leaving_out():
    p = make("logistic", n=40)
    _, left = laplace.leave_one_out(p)
    for i in range(0, 40, 7):
        others = np.arange(40) != i
        fewer = replace(p, X=p.X[others], y=p.y[others], mean=p.mean[others])
        process, _ = laplace.posterior(fewer, means.Zero())
        m, v = process.mean_and_var(p.X[[i]])
        direct = p.likelihood.log_predictive(p.y[i], m[0, 0], v[0, 0])
        assert left.log_density[i] == pytest.approx(direct, abs=0.02)


@pytest.mark.parametrize("mean", [-80.0, 20.0, 80.0])
def test_counts_far_from_the_prior_mean(mean):
    """The likelihood there is so far off that steps from it are lost in rounding."""
    X = np.linspace(0.0, 5.0, 30)[:, None]
    y = np.round(np.exp(1.0 + np.sin(X[:, 0])))
    problem = LatentProblem(1.0 * RBF(1.0), X, y, Poisson(), np.full(30, mean))
    solution = laplace.solve(problem)
    g = problem.derivatives(solution.latent)[0]
    np.testing.assert_allclose(solution.alpha, g, rtol=1e-6, atol=1e-6 * np.max(np.abs(g)))
    assert solution.status == "converged" and solution.log_evidence > -1e4
