"""Sites of an on-line process found again, against expectation propagation of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import LatentProblem, ep, sparse_ep
from mercer.inference._online_sweeps import first_sites, refine
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Polynomial
from mercer.likelihoods import Custom, Gaussian, Laplace, Logistic, Poisson, Probit, StudentT
from mercer.means import Constant, Linear

KERNEL = 1.5 * RBF(0.9)
MEAN = Constant(0.3, estimate=None)
NEW = np.random.default_rng(9).normal(size=(11, 2))


def rows(likelihood, n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    if likelihood.is_of_labels:
        y = np.where(f + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    elif likelihood.counts_events:
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + 0.3 * rng.normal(size=n)
    return X, y[:, None], rng.integers(1, 4, n).astype(float)


def passed(likelihood, X, Y, weights=None, **options):
    process = OnlineProcess(KERNEL, likelihood, MEAN, n_outputs=Y.shape[1], **options)
    return process, process.learn(X, Y, weights)


@pytest.mark.parametrize(
    "likelihood",
    [Probit(), Logistic(), Probit(0.0), Laplace(0.3), StudentT(5.0, 0.3), Poisson(), Gaussian(0.1)],
    ids=repr,
)
def test_with_room_for_all_rows_it_is_expectation_propagation(likelihood):
    X, Y, weights = rows(likelihood)
    if isinstance(likelihood, Probit) and not likelihood.noise_std:
        Y = np.sign(X[:, :1])  # which a function can follow without error
    process, before = passed(likelihood, X, Y, weights, max_basis=50, tol=0.0)
    refined = refine(process, X, Y, weights, before, 200)
    assert refined.converged
    problem = LatentProblem(KERNEL, X, Y[:, 0], likelihood, MEAN(X, 1)[:, 0], weights)
    wanted, _ = ep.posterior(problem, MEAN)
    got = refined.process.posterior()
    # both have matched moments to 1e-6 of a standard deviation
    np.testing.assert_allclose(got.mean(NEW), wanted.mean(NEW), rtol=0, atol=1e-5)
    np.testing.assert_allclose(got.var(NEW), wanted.var(NEW), rtol=1e-5, atol=1e-7)
    if not isinstance(likelihood, Gaussian):  # whose first pass is right already
        first = process.posterior().mean(NEW)
        assert np.max(np.abs(first - wanted.mean(NEW))) > 1e-3


def test_with_gaussian_noise_one_sweep_is_fitc():
    X, Y, _ = rows(Gaussian(0.1))
    process, before = passed(Gaussian(0.1), X, Y, max_basis=12)
    got = refine(process, X, Y, None, before, 1).process.posterior()
    # (UV 24b), dense
    Z = process.points
    Kuu, Kuf, Ksu = KERNEL(Z), KERNEL(Z, X), KERNEL(NEW, Z)
    Q = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    noise = np.diagonal(KERNEL(X) - Q) + 0.1
    S = np.linalg.inv(Kuu + (Kuf / noise) @ Kuf.T)
    mean = 0.3 + Ksu @ S @ (Kuf / noise) @ (Y[:, 0] - 0.3)
    cov = KERNEL(NEW) - Ksu @ np.linalg.solve(Kuu, Ksu.T) + Ksu @ S @ Ksu.T
    np.testing.assert_allclose(got.mean(NEW)[:, 0], mean, rtol=1e-8)
    np.testing.assert_allclose(got.var(NEW)[:, 0], np.diagonal(cov), rtol=1e-7)


def test_first_sites_make_the_first_pass():
    """With room for all rows the sites of the pass, put together, are its posterior."""
    X, Y, _ = rows(Probit())
    process, before = passed(Probit(), X, Y, max_basis=50, tol=0.0)
    (sites,) = first_sites(process, X, Y, before)
    K = KERNEL(X)
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(sites.precision))
    mean, var = process.posterior().mean_and_var(X)
    np.testing.assert_allclose(mean[:, 0], 0.3 + S @ sites.shift, rtol=0, atol=1e-7)
    np.testing.assert_allclose(var[:, 0], np.diagonal(S), rtol=1e-6)


@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Probit()], ids=repr)
def test_several_outputs_are_refined_one_by_one(likelihood):
    X, Y, weights = rows(likelihood)
    Y = np.hstack([Y, np.roll(Y, 3, axis=0)])
    process, before = passed(likelihood, X, Y, weights, max_basis=50, tol=0.0)
    both = refine(process, X, Y, weights, before, 100).process.posterior()
    for p in range(2):
        alone, own = passed(likelihood, X, Y[:, p : p + 1], weights, max_basis=50, tol=0.0)
        wanted = refine(alone, X, Y[:, p : p + 1], weights, own, 100).process.posterior()
        np.testing.assert_allclose(both.mean(NEW)[:, p], wanted.mean(NEW)[:, 0], atol=1e-6)
        np.testing.assert_allclose(both.var(NEW)[:, p], wanted.var(NEW)[:, 0], rtol=1e-6)


def test_units_of_outputs():
    X, Y, _ = rows(Gaussian(0.1))
    scale = np.array([20.0])
    process = OnlineProcess(KERNEL, Gaussian(0.1), MEAN, max_basis=12, scale=scale)
    before = process.learn(X, 20.0 * Y)
    got = refine(process, X, 20.0 * Y, None, before, 1).process.posterior()
    other = OnlineProcess(KERNEL, Gaussian(0.1), Constant(0.3 / 20.0, estimate=None), max_basis=12)
    plain = refine(other, X, Y, None, other.learn(X, Y), 1).process.posterior()
    np.testing.assert_allclose(got.mean(NEW), 20.0 * plain.mean(NEW), rtol=1e-9)
    np.testing.assert_allclose(got.var(NEW), 400.0 * plain.var(NEW), rtol=1e-9)


def test_it_keeps_basis_evidence_loss_and_rules():
    X, Y, _ = rows(Probit())
    process, before = passed(Probit(), X, Y, max_basis=12, criterion="mean", tol=1e-5)
    state = process.posterior().mean(NEW)
    new = refine(process, X, Y, None, before, 5).process
    np.testing.assert_array_equal(new.points, process.points)
    assert new.rules == process.rules
    assert new.n_seen == process.n_seen == len(X)
    assert new.log_evidence == process.log_evidence
    assert new.projection_loss == process.projection_loss > 0
    np.testing.assert_array_equal(process.posterior().mean(NEW), state)  # it is left alone
    new.learn(X, Y)
    assert new.n_basis == 12


def test_no_iteration_leaves_the_first_sites():
    X, Y, _ = rows(Probit())
    process, before = passed(Probit(), X, Y, max_basis=50, tol=0.0)
    refined = refine(process, X, Y, None, before, 0)
    assert not refined.converged and refined.residual > 1e-4
    got, wanted = refined.process.posterior(), process.posterior()
    np.testing.assert_allclose(got.mean(NEW), wanted.mean(NEW), atol=1e-6)


def log_window(y, f):
    """0 but for f within 1.2 of y, and for any f where y is above 100."""
    return np.where((np.abs(y - f) < 1.2) & (y < 100.0), -np.log(2.4), -np.inf)


def test_rows_that_were_skipped_stay_out():
    """A row that cannot be has a flat site."""
    window = Custom(log_window, always_positive=False, knots=lambda y: np.c_[y - 1.2, y, y + 1.2])
    X = np.array([[0.0], [1.0], [0.5], [2.0]])
    Y = np.array([[0.5], [0.3], [1e4], [-0.2]])
    process = OnlineProcess(RBF(), window, max_basis=5)
    before = process.learn(X, Y)
    skipped = np.isnan(before.log_density)
    assert list(skipped) == [False, False, True, False]
    (sites,) = first_sites(process, X, Y, before)
    assert np.all(np.isfinite(sites.precision)) and np.all(np.isfinite(sites.shift))
    assert np.all(sites.precision[skipped] == 0) and np.all(sites.shift[skipped] == 0)
    assert np.all(sites.precision[~skipped] > 0)


def test_rows_too_large_to_learn_stay_out_with_their_weights():
    """By a kernel too large there, and by a mean."""
    likelihood = Laplace(0.3)
    X, Y, weights = rows(likelihood, n=20)
    rest = np.arange(20) != 7
    for kernel, mean in (
        (Polynomial(2, 1.0), Constant(0.3, estimate=None)),
        (RBF(), Linear(0.0, [1e10, 0.0], estimate=None)),
    ):
        large = np.array(X)
        large[7] = 1e305
        found = []
        for x, y, w in ((large, Y, weights), (X[rest], Y[rest], weights[rest])):
            process = OnlineProcess(kernel, likelihood, mean, max_basis=30)
            refined = refine(process, x, y, w, process.learn(x, y, w), 50)
            found.append(refined.process.posterior())
        np.testing.assert_allclose(found[0].mean(NEW), found[1].mean(NEW), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found[0].var(NEW), found[1].var(NEW), rtol=1e-5, atol=1e-8)


def test_repeating_counts_rows_twice():
    X, Y, _ = rows(Gaussian(0.1), n=15)  # which are all told apart
    once, _ = passed(Gaussian(0.1), X, Y, max_basis=50, tol=0.0)
    evidence = once.log_evidence
    with once.uncounted():
        once.learn(X, Y)
    # half the noise is the row twice
    twice, _ = passed(Gaussian(0.05), X, Y, max_basis=50, tol=0.0)
    np.testing.assert_allclose(once.posterior().mean(NEW), twice.posterior().mean(NEW), atol=1e-7)
    assert once.log_evidence == evidence
    assert once.n_seen == len(X)


def test_what_forgets_has_no_sites():
    X, Y, _ = rows(Gaussian(0.1))
    process, before = passed(Gaussian(0.1), X, Y, forget=0.1)
    with pytest.raises(ValueError, match="forgets"):
        refine(process, X, Y, None, before, 1)


def test_sites_are_those_of_sparse_ep():
    """The same solution as that engine has from flat sites, with these inducing inputs."""
    X, Y, weights = rows(Logistic())
    process, before = passed(Logistic(), X, Y, weights, max_basis=10)
    refined = refine(process, X, Y, weights, before, 200)
    problem = sparse_ep.SparseLatentProblem(
        KERNEL, X, Y[:, 0], Logistic(), MEAN(X, 1)[:, 0], weights, Z=process.points
    )
    wanted, _ = sparse_ep.posterior(problem, MEAN)
    got = refined.process.posterior()
    np.testing.assert_allclose(got.mean(NEW), wanted.mean(NEW), atol=1e-5)
    np.testing.assert_allclose(got.var(NEW), wanted.var(NEW), rtol=1e-5)
