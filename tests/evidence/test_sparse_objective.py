"""The objective of a sparse fit: gradients, its search, leave-one-out, and the model it ends in."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data, maximise
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference._approximations import approximation
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import LogNormal, Parameter

RNG = np.random.default_rng(4)
N, M = 30, 6
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 3.0 * np.sin(X[:, :1]) + np.array([0.5, -1.0]) * X[:, 1:] + 0.3 * RNG.normal(size=(N, 2))
Z = RNG.uniform(-2.0, 2.0, (M, 2))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
MEANS = {
    "zero": means.Zero(),
    "constant": means.Constant(),
    "linear": means.Linear(),
    "integrated": means.Constant(estimate="integrate"),
}


def make(name="vfe", mean="constant", learned=True, weights=None, scale=(1.0, 2.0), rows=None):
    kept = slice(None) if rows is None else rows
    prior = LogNormal(0.5, 1.0)
    kernel = 2.0 * RBF(Parameter([1.0, 1.5], prior=prior))
    inducing = InducingInputs(Z, [0.7, 1.3] if learned else None)
    own = None if weights is None else weights[kept]
    data = Data(X[kept], Y[kept], own, np.array(scale))
    return SparseObjective(
        kernel, Gaussian(0.2), MEANS[mean], data, inducing, approximation(name, 0.4)
    )


def differences(function, theta, step=1e-5):
    shifts = step * np.eye(theta.size)
    return np.array([(function(theta + e) - function(theta - e)) / (2 * step) for e in shifts])


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ["vfe", "fitc", "pep"])
def test_gradient_by_differences(name, mean):
    objective = make(name, mean, weights=WEIGHTS)
    theta = objective.theta
    assert theta.size == 4 + Z.size == len(objective.parameter_names)
    value, gradient = objective(theta)
    assert value == pytest.approx(objective.value(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(objective.value, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mean", MEANS)
def test_evidence_with_the_mean_held(mean):
    objective = make("fitc", mean, learned=False)
    fit = objective.fitted(objective.theta)
    objective.mean = fit.mean
    theta = np.concatenate([fit.kernel.theta, fit.likelihood.theta, fit.mean.theta])
    value, gradient = objective.log_evidence(theta, gradient=True)
    assert value == pytest.approx(fit.log_evidence, rel=1e-10)

    def held(theta):
        return objective.log_evidence(theta)[0]

    np.testing.assert_allclose(gradient, differences(held, theta), rtol=1e-6, atol=1e-5)


def test_units_of_the_outputs():
    """The evidence is of the targets as they are, whatever units the kernel sees them in."""
    one = make("vfe", "zero", scale=(1.0, 1.0))
    two = make("vfe", "zero", scale=(2.0, 2.0))
    theta = one.theta.copy()
    theta[[0, 3]] -= np.log(4.0)  # variances of kernel and noise
    bare = [o.log_evidence(t[:4])[0] for o, t in ((one, one.theta), (two, theta))]
    assert bare[0] == pytest.approx(bare[1], rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ["sor", "dtc", "vfe", "fitc", "pep"])
def test_leave_one_out_equals_leaving_one_out(name, mean, weighted):
    weights = WEIGHTS if weighted else None
    left = make(name, mean, False, weights).left_out()
    for i in (0, 11, N - 1):
        rows = np.arange(N) != i
        without = make(name, mean, False, weights, rows=rows)
        fit = without.fitted(without.theta)
        m, v = fit.posterior.mean_and_var(X[i : i + 1])
        np.testing.assert_allclose(left.mean[i], m[0], rtol=1e-7)
        np.testing.assert_allclose(left.std[i] ** 2, v[0] + 0.2 * np.array([1.0, 4.0]), rtol=1e-7)


def test_leave_one_out_of_blocks_is_refused():
    objective = make("dtc")
    objective.kind, objective.groups = approximation("pitc"), np.arange(N) // 10
    with pytest.raises(ValueError, match="joins the rows of a block"):
        objective.left_out()


def test_a_search_moves_inducing_inputs_to_where_they_tell_more():
    held, learned = (maximise(make(learned=each), max_iter=60) for each in (False, True))
    assert learned.value > held.value + 1.0
    objective = make()
    points = objective.unpack(learned.theta)[2].points
    assert points.shape == Z.shape and not np.allclose(points, Z)


def test_jitter_is_decided_once_and_held():
    objective = make("vfe", "zero", learned=False)
    objective.inducing = objective._others["inducing"] = InducingInputs(np.vstack([Z, Z]))
    objective.value(objective.theta)
    assert objective.jitter > 0.0
    jitter = objective.jitter
    objective.value(objective.theta + 0.1)
    assert objective.jitter == jitter


def test_a_noise_covariance_is_refused():
    data = Data(X, Y, None, np.ones(2))
    with pytest.raises(ValueError, match="only exact inference can hold"):
        SparseObjective(
            1.0 * RBF(),
            Gaussian(np.eye(N)),
            means.Zero(),
            data,
            InducingInputs(Z),
            approximation("vfe"),
        )
