"""The objective of a sparse fit under any likelihood: gradients, what it equals, its search."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.evidence import Data, LatentData, LatentObjective, engines_that_take, maximise
from mercer.evidence.engines import best_engine, require_pair
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.inference._approximations import approximation
from mercer.kernels import RBF, Matern
from mercer.likelihoods import (
    Gaussian,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    Softmax,
    StudentT,
)
from mercer.params import LogNormal, Parameter

RNG = np.random.default_rng(7)
N, M = 24, 5
X = RNG.uniform(-2.0, 2.0, (N, 2))
F = 1.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1]
Z = RNG.uniform(-2.0, 2.0, (M, 2))
W = RNG.uniform(0.5, 2.0, N)
NOISY = F + 0.3 * RNG.standard_t(3, N)
LABELS = np.sign(F + 0.7 * RNG.normal(size=N))
TARGETS = {
    "Logistic": (Logistic(), LABELS),
    "Probit": (Probit(0.8), LABELS),
    "Poisson": (Poisson(), RNG.poisson(np.exp(F)).astype(float)),
    "StudentT": (StudentT(4.0, Parameter(0.4, prior=LogNormal(-1.0, 1.0))), NOISY),
    "Gaussian": (Gaussian(0.2), NOISY),
}
PAIRS = [
    ("Logistic", "laplace"),
    ("Logistic", "ep"),
    ("Logistic", "bounds"),
    ("Probit", "laplace"),
    ("Probit", "ep"),
    ("Poisson", "laplace"),
    ("Poisson", "ep"),
    ("StudentT", "laplace"),
    ("StudentT", "ep"),
]
MEANS = {
    "zero": means.Zero(),
    "held": means.Constant(0.3, estimate=None),
    "constant": means.Constant(),
    "linear": means.Linear(),
}


def make(
    name,
    engine,
    kind="fitc",
    mean="linear",
    learned=True,
    weights=None,
    rows=slice(None),
    Z=Z,
    kernel=None,
):
    likelihood, y = TARGETS[name]
    if kernel is None:
        kernel = 2.0 * RBF(Parameter([1.0, 1.5], prior=LogNormal(0.5, 1.0)))
    inducing = InducingInputs(Z, [0.7, 1.3] if learned else None)
    data = LatentData(X[rows], y[rows], None if weights is None else weights[rows])
    model = kernel, likelihood, MEANS[mean]
    return SparseLatentObjective(*model, data, engine, inducing, approximation(kind))


def differences(function, theta, step=1e-4):
    shifts = step * np.eye(theta.size)
    return np.array([(function(theta + e) - function(theta - e)) / (2 * step) for e in shifts])


# --- values and gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fitc", "dtc"])
@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_gradient_by_differences(name, engine, kind):
    objective = make(name, engine, kind, weights=W)
    theta = objective.theta + 0.1 * np.cos(np.arange(objective.theta.size))
    names = objective.parameter_names
    assert len(names) == theta.size == 3 + len(TARGETS[name][0].theta) + 3 + Z.size
    assert names[-Z.size - 1] == "mean.slope[1]" and names[-1] == "inducing.position[9]"
    value, gradient = objective(theta)
    assert objective.value(theta) == pytest.approx(value, rel=1e-9)
    # EP's adjoints are exact where its sites are: to about 1e-6
    np.testing.assert_allclose(gradient, differences(objective.value, theta), rtol=2e-5, atol=5e-5)
    parts = objective._with(theta)
    size = theta.size - Z.size
    objective.inducing = objective._others["inducing"] = parts[3]
    bare, slopes = objective.log_evidence(theta[:size], gradient=True)
    assert bare == pytest.approx(value - sum(part.log_prior() for part in parts), rel=1e-9)
    priors = np.concatenate([part.log_prior_gradient() for part in parts])
    np.testing.assert_allclose(slopes, (gradient - priors)[:size], rtol=1e-4, atol=2e-5)
    assert objective.log_evidence(theta[:size])[1] is None


def test_theta_of_the_evidence_has_no_inducing_inputs():
    objective = make("Poisson", "laplace")
    with pytest.raises(ValueError, match=r"shape \(6,\), without inducing inputs, got \(16,\)"):
        objective.log_evidence(objective.theta)


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("kind", ["sor", "dtc", "fitc"])
@pytest.mark.parametrize("engine", ["laplace", "ep"])
def test_gaussian_noise_is_sparse_regression(engine, kind, weights):
    latent = make("Gaussian", engine, kind, "held", weights=weights)
    data = Data(X, NOISY[:, None], weights, np.ones(1))
    exact = SparseObjective(
        latent.kernel, Gaussian(0.2), latent.mean, data, latent.inducing, latent.kind
    )
    (value, gradient), (expected, slopes) = latent(latent.theta), exact(exact.theta)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)
    one, other = latent.fitted(latent.theta), exact.fitted(exact.theta)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)
    assert one.kernel == other.kernel and one.mean == latent.mean
    for mine, theirs in zip(
        one.posterior.mean_and_var(X), other.posterior.mean_and_var(X), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)
    for mine, theirs in zip(latent.left_out(), exact.left_out(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["fitc", "dtc"])
@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_inducing_inputs_at_the_rows_are_the_whole_process(name, engine, kind):
    rough = 2.0 * Matern([1.0, 1.5], nu=1.5)
    sparse = make(name, engine, kind, weights=W, Z=X, kernel=rough, learned=False)
    likelihood, y = TARGETS[name]
    whole = LatentObjective(rough, likelihood, means.Linear(), LatentData(X, y, W), engine)
    np.testing.assert_array_equal(sparse.theta, whole.theta)
    (value, gradient), (expected, slopes) = sparse(sparse.theta), whole(whole.theta)
    assert value == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse.directions.matrix(), whole.directions.matrix(), rtol=1e-12)


# --- leave-one-out --------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("kind", ["sor", "dtc", "fitc"])
@pytest.mark.parametrize("engine", ["laplace", "ep"])
def test_leave_one_out_equals_leaving_one_out(engine, kind, weights):
    left = make("Gaussian", engine, kind, "held", False, weights).left_out()
    for i in (0, 11, N - 1):
        rows = np.arange(N) != i
        without = make("Gaussian", engine, kind, "held", False, weights, rows)
        mean, var = without.fitted(without.theta).posterior.mean_and_var(X[i : i + 1])
        np.testing.assert_allclose(left.mean[i], mean[0], rtol=1e-6)
        np.testing.assert_allclose(left.std[i] ** 2, var[0] + 0.2, rtol=1e-6)
        z = (NOISY[i] - left.mean[i]) / left.std[i]
        density = -0.5 * z**2 - np.log(left.std[i]) - 0.5 * np.log(2.0 * np.pi)
        np.testing.assert_allclose(left.log_density[i], density, rtol=1e-6)


@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_leave_one_out_is_near_refitting(name, engine):
    left = make(name, engine, mean="zero", learned=False)
    found = left.leave_one_out(left.theta)
    assert left.left_out().mean.shape == (N, 1)
    for i in (0, 7):
        again = make(name, engine, mean="zero", learned=False, rows=np.arange(N) != i)
        mean, var = again.posterior(again.theta)[0].mean_and_var(X[i : i + 1])
        assert found.mean[i] == pytest.approx(mean[0, 0], abs=0.15 * np.sqrt(var[0, 0]))
        assert found.variance[i] == pytest.approx(var[0, 0], rel=0.3)


@pytest.mark.parametrize(("name", "engine"), PAIRS)
def test_leave_one_out_at_the_rows_is_that_of_the_whole_process(name, engine):
    rough = 2.0 * Matern([1.0, 1.5], nu=1.5)
    sparse = make(name, engine, mean="zero", Z=X, kernel=rough, learned=False)
    likelihood, y = TARGETS[name]
    whole = LatentObjective(rough, likelihood, means.Zero(), LatentData(X, y), engine)
    one, other = (each.leave_one_out(each.theta) for each in (sparse, whole))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


# --- the search -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "engine"), [("Probit", "ep"), ("Poisson", "laplace")])
def test_a_search_improves_and_moves_inducing_inputs(name, engine):
    begun = make(name, engine, mean="constant")
    optimum = maximise(begun, max_iter=15)
    held = maximise(make(name, engine, mean="constant", learned=False), max_iter=15)
    assert optimum.value > held.value > make(name, engine, mean="constant").value(begun.theta)
    points = begun.inducing_at(optimum.theta).points
    assert points.shape == Z.shape and not np.allclose(points, Z)
    fit = begun.fitted(optimum.theta)
    priors = sum(part.log_prior() for part in begun._with(optimum.theta))
    assert fit.log_evidence + priors == pytest.approx(optimum.value, rel=1e-7)
    np.testing.assert_allclose(fit.posterior.basis.points, points)


def test_starts_are_drawn_for_kernel_and_likelihood_alone():
    objective = make("StudentT", "laplace")
    drawn = objective.draw_theta(np.random.default_rng(0))
    same = drawn == objective.theta
    assert not np.any(same[:5]) and np.all(same[5:])
    assert objective.start_intervals().shape == (objective.theta.size, 2)


@pytest.mark.parametrize(
    ("name", "engine"), [("StudentT", "ep"), ("Poisson", "laplace"), ("Logistic", "bounds")]
)
def test_the_next_evaluation_starts_from_the_last(name, engine):
    objective = make(name, engine, mean="zero")
    assert objective.start == []
    objective(objective.theta)
    assert objective.posterior(objective.theta)[1].n_iterations <= 2  # it was there already
    other = make(name, engine, mean="zero")
    other.start = [a.tolist() for a in objective.start]
    assert other.posterior(other.theta)[1].n_iterations <= 2


def test_copies_go_on_by_themselves():
    objective = make("Poisson", "laplace", "dtc")
    objective(objective.theta)
    other = copy.copy(objective)
    assert other.state is objective.state and other.jitter == objective.jitter
    assert other.kind is objective.kind and other.inducing is objective.inducing
    other(other.theta + 0.1)
    assert other.state is not objective.state


def test_jitter_is_decided_once_and_held():
    twice = np.vstack([Z, Z])
    objective = make("Logistic", "laplace", learned=False, Z=twice)
    objective.value(objective.theta)
    jitter = objective.jitter
    assert jitter > 0.0
    objective.value(objective.theta + 0.1)
    assert objective.jitter == jitter
    objective.hold_jitter(0.0)
    with pytest.raises(NotPositiveDefiniteError):
        objective.evaluate(objective.theta)
    assert objective(objective.theta)[0] < objective._last_good[1] and objective.failed
    assert objective.take_jitter() and objective.jitter > 0.0


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("likelihood", "engines"),
    [
        (Logistic(), ["laplace", "ep", "bounds"]),
        (Poisson(), ["laplace", "ep"]),
        (Laplace(1.0), ["ep"]),
        (MixtureNoise([0.5, 0.5], [-1.0, 1.0], [0.1, 0.1]), ["ep"]),
        (Gaussian(np.eye(3)), []),
        (Softmax(3), []),
    ],
    ids=lambda v: repr(v)[:30],
)
def test_engines_that_take_inducing_inputs(likelihood, engines):
    assert engines_that_take(likelihood, sparse=True) == engines
    if engines:
        assert best_engine(likelihood, sparse=True) in engines
    for name in {"laplace", "ep", "vi", "bounds", "map"} - set(engines):
        with pytest.raises(ValueError, match=f"inference='{name}'") as caught:
            require_pair(likelihood, name, sparse=True)
        for other in engines:
            assert f"inference={other!r}" in str(caught.value).partition("; use ")[2]


@pytest.mark.parametrize(
    ("likelihood", "engine", "text"),
    [
        (Poisson(), "vi", "no form of it with inducing inputs; use inference='laplace' or"),
        (Poisson(), "bounds", "it is not Logistic"),
        (Laplace(1.0), "laplace", "0 almost everywhere.*use inference='ep'$"),
        (Softmax(3), "laplace", "one function at a time, each class against the rest"),
        (Gaussian(np.eye(N)), "ep", "correlated between the rows"),
        (Poisson(), "exact", "inference must be one of"),
    ],
)
def test_refused_pairs_say_why(likelihood, engine, text):
    data, inducing = LatentData(X, TARGETS["Poisson"][1]), InducingInputs(Z)
    with pytest.raises(ValueError, match=text):
        SparseLatentObjective(
            RBF(), likelihood, means.Zero(), data, engine, inducing, approximation("fitc")
        )


@pytest.mark.parametrize("kind", ["vfe", "pep", "pitc", "pic"])
def test_priors_that_couple_rows_or_are_none_are_refused(kind):
    with pytest.raises(ValueError, match=f"'sor', 'dtc' and 'fitc', got '{kind}'"):
        make("Poisson", "laplace", kind)


def test_integrated_coefficients_are_refused():
    data, mean = LatentData(X, NOISY), means.Constant(estimate="integrate")
    with pytest.raises(ValueError, match="under Gaussian noise alone"):
        SparseLatentObjective(
            RBF(), StudentT(), mean, data, "ep", InducingInputs(Z), approximation("dtc")
        )
