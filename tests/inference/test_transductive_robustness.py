"""Labels that are missing: odd data, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from mercer.inference.transductive import HARD, TransductiveProblem, solve
from mercer.kernels import RBF, Linear
from mercer.likelihoods import Logistic, Softmax

from .transductive_cases import KINDS, METHODS, make


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
@pytest.mark.parametrize("method", METHODS)
def test_repeated_rows_one_class_and_huge_kernels(kind, method):
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 1)), 3, axis=0)
    labels = np.full(18, -1)
    labels[0] = 1
    likelihood = KINDS[kind]
    mean = np.zeros((18, 3 if kind == "softmax" else 1))
    for kernel in (RBF(10.0), 1e6 * RBF(0.5)):
        solution = solve(TransductiveProblem(kernel, X, labels, likelihood, mean), method)
        assert np.all(np.isfinite(solution.latent)) and np.isfinite(solution.objective)
        assert solution.labels[0] == solution.labels[1] == solution.labels[2] == 1


def test_what_is_refused():
    problem = make()
    X, mean = problem.X, problem.mean
    for labels, text in (
        (np.full(24, -1), "at least one row must have a label"),
        (np.full(24, 2), "numbers of 2 classes, from 0, or -1"),
        (np.zeros(23, dtype=int), "24 whole numbers"),
        (np.zeros(24), "24 whole numbers"),
    ):
        with pytest.raises(ValueError, match=text):
            TransductiveProblem(RBF(), X, labels, Logistic(), mean)
    with pytest.raises(ValueError, match=r"mean must have shape \(24, 3\)"):
        TransductiveProblem(RBF(), X, problem.labels, Softmax(3), mean)
    with pytest.raises(ValueError, match="method must be 'em' or 'joint', got 'svm'"):
        solve(problem, "svm")
    for temperatures in ((), (0.2, 0.5), (1.5, 0.0), (0.5, -0.1)):
        with pytest.raises(ValueError, match="temperatures must fall"):
            solve(problem, temperatures=temperatures)


@pytest.mark.parametrize(
    ("method", "seed", "variance", "weight"),
    [("joint", 3, 1.0, 1e3), ("em", 2, 10.0, 1e3), ("em", 0, 10.0, 1e6)],
)
def test_the_objective_is_that_of_alpha_where_the_kernel_is_singular(
    method, seed, variance, weight
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 2)) + np.where(np.arange(24) % 2, 2.0, -2.0)[:, None] * [1, 0]
    X[12:] = X[:12]
    labels = np.where(np.arange(24) < 6, np.arange(24) % 2, -1)
    weights = rng.choice([0.0, 1.0, 2.0, weight], 24)
    p = TransductiveProblem(variance * Linear(), X, labels, Softmax(3), np.zeros((24, 3)), weights)
    got = solve(p, method)
    F = p.kernel(X) @ got.alpha
    logs = log_softmax(F, axis=1)
    own = logs[np.arange(24), got.labels]
    rows = own if method == "em" else np.where(labels >= 0, own, np.sum(np.exp(logs) * logs, 1))
    value = weights @ rows - 0.5 * np.sum(got.alpha * F)
    same = np.diff(got.temperatures) == 0 if method == "em" else np.array([True])
    assert np.all(np.diff(got.values)[same] >= -1e-11 * (1 + abs(got.objective)))
    assert got.objective <= 0
    if weight == 1e3:
        assert got.status == "converged"
        assert got.objective == pytest.approx(value, rel=1e-9)
    # else alpha is made of rounding, and where the search ends is chance


@pytest.mark.parametrize(
    ("n", "seed", "variance", "kind"),
    [(24, 17, 1e4, {}), (12, 8, 1e5, {"weights": True}), (12, 8, 1e5, {"mean": True})],
)
def test_the_top_is_one_to_rounding(n, seed, variance, kind):
    """No search is polished after its last step, as in Laplace's method: that step is exact.

    A step that gains less than 1e-9 leaves alpha 1e-8 short of the slopes.
    """
    problem = make(n=n, seed=seed, kernel=variance * RBF(4.5), **kind)
    solution = solve(problem, temperatures=HARD)
    w = np.ones(n) if problem.weights is None else problem.weights
    slopes = w * (solution.labels - expit(solution.latent[:, 0]))
    np.testing.assert_allclose(solution.alpha[:, 0], slopes, rtol=0.0, atol=1e-10)


def test_no_division_by_a_curvature_of_0():
    rng = np.random.default_rng(64)
    X = rng.normal(size=(24, 2)) + np.where(np.arange(24) % 2, 2.0, -2.0)[:, None] * [1, 0]
    labels = np.where(np.arange(24) < 6, 0, -1)
    weights = rng.choice([0.0, 1.0, 2.0, 1e6], 24)
    p = TransductiveProblem(1e8 * Linear(), X, labels, Softmax(3), np.zeros((24, 3)), weights)
    assert solve(p, "joint").objective <= 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"temperatures": (np.nan,)}, "must fall"),
        ({"temperatures": (0.5, np.nan, 0.0)}, "must fall"),
        ({"temperatures": (1e-300,)}, "at least 1e-06"),
        ({"start": np.array([0, 1, -1])}, "got -1 to 1"),
        ({"start": np.array([0, 1, 5])}, "got 0 to 5"),
        ({"start": np.array([0, 1])}, "3 whole numbers"),
        ({"start": np.array([0.0, 1.0, 1.0])}, "got an array of float64"),
    ],
)
def test_temperatures_and_starts_that_are_refused(options, text):
    X = np.array([[-1.0], [1.0], [0.3]])
    p = TransductiveProblem(RBF(), X, np.array([0, 1, -1]), Logistic(), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=text):
        solve(p, **options)
