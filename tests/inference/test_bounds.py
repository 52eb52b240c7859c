"""The logistic bounds of (BKM 76, 77), on the function and on the evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mercer import means
from mercer.inference import bounds, variational
from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Logistic, Probit

from .integrals import log_evidence
from .latent import gram_adjoint_by_differences, with_gram

T = np.linspace(-30.0, 30.0, 4001)
LOG_LOGISTIC = -np.logaddexp(0.0, -T)


def make(n=12, seed=0, weights=False, mean=False, variance=1.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(1.5 * np.sin(1.5 * X[:, 0]) + rng.logistic(size=n) > 0, 1.0, -1.0)
    m = 0.4 * np.cos(X[:, 0]) if mean else np.zeros(n)
    w = rng.uniform(0.3, 2.5, n) if weights else None
    return LatentProblem(variance * RBF([0.8, 1.5]), X, y, Logistic(), m, w)


def lower_of(problem, start=None):
    solution = bounds.solve(problem, start)
    assert solution.status == "converged"
    return solution.log_evidence


def upper_of(problem):
    upper = bounds.upper_bound(problem)
    assert upper.status == "converged"
    return upper.log_evidence


# --- the function -----------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.0, 1e-6, 9e-4, 1.1e-3, 0.04, 0.06, 0.5, 1.0, 3.0, 20.0, 600.0])
def test_lower_bound_of_the_function(nu):
    """(BKM 76) for any nu, as printed; tight at +-nu."""
    for sign in (1.0, -1.0):
        got = bounds.log_lower(T, sign * nu)
        assert np.all(got <= LOG_LOGISTIC + 1e-12)
        tight = bounds.log_lower([nu, -nu], sign * nu)
        np.testing.assert_allclose(tight, -np.logaddexp(0, [-nu, nu]), rtol=1e-12, atol=1e-14)
    if 0.01 < nu < 30:
        slope = (1 / (1 + np.exp(-nu)) - 0.5) / (2 * nu)
        printed = 1 / (1 + np.exp(-nu)) * np.exp((T - nu) / 2 - slope * (T**2 - nu**2))
        np.testing.assert_allclose(np.exp(got), printed, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("mu", [0.0, 1e-9, 0.1, 0.5, 0.8, 1.0])
def test_upper_bound_of_the_function(mu):
    """(BKM 77) for mu in [0, 1], tight at ln((1 - mu)/mu)."""
    got = bounds.log_upper(T, mu)
    assert np.all(got >= LOG_LOGISTIC - 1e-12)
    if 0 < mu < 1:
        t = np.log((1 - mu) / mu)
        assert bounds.log_upper(t, mu) == pytest.approx(-np.logaddexp(0, -t), rel=1e-9)
        entropy = -mu * np.log(mu) - (1 - mu) * np.log(1 - mu)
        np.testing.assert_allclose(got, mu * T - entropy, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mu", [-0.1, 1.1, np.nan])
def test_mu_out_of_range(mu):
    with pytest.raises(ValueError, match="mu must be between 0 and 1"):
        bounds.log_upper(0.0, mu)


# --- the evidence -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("variance", [0.3, 1.7, 25.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_evidence_is_between(n, variance, seed):
    """Lower bound <= that of variational inference <= evidence <= upper bound."""
    p = make(n, seed, weights=True, mean=True, variance=variance)
    lower, exact, upper = lower_of(p), log_evidence(p), upper_of(p)
    best = variational.solve(p).log_evidence
    assert lower <= best + 1e-10
    assert best <= exact + 1e-7
    assert exact <= upper + 1e-7
    assert lower >= exact - 0.5 * n  # not just any bound


@pytest.mark.parametrize("seed", range(5))
def test_order_of_the_bounds_of_many_rows(seed):
    p = make(40, seed, mean=True)
    assert lower_of(p) < variational.solve(p).log_evidence < upper_of(p) <= 0


def lower_at(p, nu):
    """The integral of (BKM 76) for given nu, times the prior, in closed form."""
    w = np.ones(p.n) if p.weights is None else p.weights
    slope = w * (1 / (1 + np.exp(-nu)) - 0.5) / (2 * nu)
    K = p.kernel(p.X)
    S, xi = np.diag(2 * slope), w * p.y / 2
    inverse = np.linalg.inv(K)
    Sigma = np.linalg.inv(inverse + S)
    b = inverse @ p.mean + xi
    value = np.sum(w * (-np.logaddexp(0, -nu) - nu / 2) + slope * nu**2)
    value += 0.5 * b @ Sigma @ b - 0.5 * p.mean @ inverse @ p.mean
    return value - 0.5 * np.linalg.slogdet(np.eye(p.n) + K @ S)[1]


@pytest.mark.parametrize("weights", [False, True])
def test_lower_bound_is_tightest(weights):
    p = make(4, weights=weights, mean=True)
    s = bounds.solve(p)
    nu = np.sqrt(s.latent**2 + s.variance)
    assert s.log_evidence == pytest.approx(lower_at(p, nu), rel=1e-10)
    best = minimize(lambda x: -lower_at(p, np.exp(x)), np.zeros(4), method="BFGS", tol=1e-9)
    assert s.log_evidence == pytest.approx(-best.fun, abs=1e-9)
    np.testing.assert_allclose(nu, np.exp(best.x), rtol=1e-4)


def upper_at(p, mu):
    """The integral of (BKM 77) for given mu, times the prior, in closed form."""
    w = np.ones(p.n) if p.weights is None else p.weights
    a = w * p.y * mu
    entropy = -mu * np.log(mu) - (1 - mu) * np.log(1 - mu)
    return a @ p.mean + 0.5 * a @ p.kernel(p.X) @ a - np.sum(w * entropy)


@pytest.mark.parametrize("weights", [False, True])
def test_upper_bound_is_tightest(weights):
    p = make(4, weights=weights, mean=True)
    upper = bounds.upper_bound(p)
    assert upper.log_evidence == pytest.approx(upper_at(p, upper.mu), rel=1e-12)
    assert 0 <= upper.gap < 1e-9
    assert np.all((upper.mu > 0) & (upper.mu < 1))
    best = minimize(
        lambda x: upper_at(p, 1 / (1 + np.exp(-x))), np.zeros(4), method="BFGS", tol=1e-9
    )
    assert upper.log_evidence == pytest.approx(best.fun, abs=1e-9)
    np.testing.assert_allclose(upper.mu, 1 / (1 + np.exp(-best.x)), rtol=1e-4)


def test_one_row_in_closed_form():
    """Without spread both bounds are the logistic function itself."""
    X = np.zeros((1, 1))
    for m, y in ((0.0, 1.0), (2.0, -1.0), (-3.0, -1.0)):
        p = LatentProblem(1e-10 * RBF(1.0), X, np.array([y]), Logistic(), np.array([m]))
        wanted = -np.logaddexp(0, -y * m)
        assert lower_of(p) == pytest.approx(wanted, abs=1e-9)
        assert upper_of(p) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e3, 1e6])
def test_the_bound_never_falls(variance):
    s = bounds.solve(make(30, variance=variance))
    steps = np.diff(s.bounds)
    assert s.status == "converged" and s.n_iterations <= 15
    assert np.all(steps >= -1e-11 * (1 + abs(s.log_evidence)))


# --- the engine -------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
def test_adjoints_by_differences(weights):
    p = make(6, weights=weights, mean=True, seed=3)
    K = p.kernel(p.X)
    _, adjoints = bounds.evidence(with_gram(p, K))
    wanted = gram_adjoint_by_differences(lambda M: lower_of(with_gram(p, M)), K)
    np.testing.assert_allclose(adjoints.factor * np.tril(adjoints.K), wanted, rtol=1e-6, atol=1e-8)
    step = 1e-5
    for i in range(6):
        e = step * np.eye(6)[i]
        rise = lower_of(replace(p, mean=p.mean + e)) - lower_of(replace(p, mean=p.mean - e))
        assert adjoints.mean[i] == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)
    assert adjoints.likelihood.shape == (0,)


def test_weight_2_is_the_row_twice_and_weight_0_none():
    p = make(8, mean=True)
    weights = np.array([1.0, 2.0, 1.0, 0.0, 3.0, 1.0, 0.0, 1.0])
    rows = np.repeat(np.arange(8), weights.astype(int))
    weighted = replace(p, weights=weights)
    repeated = replace(p, X=p.X[rows], y=p.y[rows], mean=p.mean[rows])
    assert lower_of(weighted) == pytest.approx(lower_of(repeated), abs=1e-9)
    assert upper_of(weighted) == pytest.approx(upper_of(repeated), abs=1e-9)


def test_posterior_by_dense_formulas():
    p = replace(make(), mean=np.full(12, 0.7))
    process, s = bounds.posterior(p, means.Constant(0.7, estimate=None))
    nu = np.sqrt(s.latent**2 + s.variance)
    S = 2 * np.tanh(nu / 2) / (4 * nu)
    K = p.kernel(p.X)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(S))
    latent = 0.7 + Sigma @ (p.y / 2 - S * 0.7)
    np.testing.assert_allclose(s.latent, latent, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(process.mean(p.X)[:, 0], latent, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(process.cov(p.X)[:, :, 0], Sigma, rtol=1e-6, atol=1e-8)


def test_warm_starts():
    p = make(20)
    cold = bounds.solve(p)
    assert bounds.solve(p, cold.state).n_iterations == 0
    near = replace(p, kernel=1.72 * RBF([0.81, 1.5]))
    warm = bounds.solve(near, cold.state)
    assert warm.n_iterations <= bounds.solve(near).n_iterations
    assert warm.log_evidence == pytest.approx(lower_of(near), rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 15),
    seed=st.integers(0, 1000),
    size=st.floats(-8, 8),
    width=st.floats(-1.5, 1.5),
    repeated=st.booleans(),
    one_class=st.booleans(),
)
def test_any_kernel_gives_numbers(n, seed, size, width, repeated, one_class):
    p = replace(make(n, seed), kernel=10.0**size * RBF(10.0**width))
    if repeated:
        p = replace(p, X=np.repeat(p.X[:1], n, axis=0))
    if one_class:
        p = replace(p, y=np.ones(n))
    s, adjoints = bounds.evidence(p)
    upper = bounds.upper_bound(p)
    assert s.log_evidence <= upper.log_evidence + 1e-9 * n
    assert upper.log_evidence <= 1e-9 and upper.gap <= 1e-6
    assert np.all(s.variance > 0) and np.all(np.isfinite(np.tril(adjoints.K)))
    # the prior alone, with nu = 0, is a start that the best Gaussian can only improve on
    k = 10.0**size
    assert s.log_evidence >= n * (-np.log(2.0) - 0.5 * np.sqrt(k)) - 1e-9


@pytest.mark.parametrize("function", [bounds.solve, bounds.upper_bound])
def test_refused(function):
    for likelihood in (Gaussian(0.1), Probit()):
        with pytest.raises(ValueError, match=r"must be Logistic\(\), got (Gaussian|Probit)"):
            function(replace(make(), likelihood=likelihood))
    with pytest.raises(ValueError, match="labels must be -1 or 1, got 0"):
        function(replace(make(), y=np.zeros(12)))


@pytest.mark.parametrize("variance", [1e4, 1e8])
def test_an_upper_bound_with_a_gap_has_not_converged(variance):
    """Equal rows of both classes with weights of 1e6: rounding is all there is to go by."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(1, 2)), 20, axis=0)
    y, weights = rng.choice([-1.0, 1.0], 20), rng.choice([0.0, 2.0, 1e6], 20)
    p = LatentProblem(variance * RBF(1.0), X, y, Logistic(), np.zeros(20), weights)
    got = bounds.upper_bound(p)
    assert got.log_evidence <= 0
    assert (got.status == "converged") == (got.gap <= 1e-6 * (1 - got.log_evidence))
    if variance == 1e8:
        assert got.log_evidence == 0 and not np.any(got.mu) and got.status == "stopped"
