"""Hyperparameters by the joint density: closed forms at its maximum, monotony, honest ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.svm import SVR

from mercer.errors import ConvergenceWarning
from mercer.evidence import maximise
from mercer.evidence.coordinate import _Ascent, ascend
from mercer.evidence.latent import LatentData, LatentObjective
from mercer.inference import map as mode
from mercer.kernels import RBF, Matern, Precomputed
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Logistic, StudentT
from mercer.means import Constant, Linear, Zero
from mercer.params import LogNormal, Parameter

NOISE = {
    "laplace": Laplace(0.3),
    "insensitive": EpsilonInsensitive(0.1, 0.3),
    "huber": Huber(0.3, threshold=1.2),
    "student": StudentT(4.0, 0.3),
    "gaussian": Gaussian(0.1),
}


def fixed(value):
    return Parameter(value, fixed=True)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, size=(n, 1)), axis=0)
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.laplace(size=n)


def make(kind="laplace", kernel=None, mean=None, n=40, weights=False, held=False, **options):
    X, y = rows(n)
    length = fixed(1.0) if held else 1.0
    kernel = (fixed(1.0) if held else 1.0) * RBF(length) if kernel is None else kernel
    w = np.random.default_rng(1).uniform(0.5, 2.0, n) if weights else None
    likelihood = NOISE[kind].begun(y)
    data = LatentData(X, y, w)
    return LatentObjective(kernel, likelihood, mean or Zero(), data, "map", **options)


def latent(objective, optimum):
    model = objective.unpack(optimum.theta)
    return mode.solve(objective.problem(*model)), model


# --- closed forms at the maximum --------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
def test_scale_of_laplacian_noise_is_the_mean_absolute_residual(weights):
    """(BKM 11), at the function that belongs to it."""
    objective = make(held=True, weights=weights)
    optimum = ascend(objective)
    assert optimum.status == "converged"
    solution, (_, likelihood, _) = latent(objective, optimum)
    away = np.abs(objective.data.y - solution.latent)
    assert likelihood.scale == pytest.approx(
        np.average(away, weights=objective.data.weights), rel=1e-4
    )


def test_variance_of_gaussian_noise_is_the_mean_square_residual():
    objective = make("gaussian", held=True)
    solution, (_, likelihood, _) = latent(objective, ascend(objective))
    away = objective.data.y - solution.latent
    assert likelihood.noise == pytest.approx(np.mean(away**2), rel=1e-3)


def test_zone_of_insensitive_noise():
    """Where it balances the pull of the rows: the alternation alone cannot move their kinks."""
    objective = make("insensitive", held=True)
    optimum = ascend(objective)
    assert optimum.status == "converged"
    solution, (_, likelihood, _) = latent(objective, optimum)
    s, e = likelihood.scale, likelihood.epsilon
    assert solution.inside.sum() > 3
    assert np.sum(np.abs(solution.alpha)) == pytest.approx(40 / (s + e), rel=1e-3)
    over = np.maximum(np.abs(objective.data.y - solution.latent) - e, 0.0)
    assert np.sum(over) / s**2 == pytest.approx(40 / (s + e), rel=1e-3)


def test_variance_of_the_kernel_is_that_of_the_function():
    """f'C^-1 f/n, C the Gram matrix of variance 1; the noise is held, so that f stays up."""
    X, y = rows()
    model = 1.0 * Matern(fixed(1.5), nu=0.5), Laplace(fixed(0.02)), Zero(), LatentData(X, y)
    objective = LatentObjective(*model, "map")
    optimum = ascend(objective)
    assert optimum.status == "converged" and optimum.jitter == 0.0
    solution, (found, _, _) = latent(objective, optimum)
    C = Matern(1.5, nu=0.5)(objective.data.X)
    f = solution.latent
    assert found.parameters["variance"].value == pytest.approx(
        f @ np.linalg.solve(C, f) / 40, rel=1e-3
    )


def test_constant_mean_is_the_offset_of_support_vectors():
    """Their sum of alpha is 0 where the joint density is stationary in a constant."""
    X, y = rows(60)
    y = y + 7.0
    K = Matern(1.0, nu=1.5)(X).astype(np.float32).astype(float)
    likelihood = EpsilonInsensitive(fixed(0.1), fixed(0.5))
    svr = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-10).fit(K, y)
    data = LatentData(np.arange(60.0)[:, None], y)
    objective = LatentObjective(Precomputed(K), likelihood, Constant(), data, "map")
    optimum = ascend(objective)
    assert optimum.status == "converged" and optimum.theta.size == 1
    solution, _ = latent(objective, optimum)
    assert abs(np.sum(solution.alpha)) < 1e-3
    np.testing.assert_allclose(solution.latent, svr.predict(K), atol=1e-3)


# --- what it climbs ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NOISE)
def test_value_is_the_joint_density(kind):
    kernel = Parameter(1.0, prior=LogNormal(0.0, 1.0)) * Matern(1.0, nu=0.5)
    objective = make(kind, kernel=kernel, mean=Linear(), weights=True)
    optimum = ascend(objective, max_iter=2)
    problem = objective.problem(*objective.unpack(optimum.theta))
    solution = mode.solve(problem)
    prior = multivariate_normal(problem.mean, problem.kernel(problem.X))
    log_p = problem.likelihood.log_density(problem.y, solution.latent)
    wanted = np.sum(problem.weights * log_p) + prior.logpdf(solution.latent)
    wanted += LogNormal(0.0, 1.0).log_density(problem.kernel.parameters["variance"].value)
    assert optimum.value == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("kind", NOISE)
def test_gradients_by_differences(kind):
    """Of the density at fixed latent values, and of its maximum over these."""
    kernel = Parameter(1.0, prior=LogNormal(0.0, 1.0)) * Matern(1.0, nu=0.5)
    objective = make(kind, kernel=kernel, mean=Linear(), weights=True)
    ascent = _Ascent(objective, None)
    theta = objective.theta + 0.1 * np.cos(np.arange(objective.theta.size))
    f = objective.data.y + 0.05 * np.cos(np.arange(40))
    steps = 1e-5 * np.eye(theta.size)
    for value, gradient in (
        (lambda t: ascent.point(t).value, ascent.point(theta).gradient),
        (lambda t: ascent.beside(t, f)[0], ascent.beside(theta, f)[1]),
    ):
        slopes = [(value(theta + e) - value(theta - e)) / 2e-5 for e in steps]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", NOISE)
def test_values_never_fall_and_are_reported(kind):
    told = []
    objective = make(kind, kernel=1.0 * Matern(1.0, nu=1.5), mean=Constant())
    optimum = ascend(objective, max_iter=15, report=lambda *line: told.append(line))
    assert np.all(np.diff(optimum.values) >= 0) and len(optimum.values) > 3
    assert [line[:3] for line in told] == [(1, i + 1, v) for i, v in enumerate(optimum.values)]
    assert optimum.value == optimum.values[-1] == told[-1][3]
    np.testing.assert_array_equal(optimum.theta, optimum.thetas[-1])
    assert optimum.n_iterations == len(optimum.values) - 1
    low, high = objective.bounds.T
    assert np.all((np.array(optimum.thetas) >= low) & (np.array(optimum.thetas) <= high))


def test_a_turn_of_the_alternation_always_ends_at_a_point():
    """Higher than where it began, or the same; where K turns singular too."""
    for objective in (make(), make(kernel=1.0 * Matern(1.0, nu=1.5))):
        ascent = _Ascent(objective, None)
        at = ascent.point(objective.theta)
        for _ in range(3):
            at, before = ascent.alternate(at), at
            assert at.value >= before.value


def test_labels():
    X, y = rows(30)
    data = LatentData(X, np.where(y > 0, 1.0, -1.0))
    kernel = fixed(4.0) * Matern(Parameter(1.0, bounds=(0.1, 2.0)), nu=0.5)
    objective = LatentObjective(kernel, Logistic(), Constant(), data, "map")
    optimum = ascend(objective)
    assert np.all(np.diff(optimum.values) >= 0) and optimum.status == "converged"
    posterior, _ = objective.posterior(optimum.theta)
    assert np.mean(posterior.mean(X)[:, 0] * data.y > 0) > 0.8


# --- how it ends ------------------------------------------------------------------------------


def test_nothing_to_search():
    objective = make("gaussian", held=True)
    held = objective.likelihood.with_parameters(noise=fixed(0.1))
    optimum = ascend(LatentObjective(objective.kernel, held, Zero(), objective.data, "map"))
    assert optimum.status == "fixed" and optimum.values == []


def test_budget():
    optimum = ascend(make(kernel=1.0 * Matern(1.0, nu=1.5)), max_iter=1)
    assert optimum.status == "stopped" and "1 turn" in optimum.message
    assert optimum.n_iterations == 1


def test_bounds():
    objective = make(held=True)
    narrow = np.log([[0.5, 0.6]])
    bounded = LatentObjective(*objective.unpack(objective.theta), objective.data, "map", narrow)
    optimum = ascend(bounded)
    assert optimum.theta[0] == narrow[0, 0] and optimum.status == "converged"


def test_interruption_keeps_the_best():
    def stop(start, count, value, best):
        if count == 3:
            raise KeyboardInterrupt

    objective = make(kernel=1.0 * Matern(1.0, nu=1.5))
    # the first of three values is that of the start
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 turns"):
        optimum = ascend(objective, report=stop)
    assert optimum.status == "interrupted" and len(optimum.values) == 3
    assert optimum.n_iterations == 2
    assert optimum.value == optimum.values[-1]


def test_interruption_before_anything(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mode, "evidence", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ascend(make())


def test_jitter_is_decided_on_once():
    objective = make()
    optimum = ascend(objective)
    assert optimum.jitter == objective.jitter == pytest.approx(1e-8, rel=1e-6)
    _, solution = objective.posterior(optimum.theta)
    assert solution.jitter == optimum.jitter


def test_the_density_has_no_bound():
    """As the docstring says: it grows as the variance falls, by half a logarithm a row."""
    objective = make(kernel=1.0 * Matern(1.0, nu=0.5))
    ascent = _Ascent(objective, None)
    theta = objective.theta
    theta[0] = np.log(1e-6)
    above = ascent.point(theta).value
    theta[0] = np.log(1e-8)
    assert ascent.point(theta).value - above == pytest.approx(0.5 * 40 * np.log(100), rel=1e-2)


def test_length_scales_are_longer_than_by_the_evidence():
    """The reason to prefer that; where K becomes singular the search ends, and says so."""
    X, y = rows(60)
    likelihood = Laplace(0.3).begun(y)
    model = 1.0 * Matern(1.0, nu=1.5), likelihood, Zero(), LatentData(X, y)
    joint = ascend(LatentObjective(*model, "map"))
    evidence = maximise(LatentObjective(*model, "ep"))
    assert joint.theta[1] > evidence.theta[1] + 0.5
    far = ascend(LatentObjective(fixed(1.0) * Matern(2.0, nu=1.5), *model[1:], "map"))
    assert far.status == "stopped" and "singular" in far.message and far.jitter == 0.0
