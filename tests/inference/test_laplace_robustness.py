"""Laplace's method from bad starts and on extreme problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import laplace
from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF, Linear
from mercer.likelihoods import EpsilonInsensitive, Laplace

from .laplace_cases import KINDS, dense_parts, value_of
from .latent import PlainLogistic, PlainPoisson, PlainStudentT, make, with_gram

# --- starts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_warm_starts(kind):
    p = make(kind, n=60)
    cold = laplace.solve(p)
    near = replace(p, kernel=p.kernel.with_theta(p.kernel.theta + 0.01))
    warm, there = laplace.solve(near, cold.state), laplace.solve(near)
    assert warm.log_evidence == pytest.approx(there.log_evidence, rel=1e-10)
    assert warm.n_iterations < there.n_iterations
    again = laplace.solve(p, cold.state)
    assert again.n_iterations == 1 and again.log_evidence == pytest.approx(
        cold.log_evidence, rel=1e-12
    )
    for bad in (np.full(60, np.nan), np.zeros(3), np.full(60, 1e200), np.full(60, -1e8)):
        if kind == "student" and bad.size == 60 and np.isfinite(bad[0]):
            continue  # it is followed, to whatever mode is there
        assert laplace.solve(p, bad).log_evidence == pytest.approx(cold.log_evidence, rel=1e-10)


@pytest.mark.parametrize("size", [0.1, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("seed", range(4))
def test_student_noise_converges_from_bad_starts(size, seed):
    p = make("student", n=50, seed=seed, outliers=10)
    rng = np.random.default_rng(seed)
    s, adjoints = laplace.evidence(p, size * rng.normal(size=50))
    assert s.status == "converged"
    g, W, K, _, _ = dense_parts(p, s.latent)
    np.testing.assert_allclose(s.alpha, g, atol=1e-7)
    assert np.all(
        np.linalg.eigvalsh(
            np.eye(50)
            + np.linalg.cholesky(K + 1e-12 * np.eye(50)).T
            @ (W[:, None] * np.linalg.cholesky(K + 1e-12 * np.eye(50)))
        )
        > 0
    )
    assert np.isfinite(s.log_evidence) and np.all(np.isfinite(adjoints.mean))


@pytest.mark.parametrize("scale", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("df", [1.0, 3.0, 50.0])
def test_student_noise_of_any_shape(df, scale):
    for seed in range(3):
        p = replace(
            make("student", n=40, seed=seed, outliers=8), likelihood=PlainStudentT(df, scale)
        )
        s, adjoints = laplace.evidence(p)
        assert s.status == "converged"
        assert np.isfinite(s.log_evidence) and np.all(np.isfinite(np.tril(adjoints.K)))


def test_level_points_that_are_no_maximum_are_left():
    """Two rows at one place that disagree: between them the gradient is 0, in a trough."""
    X = np.zeros((2, 1))
    y = np.array([-5.0, 5.0])
    p = LatentProblem(9.0 * RBF(), X, y, PlainStudentT(2.0, 0.3), np.zeros(2))
    s = laplace.solve(p)
    assert s.status == "converged"
    np.testing.assert_allclose(np.abs(s.latent), s.latent[0] * np.sign(s.latent[0]), atol=1e-6)
    assert abs(s.latent[0]) > 4.0
    saddle = laplace.solve(p, np.zeros(2))
    assert saddle.log_evidence == pytest.approx(s.log_evidence, rel=1e-8)


def test_outliers_are_shrugged_off():
    p = make("student", n=60, outliers=12)
    clean = replace(p, X=p.X[12:], y=p.y[12:], mean=p.mean[12:])
    a, _ = laplace.posterior(p, means.Zero())
    b, _ = laplace.posterior(clean, means.Zero())
    X = p.X[12:]
    assert np.sqrt(np.mean((a.mean(X) - b.mean(X)) ** 2)) < 0.15


# --- extremes ---------------------------------------------------------------------------------


@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    size=st.floats(-10, 10),
    width=st.floats(-3, 3),
    repeated=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_kernel_gives_numbers(kind, n, seed, size, width, repeated):
    p = make(kind, n, d=1, seed=seed, kernel=10.0**size * RBF(10.0**width))
    if repeated:
        X = p.X.copy()
        X[:] = X[0]
        p = replace(p, X=X)
    s, adjoints = laplace.evidence(p)
    assert np.isfinite(s.log_evidence) and np.all(np.isfinite(s.latent))
    assert np.all(np.isfinite(np.tril(adjoints.K))) and np.all(np.isfinite(adjoints.mean))
    assert np.all(s.sites.marginal_variances() > 0)
    process, _ = laplace.posterior(p, means.Zero())
    mean, var = process.mean_and_var(np.linspace(-3, 3, 7)[:, None])
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(var)) and np.all(var >= 0)
    if kind != "student":
        assert np.all(var <= 10.0**size * (1 + 1e-9))
    _, left = laplace.leave_one_out(p)
    assert np.all(left.variance > 0) and np.all(np.isfinite(left.mean))


@pytest.mark.parametrize("variance", [1.0, 1e4, 1e8, 1e12])
def test_separable_data(variance):
    X = np.linspace(-1, 1, 30)[:, None]
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    p = LatentProblem(variance * Linear(), X, y, PlainLogistic(), np.zeros(30))
    s, adjoints = laplace.evidence(p)
    assert s.status == "converged"
    assert np.all(s.latent * y > 0) and s.log_evidence <= 0
    rise = adjoints.factor * p.kernel.pullback(p.X, None, adjoints.K, inputs=False).theta
    step = 1e-2  # at 1e12 the evidence has eight digits
    values = [
        value_of(replace(p, kernel=p.kernel.with_theta(p.kernel.theta + e))) for e in (step, -step)
    ]
    assert rise[0] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-6)


def test_one_class_only():
    p = replace(make("logistic", n=20), y=np.ones(20))
    s = laplace.solve(p)
    assert s.status == "converged" and np.all(s.latent > 0)


@pytest.mark.parametrize("y", [0.0, 1e3, 1e7])
def test_counts_far_from_the_prior(y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 1))
    counts = np.full(10, y)
    for variance in (0.01, 1.0, 100.0):
        for mean in (-20.0, 0.0, 20.0):
            m = np.full(10, mean)
            p = LatentProblem(variance * RBF(), X, counts, PlainPoisson(), m)
            s = laplace.solve(p)
            assert s.status == "converged"
            g = p.derivatives(s.latent)[0]
            np.testing.assert_allclose(s.alpha, g, atol=1e-6 * (1 + y))


def test_an_indefinite_gram_matrix_is_refused():
    p = make("logistic", n=10)
    bad = with_gram(p, p.kernel(p.X) - 50 * np.eye(10))
    with pytest.raises(NotPositiveDefiniteError):
        laplace.solve(bad)


def test_jitter_is_that_of_the_problem():
    p = make("logistic", n=10)
    with_jitter = laplace.solve(replace(p, jitter=0.25))
    assert with_jitter.jitter == 0.25
    direct = laplace.solve(with_gram(p, p.kernel(p.X) + 0.25 * np.eye(10)))
    assert with_jitter.log_evidence == pytest.approx(direct.log_evidence, rel=1e-12)


@pytest.mark.parametrize("likelihood", [Laplace(0.5), EpsilonInsensitive(0.1, 0.5)], ids=repr)
def test_likelihoods_without_curvature_are_refused(likelihood):
    p = replace(make("student"), likelihood=likelihood)
    name = type(likelihood).__name__
    with pytest.raises(ValueError, match=f"curvature of the likelihood at the mode.* of {name}"):
        laplace.solve(p)


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_only_read(kind):
    p = make(kind, weights=True, mean=True)
    for array in (p.X, p.y, p.mean, p.weights):
        array.setflags(write=False)
    first, second = laplace.evidence(p), laplace.evidence(p)
    assert first[0].log_evidence == second[0].log_evidence
    np.testing.assert_array_equal(np.tril(first[1].K), np.tril(second[1].K))
