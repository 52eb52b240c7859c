"""OnlineGPRegressor: streams of rows, and the exact process wherever it should be that."""

from __future__ import annotations

import pickle
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import (
    BayesianCommitteeRegressor,
    GPRegressor,
    OnlineGPRegressor,
    SparseGPRegressor,
    SparseGreedyGPRegressor,
    load,
    means,
    save,
)
from mercer.errors import MercerWarning, UndeterminedWarning
from mercer.estimators import Prequential
from mercer.estimators.online_start import sample_of
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Flipped, Matern, Tanh
from mercer.likelihoods import Custom, Gaussian, Laplace, Poisson, Probit, StudentT

KERNEL = 1.5 * Matern([0.8, 1.3], nu=2.5)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=60)
NEW = RNG.normal(size=(9, 2))


def streaming(noise=0.05, **options):
    options = {"max_basis": 80, "tol": 0.0, "mean": "zero"} | options
    return OnlineGPRegressor(KERNEL, Gaussian(noise), **options)


def exact(X, y, new=NEW, noise=0.05, weights=None, kernel=KERNEL):
    """Return mean and variance of the function, by the textbook."""
    s = noise / (np.ones(len(y)) if weights is None else weights)
    K, k = kernel(X) + np.diag(s), kernel(new, X)
    return k @ np.linalg.solve(K, y), kernel.diag(new) - np.sum(k * np.linalg.solve(K, k.T).T, 1)


def in_chunks(model, X, y, sizes, **options):
    at = 0
    for size in sizes:
        own = {k: v[at : at + size] for k, v in options.items()}
        model.partial_fit(X[at : at + size], y[at : at + size], **own)
        at += size
    assert at == len(X)
    return model


def same(a, b):
    for options in ({"return_std": True}, {"return_std": True, "latent": True}):
        for left, right in zip(a.predict(NEW, **options), b.predict(NEW, **options), strict=True):
            np.testing.assert_array_equal(left, right)
    assert a.log_evidence_ == b.log_evidence_
    assert a.projection_loss_ == b.projection_loss_
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.basis_, b.basis_)


def near(a, b):
    """The same but for rounding: kernels round by how many values are found at once."""
    for left, right in zip(*(m.predict(NEW, return_std=True) for m in (a, b)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(a.log_evidence_, b.log_evidence_, rtol=1e-8)
    np.testing.assert_allclose(a.projection_loss_, b.projection_loss_, rtol=1e-6, atol=1e-5)
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.basis_, b.basis_)


# --- exactness ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_with_room_for_all_rows_it_is_exact_whatever_the_order(seed):
    order = np.arange(60) if seed is None else np.random.default_rng(seed).permutation(60)
    model = streaming().partial_fit(X[order], Y[order])
    mean, var = exact(X, Y)
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, var, rtol=0, atol=1e-8)
    K = KERNEL(X) + 0.05 * np.eye(60)
    evidence = -0.5 * (Y @ np.linalg.solve(K, Y) + np.linalg.slogdet(2.0 * np.pi * K)[1])
    np.testing.assert_allclose(model.log_evidence_, evidence, rtol=1e-8)
    assert model.n_basis_ == model.n_seen_ == 60
    assert model.projection_loss_ < 1e-8


def test_fit_has_the_hyperparameters_of_an_exact_fit():
    whole = GPRegressor(KERNEL).fit(X, Y)
    model = OnlineGPRegressor(KERNEL, tol=0.0).fit(X, Y)
    np.testing.assert_allclose(model.theta_, whole.theta_, rtol=1e-10)
    got, wanted = (m.predict(NEW, return_std=True) for m in (model, whole))
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    held = OnlineGPRegressor(KERNEL, Gaussian(0.3), optimizer=None).fit(X, Y)
    np.testing.assert_array_equal(held.kernel_.theta, KERNEL.theta)


def test_several_outputs():
    Y2 = np.column_stack([Y, 30.0 * np.cos(X[:, 0])])
    model = streaming().partial_fit(X, Y2)
    assert model.predict(NEW).shape == (9, 2)
    for p in range(2):
        np.testing.assert_allclose(model.predict(NEW)[:, p], exact(X, Y2[:, p])[0], atol=1e-7)
    with pytest.raises(ValueError, match=r"y must have shape \(n, 2\)"):
        model.partial_fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        default, whole = OnlineGPRegressor().fit(X, Y2), GPRegressor().fit(X, Y2)
    np.testing.assert_allclose(default.predict(NEW), whole.predict(NEW), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="columns"):
        OnlineGPRegressor(KERNEL, Laplace(0.1)).partial_fit(X, Y2)


@pytest.mark.parametrize("likelihood", [Laplace(0.2), StudentT(4.0, 0.2)], ids=repr)
def test_other_noise_by_sweeps_is_expectation_propagation(likelihood):
    options = {"optimizer": None, "mean": "zero"}
    model = OnlineGPRegressor(KERNEL, likelihood, tol=0.0, n_sweeps=100, **options).fit(
        X[:25], Y[:25]
    )
    whole = GPRegressor(KERNEL, likelihood, inference="ep", **options).fit(X[:25], Y[:25])
    got, wanted = (m.predict(NEW, return_std=True, latent=True) for m in (model, whole))
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    first = OnlineGPRegressor(KERNEL, likelihood, tol=0.0, **options).fit(X[:25], Y[:25])
    assert model.log_evidence_ == first.log_evidence_
    assert np.max(np.abs(first.predict(NEW) - model.predict(NEW))) > 1e-4


def test_counts():
    y = np.random.default_rng(3).poisson(np.exp(X[:, 0])).astype(float)
    model = OnlineGPRegressor(likelihood=Poisson()).fit(X, y)
    rates = model.predict(np.array([[-1.0, 0.0], [1.5, 0.0]]))
    assert rates[0] < 1.0 < rates[1]


def test_sparse_recursion_is_that_of_the_engine():
    model = streaming(max_basis=12, tol=1e-3, criterion="mean", novelty="mean").partial_fit(X, Y)
    options = {"max_basis": 12, "tol": 1e-3, "criterion": "mean", "novelty": "mean"}
    process = OnlineProcess(KERNEL, Gaussian(0.05), means.Zero(), **options)
    process.learn(X, Y[:, None])
    np.testing.assert_array_equal(model.predict(NEW), process.posterior().mean(NEW)[:, 0])
    assert model.n_basis_ == 12
    assert model.projection_loss_ == process.projection_loss > 0


def test_heuristic_repetition_counts_rows_twice():
    model = streaming(n_sweeps=2, recycle="heuristic", optimizer=None).fit(X, Y)
    mean, var = exact(X, Y, noise=0.025)
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-6)
    np.testing.assert_allclose(std**2, var, atol=1e-6)
    assert model.n_seen_ == 60
    once = streaming(optimizer=None).fit(X, Y)
    assert model.log_evidence_ == once.log_evidence_


@pytest.mark.parametrize("forget", [0.05, 0.3])
def test_forgetting_is_a_kernel_over_time(forget):
    """k(x, x') sqrt(keep)^|t - t'|, at the time of the last row."""
    n = 25
    model = streaming(forget=forget).partial_fit(X[:n], Y[:n])
    t = np.arange(n)
    over_time = (1.0 - forget) ** (0.5 * np.abs(t[:, None] - t))
    K = KERNEL(X[:n]) * over_time + 0.05 * np.eye(n)
    k = KERNEL(NEW, X[:n]) * over_time[-1]
    mean = k @ np.linalg.solve(K, Y[:n])
    var = KERNEL.diag(NEW) - np.sum(k * np.linalg.solve(K, k.T).T, axis=1)
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std**2, var, atol=1e-8)


# --- streams ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_chunks_are_one(data):
    cuts = data.draw(st.lists(st.integers(1, 59), unique=True, max_size=12))
    sizes = np.diff([0, *sorted(cuts), 60])
    weights = np.random.default_rng(data.draw(st.integers(0, 9))).choice([0.0, 1.0, 2.0, 0.7], 60)
    make = [streaming(max_basis=10, tol=1e-6), OnlineGPRegressor(n_init=20, max_iter=3)]
    new = data.draw(st.sampled_from(make))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = clone(new).partial_fit(X, Y, sample_weight=weights)
        near(in_chunks(clone(new), X, Y, sizes, sample_weight=weights), one)


def test_one_by_one_for_noise_without_a_closed_form():
    likelihood = StudentT(4.0, 0.2)
    make = OnlineGPRegressor(KERNEL, likelihood, max_basis=8, mean="zero")
    one = clone(make).partial_fit(X[:20], Y[:20])
    near(in_chunks(clone(make), X[:20], Y[:20], [1] * 20), one)


def test_rows_wait_until_the_model_can_be_chosen():
    model = OnlineGPRegressor(n_init=40, max_iter=20)
    with pytest.raises(NotFittedError, match="not fitted yet: call"):
        model.predict(NEW)
    for at in range(0, 39, 13):
        assert model.partial_fit(X[at : at + 13], Y[at : at + 13]) is model
    with pytest.raises(NotFittedError, match="39 of the first n_init=40 rows"):
        model.predict(NEW)
    assert not hasattr(model, "posterior_")
    model.partial_fit(X[39:45], Y[39:45])
    assert model.n_seen_ == 45
    first = GPRegressor(max_iter=20).fit(X[:40], Y[:40])
    np.testing.assert_allclose(model.theta_, first.theta_)
    # then all 45 are learned
    wanted = OnlineGPRegressor(model.kernel_, model.likelihood_, mean=model.mean_)
    wanted.partial_fit(X[:45], Y[:45])
    same(model, wanted)


def test_what_is_open_of_the_noise_waits_too():
    for model in (
        OnlineGPRegressor(KERNEL, n_init=30),
        OnlineGPRegressor(KERNEL, Gaussian(), n_init=30),
        OnlineGPRegressor(KERNEL, StudentT(), n_init=30),
        OnlineGPRegressor(KERNEL, Gaussian(0.1), n_init=30, normalize_y=True),
        OnlineGPRegressor(Flipped(Tanh(0.7, -0.4)), Gaussian(0.1), n_init=30),
    ):
        with pytest.raises(NotFittedError):
            _ = model.n_seen_
        model.partial_fit(X[:20], Y[:20]).partial_fit(X[20:29], Y[20:29])
        assert model.n_seen_ == 29
        with pytest.raises(NotFittedError):
            model.predict(NEW)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.partial_fit(X[29:31], Y[29:31])
        assert model.n_seen_ == 31


def test_a_complete_model_starts_at_once_as_it_is():
    model = OnlineGPRegressor(KERNEL, Gaussian(0.05), mean="constant").partial_fit(X[:1], Y[:1])
    assert model.n_seen_ == 1
    np.testing.assert_array_equal(model.theta_, [*KERNEL.theta, np.log(0.05)])
    far = np.array([[1e3, 0.0]])
    np.testing.assert_allclose(model.predict(far), 0.0, atol=1e-12)  # its mean is not estimated


def test_predictions_come_before_learning():
    model = streaming()
    before = model.learn(X, Y)
    assert isinstance(before, Prequential)
    one = streaming()
    for i in (0, 1, 7):
        part = clone(one).partial_fit(X[:i], Y[:i]) if i else None
        if part is None:
            assert before.mean[0] == 0.0
            np.testing.assert_allclose(before.std[0] ** 2, KERNEL.diag(X[:1])[0] + 0.05)
            continue
        mean, std = part.predict(X[i : i + 1], return_std=True)
        np.testing.assert_allclose(before.mean[i], mean[0], rtol=1e-9)
        np.testing.assert_allclose(before.std[i], std[0], rtol=1e-9)
        own = part.log_predictive_density(X[i : i + 1], Y[i : i + 1])
        np.testing.assert_allclose(before.log_density[i], own[0], rtol=1e-8)
    np.testing.assert_allclose(np.sum(before.log_density), model.log_evidence_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(NEW), streaming().partial_fit(X, Y).predict(NEW))


def test_no_prediction_of_rows_that_chose_the_model_or_weigh_nothing():
    model = OnlineGPRegressor(n_init=30, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = [model.learn(X[a : a + 20], Y[a : a + 20]) for a in (0, 20, 40)]
    mean = np.concatenate([part.mean for part in parts])
    assert np.all(np.isnan(mean[:30])) and np.all(np.isfinite(mean[30:]))
    after = model.learn(X[:3], Y[:3], sample_weight=[1.0, 0.0, 2.0])
    np.testing.assert_array_equal(np.isnan(after.mean), [False, True, False])
    np.testing.assert_array_equal(np.isnan(after.log_density), [False, True, False])
    assert model.n_seen_ == 62
    several = streaming().learn(X, np.column_stack([Y, Y]))
    assert several.mean.shape == several.std.shape == (60, 2)
    assert several.log_density.shape == (60,)


# --- weights, units, odd streams ----------------------------------------------------------------


def test_weights_are_powers():
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 60)
    model = streaming().partial_fit(X, Y, sample_weight=weights)
    kept = weights > 0
    mean, var = exact(X[kept], Y[kept], weights=weights[kept])
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std**2, var, atol=1e-8)
    assert model.n_seen_ == np.sum(kept)


def test_known_variances_are_weights():
    variances = np.random.default_rng(1).uniform(0.01, 0.5, 60)
    model = streaming(noise=1.0).partial_fit(X, Y, sample_weight=1.0 / variances)
    whole = GPRegressor(KERNEL, Gaussian(variances), optimizer=None, mean="zero").fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-8)


def finite(model, X=NEW):
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(std > 0)
    assert np.isfinite(model.projection_loss_) and model.projection_loss_ >= 0


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("novelty", ["geometry", "mean"])
def test_one_basis_vector(criterion, novelty):
    model = streaming(max_basis=1, criterion=criterion, novelty=novelty).partial_fit(X, Y)
    assert model.n_basis_ == 1 and model.basis_.shape == (1, 2)
    finite(model)


def test_duplicates_and_a_constant_stream():
    rows = np.repeat(X[:3], 200, axis=0)
    model = streaming(max_basis=10).partial_fit(rows, np.repeat(Y[:3], 200))
    assert model.n_basis_ == 3
    mean, var = exact(X[:3], Y[:3], weights=np.full(3, 200.0))
    got, std = model.predict(NEW, return_std=True, latent=True)
    np.testing.assert_allclose(got, mean, atol=1e-7)
    np.testing.assert_allclose(std**2, var, atol=1e-7)
    constant = streaming(max_basis=10).partial_fit(np.ones((500, 2)), np.full(500, 4.0))
    assert constant.n_basis_ == 1
    np.testing.assert_allclose(constant.predict([[1.0, 1.0]]), 4.0, atol=1e-3)
    with pytest.warns(UndeterminedWarning):
        default = OnlineGPRegressor(n_init=50).partial_fit(np.ones((60, 2)), np.full(60, 4.0))
    np.testing.assert_allclose(default.predict([[1.0, 1.0]]), 4.0, atol=1e-6)


def test_a_change_of_scale_mid_stream():
    model = streaming(max_basis=20, tol=1e-6)
    model.partial_fit(X, Y).partial_fit(X, 1e6 * Y)
    finite(model)
    # the new rows rule: those before are a millionth of them, under noise that is as small
    assert np.mean(np.abs(model.predict(X))) > 1e5
    inputs = streaming(max_basis=20).partial_fit(X, Y).partial_fit(1e6 * X, Y)
    finite(inputs, np.vstack([NEW, 1e6 * NEW]))


def test_rows_that_are_impossible_are_skipped():
    def within(y, f):
        return np.where((np.abs(y - f) <= 1.0) & (y < 100.0), -np.log(2.0), -np.inf)

    likelihood = Custom(
        within,
        knots=lambda y: y[:, None] + [-1.0, 1.0],
        conditional_mean=np.array,
        conditional_var=lambda f: np.full(np.shape(f), 1.0 / 3.0),
    )
    model = OnlineGPRegressor(RBF(), likelihood)
    model.partial_fit(np.zeros((20, 1)), np.linspace(-0.9, 0.9, 20))
    before = model.predict([[0.0]])
    with pytest.warns(MercerWarning, match=r"1 of 2 rows were skipped, row 0"):
        told = model.learn([[0.0], [0.5]], [500.0, 0.1])
    assert told.log_density[0] == -np.inf
    assert np.isfinite(told.log_density[1])
    assert abs(model.predict([[0.0]])[0] - before[0]) < 0.5


# --- from posteriors, pruning -------------------------------------------------------------------

FIRST, REST = slice(0, 35), slice(35, 60)


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
    assert model.n_basis_ == 15
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


# --- keeping, options, interruption -------------------------------------------------------------


@pytest.mark.parametrize("max_basis", [12, 80])
def test_a_saved_model_goes_on_bit_by_bit(tmp_path, max_basis):
    model = streaming(max_basis=max_basis).partial_fit(X[FIRST], Y[FIRST])
    path = tmp_path / "model.mercer"
    save(model, path)
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        same(again, model)
        going = streaming(max_basis=max_basis).partial_fit(X[FIRST], Y[FIRST])
        same(again.partial_fit(X[REST], Y[REST]), going.partial_fit(X[REST], Y[REST]))


def test_waiting_rows_are_saved(tmp_path):
    model = OnlineGPRegressor(n_init=40, max_iter=5).partial_fit(X[FIRST], Y[FIRST])
    path = tmp_path / "model.mercer"
    save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = OnlineGPRegressor(n_init=40, max_iter=5).partial_fit(X, Y)
        same(load(path).partial_fit(X[REST], Y[REST]), whole)


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = OnlineGPRegressor(1.5 * RBF(1.0).on("b"), Gaussian(0.1)).partial_fit(frame, Y)
    assert list(model.feature_names_in_) == ["a", "b"]
    model.partial_fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]], Y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["a"]], Y)
    assert model.n_seen_ == 120


def test_fit_starts_anew():
    model = streaming(optimizer=None)
    model.partial_fit(X, 5.0 + Y).fit(X[FIRST], Y[FIRST])
    same(model, streaming(optimizer=None).fit(X[FIRST], Y[FIRST]))
    model.partial_fit(X[REST], Y[REST])
    assert model.n_seen_ == 60


def test_a_failed_call_changes_nothing():
    model = streaming().partial_fit(X, Y)
    wanted = model.predict(NEW)
    for wrong in (np.full(60, np.nan), Y[:-1]):
        with pytest.raises(ValueError, match=r"NaN|inconsistent|rows"):
            model.partial_fit(X, wrong)
    np.testing.assert_array_equal(model.predict(NEW), wanted)
    fresh = streaming()
    with pytest.raises(ValueError, match="NaN"):
        fresh.partial_fit(X, np.full(60, np.nan))
    assert not hasattr(fresh, "n_features_in_")


def test_the_sample_is_spread_over_all_rows():
    rows = sample_of(100_000, 100)
    assert len(rows) == len(np.unique(rows)) == 500
    assert np.all(np.diff(rows) > 0) and rows[-1] < 100_000
    for period in (2, 7, 200):  # no period of the rows is met or missed
        share = np.bincount(rows % period, minlength=period) / 500
        assert np.max(np.abs(share - 1.0 / period)) < 0.05
    assert len(sample_of(100_000, 700)) == 700
    np.testing.assert_array_equal(sample_of(30, 10), np.arange(30))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_basis": 0}, "max_basis"),
        ({"tol": -1.0}, "tol"),
        ({"tol": "small"}, "tol"),
        ({"novelty": "none"}, "novelty"),
        ({"criterion": "none"}, "criterion"),
        ({"n_init": 0}, "n_init"),
        ({"n_sweeps": 0}, "n_sweeps"),
        ({"recycle": "often"}, "recycle"),
        ({"forget": 1.0}, "forget"),
        ({"forget": 0.1, "n_sweeps": 2}, "partly lost"),
        ({"normalize_y": 1}, "normalize_y"),
        ({"kernel": "precomputed"}, "GPRegressor for kernel='precomputed'"),
        ({"kernel": Tanh()}, "Mercer"),
        ({"likelihood": Gaussian([0.1] * 60)}, "sample_weight"),
        ({"likelihood": Probit()}, "OnlineGPClassifier"),
        ({"mean": means.Constant(estimate="integrate")}, "from_posterior"),
        ({"likelihood": Laplace(0.1), "normalize_y": True}, "normalize_y"),
        ({"optimizer": "adam"}, "optimizer"),
    ],
)
def test_refusals(options, text):
    model = OnlineGPRegressor(**({"kernel": KERNEL, "likelihood": Gaussian(0.1)} | options))
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=text):
            call(X, Y)
    assert not hasattr(model, "n_features_in_")


def test_heuristic_sweeps_may_forget():
    streaming(forget=0.1, n_sweeps=2, recycle="heuristic", optimizer=None).fit(X, Y)


def test_ctrl_c_keeps_what_was_learned(monkeypatch):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y, 30)
    learn = OnlineProcess.learn
    model = streaming(optimizer=None, max_basis=10)

    def interrupted(self, *args):
        if self.n_seen == 512:
            signal.raise_signal(signal.SIGINT)
        return learn(self, *args)

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    model.fit(rows, targets)
    assert model.status_ == "interrupted"
    assert model.n_seen_ == 1024
    finite(model)
    part = streaming(max_basis=10)
    with pytest.raises(KeyboardInterrupt):
        part.partial_fit(rows, targets)
    assert part.n_seen_ == 1024
    finite(part)
    monkeypatch.undo()
    part.partial_fit(rows[1024:], targets[1024:])
    near(part, streaming(max_basis=10).partial_fit(rows, targets))


@pytest.mark.parametrize("rows", [1, 512, 600])
def test_ctrl_c_is_not_lost_where_it_comes_with_the_last_rows(rows, monkeypatch):
    """Else a loop over single rows could not be ended."""
    inputs, targets = np.tile(X, (10, 1))[:rows], np.tile(Y, 10)[:rows]
    learn = OnlineProcess.learn

    def interrupted(self, X, *args):
        found = learn(self, X, *args)
        if self.n_seen == rows:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(OnlineProcess, "learn", interrupted)
    for name in ("learn", "partial_fit"):
        model = streaming(max_basis=10)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, name)(inputs, targets)
        assert model.n_seen_ == rows
    once = streaming(optimizer=None, max_basis=10).fit(inputs, targets)
    assert (once.status_, once.n_seen_) == ("complete", rows)
    for recycle in ("sites", "heuristic"):
        twice = streaming(optimizer=None, max_basis=10, n_sweeps=2, recycle=recycle)
        assert twice.fit(inputs, targets).status_ == "interrupted"
        np.testing.assert_array_equal(twice.predict(NEW), once.predict(NEW))


def test_verbose_tells_of_rows(capsys):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y, 30)
    streaming(optimizer=None, max_basis=10, verbose=1, n_sweeps=2).fit(rows, targets)
    lines = capsys.readouterr().err
    assert "row 1800 of 1800, 10 basis vectors" in lines
    assert "refining the sites of 1800 rows" in lines
    assert "complete: 1800 rows, 10 basis vectors" in lines


def test_memory_is_asked_for_first():
    with pytest.raises(ValueError, match="smaller max_basis"):
        streaming(max_basis=10**7).partial_fit(X, Y)


def test_from_a_posterior_the_first_named_frame_names_the_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = np.sin(frame["a"].to_numpy())
    whole = GPRegressor(RBF(1.0), Gaussian(0.01), optimizer=None).fit(frame[:30], y[:30])
    model = OnlineGPRegressor.from_posterior(whole.posterior_, whole.likelihood_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(frame[30:], y[30:])
        model.predict(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])


def test_from_a_posterior_noise_that_is_not_chosen_is_refused():
    X = np.linspace(0, 1, 5)[:, None]
    whole = GPRegressor(RBF(1.0), Gaussian(0.01), optimizer=None).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="not chosen yet"):
        OnlineGPRegressor.from_posterior(whole.posterior_, Gaussian())
