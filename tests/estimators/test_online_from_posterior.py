"""On-line regression that goes on from posteriors, and is pruned."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    BayesianCommitteeRegressor,
    GPRegressor,
    OnlineGPRegressor,
    SparseGPRegressor,
    SparseGreedyGPRegressor,
    means,
)
from mercer.errors import MercerWarning
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Probit

from .online_cases import (
    FIRST,
    KERNEL,
    NEW,
    REST,
    X,
    Y,
    exact,
    finite,
    streaming,
)


def test_from_an_exact_posterior_it_is_exact():
    whole = GPRegressor(KERNEL, Gaussian(0.05), optimizer=None, mean="zero").fit(X[FIRST], Y[FIRST])
    model = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_, 60, tol=0.0)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-10)
    model.partial_fit(X[REST], Y[REST])
    mean, var = exact(X, Y)
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std**2, var, atol=1e-8)
    small = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_, 10)
    assert small.n_basis_ == 10
    assert small.projection_loss_ > 0
    np.testing.assert_allclose(small.projection_loss_, whole.posterior_.prune(10)[1], rtol=1e-6)


def test_coefficients_that_are_integrated_out_go_on():
    mean = means.Linear(estimate="integrate")
    options = {"optimizer": None, "mean": mean}
    first = GPRegressor(KERNEL, Gaussian(0.05), **options).fit(X[FIRST], Y[FIRST])
    model = OnlineGPRegressor.from_posterior(first.posterior_, first.likelihood_, 60, tol=0.0)
    model.partial_fit(X[REST], Y[REST])
    whole = GPRegressor(KERNEL, Gaussian(0.05), **options).fit(X, Y)
    got, wanted = (m.predict(NEW, return_std=True) for m in (model, whole))
    np.testing.assert_allclose(got, wanted, atol=1e-7)


@pytest.mark.parametrize("approximation", ["fitc", "vfe", "dtc", "pitc"])
def test_from_sparse_posteriors(approximation):
    options = {"n_inducing": 8, "optimizer": None, "mean": "zero", "learn_inducing": False}
    sparse = SparseGPRegressor(KERNEL, Gaussian(0.05), approximation=approximation, **options)
    sparse.fit(X[FIRST], Y[FIRST])
    model = OnlineGPRegressor.from_posterior(sparse.posterior_, sparse.likelihood_, 40, tol=0.0)
    joint = np.vstack([X[REST], NEW])
    # the sparse posterior is a Gaussian prior for the rest
    mean, cov = (
        part[..., 0] for part in (sparse.posterior_.mean(joint), sparse.posterior_.cov(joint))
    )
    n = 25
    gain = np.linalg.solve(cov[:n, :n] + 0.05 * np.eye(n), cov[:n, n:]).T
    wanted = mean[n:] + gain @ (Y[REST] - mean[:n])
    var = np.diagonal(cov)[n:] - np.sum(gain * cov[n:, :n], axis=1)
    model.partial_fit(X[REST], Y[REST])
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, wanted, atol=1e-7)
    np.testing.assert_allclose(std**2, var, atol=1e-7)


def test_from_a_greedy_posterior():
    greedy = SparseGreedyGPRegressor(KERNEL, Gaussian(0.05), tol=1e-3, optimizer=None, mean="zero")
    greedy.fit(X[FIRST], Y[FIRST])
    model = OnlineGPRegressor.from_posterior(greedy.posterior_, greedy.likelihood_)
    np.testing.assert_allclose(model.predict(NEW), greedy.predict(NEW), atol=1e-7)
    model.partial_fit(X[REST], Y[REST])
    finite(model)


def test_from_a_degenerate_posterior():
    options = {"n_inducing": 8, "optimizer": None, "mean": "zero", "learn_inducing": False}
    sor = SparseGPRegressor(KERNEL, Gaussian(0.05), approximation="sor", **options)
    sor.fit(X[FIRST], Y[FIRST])
    model = OnlineGPRegressor.from_posterior(sor.posterior_, sor.likelihood_)
    model.partial_fit(X[REST], Y[REST])
    # its weights are updated: SoR of all rows on the same points (UV 16b), dense
    Z = sor.inducing_
    Kuu, Kuf, Ksu = KERNEL(Z), KERNEL(Z, X), KERNEL(NEW, Z)
    S = np.linalg.inv(Kuu + Kuf @ Kuf.T / 0.05)
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, Ksu @ S @ Kuf @ Y / 0.05, atol=1e-7)
    np.testing.assert_allclose(std**2, np.einsum("ij,jk,ik->i", Ksu, S, Ksu), atol=1e-7)
    assert model.n_basis_ == 8
    with pytest.raises(ValueError, match="degenerate"):
        model.prune(3)
    # lifted it is DTC on these points (UV 20b), to which others come
    lifted = OnlineGPRegressor.from_posterior(sor.posterior_, sor.likelihood_, 40, lift=True)
    S = np.linalg.inv(Kuu + Kuf[:, FIRST] @ Kuf[:, FIRST].T / 0.05)
    wanted = KERNEL.diag(NEW) - np.einsum("ij,jk,ik->i", Ksu, np.linalg.inv(Kuu) - S, Ksu)
    _, std = lifted.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(std**2, wanted, atol=1e-7)
    lifted.partial_fit(X[REST], Y[REST])
    assert lifted.n_basis_ == 33


def test_without_max_basis_a_lift_has_room_for_the_points_that_stay():
    """Others that these determine but for rounding are left out, and do not make room for more."""
    points = np.linspace(-1.0, 1.0, 20)[:, None]
    options = {"optimizer": None, "mean": "zero", "learn_inducing": False, "inducing": points}
    x, y = X[:, :1], Y
    sor = SparseGPRegressor(30.0 * RBF(5.0), Gaussian(0.05), approximation="sor", **options)
    sor.fit(x, y)
    with pytest.warns(MercerWarning, match="error bars away from its basis are too narrow"):
        model = OnlineGPRegressor.from_posterior(sor.posterior_, sor.likelihood_, lift=True)
    room = model.max_basis
    assert model.n_basis_ <= room < 20
    model.partial_fit(10.0 * x, y)
    assert model.max_basis == model.n_basis_ == room


@pytest.mark.parametrize("seed", [0, 2])
def test_weights_of_functions_that_are_much_alike_are_updated_exactly(seed):
    """Their covariance is as large as the inverse Gram matrix of a long length scale."""
    rng = np.random.default_rng(seed)
    x, new = rng.uniform(-3, 3, (500, 1)), rng.uniform(-3, 3, (30, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(500)
    sor = SparseGPRegressor(approximation="sor", random_state=0).fit(x[:200], y[:200])
    model = OnlineGPRegressor.from_posterior(sor.posterior_, sor.likelihood_)
    for got, wanted in zip(*(m.predict(new, return_std=True) for m in (model, sor)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8)
    # rows are Gaussian observations of a Gaussian prior, which the first posterior is
    joint = np.vstack([x[200:], new])
    mean, cov = sor.posterior_.mean(joint)[:, 0], sor.posterior_.cov(joint)[..., 0]
    noise = sor.likelihood_.noise * sor.posterior_.scale[0] ** 2
    gain = np.linalg.solve(cov[:300, :300] + noise * np.eye(300), cov[:300, 300:]).T
    wanted = mean[300:] + gain @ (y[200:] - mean[:300])
    std = np.sqrt(np.diagonal(cov)[300:] - np.sum(gain * cov[300:, :300], axis=1))
    model.partial_fit(x[200:], y[200:])
    got, own = model.predict(new, return_std=True, latent=True)
    np.testing.assert_allclose(got, wanted, atol=1e-6 * np.min(std))
    np.testing.assert_allclose(own, std, rtol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_coefficients_of_columns_far_from_0_go_on(offset):
    """Times since 1970: what a constant and a slope are is far less certain than the function."""
    rng = np.random.default_rng(0)
    t = np.round(np.sort(rng.uniform(0, 60, 120)) * 64) / 64
    y = np.sin(t) + 0.05 * t + 0.1 * rng.standard_normal(120)
    new = np.arange(0.0, 60.0, 2.0)

    def fitted(t, y):
        mean = means.Linear(estimate="integrate")
        model = GPRegressor(RBF(1.0), Gaussian(0.01), mean=mean, optimizer=None)
        return model.fit(t[:, None], y)

    wanted, std = fitted(t - 30.0, y).predict(new[:, None] - 30.0, return_std=True, latent=True)
    first = fitted(t[:40:2] + offset, y[:40:2])
    model = OnlineGPRegressor.from_posterior(first.posterior_, first.likelihood_, 300, tol=1e-8)
    rest = np.setdiff1d(np.arange(120), np.arange(0, 40, 2))
    model.partial_fit(t[rest, None] + offset, y[rest])
    got, own = model.predict(new[:, None] + offset, return_std=True, latent=True)
    np.testing.assert_allclose(got, wanted, atol=1e-3 * np.min(std))
    np.testing.assert_allclose(own, std, rtol=1e-3)


def test_what_is_no_posterior_is_refused():
    committee = BayesianCommitteeRegressor(KERNEL, Gaussian(0.05), n_members=2, optimizer=None)
    committee.fit(X, Y)
    with pytest.raises(ValueError, match="Posterior"):
        OnlineGPRegressor.from_posterior(committee.predictive_, committee.likelihood_)
    posterior = streaming().partial_fit(X, Y).posterior_
    for wrong in (None, 0.1, Probit()):
        with pytest.raises(ValueError, match="likelihood"):
            OnlineGPRegressor.from_posterior(posterior, wrong)
    with pytest.raises(ValueError, match="max_basis"):
        OnlineGPRegressor.from_posterior(posterior, Gaussian(0.1), 0)
    with pytest.raises(ValueError, match="lift"):
        OnlineGPRegressor.from_posterior(posterior, Gaussian(0.1), lift="yes")


def test_prune():
    model = streaming(criterion="mean").partial_fit(X, Y)
    kl = streaming().partial_fit(X, Y)
    before = model.posterior_
    assert model.prune(60) == 0.0
    loss = model.prune(15)
    assert model.n_basis_ == model.posterior_.n_basis == 15
    assert loss > 0
    np.testing.assert_allclose(model.projection_loss_, loss, rtol=1e-6)
    assert kl.prune(15) <= loss
    assert before.n_basis == 60  # what was given out stays
    finite(model)
    with pytest.raises(ValueError, match="n must be"):
        model.prune(0)


def test_another_posterior_can_be_assigned():
    model = streaming().partial_fit(X, Y)
    small, _ = model.posterior_.prune(10)
    model.posterior_ = small
    assert model.n_basis_ == 10
    np.testing.assert_allclose(model.predict(NEW), small.mean(NEW)[:, 0], atol=1e-8)
    model.partial_fit(X, Y)
    assert model.n_basis_ > 10
    with pytest.raises(ValueError, match="Posterior"):
        model.posterior_ = 3
