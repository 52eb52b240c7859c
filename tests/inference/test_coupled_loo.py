"""Leave-one-out of a softmax: against dense formulas, against two classes, and against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import softmax as normalised

from mercer import GPClassifier
from mercer.inference import LatentProblem, laplace, softmax
from mercer.inference._coupled_loo import leave_one_out
from mercer.kernels import RBF
from mercer.likelihoods import Logistic, Poisson
from mercer.means import Zero

RNG = np.random.default_rng(5)
X = RNG.normal(size=(14, 2))
Y = np.eye(3)[RNG.integers(0, 3, 14)]
KERNEL = 2.0 * RBF(1.1)


def problem(Y=Y, kernel=KERNEL, weights=None, keep=slice(None)):
    return softmax.SoftmaxProblem(kernel, X[keep], Y[keep], np.zeros(Y[keep].shape), weights)


@pytest.mark.parametrize("at_mode", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_the_dense_formula(weighted, at_mode):
    w = np.linspace(0.5, 2.0, 14) if weighted else None
    left = leave_one_out(problem(weights=w), at_mode=at_mode)
    process, s = softmax.posterior(problem(weights=w), Zero(), at_mode=at_mode)
    F, centre = s.latent, process.mean(X)
    n, C = F.shape
    pi = normalised(F, axis=1)
    counts = np.ones(n) if w is None else w
    W = np.zeros((C * n, C * n))  # classes outside, rows inside
    for i in range(n):
        at = np.arange(C) * n + i
        W[np.ix_(at, at)] = counts[i] * (np.diag(pi[i]) - np.outer(pi[i], pi[i]))
    K = block_diag(*[KERNEL(X)] * C)
    for i in range(n):
        without = W.copy()
        at = np.arange(C) * n + i
        without[np.ix_(at, at)] = 0.0
        S = (K - K @ np.linalg.solve(np.eye(C * n) + without @ K, without @ K))[np.ix_(at, at)]
        np.testing.assert_allclose(left.covariance[i], S, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(
            left.mean[i], centre[i] - S @ process.alpha[i], rtol=1e-6, atol=1e-8
        )


def test_two_classes_are_the_logistic_with_twice_the_kernel():
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    left = leave_one_out(problem(np.column_stack([y < 0, y > 0]).astype(float)))
    binary = LatentProblem(2.0 * KERNEL, X, y, Logistic(), np.zeros(14))
    wanted = laplace.leave_one_out(binary)[1]
    V = left.covariance
    np.testing.assert_allclose(left.mean[:, 1] - left.mean[:, 0], wanted.mean, atol=1e-7)
    gap = V[:, 0, 0] + V[:, 1, 1] - 2.0 * V[:, 0, 1]
    np.testing.assert_allclose(gap, wanted.variance, rtol=1e-6)


def test_it_is_near_to_refits():
    left = leave_one_out(problem())
    for i in (0, 5, 13):
        keep = np.arange(14) != i
        again, _ = softmax.posterior(problem(keep=keep), Zero())
        # a seventh of a deviation: how far the mean is from the mode depends on the row too
        np.testing.assert_allclose(left.mean[i], again.mean(X[i : i + 1])[0], atol=0.15)
        np.testing.assert_allclose(left.covariance[i], again.cov(X[i : i + 1])[0, :, 0], atol=0.1)


def test_rows_that_are_certain_are_left_out_too():
    """At this amplitude some rows have curvatures below 1e-200, which no precision can hold."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (20, 1))
    y = X[:, 0] > -0.7
    y[:3] = [False, True, True]  # labels against the trend, which bend the function sharply
    single = GPClassifier(2e7 * RBF(1.0), optimizer=None).fit(X, y).loo().proba
    coupled = GPClassifier(1e7 * RBF(1.0), likelihood="softmax", optimizer=None).fit(X, y)
    np.testing.assert_allclose(single, coupled.loo().proba, atol=1e-6)


@pytest.mark.parametrize("tiny", [0.0, 1e-60, 1e-32, 1e-24])
def test_a_row_of_next_to_no_weight_is_predicted_as_if_it_were_new(tiny):
    weights = np.ones(14)
    weights[3] = tiny
    left = leave_one_out(problem(weights=weights))
    new, _ = softmax.posterior(problem(keep=np.arange(14) != 3), Zero())
    np.testing.assert_allclose(left.mean[3], new.mean(X[3:4])[0], atol=1e-6)
    np.testing.assert_allclose(left.covariance[3], new.cov(X[3:4])[0, :, 0], atol=1e-6)


def test_a_row_of_weight_0_says_nothing_whatever_its_values():
    """Of counts at f = 800 the density overflows, and 0 times infinity is no number."""
    two = LatentProblem(KERNEL, X[:2], np.ones(2), Poisson(), np.zeros(2), np.array([1.0, 0.0]))
    f = np.array([0.0, 800.0])
    with np.errstate(over="ignore"):
        slopes = two.derivatives(f)
    assert two.log_likelihood(f) == pytest.approx(-1.0)
    assert all(np.isfinite(each).all() and each[1] == 0.0 for each in slopes)
