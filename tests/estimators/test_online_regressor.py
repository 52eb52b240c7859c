"""OnlineGPRegressor: streams of rows, and the exact process wherever it should be that."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import (
    GPRegressor,
    OnlineGPRegressor,
    means,
)
from mercer.estimators import Prequential
from mercer.inference.online import OnlineProcess
from mercer.kernels import Flipped, Tanh
from mercer.likelihoods import Gaussian, Laplace, Poisson, StudentT
from mercer.params import Parameter

from .online_cases import (
    KERNEL,
    NEW,
    X,
    Y,
    exact,
    in_chunks,
    near,
    same,
    streaming,
)

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
    begun = OnlineGPRegressor(KERNEL, Poisson())
    for _ in range(2):  # the first rows, and later ones
        for wrong in (-1.0, 0.5):
            with pytest.raises(ValueError, match="counts must be whole numbers"):
                begun.partial_fit(X[:3], [1.0, wrong, 2.0])
        begun.partial_fit(X[:3], y[:3])
    assert begun.n_seen_ == 6


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


def test_rows_too_few_for_their_columns_leave_next_to_no_noise_and_are_told_of():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=12)

    def draw(n):
        X = rng.normal(size=(n, 12))
        return X, np.sin(X @ weights) + 0.5 * rng.standard_normal(n)

    X, y = draw(700)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        few = OnlineGPRegressor(n_init=25, random_state=0).partial_fit(X[:10], y[:10])
        few.partial_fit(X[10:30], y[10:30])
    said = [str(each.message) for each in caught if "next to no noise" in str(each.message)]
    is_little = float(few.likelihood_.noise) < 1e-3 * np.var(y[:25])
    assert is_little and len(said) == 1
    assert "the n_init=25 rows" in said[0] and "n_init=500" in said[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineGPRegressor(n_init=500, random_state=0).partial_fit(X, y)
    assert not any("next to no noise" in str(each.message) for each in caught)


@pytest.mark.parametrize("variance", [1.0, 1e-6])
def test_noise_that_was_given_is_not_what_rows_have_left(variance):
    rng = np.random.default_rng(1)
    X, v = rng.normal(size=(150, 8)), 1e4 * rng.uniform(0.5, 2.0, 150)
    y = 1e3 * (np.sin(X[:, 0]) + X[:, 1]) + np.sqrt(v) * rng.standard_normal(150)
    fixed = Gaussian(Parameter(variance, fixed=True))
    weights = 1.0 / v if variance == 1.0 else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineGPRegressor(likelihood=fixed).partial_fit(X, y, sample_weight=weights)
    assert not any("next to no noise" in str(each.message) for each in caught)
