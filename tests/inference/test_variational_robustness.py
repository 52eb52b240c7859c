"""Variational inference on odd problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError
from mercer.inference import variational
from mercer.inference._problem import LatentProblem
from mercer.kernels import RBF, Linear
from mercer.likelihoods import Gaussian, Laplace, Logistic, Poisson, Probit, StudentT

from .latent import with_gram
from .variational_cases import FAST, assert_monotone, make, value_of


@pytest.mark.parametrize("kind", FAST)
@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 12),
    seed=st.integers(0, 1000),
    size=st.floats(-6, 5),
    width=st.floats(-1.5, 1.5),
    repeated=st.booleans(),
)
def test_any_kernel_gives_numbers(kind, n, seed, size, width, repeated):
    p = make(kind, n=n, seed=seed, kernel=10.0**size * RBF(10.0**width))
    if repeated:
        p = replace(p, X=np.repeat(p.X[:1], n, axis=0))
    solution, adjoints = variational.evidence(p)
    assert np.isfinite(solution.log_evidence)
    assert np.all(solution.variance > 0)
    assert np.all(solution.variance <= 10.0**size * (1 + 1e-6)) or kind == "student"
    assert np.all(np.isfinite(np.tril(adjoints.K))) and np.all(np.isfinite(adjoints.mean))
    assert_monotone(solution)


@pytest.mark.parametrize("variance", [1.0, 1e3, 1e6])
def test_separable_data(variance):
    X = np.linspace(-2, 2, 16)[:, None]
    y = np.sign(X[:, 0])
    p = LatentProblem(variance * RBF(1.0), X, y, Logistic(), np.zeros(16))
    s = variational.solve(p)
    assert s.status == "converged" and np.all(y * s.latent > 0)


def test_one_class_only():
    p = replace(make("logistic"), y=np.ones(12))
    assert np.all(variational.solve(p).latent > 0)


@pytest.mark.parametrize("y", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("m", [-30.0, 0.0, 30.0, 800.0])
def test_counts_far_from_the_prior(y, m):
    n = 4
    p = LatentProblem(
        RBF(1.0), np.arange(n)[:, None] * 1.0, np.full(n, y), Poisson(), np.full(n, m)
    )
    s = variational.solve(p)
    assert np.isfinite(s.log_evidence)
    assert_monotone(s)


def test_outliers_are_shrugged_off():
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 3, 40)[:, None]
    y = np.sin(X[:, 0]) + 0.05 * rng.normal(size=40)
    y[::5] += 1e3
    p = LatentProblem(RBF(1.0), X, y, StudentT(2.0, 0.05), np.zeros(40))
    s = variational.solve(p)
    assert s.status == "converged"
    np.testing.assert_allclose(s.latent, np.sin(X[:, 0]), atol=0.15)


def test_a_row_at_which_the_prior_is_certain():
    X = np.array([[0.0], [1.0], [-2.0]])
    y = np.array([0.4, 1.0, -2.1])
    for likelihood in (Gaussian(0.1), Laplace(0.3), StudentT(4.0, 0.3)):
        s, adjoints = variational.evidence(LatentProblem(Linear(), X, y, likelihood, np.zeros(3)))
        assert np.isfinite(s.log_evidence) and s.latent[0] == 0.0
        assert np.all(np.isfinite(np.tril(adjoints.K)))


def test_an_indefinite_gram_matrix_is_refused():
    p = make("logistic", n=6)
    bad = with_gram(p, p.kernel(p.X) - 20.0 * np.eye(6))
    with pytest.raises(NotPositiveDefiniteError):
        variational.solve(bad)


def test_jitter_is_that_of_the_problem():
    p = replace(make("logistic"), jitter=0.01)
    s = variational.solve(p)
    assert s.jitter == pytest.approx(0.01)
    with_it = with_gram(replace(p, jitter=None), p.kernel(p.X) + 0.01 * np.eye(12))
    assert s.log_evidence == pytest.approx(value_of(with_it), rel=1e-10)


def test_likelihoods_that_can_be_0_are_refused():
    p = replace(make("probit"), likelihood=Probit(0.0))
    with pytest.raises(ValueError, match=r"positive for every latent value.*Probit"):
        variational.solve(p)


def test_observations_out_of_range_are_named():
    with pytest.raises(ValueError, match="labels must be -1 or 1"):
        variational.solve(replace(make("logistic"), y=np.zeros(12)))
