"""Expectation propagation where it is hard: negative precisions, extremes, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.inference import ep
from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF, Linear
from mercer.likelihoods import Likelihood, Probit, StudentT

from .ep_cases import KERNEL, assert_right, make

# --- sites of negative precision ------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_negative_precisions(power, schedule):
    p = make("student", n=25, outliers=5)
    solution, adjoints = ep.evidence(p, power=power, schedule=schedule)
    assert_right(solution)
    assert np.sum(solution.precision < 0) >= 3
    K, S = p.kernel(p.X), np.diag(solution.precision)
    Sigma = np.linalg.inv(np.linalg.inv(K) + S)
    np.testing.assert_allclose(solution.variance, np.diag(Sigma), rtol=1e-6)
    np.testing.assert_allclose(p.mean + K @ solution.alpha, solution.latent, atol=1e-8)
    R = S - S @ Sigma @ S - np.outer(solution.alpha, solution.alpha)
    np.testing.assert_allclose(np.tril(adjoints.K), np.tril(R), atol=1e-5)
    process, _ = ep.posterior(p, means.Zero(), power=power, schedule=schedule)
    np.testing.assert_allclose(process.var(p.X)[:, 0], solution.variance, rtol=1e-5)
    np.testing.assert_allclose(p.mean + process.mean(p.X)[:, 0], solution.latent, atol=1e-6)


def test_sharp_student_noise_with_outliers_settles_at_the_default_power():
    rng = np.random.default_rng(0)
    for df, scale in ((4.0, 0.1), (2.0, 0.03)):
        X = rng.normal(size=(60, 2))
        y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_t(2, size=60)
        y[::7] += 5
        p = LatentProblem(KERNEL, X, y, StudentT(df, scale), np.zeros(60))
        solution = ep.solve(p)
        assert_right(solution)
        # outliers are shrugged off
        assert np.max(np.abs(solution.latent - np.sin(2 * X[:, 0]))) < 2.0


def test_what_does_not_settle_is_reported_and_finite():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_t(2, size=40)
    y[::7] += 5
    p = LatentProblem(KERNEL, X, y, StudentT(2.0, 0.01), np.zeros(40))
    solution, adjoints = ep.evidence(p, power=1.0)
    assert np.isfinite(solution.log_evidence)
    assert np.all(np.isfinite(np.tril(adjoints.K)))
    assert solution.status == ("converged" if solution.residual <= 1e-6 else "stopped")
    # not what the sites become when they run away
    assert abs(solution.log_evidence) < 1e3


# --- extremes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["probit", "logistic", "poisson", "student", "laplace"])
@pytest.mark.parametrize("variance", [1e-12, 1e-4, 1e4])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_extreme_kernels(kind, variance, length):
    if kind == "poisson" and variance > 1:
        variance = 30.0  # exp(f) is a number
    p = make(kind, n=12, kernel=variance * RBF(length), mean=False)
    solution, adjoints = ep.evidence(p)
    for value in solution[:5]:
        assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(np.tril(adjoints.K)))
    assert np.all(np.isfinite(adjoints.likelihood))
    assert np.all(solution.variance > 0)
    process, _ = ep.posterior(p, means.Zero())
    assert np.all(np.isfinite(process.var(p.X)))


def test_labels_that_contradict_a_sharp_prior():
    p = make("probit", n=10)
    for m in (-30.0, 30.0):
        solution = ep.solve(replace(p, mean=np.full(p.n, m), likelihood=Probit(0.01)))
        assert np.isfinite(solution.log_evidence)
        assert np.all(np.isfinite(solution.latent))
    far = replace(make("student", n=10), y=np.linspace(-1e8, 1e8, 10))
    assert np.isfinite(ep.solve(far).log_evidence)


def test_one_class_only_and_repeated_rows():
    p = make("probit", n=20)
    p = replace(p, y=np.ones(20), X=np.repeat(p.X[:2], 10, axis=0))
    solution = ep.solve(p)
    assert_right(solution)
    assert np.all(solution.latent > 0)


def test_a_row_that_the_prior_determines():
    """A linear kernel leaves no doubt at 0."""
    X = np.array([[0.0], [1.0], [-2.0]])
    y = np.array([1.0, 1.0, -1.0])
    p = LatentProblem(Linear(0.0), X, y, Probit(), np.array([0.3, 0.0, 0.0]))
    solution = ep.solve(p)
    assert_right(solution)
    rest = LatentProblem(Linear(0.0), X[1:], y[1:], Probit(), np.zeros(2))
    wanted = ep.solve(rest).log_evidence + float(Probit().log_density(1.0, 0.3))
    assert solution.log_evidence == pytest.approx(wanted, abs=1e-8)
    assert ep.solve(p, power=0.5).latent[0] == pytest.approx(0.3)


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(1, 12),
    kind=st.sampled_from(["probit", "logistic", "poisson", "student", "laplace"]),
    variance=st.floats(-3, 3),
    seed=st.integers(0, 1000),
    duplicated=st.booleans(),
)
def test_any_shape(n, kind, variance, seed, duplicated):
    p = make(kind, n=n, seed=seed, kernel=10**variance * RBF([0.7, 2.0]), weights="random")
    if kind == "poisson" and variance > 1:
        p = replace(p, kernel=10.0 * RBF([0.7, 2.0]))
    if duplicated:
        p = replace(p, X=np.tile(p.X[:1], (n, 1)))
    solution, adjoints = ep.evidence(p)
    assert np.isfinite(solution.log_evidence)
    assert np.all(np.isfinite(solution.latent)) and np.all(solution.variance > 0)
    assert np.all(np.isfinite(np.tril(adjoints.K)))
    order = np.random.default_rng(seed).permutation(n)
    moved = LatentProblem(
        p.kernel, p.X[order], p.y[order], p.likelihood, p.mean[order], p.weights[order]
    )
    if solution.status == "converged" and kind != "student":
        value = ep.solve(moved).log_evidence
        assert value == pytest.approx(solution.log_evidence, rel=1e-6, abs=1e-6)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"schedule": "random"}, "schedule must be"),
        ({"power": 0.0}, "power must be"),
        ({"power": 1.5}, "power must be"),
        ({"damping": -1.0}, "damping must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iterations": 1.5}, "max_iterations must be"),
    ],
)
def test_options_are_checked(options, text):
    with pytest.raises(ValueError, match=text):
        ep.solve(make("probit", n=3), **options)


def test_options_are_all_there():
    options: ep.Options = {"schedule": "parallel", "power": None, "damping": 0.9}
    options |= {"tol": 1e-5, "max_iterations": 50}
    assert set(options) == set(ep.Options.__annotations__)
    for engine in (ep.solve, ep.evidence, ep.leave_one_out):
        engine(make("probit", n=3), **options)


def test_refusals():
    p = make("probit", n=3)
    with pytest.raises(ValueError, match="sites of 3 rows"):
        ep.solve(p, ep.SiteState(*np.zeros((3, 4))))

    class Empty(Likelihood):
        def __init__(self):
            self._set()

    with pytest.raises(ValueError, match=r"needs .* log_density"):
        ep.solve(replace(p, likelihood=Empty()))
    with pytest.raises(TypeError, match="unknown"):
        ep.solve(p, unknown=1)
