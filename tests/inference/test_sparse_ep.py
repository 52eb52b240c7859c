"""Expectation propagation with inducing variables: the dense one, regression, differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import means
from mercer.inference import ep, sparse_ep
from mercer.inference import sparse as regression
from mercer.kernels import Matern
from mercer.likelihoods import Gaussian, Probit, StudentT

from . import sparse_latent_cases as cases
from .ep_cases import LIKELIHOODS, assert_right, make

KINDS = ("dtc", "fitc")


@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_inducing_inputs_at_the_rows(name, kind, weights):
    p = make(name, kernel=cases.ROUGH, weights=weights)
    cases.assert_dense_at_the_rows(sparse_ep, ep, p, kind, 1e-8, means.Constant(0.3))


@pytest.mark.parametrize("options", [{}, {"power": 0.5}, {"damping": 0.5}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["probit", "student"])
def test_matrix_written_out(name, kind, options):
    q = cases.sparse(make(name, kernel=cases.ROUGH), kind)
    cases.assert_dense_of_gram(sparse_ep, ep, q, 1e-8, **options)


@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "options"),
    [("probit", {}), ("probit", {"power": 0.5}), ("poisson", {}), ("student", {}), ("laplace", {})],
)
def test_adjoints_by_differences(name, options, kind, weights):
    q = cases.sparse(make(name, kernel=cases.ROUGH, weights=weights), kind)
    solution, adjoints = sparse_ep.evidence(q, inputs=True, tol=1e-8, **options)
    assert solution.status == "converged"
    if name == "student":
        assert np.any(solution.precision < 0)

    def value(p):  # from the same sites, of which Student's t has several that are right
        return sparse_ep.solve(p, solution.state, tol=1e-8, **options).log_evidence

    cases.assert_slopes(value, q, adjoints, step=1e-4, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_noise_is_regression(kind, power, weights):
    q = cases.sparse(make("gaussian", kernel=cases.ROUGH, weights=weights), kind)
    y = (q.y - q.mean)[:, None]
    noise = np.full(q.n, 0.2)
    twin = regression.SparseProblem(q.kernel, q.X, y, noise, q.Z, q.kind, weights=q.weights)
    wanted, adjoints = regression.evidence(twin, inputs=True)
    got, own = sparse_ep.evidence(q, inputs=True, power=power)
    assert_right(got)
    np.testing.assert_allclose(got.log_evidence, wanted.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(own.theta, adjoints.theta, atol=1e-8)
    np.testing.assert_allclose(own.Z, adjoints.Z, atol=1e-8)
    np.testing.assert_allclose(own.likelihood, adjoints.noise, atol=1e-8)
    process, _ = sparse_ep.posterior(q, means.Zero(), power=power)
    reference, _ = regression.posterior(twin, means.Zero(), np.ones(1))
    np.testing.assert_allclose(process.mean(cases.NEW), reference.mean(cases.NEW), atol=1e-9)
    np.testing.assert_allclose(process.cov(cases.NEW), reference.cov(cases.NEW), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["probit", "student"])
def test_weight_is_rows_repeated(name, kind):
    times = np.arange(20) % 4
    many, weighted = cases.repeated(cases.sparse(make(name, kernel=cases.ROUGH), kind), times)
    (one, a), (two, b) = (sparse_ep.evidence(q, inputs=True, tol=1e-9) for q in (many, weighted))
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-8)
    np.testing.assert_allclose(b.theta, a.theta, atol=1e-6)
    np.testing.assert_allclose(b.Z, a.Z, atol=1e-6)
    np.testing.assert_allclose(b.likelihood, a.likelihood, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_step_likelihood(kind):
    """Sites without noise are sharp."""
    p = make("probit", kernel=cases.ROUGH)
    p = replace(p, likelihood=Probit(0.0), y=np.where(p.X[:, 0] > 0, 1.0, -1.0))
    cases.assert_dense_at_the_rows(sparse_ep, ep, p, kind, 1e-7, means.Zero())
    assert_right(sparse_ep.solve(cases.sparse(p, kind)))


def test_very_little_noise():
    q = cases.sparse(make("gaussian", kernel=cases.ROUGH), "fitc")
    q = replace(q, likelihood=Gaussian(1e-8))
    y = (q.y - q.mean)[:, None]
    twin = regression.SparseProblem(q.kernel, q.X, y, np.full(q.n, 1e-8), q.Z, q.kind)
    got = sparse_ep.solve(q)
    assert got.status == "converged"
    assert got.log_evidence == pytest.approx(regression.solve(twin).log_evidence, rel=1e-6)


def test_outliers():
    """Several sets of sites may be right: the search is the dense one's, from any start."""
    p = make("student", 40, outliers=12, kernel=30.0 * Matern([0.6, 1.0], nu=1.5))
    q = replace(cases.sparse(p, "fitc", 10), likelihood=StudentT(2.0, 0.1))
    cold = sparse_ep.solve(q)
    assert_right(cold)
    near = replace(q, kernel=q.kernel.with_theta(q.kernel.theta + 0.01))
    warm, wanted = sparse_ep.solve(near, cold.state), ep.solve(cases.as_dense(near), cold.state)
    assert_right(warm)
    assert warm.log_evidence == pytest.approx(wanted.log_evidence, rel=1e-8)
    assert warm.n_iterations == wanted.n_iterations < cold.n_iterations


@pytest.mark.parametrize("kind", KINDS)
def test_start(kind):
    q = cases.sparse(make("poisson", kernel=cases.ROUGH), kind)
    state = sparse_ep.solve(q).state
    near = replace(q, kernel=q.kernel.with_theta(q.kernel.theta + 0.01), mean=q.mean + 0.1)
    warm, cold = sparse_ep.solve(near, state), sparse_ep.solve(near)
    assert warm.n_iterations < cold.n_iterations
    assert warm.log_evidence == pytest.approx(cold.log_evidence, rel=1e-9)
    assert sparse_ep.solve(q, max_iterations=1).status == "stopped"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power": 0.0}, "power must be above 0"),
        ({"damping": 1.5}, "damping must be above 0 and at most 1"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iterations": -1}, "max_iterations must be a whole number"),
    ],
)
def test_refused(options, message):
    q = cases.sparse(make("probit", kernel=cases.ROUGH), "fitc")
    with pytest.raises(ValueError, match=message):
        sparse_ep.solve(q, **options)
    with pytest.raises(ValueError, match="start must have the sites of 20 rows"):
        sparse_ep.solve(q, sparse_ep.SiteState(np.zeros(3), np.zeros(3), np.zeros(3)))
