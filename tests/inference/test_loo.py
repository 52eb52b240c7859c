"""Leave-one-out in closed form against leaving rows out, and its adjoints against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer import means
from mercer.inference import leave_one_out, left_out, log_density, loo
from mercer.inference.exact import ExactProblem, posterior, solve
from mercer.kernels import RBF

from .problems import adjoint_by_differences, make, problem


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("regressors", [None, "estimate", "integrate"])
def test_adjoints_of_leave_one_out(outputs, regressors):
    H = None if regressors is None else np.ones((8, 1))
    p = problem(H, regressors == "integrate", n=8, outputs=outputs)
    _, value, adjoints = loo(p)
    expected = adjoint_by_differences(lambda q: loo(q)[1], p)
    np.testing.assert_allclose(
        adjoints.factor * np.tril(adjoints.K), expected, rtol=1e-5, atol=1e-6
    )
    _, left = leave_one_out(p)
    density = norm.logpdf(left.residual, scale=np.sqrt(left.variance)[:, None])
    assert value == pytest.approx(density.sum(), rel=1e-12)
    assert value == log_density(left)


@pytest.mark.parametrize("regressors", [None, "estimate", "integrate"])
def test_noise_adjoint_of_weighted_leave_one_out(regressors):
    """Weights below and above 1; the noise enters through Q and through the prediction."""
    H = None if regressors is None else np.ones((8, 1))
    p = problem(H, regressors == "integrate", n=8)
    weights = np.linspace(0.4, 3.0, 8)
    _, value, adjoints = loo(p, weights)
    _, left = leave_one_out(p, weights)
    density = norm.logpdf(left.residual, scale=np.sqrt(left.variance)[:, None])[:, 0]
    assert value == pytest.approx(weights @ density, rel=1e-12)
    step = 1e-6
    for i, e in enumerate(step * np.eye(8)):
        up, down = (
            loo(ExactProblem(p.kernel, p.X, p.Y, p.noise + s * e, H, p.integrate), weights)[1]
            for s in (1, -1)
        )
        assert adjoints.noise[i] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("regressors", [None, "estimate", "integrate"])
def test_leave_one_out_equals_leaving_one_out(regressors):
    X, Y, noise = make(n=12)
    integrate = regressors == "integrate"
    H = None if regressors is None else np.hstack([np.ones((12, 1)), X])
    kernel = 1.7 * RBF([0.8, 1.5])
    _, left = leave_one_out(ExactProblem(kernel, X, Y, noise, H, integrate))
    mean = means.Zero()
    if regressors is not None:
        mean = means.Linear(estimate="integrate" if integrate else "ml")
    for i in range(12):
        keep = np.arange(12) != i
        part = ExactProblem(
            kernel, X[keep], Y[keep], noise[keep], None if H is None else H[keep], integrate
        )
        process, _ = posterior(part, mean, np.ones(1))
        residual = Y[i, 0] - process.mean(X[i : i + 1])[0, 0]
        assert left.residual[i, 0] == pytest.approx(residual, rel=1e-9)
        expected = process.var(X[i : i + 1])[0, 0] + noise[i]
        assert left.variance[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("integrate", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_row_that_alone_determines_a_coefficient_cannot_be_left_out(integrate, seed):
    X, Y, noise = make(n=12, seed=seed)
    H = np.hstack([np.ones((12, 1)), np.eye(12)[:, [4]]])
    p = ExactProblem(RBF(0.7), X, Y, noise, H, integrate)
    for function in (leave_one_out, loo):
        with pytest.raises(ValueError, match="row 4 cannot be left out"):
            function(p)


@pytest.mark.parametrize("integrate", [False, True])
def test_some_rows_from_their_part_of_the_diagonal(integrate):
    p = problem(np.ones((12, 1)), integrate, n=12)
    weights, rows = np.linspace(0.4, 3.0, 12), np.array([7, 2, 9])
    _, whole = leave_one_out(p, weights)
    solution = solve(p)
    L = np.tril(solution.factor.L)
    plain = np.diagonal(np.linalg.inv(L @ L.T))
    some = left_out(p, solution, plain[rows], weights, rows)
    for a, b in zip(some, whole, strict=True):
        np.testing.assert_allclose(a, b[rows], rtol=1e-10)


@pytest.mark.parametrize("weight", [1e-4, 1e-9, 1e-18, 1e-100])
@pytest.mark.parametrize("regressors", [None, "estimate", "integrate"])
def test_a_row_of_little_weight_is_predicted_as_if_it_were_not_there(regressors, weight):
    """Its noise, divided by the weight, is far larger than what the others say of it."""
    X, Y, _ = make(n=12)
    integrate = regressors == "integrate"
    H = None if regressors is None else np.hstack([np.ones((12, 1)), X])
    kernel, noise = 1.7 * RBF([0.8, 1.5]), np.full(12, 0.3)
    weights = np.ones(12)
    weights[3] = weight
    problem = ExactProblem(kernel, X, Y, noise / weights, H, integrate)
    _, value, adjoints = loo(problem, weights)
    _, left = leave_one_out(problem, weights)
    others = np.arange(12) != 3
    mean = means.Zero()
    if regressors is not None:
        mean = means.Linear(estimate="integrate" if integrate else "ml")
    fitted, _ = posterior(
        ExactProblem(
            kernel, X[others], Y[others], noise[others], None if H is None else H[others], integrate
        ),
        mean,
        np.ones(Y.shape[1]),
    )
    np.testing.assert_allclose(left.variance[3], fitted.var(X[3:4])[0, 0] + 0.3, rtol=1e-11)
    np.testing.assert_allclose(Y[3] - left.residual[3], fitted.mean(X[3:4])[0], rtol=1e-9)
    assert np.isfinite(value)
    assert np.all(np.isfinite(np.tril(adjoints.K))) and np.all(np.isfinite(adjoints.noise))
