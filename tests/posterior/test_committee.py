"""Committees of posteriors of parts of the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import BayesianCommitteeRegressor, GPRegressor, load
from mercer.inference import exact, sparse
from mercer.inference.exact import ExactProblem
from mercer.kernels import RBF
from mercer.kernels import Linear as Dot
from mercer.likelihoods import Gaussian
from mercer.means import Linear, Zero
from mercer.posterior import Basis, CommitteePredictive, Posterior, joint_committee

from ..inference.sparse_dense import SCALE, input_differences, make

RULES = ["bcm", "rbcm", "gpoe"]
X_NEW = np.random.default_rng(9).normal(size=(6, 2))


def parts(mean="zero", kernel=None, noise=None, **kwargs):
    """Return the problem of PITC, the posterior of each of its blocks, and the prior."""
    p, function = make("pitc", mean, **kwargs)
    p = p if kernel is None else replace(p, kernel=kernel)
    p = p if noise is None else replace(p, noise=np.full(len(p.Y), noise))
    members = []
    for g in np.unique(p.groups):
        s = p.groups == g
        Y = p.Y[s] if p.beta is None else p.Y[s] - p.H[s] @ p.beta
        problem = ExactProblem(p.kernel, p.X[s], Y, p.noise[s])
        members.append(exact.posterior(problem, Zero(), SCALE)[0].replace(mean=function))
    prior = Posterior(Basis(p.kernel), np.zeros((0, 2)), mean=function, scale=SCALE)
    return p, function, members, prior


def by_the_book(members, prior, X, rule):
    m, v = prior.mean(X), prior.var(X)
    means = np.array([k.mean(X) for k in members])
    variances = np.array([k.var(X) for k in members])
    M = len(members)
    if rule == "rbcm":
        b = 0.5 * (np.log(v) - np.log(variances))
    else:
        b = np.full_like(variances, 1.0 if rule == "bcm" else 1 / M)
    precision = np.sum(b / variances, axis=0) + (1 - np.sum(b, axis=0)) / v
    return m + np.sum(b * (means - m) / variances, axis=0) / precision, 1 / precision


@pytest.mark.parametrize("mean", ["zero", "held"])
@pytest.mark.parametrize("rule", RULES)
def test_rules_are_as_published(rule, mean):
    _, _, members, prior = parts(mean)
    made = CommitteePredictive(members, prior, rule)
    expected = by_the_book(members, prior, X_NEW, rule)
    for got, wanted in zip(made.mean_and_var(X_NEW), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)
    np.testing.assert_array_equal(made.mean(X_NEW), made.mean_and_var(X_NEW)[0])
    np.testing.assert_array_equal(made.var(X_NEW), made.mean_and_var(X_NEW)[1])
    np.testing.assert_array_equal(made.scale, SCALE)


@pytest.mark.parametrize("rule", ["bcm", "gpoe"])
def test_a_committee_of_one_is_its_member(rule):
    _, _, members, prior = parts("held")
    made = CommitteePredictive(members[:1], prior, rule)
    for got, wanted in zip(made.mean_and_var(X_NEW), members[0].mean_and_var(X_NEW), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_far_from_the_data_the_prior_returns(rule):
    _, _, members, prior = parts("held")
    far = np.full((1, 2), 60.0)
    made = CommitteePredictive(members, prior, rule)
    np.testing.assert_allclose(made.var(far), prior.var(far), rtol=1e-10)
    np.testing.assert_allclose(made.mean(far), prior.mean(far), rtol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_no_committee_is_less_sure_than_the_prior(rule):
    """Not even one whose members are, as with a mean that is integrated out."""
    p, _, members, prior = parts()
    function = Linear(estimate="integrate")
    for g in (0, 1):
        s = p.groups == g
        problem = ExactProblem(
            p.kernel, p.X[s], p.Y[s], p.noise[s], function.features(p.X[s]), True
        )
        members.append(exact.posterior(problem, function, SCALE)[0])
    some = np.vstack([X_NEW, 9.0 * X_NEW])
    assert np.any(members[-1].var(some) > prior.var(some))
    mean, var = CommitteePredictive(members, prior, rule).mean_and_var(some)
    assert np.all(np.isfinite(mean)) and np.all(var > 0)
    assert np.all(var <= prior.var(some) * (1 + 1e-12))


@pytest.mark.parametrize("rule", RULES)
def test_members_that_know_all_and_points_where_nothing_can_be_learnt(rule):
    p, _, members, _ = parts(kernel=Dot(), noise=1e-13)
    prior = Posterior(Basis(p.kernel), np.zeros((0, 2)), scale=SCALE)
    some = np.vstack([np.zeros((1, 2)), X_NEW])
    made = CommitteePredictive(members, prior, rule)
    mean, var = made.mean_and_var(some)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(var)) and np.all(var >= 0)
    assert all(np.all(np.isfinite(part)) for part in made.gradients(some))
    if p.kernel.diag(some[:1])[0] == 0:
        np.testing.assert_array_equal(var[0], 0.0)


@pytest.mark.parametrize("mean", ["zero", "held"])
@pytest.mark.parametrize("rule", RULES)
def test_input_gradients(rule, mean):
    _, _, members, prior = parts(mean)
    made = CommitteePredictive(members, prior, rule)
    for got, function in zip(made.gradients(X_NEW), (made.mean, made.var), strict=True):
        expected = input_differences(function, X_NEW)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_input_gradients_where_the_prior_is_not_stationary(rule):
    _, _, members, prior = parts(kernel=0.5 * Dot() + 1.1 * RBF(0.9))
    made = CommitteePredictive(members, prior, rule)
    for got, function in zip(made.gradients(X_NEW), (made.mean, made.var), strict=True):
        expected = input_differences(function, X_NEW)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mean", ["zero", "held"])
def test_tresps_committee_is_pitc_with_the_query_as_inducing_inputs(mean):
    p, function, members, prior = parts(mean)
    pitc = sparse.posterior(replace(p, Z=X_NEW), function, SCALE)[0]
    got = joint_committee(members, prior, X_NEW)
    np.testing.assert_allclose(got[0], pitc.mean(X_NEW), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(got[1], pitc.cov(X_NEW), rtol=1e-8, atol=1e-10)


def test_one_query_point_is_the_marginal_committee():
    _, _, members, prior = parts("held")
    mean, cov = joint_committee(members, prior, X_NEW[:1])
    expected = CommitteePredictive(members, prior, "bcm").mean_and_var(X_NEW[:1])
    np.testing.assert_allclose(mean, expected[0], rtol=1e-10)
    np.testing.assert_allclose(cov[0], expected[1], rtol=1e-10)
    empty = joint_committee(members, prior, X_NEW[:0])
    assert empty[0].shape == (0, 2) and empty[1].shape == (0, 0, 2)


def test_query_points_that_repeat():
    _, _, members, prior = parts()
    twice = np.vstack([X_NEW, X_NEW[:2]])
    mean, cov = joint_committee(members, prior, twice)
    expected = joint_committee(members, prior, X_NEW)
    np.testing.assert_allclose(mean[:6], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cov[:6, :6], expected[1], rtol=1e-4, atol=1e-5)


def test_points_have_no_joint_distribution():
    _, _, members, prior = parts()
    made = CommitteePredictive(members, prior)
    np.testing.assert_array_equal(made.cov(X_NEW[:1])[0], made.var(X_NEW[:1]))
    with pytest.raises(ValueError, match=r"of 6 points .* `joint_committee`"):
        made.cov(X_NEW)
    draws = made.sample(X_NEW[:1], 20_000, 1)
    np.testing.assert_allclose(np.var(draws[0], axis=0), made.var(X_NEW[:1])[0], rtol=0.05)


def test_saving(tmp_path):
    _, _, members, prior = parts("held")
    made = CommitteePredictive(members, prior, "gpoe")
    made.save(tmp_path / "committee")
    back = load(tmp_path / "committee")
    np.testing.assert_array_equal(back.mean(X_NEW), made.mean(X_NEW))
    np.testing.assert_array_equal(back.var(X_NEW), made.var(X_NEW))
    assert "Committee of 6, rule gpoe" in back.describe() and "6 members" in repr(back)
    assert back.n_outputs == 2


def test_what_is_refused():
    _, _, members, prior = parts()
    with pytest.raises(ValueError, match="rule must be one of 'bcm', 'rbcm', 'gpoe', got 'poe'"):
        CommitteePredictive(members, prior, "poe")
    with pytest.raises(ValueError, match=r"one or more members of 2 outputs.*got members of \[\]"):
        CommitteePredictive([], prior)
    with pytest.raises(ValueError, match="empty basis"):
        CommitteePredictive(members, members[0])
    with pytest.raises(ValueError, match="empty basis"):
        joint_committee(members, members[0], X_NEW)


@pytest.mark.parametrize("q", [14, 16, 18, 20, 22, 24])
def test_queries_under_an_all_but_singular_prior(q):
    """Some of these have a prior that is factorised by itself, and is of no use beside members."""
    rng = np.random.default_rng(0)
    A = rng.uniform(0.0, 6.0, (60, 1))
    y = np.sin(A[:, 0]) + 0.1 * rng.normal(size=60)
    model = BayesianCommitteeRegressor(
        1.0 * RBF(1.0), Gaussian(0.01), n_members=3, mean="zero", optimizer=None, random_state=0
    ).fit(A, y)
    whole = GPRegressor(1.0 * RBF(1.0), Gaussian(0.01), mean="zero", optimizer=None).fit(A, y)
    for seed in range(12):
        query = np.sort(np.random.default_rng(seed).uniform(0.0, 6.0, (q, 1)), axis=0)
        mean, cov = model.predict_joint(query, latent=True)
        # so many points leave the members next to nothing that is not independent given them
        np.testing.assert_allclose(mean, whole.predict(query), atol=0.02)
        assert np.all(np.diag(cov) > 0.0)
