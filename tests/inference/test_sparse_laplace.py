"""Laplace's method with inducing variables: against the dense one, regression and differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import laplace, low_rank, sparse_laplace
from mercer.inference import sparse as regression
from mercer.inference._approximations import APPROXIMATIONS
from mercer.inference._sparse_sites import SparseSites
from mercer.kernels import RBF, Matern
from mercer.likelihoods import Gaussian, Laplace, Logistic, Poisson, Probit, StudentT

from . import sparse_latent_cases as cases
from .latent import LIKELIHOODS, make

KINDS = ("dtc", "fitc")


def value_of(q):
    return sparse_laplace.solve(q).log_evidence


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_inducing_inputs_at_the_rows(name, kind, weights):
    p = make(name, kernel=cases.ROUGH, weights=weights, mean=True)
    cases.assert_dense_at_the_rows(sparse_laplace, laplace, p, kind, 1e-9, means.Constant(0.3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_matrix_written_out(name, kind):
    q = cases.sparse(make(name, kernel=cases.ROUGH, mean=True), kind)
    cases.assert_dense_of_gram(sparse_laplace, laplace, q, 1e-9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "likelihood"),
    [
        ("logistic", Logistic()),
        ("logistic", Probit(0.3)),
        ("poisson", Poisson()),
        ("student", StudentT(3.0, 0.4)),
        ("student", Gaussian(0.3)),
    ],
    ids=repr,
)
def test_adjoints_by_differences(name, likelihood, kind, weights):
    p = make(name, 20, kernel=cases.ROUGH, weights=weights, mean=True)
    q = replace(cases.sparse(p, kind), likelihood=likelihood)
    solution, adjoints = sparse_laplace.evidence(q, inputs=True)
    assert solution.status == "converged"
    if isinstance(likelihood, StudentT):
        assert np.any(solution.sites.precision < 0)
    cases.assert_slopes(value_of, q, adjoints, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["sor", *KINDS])
def test_gaussian_noise_is_regression(kind, weights):
    p = make("student", kernel=cases.ROUGH, weights=weights, mean=True)
    q = replace(cases.sparse(p, kind), likelihood=Gaussian(0.3))
    noise = np.full(q.n, 0.3)
    y = (q.y - q.mean)[:, None]
    twin = regression.SparseProblem(q.kernel, q.X, y, noise, q.Z, q.kind, weights=q.weights)
    wanted, adjoints = regression.evidence(twin, inputs=True)
    got, own = sparse_laplace.evidence(q, inputs=True)
    np.testing.assert_allclose(got.log_evidence, wanted.log_evidence, rtol=1e-11)
    np.testing.assert_allclose(own.theta, adjoints.theta, atol=1e-9)
    np.testing.assert_allclose(own.Z, adjoints.Z, atol=1e-9)
    np.testing.assert_allclose(own.likelihood, adjoints.noise, atol=1e-9)
    process, _ = sparse_laplace.posterior(q, means.Zero())
    reference, _ = regression.posterior(twin, means.Zero(), np.ones(1))
    np.testing.assert_allclose(process.mean(cases.NEW), reference.mean(cases.NEW), atol=1e-10)
    np.testing.assert_allclose(process.cov(cases.NEW), reference.cov(cases.NEW), atol=1e-10)


def test_low_rank_is_dtc():
    q = cases.sparse(make("poisson", kernel=cases.ROUGH, weights=True, mean=True), "dtc")
    p = low_rank.LowRankProblem(
        q.kernel, q.X, q.y, q.likelihood, q.mean, q.weights, q.jitter, points=q.Z
    )
    assert value_of(q) == pytest.approx(low_rank.solve(p).log_evidence, rel=1e-12)
    process, _ = sparse_laplace.posterior(q, means.Zero())
    lifted, _ = low_rank.posterior(p, means.Zero(), lift=True)
    np.testing.assert_allclose(process.cov(cases.NEW), lifted.cov(cases.NEW), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_weight_is_rows_repeated(name, kind):
    """Two rows that are the same have a latent value each, given the inducing variables."""
    times = np.arange(25) % 4
    many, weighted = cases.repeated(cases.sparse(make(name, kernel=cases.ROUGH), kind), times)
    (one, a), (two, b) = (sparse_laplace.evidence(q, inputs=True) for q in (many, weighted))
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-10)
    np.testing.assert_allclose(b.theta, a.theta, atol=1e-8)
    np.testing.assert_allclose(b.Z, a.Z, atol=1e-8)
    np.testing.assert_allclose(b.likelihood, a.likelihood, rtol=1e-6, atol=1e-8)
    P, R = (sparse_laplace.posterior(q, means.Zero())[0] for q in (many, weighted))
    np.testing.assert_allclose(R.var(cases.NEW), P.var(cases.NEW), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["positive", "mixed"])
def test_sites_against_matrices(kind, precision):
    q = cases.sparse(make("logistic", kernel=cases.ROUGH), kind)
    S = np.random.default_rng(1).uniform(0.1, 3.0, q.n)
    if precision == "mixed":
        S[::5] *= -0.05
    K, r = cases.dense_gram(q), np.linspace(-1.0, 1.0, q.n)
    inverse = np.linalg.inv(np.eye(q.n) + S[:, None] * K)  # (1 + S K)^-1
    prior = q.prior()
    sites = SparseSites(prior, S)
    np.testing.assert_allclose(sites.solve(r), inverse @ (S * r), atol=1e-10)
    np.testing.assert_allclose(sites.variances, np.diag(K @ inverse), atol=1e-10)
    alpha, a, rise = sites.increment(r)
    np.testing.assert_allclose(alpha, inverse @ r, atol=1e-10)
    np.testing.assert_allclose(a, prior.V.T @ alpha, atol=1e-10)
    np.testing.assert_allclose(rise, K @ alpha, atol=1e-10)
    wanted = np.linalg.slogdet(np.eye(q.n) + K * S)[1]
    assert sites.log_determinant == pytest.approx(wanted, rel=1e-10)
    np.testing.assert_allclose(prior.variances, np.diag(K), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_sites_that_outweigh_the_prior(kind):
    q = cases.sparse(make("logistic", kernel=cases.ROUGH), kind)
    prior = q.prior()
    rows = [0, 7] if kind == "fitc" else [0]  # the first is an inducing input, and D is 0 there
    for S in (np.full(q.n, -5.0), *(np.where(np.arange(q.n) == i, -20.0, 1.0) for i in rows)):
        with pytest.raises(NotPositiveDefiniteError, match="outweigh the prior"):
            SparseSites(prior, S)
    with pytest.raises(ValueError, match="must be finite"):
        SparseSites(prior, np.full(q.n, np.nan))


@pytest.mark.parametrize("kind", KINDS)
def test_direction_of_negative_curvature(kind):
    q = cases.sparse(make("logistic", kernel=cases.ROUGH), kind)
    W = np.random.default_rng(2).normal(size=q.n)
    search = sparse_laplace.SparseSearch(q, q.prior())
    d, moved = search.falling(W)
    K = cases.dense_gram(q)
    np.testing.assert_allclose(moved, K @ d, atol=1e-10)
    least = np.linalg.eigvals(np.eye(q.n) + K * W).real.min()
    assert (d @ moved + W @ moved**2) / (d @ moved) == pytest.approx(least, rel=1e-5)
    assert search.falling(np.ones(q.n)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_outliers(kind):
    """A likelihood with many modes, under a wide prior: a maximum is found."""
    for seed in range(4):
        p = make("student", 40, seed=seed, outliers=12, kernel=30.0 * Matern([0.6, 1.0], nu=1.5))
        q = replace(cases.sparse(p, kind, 10), likelihood=StudentT(2.0, 0.1))
        solution, adjoints = sparse_laplace.evidence(q)
        assert solution.status == "converged"
        slope = q.derivatives(solution.latent)[0]
        np.testing.assert_allclose(solution.alpha, slope, atol=1e-6 * np.max(np.abs(slope)))
        again = sparse_laplace.solve(q, solution.state)
        assert again.log_evidence == pytest.approx(solution.log_evidence, rel=1e-9)
        assert np.all(np.isfinite(adjoints.theta))


def test_blocks_of_rows(monkeypatch):
    """Any split of the rows gives the same answer."""
    from mercer.inference import _sparse_sites

    q = cases.sparse(make("poisson", kernel=cases.ROUGH, weights=True), "fitc")
    one = sparse_laplace.evidence(q, inputs=True)
    monkeypatch.setattr(_sparse_sites, "_ENTRIES", 20)
    two = sparse_laplace.evidence(q, inputs=True)
    assert one[0].log_evidence == pytest.approx(two[0].log_evidence, rel=1e-12)
    for a, b in zip(one[1], two[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_far_from_the_data():
    """The prior's variance comes back, but for the degenerate process."""
    far = np.full((1, 2), 50.0)
    p = make("logistic", kernel=1.7 * RBF([0.8, 1.5]))
    for kind, wanted in (("sor", 0.0), ("dtc", 1.7), ("fitc", 1.7)):
        process, _ = sparse_laplace.posterior(cases.sparse(p, kind), means.Zero())
        assert process.var(far)[0, 0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.filterwarnings("ignore::mercer.errors.JitterWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_inducing_inputs_of_any_number(kind):
    p = make("logistic", 9, kernel=1.7 * RBF([0.8, 1.5]))
    for Z in (p.X[[0, 0, 1]], p.X[:1], np.vstack([p.X, p.X + 0.4])):
        q = cases.sparse(p, kind, Z=Z)
        solution, adjoints = sparse_laplace.evidence(q, inputs=True)
        assert solution.status == "converged"
        assert all(np.all(np.isfinite(part)) for part in adjoints)
    alone = cases.sparse(make("logistic", 1, kernel=cases.ROUGH), kind, Z=p.X[:2])
    assert sparse_laplace.solve(alone).status == "converged"


def test_refused():
    p = make("logistic", kernel=cases.ROUGH)
    with pytest.raises(ValueError, match="at least one inducing input"):
        cases.sparse(p, "fitc", Z=p.X[:0])
    for kind in ("pitc", "vfe", "pep"):
        with pytest.raises(ValueError, match=f"priors of 'sor', 'dtc' and 'fitc', got '{kind}'"):
            cases.sparse(p, kind)
    with pytest.raises(ValueError, match=r"curvature of the likelihood.* of Laplace is 0"):
        sparse_laplace.solve(replace(cases.sparse(p, "fitc"), likelihood=Laplace(0.5)))
    assert cases.sparse(p, "fitc").kind is APPROXIMATIONS["fitc"]
