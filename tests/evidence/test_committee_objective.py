"""The objective of a committee: gradients, one mean for all members, and the model it ends in."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.evidence import Data, Objective, maximise
from mercer.evidence.committee import CommitteeObjective
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import LogNormal, Parameter

RNG = np.random.default_rng(4)
N = 30
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 3.0 * np.sin(X[:, :1]) + np.array([0.5, -1.0]) * X[:, 1:] + 0.3 * RNG.normal(size=(N, 2))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
PARTS = np.repeat([0, 1, 2, 3], [14, 9, 6, 1])[RNG.permutation(N)]
MEANS = {"zero": means.Zero(), "constant": means.Constant(), "linear": means.Linear()}
KERNEL = 2.0 * RBF(Parameter([1.0, 1.5], prior=LogNormal(0.5, 1.0)))
SCALE = np.array([1.0, 2.0])


def make(mean="constant", weights=None, parts=PARTS, noise=0.2):
    data = Data(X, Y, weights, SCALE)
    return CommitteeObjective(KERNEL, Gaussian(noise), MEANS[mean], data, parts)


def differences(function, theta, step=1e-5):
    shifts = step * np.eye(theta.size)
    return np.array([(function(theta + e) - function(theta - e)) / (2 * step) for e in shifts])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_gradient_by_differences(mean, weighted):
    objective = make(mean, WEIGHTS if weighted else None)
    theta = objective.theta
    value, gradient = objective(theta)
    assert value == pytest.approx(objective.value(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(objective.value, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_evidence_with_the_mean_held(mean, weighted):
    objective = make(mean, WEIGHTS if weighted else None)
    fit = objective.fitted(objective.theta)
    objective.mean = fit.mean
    theta = np.concatenate([fit.kernel.theta, fit.likelihood.theta, fit.mean.theta])
    value, gradient = objective.log_evidence(theta, gradient=True)
    assert value == pytest.approx(fit.log_evidence, rel=1e-12)
    assert gradient.size == theta.size
    # the coefficients are at their best
    np.testing.assert_allclose(gradient[objective.theta.size :], 0.0, atol=1e-9)
    slopes = differences(lambda t: objective.log_evidence(t)[0], theta)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_one_member_is_the_exact_objective(mean, weighted):
    weights = WEIGHTS if weighted else None
    one = make(mean, weights, np.zeros(N, dtype=int))
    exact = Objective(KERNEL, Gaussian(0.2), MEANS[mean], Data(X, Y, weights, SCALE))
    theta = one.theta + 0.1
    for got, wanted in zip(one(theta), exact(theta), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    fits = one.fitted(theta), exact.fitted(theta)
    assert fits[0].log_evidence == pytest.approx(fits[1].log_evidence, rel=1e-12)
    new = X[:4] + 0.1
    for got, wanted in zip(
        fits[0].members[0].mean_and_var(new), fits[1].posterior.mean_and_var(new), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
    for got, wanted in zip(one.left_out(), exact.left_out(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_members_with_a_known_mean_add_up():
    objective = make("zero", WEIGHTS)
    each = []
    for k in np.unique(PARTS):
        s = PARTS == k
        data = Data(X[s], Y[s], WEIGHTS[s], SCALE)
        each.append(Objective(KERNEL, Gaussian(0.2), means.Zero(), data))
    theta = objective.theta
    values, gradients = zip(*(one.log_evidence(theta, True) for one in each), strict=True)
    value, gradient = objective.log_evidence(theta, True)
    assert value == pytest.approx(sum(values), rel=1e-12)
    np.testing.assert_allclose(gradient, np.sum(gradients, axis=0), rtol=1e-10)
    members = objective.fitted(theta).members
    for member, one in zip(members, each, strict=True):
        np.testing.assert_allclose(
            member.mean(X), one.fitted(theta).posterior.mean(X), rtol=1e-9, atol=1e-12
        )


def test_members_share_the_mean():
    fit = make("linear").fitted(make("linear").theta)
    assert {id(member.mean_function) for member in fit.members} == {id(fit.mean)}
    assert fit.mean.coefficients.shape == (3, 2)


def test_a_mean_that_stands_far_off_is_not_rounded_away():
    far = make("constant")
    far.data = Data(X, Y + 1e7, None, SCALE)
    near = make("constant")
    assert far.value(far.theta) == pytest.approx(near.value(near.theta), abs=1e-4)
    assert far(far.theta)[0] == pytest.approx(near(near.theta)[0], abs=1e-4)


def test_regressors_that_depend_on_each_other():
    objective = make("linear")
    same = np.column_stack([X[:, 0], np.full(N, 3.0)])
    data = Data(same, Y, None, SCALE)
    objective = CommitteeObjective(KERNEL, Gaussian(0.2), means.Linear(), data, PARTS)
    assert np.isfinite(objective(objective.theta)[0])
    assert np.all(np.isfinite(objective.fitted(objective.theta).mean.coefficients))


def test_known_variances_go_with_their_rows():
    noise = RNG.uniform(0.1, 0.5, N)
    objective = make("zero", noise=noise)
    values = []
    for k in np.unique(PARTS):
        s = PARTS == k
        data = Data(X[s], Y[s], None, SCALE)
        one = Objective(KERNEL, Gaussian(noise[s]), means.Zero(), data)
        values.append(one.log_evidence(one.theta)[0])
    assert objective.log_evidence(objective.theta)[0] == pytest.approx(sum(values), rel=1e-12)
    assert objective(objective.theta)[1].size == KERNEL.theta.size


def test_jitter_is_decided_once_for_all_and_held():
    twice = np.repeat(np.arange(3), 10)
    rows = np.vstack([X[:10], X[10:20], X[10:15], X[10:15]])
    data = Data(rows, Y, None, SCALE)
    kernel = 2.0 * RBF(3.0)
    noise = Gaussian(Parameter(1e-30, fixed=True))
    objective = CommitteeObjective(kernel, noise, means.Zero(), data, twice)
    value = objective.value(objective.theta)
    jitter = objective.jitter
    assert jitter > 0.0
    assert objective(objective.theta)[0] == pytest.approx(value, rel=1e-6)
    assert objective.jitter == jitter == copy.copy(objective).jitter
    assert objective.fitted(objective.theta).jitter == jitter
    objective.hold_jitter(0.0)
    assert objective.value(objective.theta) == -np.inf
    with pytest.raises(NotPositiveDefiniteError):
        objective.evaluate(objective.theta)
    objective._last_good = (objective.theta, value)
    assert objective(objective.theta)[0] < value and objective.take_jitter()


def test_a_search_ends_where_the_slope_is_zero():
    objective = make("linear")
    end = maximise(objective, max_iter=100)
    assert end.value > objective.value(objective.theta)
    low, high = objective.bounds.T
    inside = (end.theta > low) & (end.theta < high)
    np.testing.assert_allclose(objective(end.theta)[1][inside], 0.0, atol=0.05)


def test_what_couples_members_is_refused():
    data = Data(X, Y, None, SCALE)
    with pytest.raises(ValueError, match="noise covariance couples"):
        CommitteeObjective(KERNEL, Gaussian(np.eye(N)), means.Zero(), data, PARTS)
    with pytest.raises(ValueError, match="integrated out couple"):
        mean = means.Constant(estimate="integrate")
        CommitteeObjective(KERNEL, Gaussian(0.2), mean, data, PARTS)
    with pytest.raises(ValueError, match="each of 30 rows, got shape"):
        make(parts=PARTS[1:])
    with pytest.raises(ValueError, match="4 members has no leave-one-out"):
        make().left_out()


def test_all_members_have_the_jitter_of_the_first_evaluation_in_it():
    rng = np.random.default_rng(4)
    X, Y = rng.uniform(-2.0, 2.0, (20, 1)), rng.normal(size=(20, 1))
    X[15:], Y[15:] = X[10:15], Y[10:15]
    data, parts = Data(X, Y, None, np.ones(1)), np.repeat([0, 1], 10)
    noise = Gaussian(Parameter(1e-30, fixed=True))
    objective = CommitteeObjective(2.0 * RBF(0.5), noise, means.Zero(), data, parts)
    first = objective.value(objective.theta)
    assert objective.jitter > 0
    assert first == pytest.approx(objective.value(objective.theta), rel=1e-12)
