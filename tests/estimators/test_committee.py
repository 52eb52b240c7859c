"""Regression by committees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import GPRegressor, load, save
from mercer.errors import TooLargeError
from mercer.estimators import committee, memory
from mercer.estimators.committee import BayesianCommitteeRegressor
from mercer.estimators.sparse_regressor import SparseGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, StudentT
from mercer.means import Constant
from mercer.posterior import CommitteePredictive, Posterior

from .data import X_NEW, X, Y, quiet_fit

KERNEL, NOISE = 1.7 * RBF([1.0, 2.0, 0.7]), 0.2
RULES = ["bcm", "rbcm", "gpoe"]
TWO = np.column_stack([Y, 3.0 * np.cos(X[:, 1])])


def held(**kwargs):
    options = {"mean": "zero", "n_members": 3, "random_state": 0, **kwargs}
    return BayesianCommitteeRegressor(KERNEL, Gaussian(NOISE), optimizer=None, **options)


def learned(**kwargs):
    options = {"n_members": 3, "random_state": 0, "max_iter": 30, **kwargs}
    return BayesianCommitteeRegressor(**options)


def noisy_sine(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 1))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)


# --- members and rules ----------------------------------------------------------------------------


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_one_member_is_the_exact_model(mean):
    one = learned(n_members=1, mean=mean, max_iter=200).fit(X, Y)
    exact = GPRegressor(mean=mean).fit(X, Y)
    np.testing.assert_allclose(one.theta_, exact.theta_, rtol=1e-4, atol=1e-4)
    for got, wanted in zip(
        one.predict(X_NEW, return_cov=True), exact.predict(X_NEW, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert isinstance(one.predictive_, Posterior)
    np.testing.assert_allclose(one.loo().std, exact.loo().std, rtol=1e-4)


@pytest.mark.parametrize("blocks", ["random", "kmeans"])
def test_members_are_exact_models_of_their_rows(blocks):
    model = held(blocks=blocks).fit(X, Y)
    assert sorted(np.unique(model.assignment_)) == list(range(len(model.members_)))
    evidence = 0.0
    for k, member in enumerate(model.members_):
        s = model.assignment_ == k
        exact = GPRegressor(KERNEL, Gaussian(NOISE), mean="zero", optimizer=None)
        exact.fit(model.X_train_[s], model.y_train_[s, 0])
        np.testing.assert_allclose(member.mean(X_NEW), exact.posterior_.mean(X_NEW), rtol=1e-10)
        np.testing.assert_allclose(member.var(X_NEW), exact.posterior_.var(X_NEW), rtol=1e-10)
        evidence += exact.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-12)
    np.testing.assert_array_equal(model.X_train_, X)


@pytest.mark.parametrize("rule", RULES)
def test_predictions_follow_the_rule(rule):
    model = held(combine=rule).fit(X, Y)
    mean = np.array([member.mean(X_NEW)[:, 0] for member in model.members_])
    var = np.array([member.var(X_NEW)[:, 0] for member in model.members_])
    prior = KERNEL.diag(X_NEW)
    share = {
        "bcm": np.ones_like(var),
        "rbcm": 0.5 * np.log(prior / var),
        "gpoe": np.full_like(var, 1.0 / len(var)),
    }[rule]
    wanted = 1.0 / (np.sum(share / var, axis=0) + (1.0 - share.sum(axis=0)) / prior)
    got, std = model.predict(X_NEW, return_std=True)
    np.testing.assert_allclose(std**2, wanted + NOISE, rtol=1e-10)
    np.testing.assert_allclose(got, wanted * np.sum(share * mean / var, axis=0), rtol=1e-10)
    assert isinstance(model.predictive_, CommitteePredictive)


@pytest.mark.parametrize("rule", RULES)
def test_far_from_the_data_the_prior_returns(rule):
    model = learned(combine=rule).fit(X, Y + 5.0)
    mean, std = model.predict(np.full((1, 3), 1e4), return_std=True, latent=True)
    assert mean[0] == pytest.approx(model.mean_.coefficients[0, 0], rel=1e-8)
    assert std[0] ** 2 == pytest.approx(model.kernel_.diag(np.zeros((1, 3)))[0], rel=1e-8)


@pytest.mark.parametrize("blocks", ["random", "kmeans"])
@pytest.mark.parametrize("rule", RULES)
def test_intervals_hold_what_they_say(rule, blocks):
    rows, targets = noisy_sine(400, 0)
    model = learned(n_members=5, combine=rule, blocks=blocks).fit(rows, targets)
    new, observed = noisy_sine(1000, 1)
    low, high = model.predict_interval(new)
    assert 0.92 < np.mean((low < observed) & (observed < high)) < 0.985
    assert np.mean((model.predict(new) - np.sin(new[:, 0])) ** 2) < 0.05**2
    assert model.likelihood_.new_variance == pytest.approx(0.04, rel=0.3)


# --- Tresp's form ---------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("blocks", ["random", "kmeans"])
def test_the_joint_committee_is_pitc_at_the_query(blocks, y):
    model = held(blocks=blocks).fit(X, y, query=X_NEW)
    sparse = SparseGPRegressor(
        KERNEL,
        Gaussian(NOISE),
        mean="zero",
        optimizer=None,
        approximation="pitc",
        inducing="query",
        learn_inducing=False,
    )
    quiet_fit(sparse, X, y, groups=model.assignment_, query=X_NEW)
    mean, cov = sparse.predict(X_NEW, return_cov=True, latent=True)
    np.testing.assert_allclose(model.query_mean_, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.query_cov_, cov, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.query_, X_NEW)


def test_new_points_take_no_refitting():
    first, later = held().fit(X, Y, query=X_NEW), held().fit(X, Y)
    mean, cov = later.predict_joint(X_NEW, latent=True)
    np.testing.assert_array_equal(first.query_mean_, mean)
    np.testing.assert_array_equal(first.query_cov_, cov)
    np.testing.assert_array_equal(first.predict(X_NEW), later.predict(X_NEW))
    noisy = later.predict_joint(X_NEW)[1]
    np.testing.assert_allclose(noisy, cov + NOISE * np.eye(len(X_NEW)), rtol=1e-12)
    assert later.query_ is later.query_mean_ is later.query_cov_ is None


def test_one_point_alone_is_the_committee_machine():
    model = held(combine="bcm").fit(X, TWO)
    for x in X_NEW[:3]:
        mean, cov = model.predict_joint(x[None])
        alone, std = model.predict(x[None], return_std=True)
        np.testing.assert_allclose(mean, alone, rtol=1e-9)
        np.testing.assert_allclose(cov[0], std**2, rtol=1e-9)


# --- options --------------------------------------------------------------------------------------


def test_blocks_are_of_equal_size_or_regions():
    sizes = np.bincount(held(n_members=7, blocks="random").fit(X, Y).assignment_)
    assert sizes.size == 7 and np.ptp(sizes) <= 1
    sizes = np.bincount(held(n_members=4, blocks="kmeans").fit(X, Y).assignment_)
    assert np.all(sizes > 0) and sizes.max() <= 2 * -(-len(X) // 4)


def test_no_more_members_than_rows_and_one_for_few():
    assert len(held(n_members=100, blocks="random").fit(X[:5], Y[:5]).members_) == 5
    assert len(held(n_members=None).fit(X, Y).members_) == 1


def test_rows_that_repeat_stay_together_but_make_no_giant():
    rows, targets = np.repeat(X[:12], [19, *[1] * 11], axis=0), np.repeat(Y[:12], [19, *[1] * 11])
    assignment = held(n_members=5, blocks="random").fit(rows, targets).assignment_
    assert len(np.unique(assignment[:19])) == 1
    rows, targets = np.concatenate([rows, X[:1].repeat(80, 0)]), np.append(targets, [Y[0]] * 80)
    sizes = np.bincount(held(n_members=5, blocks="random").fit(rows, targets).assignment_)
    assert 5 < len(sizes)
    assert max(sizes) <= 4 * -(-len(rows) // 5)


def test_seeds_decide():
    first, again, other = (held(blocks="random", random_state=s).fit(X, Y) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.assignment_, again.assignment_)
    assert np.any(first.assignment_ != other.assignment_)


def test_a_whole_weight_is_the_row_repeated():
    model = held(n_members=1, mean="constant")
    weights = np.where(np.arange(len(Y)) % 3 == 0, 2.0, 1.0)
    weights[5] = 0.0
    repeated = np.repeat(np.arange(len(Y)), weights.astype(int))
    one = clone(model).fit(X, Y, sample_weight=weights)
    two = clone(model).fit(X[repeated], Y[repeated])
    for got, wanted in zip(
        one.predict(X_NEW, return_std=True), two.predict(X_NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-8)
    assert one.log_marginal_likelihood_value_ == pytest.approx(
        two.log_marginal_likelihood_value_, rel=1e-9
    )


def test_rows_of_weight_0_are_left_out_of_all_members():
    weights = np.ones(len(Y))
    weights[[1, 7, 30]] = 0.0
    variances = np.linspace(0.1, 0.4, len(Y))
    model = held(blocks="random").set_params(likelihood=Gaussian(variances))
    one = clone(model).fit(X, Y, sample_weight=weights)
    kept = weights > 0
    two = model.set_params(likelihood=Gaussian(variances[kept])).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(one.predict(X_NEW), two.predict(X_NEW))
    assert len(one.assignment_) == len(Y) - 3


def test_outputs_are_those_of_models_of_their_own():
    both = held().fit(X, TWO)
    assert both.predict(X_NEW).shape == (len(X_NEW), 2)
    for p in range(2):
        one = held().fit(X, TWO[:, p])
        np.testing.assert_allclose(both.predict(X_NEW)[:, p], one.predict(X_NEW), rtol=1e-9)


def test_outputs_in_units_of_their_own():
    model = quiet_fit(learned(), X, TWO * [1.0, 100.0])
    mean, std = model.predict(X, return_std=True)
    assert std[:, 1].mean() > 20 * std[:, 0].mean()
    assert np.mean((mean[:, 1] / 100.0 - TWO[:, 1]) ** 2) < 0.5 * np.var(TWO[:, 1])
    joint, cov = model.predict_joint(X_NEW[:1])
    assert joint.shape == (1, 2) and cov.shape == (1, 1, 2)


def test_a_second_fit_starts_warm():
    model = learned(warm_start=True).fit(X, Y)
    theta = model.theta_
    assert model.fit(X, Y).n_iter_ <= 5
    np.testing.assert_allclose(model.theta_, theta, atol=0.05)


def test_restarts_on_several_threads():
    one = learned(n_restarts=2, n_jobs=2).fit(X, Y)
    two = learned(n_restarts=2).fit(X, Y)
    np.testing.assert_allclose(one.theta_, two.theta_, rtol=1e-6, atol=1e-8)


def test_evidence_its_gradient_and_standard_errors():
    model = learned(mean="linear").fit(X, Y)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-10)
    shift = 1e-5 * np.eye(model.theta_.size)
    slopes = [
        (
            model.log_marginal_likelihood(model.theta_ + e)
            - model.log_marginal_likelihood(model.theta_ - e)
        )
        / 2e-5
        for e in shift
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)
    assert all(error > 0 for error in model.standard_errors().values())


def test_slopes_of_predictions():
    model = held().fit(X, Y)
    slopes = model.predict_gradient(X_NEW[:2])
    step = 1e-6
    for j in range(3):
        ends = [X_NEW[:2] + s * step * np.eye(3)[j] for s in (1, -1)]
        (up, wide), (down, narrow) = (model.predict(end, return_std=True) for end in ends)
        np.testing.assert_allclose(slopes.mean[:, j], (up - down) / (2 * step), rtol=1e-5)
        np.testing.assert_allclose(slopes.std[:, j], (wide - narrow) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
def test_a_saved_committee_says_the_same(tmp_path, y):
    model = quiet_fit(learned(combine="bcm"), X, y, query=X_NEW)
    save(model, tmp_path / "model")
    back = load(tmp_path / "model")
    for got, wanted in zip(
        back.predict(X_NEW, return_std=True), model.predict(X_NEW, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(back.query_cov_, model.query_cov_)
    np.testing.assert_array_equal(back.predict_joint(X_NEW)[1], model.predict_joint(X_NEW)[1])
    assert back.get_params()["combine"] == "bcm" and len(back.members_) == len(model.members_)
    value = back.log_marginal_likelihood(back.theta_)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-10)


def test_the_rule_is_that_of_the_fit():
    model = held(combine="bcm").fit(X, Y)
    before = model.predict(X_NEW)
    np.testing.assert_array_equal(model.set_params(combine="gpoe").predict(X_NEW), before)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_members": 0}, "n_members must be a whole number from 1, got 0"),
        ({"n_members": 2.5}, "n_members must be a whole number"),
        ({"combine": "poe"}, "combine must be one of 'bcm', 'rbcm', 'gpoe', got 'poe'"),
        ({"blocks": "contiguous"}, "blocks must be one of 'random', 'kmeans'"),
        ({"normalize_y": 1}, "normalize_y must be True or False"),
        ({"max_iter": 0}, "max_iter"),
        ({"kernel": "precomputed"}, "takes inputs, not kernel matrices"),
        ({"likelihood": StudentT()}, "is for Gaussian noise, got StudentT"),
        ({"likelihood": Gaussian(np.eye(len(Y)))}, "noise covariance couples"),
        ({"mean": Constant(estimate="integrate")}, "integrated out couple"),
    ],
)
def test_options_that_are_refused(params, match):
    with pytest.raises(ValueError, match=match):
        learned(**params).fit(X, Y)


def test_what_a_committee_does_not_have():
    model = held().fit(X, Y)
    with pytest.raises(ValueError, match=r"a joint covariance of 7 points.*`predict_joint` of"):
        model.predict(X_NEW, return_cov=True)
    with pytest.raises(ValueError, match="3 members has no leave-one-out"):
        model.loo()
    with pytest.raises(AttributeError, match="members_ is the list of its members'"):
        _ = model.posterior_
    assert not hasattr(model, "posterior_")
    assert model.predict(X_NEW[:1], return_cov=True)[1].shape == (1, 1)


def test_a_query_of_other_columns_leaves_the_model_as_it_was(monkeypatch):
    model = held().fit(X, Y)
    before = model.predict(X_NEW)
    monkeypatch.setattr(committee, "search", None)  # which is not come to
    with pytest.raises(ValueError, match="query must have the 3 columns of X, got 2"):
        model.fit(X, Y + 1.0, query=X_NEW[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, Y + 1.0, query=np.full((1, 3), np.nan))
    np.testing.assert_array_equal(model.predict(X_NEW), before)


def test_members_that_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(TooLargeError, match="largest member to 40 rows"):
        held(n_members=1).fit(X, Y)


def test_a_posterior_that_is_put_there_predicts_until_the_next_fit():
    model, given = held().fit(X, Y), GPRegressor(KERNEL, Gaussian(NOISE), optimizer=None).fit(X, Y)
    own = model.predict(X_NEW)
    model.posterior_ = given.posterior_
    np.testing.assert_array_equal(model.predict(X_NEW), given.predict(X_NEW))
    np.testing.assert_array_equal(model.fit(X, Y).predict(X_NEW), own)
