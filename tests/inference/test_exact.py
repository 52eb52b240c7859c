"""The exact engine against dense formulas, finite differences, and the papers' identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.inference.exact import ExactProblem, conditioned, evidence, posterior, solve
from mercer.kernels import RBF, Linear

from . import dense
from .problems import adjoint_by_differences, make, problem


def covariance(p, K=None):
    K = dense.rbf(p.X, p.X, np.array([0.8, 1.5]), 1.7) if K is None else K
    return K + (np.diag(p.noise) if p.noise.ndim == 1 else p.noise)


@pytest.mark.parametrize("outputs", [1, 3])
def test_evidence_is_the_log_density_of_the_targets(outputs):
    p = problem(outputs=outputs)
    assert solve(p).log_evidence == pytest.approx(dense.log_evidence(covariance(p), p.Y), rel=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_evidence_with_the_mean_integrated_out(outputs):
    X, _, _ = make()
    H = np.hstack([np.ones((30, 1)), X])
    p = problem(H, True, outputs=outputs)
    expected = dense.restricted_log_evidence(covariance(p), p.Y, H)
    assert solve(p).log_evidence == pytest.approx(expected, rel=1e-12)


def test_estimated_coefficients_are_generalised_least_squares():
    X, _, _ = make()
    H = np.hstack([np.ones((30, 1)), X])
    p = problem(H)
    Q = covariance(p)
    beta = np.linalg.solve(H.T @ np.linalg.solve(Q, H), H.T @ np.linalg.solve(Q, p.Y))
    solution = solve(p)
    np.testing.assert_allclose(solution.beta, beta, rtol=1e-10)
    expected = dense.log_evidence(Q, p.Y - H @ beta)
    assert solution.log_evidence == pytest.approx(expected, rel=1e-12)


def test_dependent_regressors_are_estimated_but_not_integrated():
    H = np.ones((30, 2))
    np.testing.assert_allclose(
        H @ solve(problem(H)).beta, H[:, :1] @ solve(problem(H[:, :1])).beta, rtol=1e-10
    )
    with pytest.raises(ValueError, match="linearly independent"):
        solve(problem(H, True))


def test_regressors_that_depend_on_others_but_for_rounding():
    """The coefficients stay of the size of the targets."""
    X, Y, noise = make(n=12)
    H = np.hstack([np.ones((12, 1)), X, 3.0 * X[:, :1] + X[:, 1:2] / 3.0])
    kernel = 1.7 * RBF([0.8, 1.5])
    found = solve(ExactProblem(kernel, X, Y, noise, H))
    wanted = solve(ExactProblem(kernel, X, Y, noise, H[:, :-1]))
    assert np.max(np.abs(found.beta)) < 1e3
    np.testing.assert_allclose(found.alpha, wanted.alpha, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("regressors", [None, "estimate", "integrate"])
def test_adjoints_of_the_evidence(outputs, regressors):
    """BKM 64 as corrected, and its forms for a mean."""
    X, _, _ = make(n=8)
    H = None if regressors is None else np.hstack([np.ones((8, 1)), X])
    p = problem(H, regressors == "integrate", n=8, outputs=outputs)
    _, adjoints = evidence(p)
    expected = adjoint_by_differences(lambda q: solve(q).log_evidence, p)
    np.testing.assert_allclose(
        adjoints.factor * np.tril(adjoints.K), expected, rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(adjoints.noise, np.diagonal(expected), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 2])
def test_adjoint_in_the_mean(outputs):
    p = problem(n=8, outputs=outputs)
    _, adjoints = evidence(p)
    step = 1e-5
    for index in np.ndindex(p.Y.shape):
        E = np.zeros(p.Y.shape)
        E[index] = step
        values = [
            solve(ExactProblem(p.kernel, p.X, p.Y - s * E, p.noise)).log_evidence for s in (1, -1)
        ]
        assert adjoints.mean[index] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("integrate", [False, True])
@pytest.mark.parametrize(
    ("size", "offset"), [([1e-8, 1.0, 1e8], 0.0), ([1.0, 1.0, 1.0], 1e8), ([1e-6, 1.0, 1e6], 1e6)]
)
def test_regressors_of_any_size_and_origin(integrate, size, offset):
    """A change of units or origin of the regressors changes nothing but their coefficients."""
    X, Y, noise = make(d=3)
    K = RBF(0.8)

    def run(Z):
        H = np.hstack([np.ones((30, 1)), Z])
        s = solve(ExactProblem(K, X, Y, noise, H, integrate))
        return H @ s.beta, s.alpha, s.log_evidence + (np.sum(np.log(size)) if integrate else 0.0)

    plain, moved = run(X), run(X * size + offset * np.array(size))
    # an origin of 1e8 costs eight digits
    tolerance = 1e-6 if offset else 1e-9
    np.testing.assert_allclose(moved[0], plain[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(moved[1], plain[1], rtol=tolerance, atol=tolerance)
    if integrate:
        plain = (*plain[:2], plain[2] - np.sum(np.log(size)))
    assert moved[2] == pytest.approx(plain[2], rel=tolerance)


def test_posterior_is_the_conditional_distribution():
    """BKM 44 to 48."""
    p = problem()
    X_new = np.random.default_rng(1).normal(size=(7, 2))
    process, _ = posterior(p, means.Zero(), np.ones(1))
    scales = np.array([0.8, 1.5])
    mean, cov = dense.predict(
        dense.rbf(p.X, p.X, scales, 1.7),
        np.diag(p.noise),
        p.Y[:, 0],
        dense.rbf(X_new, p.X, scales, 1.7),
        dense.rbf(X_new, X_new, scales, 1.7),
    )
    np.testing.assert_allclose(process.mean(X_new)[:, 0], mean, rtol=1e-10)
    np.testing.assert_allclose(process.cov(X_new)[:, :, 0], cov, atol=1e-12)
    np.testing.assert_allclose(process.var(X_new)[:, 0], np.diag(cov), atol=1e-12)


def test_integrated_mean_is_the_limit_of_a_wide_prior():
    p = problem()
    X_new = np.random.default_rng(1).normal(size=(7, 2))
    H, H_new = np.ones((30, 1)), np.ones((7, 1))
    flat = ExactProblem(p.kernel, p.X, p.Y, p.noise, H, True)
    process, _ = posterior(flat, means.Constant(estimate="integrate"), np.ones(1))
    scales, wide = np.array([0.8, 1.5]), 1e6
    mean, cov = dense.predict(
        dense.rbf(p.X, p.X, scales, 1.7) + wide * H @ H.T,
        np.diag(p.noise),
        p.Y[:, 0],
        dense.rbf(X_new, p.X, scales, 1.7) + wide * H_new @ H.T,
        dense.rbf(X_new, X_new, scales, 1.7) + wide * H_new @ H_new.T,
    )
    np.testing.assert_allclose(process.mean(X_new)[:, 0], mean, rtol=1e-5)
    np.testing.assert_allclose(process.cov(X_new)[:, :, 0], cov, atol=1e-5)


def test_two_correlated_variables():
    """BKM 3.1: seeing y_1 takes the variance of y_2 from 3/4 to 3/16."""
    from mercer.kernels import Precomputed

    kernel = Precomputed(np.array([[1.0, 0.75], [0.75, 0.75]]))
    seen = ExactProblem(kernel, np.array([[0.0]]), np.array([[1.0]]), np.zeros(1))
    process, _ = posterior(seen, means.Zero(), np.ones(1))
    second = np.array([[1.0]])
    assert process.var(second)[0, 0] == pytest.approx(3 / 16, abs=1e-15)
    assert process.mean(second)[0, 0] == pytest.approx(3 / 4, abs=1e-15)


@given(seed=st.integers(0, 1000), noise=st.floats(1e-3, 10.0))
@settings(max_examples=25, deadline=None)
def test_shrinkage(seed, noise):
    """BKM 49: the fit is K (K + s^2)^-1 y, shorter than y."""
    X, Y, _ = make(n=15, seed=seed)
    p = ExactProblem(RBF(0.7), X, Y, np.full(15, noise))
    process, _ = posterior(p, means.Zero(), np.ones(1))
    K = dense.rbf(X, X, 0.7)
    expected = K @ np.linalg.solve(K + noise * np.eye(15), Y)
    np.testing.assert_allclose(process.mean(X), expected, rtol=1e-7, atol=1e-9)
    assert np.linalg.norm(process.mean(X)) < np.linalg.norm(Y)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_linear_kernel_without_noise_projects(n):
    """BKM 46: what is left of the variance is X_new (1 - P_X) X_new', for n <= d."""
    rng = np.random.default_rng(n)
    X, X_new = rng.normal(size=(n, 5)), rng.normal(size=(4, 5))
    p = ExactProblem(Linear(), X, rng.normal(size=(n, 1)), np.zeros(n))
    process, _ = posterior(p, means.Zero(), np.ones(1))
    P = X.T @ np.linalg.solve(X @ X.T, X)
    expected = X_new @ (np.eye(5) - P) @ X_new.T
    np.testing.assert_allclose(process.cov(X_new)[:, :, 0], expected, atol=1e-10)


def test_coloured_noise():
    X, Y, _ = make()
    rng = np.random.default_rng(3)
    S = rng.normal(size=(30, 30))
    S = 0.01 * S @ S.T + 0.1 * np.eye(30)
    p = ExactProblem(1.7 * RBF([0.8, 1.5]), X, Y, S)
    assert solve(p).log_evidence == pytest.approx(dense.log_evidence(covariance(p), Y), rel=1e-12)


def test_jitter_is_reported_and_only_where_needed():
    X = np.repeat(np.linspace(0, 1, 20), 2)[:, None]
    Y = np.sin(X)
    assert solve(ExactProblem(RBF(), X, Y, np.full(40, 0.1))).factor.jitter == 0.0
    assert solve(ExactProblem(RBF(), X, Y, np.zeros(40))).factor.jitter > 0.0


def test_work_happens_in_the_given_array():
    p = problem()
    out = np.empty((30, 30), order="F")
    _, adjoints = evidence(p, out)
    assert np.shares_memory(adjoints.K, out)


def test_conditioned_regressors_span_the_same_and_lose_nothing():
    t = 1e9 + np.linspace(0.0, 1.0, 7)
    H = np.column_stack([np.full(7, 3.0), t, 1e-6 * (t - 1e9) ** 2])
    conditioned_H, T = conditioned(H)
    np.testing.assert_allclose(np.linalg.norm(conditioned_H, axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(conditioned_H.T[1:] @ conditioned_H[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(H @ T, conditioned_H, atol=1e-6)  # H T itself cancels
    assert np.linalg.cond(conditioned_H) < 100.0
