"""Weight decay: certificates however small it is, one decomposition for a path, and interrupts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.inference import _expansion_path, _ridge
from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_path import Comparison, descending, scored_path
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._residual_noise import Noise
from mercer.inference._ridge_newton import Coefficients
from mercer.inference._ridge_spectrum import Spectrum
from mercer.inference.laplacian import Solver, path, solve
from mercer.likelihoods import Gaussian
from mercer.priors import WeightDecay

from .expansion_cases import CLASSES, LINEAR, NOISES, Case, dense, losses, penalty


def problem_of(noise, width=1.0, n=80, weights=None):
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, n)
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(n)
    y = np.where(y > 0, 1.0, -1.0) if noise in CLASSES else y
    Phi = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2))
    return ExpansionProblem.of(
        ArrayColumns(Phi), NOISES[noise], y, H=np.ones((n, 1)), weights=weights
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("width", [0.1, 0.3, 1.0, 3.0])
def test_decay_of_any_size_is_certified(noise, width):
    problem = problem_of(noise, width)
    lams = 10.0 ** np.arange(1, -7, -1)
    found = path(problem, lams, prior=WeightDecay)
    assert [one.status for one in found] == len(lams) * ["certified"]
    assert all(one.gap <= 1e-8 for one in found[:6])
    alone = solve(problem, WeightDecay, lams[-1])
    assert alone.status == "certified"
    assert alone.objective == pytest.approx(found[-1].objective, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "huber"])
def test_weights_and_more_rows_than_functions(noise):
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(200, 6))
    Phi[:, 5] = Phi[:, 0] + Phi[:, 1]  # of which one is not needed
    y = Phi[:, 0] + rng.normal(size=200)
    weights = rng.uniform(0.0, 2.0, 200)
    problem = ExpansionProblem.of(ArrayColumns(Phi), NOISES[noise], y, weights=weights)
    found = solve(problem, WeightDecay, 0.7)
    assert found.status == "certified" and found.gap < 1e-12
    theta = np.zeros(6)
    theta[found.indices] = found.coef
    c = 0.49 / problem.loss.unit
    slope = Phi.T @ problem.pull(Phi @ theta) - 2 * c * theta
    np.testing.assert_allclose(slope, 0.0, atol=1e-10)


def test_the_spectrum_is_that_of_the_columns():
    rng = np.random.default_rng(3)
    Phi = rng.normal(size=(7, 4)) @ rng.normal(size=(4, 9))  # of rank 4
    found = Spectrum(ArrayColumns(Phi))
    assert found.size.shape == (4,)
    np.testing.assert_allclose(found.values @ found.directions, Phi, atol=1e-12)
    z, u = rng.normal(size=4), rng.normal(size=7)
    np.testing.assert_allclose(Phi @ found.coefficients(z), found.values @ z, atol=1e-12)
    a = found.pulls(z, u, 0.3)
    np.testing.assert_allclose(Phi.T @ a, 0.6 * found.coefficients(z), atol=1e-12)
    outside = u - Phi @ np.linalg.lstsq(Phi, u, rcond=None)[0]
    np.testing.assert_allclose(a - Phi @ np.linalg.lstsq(Phi, a, rcond=None)[0], outside, atol=1e-9)


def test_steps_where_all_curvatures_are_the_same_are_those_of_the_normal_equations():
    rng = np.random.default_rng(4)
    Q = np.linalg.qr(rng.normal(size=(12, 5)))[0]
    A, H = Q[:, :4] * [3.0, 1.0, 0.1, 0.01], Q[:, 4:]
    over = Coefficients(A, H, 0.02)
    assert over.is_split and not Coefficients(A, H + 0.1 * A[:, :1], 0.02).is_split
    x, u = rng.normal(size=5), rng.normal(size=12)
    both = np.hstack([A, H])
    G = 0.7 * both.T @ both + np.diag([0.04, 0.04, 0.04, 0.04, 0.0])
    wanted = np.linalg.solve(G, both.T @ u - np.append(0.04 * x[:4], 0.0))
    np.testing.assert_allclose(over.step(x, u, np.full(12, 0.7), np.zeros(12)), wanted, rtol=1e-10)


def test_columns_are_decomposed_once_a_fold(monkeypatch):
    made, whole = [], Spectrum

    def counted(columns):
        made.append(columns.n)
        return whole(columns)

    monkeypatch.setattr(_ridge, "Spectrum", counted)
    problem = problem_of("gaussian")
    model = NoiseModel(Noise(Gaussian(), 1.0), Gaussian(0.1), WeightDecay)
    by = Comparison(problem, np.arange(80) % 4, np.ones(80), model, 1e-4)
    found = scored_path(by, descending(30.0, 30))
    assert len(found.penalties) > 11 and made == [60] * 4  # which was prolonged
    monkeypatch.setattr(_expansion_path, "_KEPT", 0)  # too large to keep
    again = scored_path(by, descending(30.0, 30))
    assert len(made) > 8
    np.testing.assert_allclose(again.values, found.values, rtol=1e-9)


class Interrupting:
    """A function of a class that is broken off at one of its calls."""

    def __init__(self, monkeypatch, owner, name, at):
        whole, calls = getattr(owner, name), []

        def broken(*args):
            calls.append(1)
            if len(calls) == at:
                raise KeyboardInterrupt
            return whole(*args)

        monkeypatch.setattr(owner, name, broken)


@pytest.mark.parametrize("noise", ["huber", *LINEAR])
@pytest.mark.parametrize("at", [1, 7])
def test_steps_may_be_interrupted(monkeypatch, noise, at):
    problem = problem_of(noise, n=40)
    nothing = problem.value(np.zeros(40))
    Interrupting(monkeypatch, Coefficients, "step", at)
    found = solve(problem, WeightDecay, 0.05)
    assert found.status == "interrupted" and found.dual <= found.objective <= nothing
    assert found.gap > 1e-6
    assert (at > 1) == bool(len(found.indices))
    f = problem.columns.take(found.indices) @ found.coef + found.beta[0]
    np.testing.assert_allclose(found.latent, f, atol=1e-10)


def test_nothing_is_left_of_what_was_interrupted_before_the_first_step(monkeypatch):
    problem = problem_of("gaussian", n=30)

    def broken(columns):
        raise KeyboardInterrupt

    monkeypatch.setattr(_ridge, "Spectrum", broken)
    solver = Solver(problem, WeightDecay)
    found = solver.path([1.0, 0.1])
    assert [one.status for one in found] == ["interrupted"]
    assert not len(found[0].indices) and found[0].objective == pytest.approx(
        0.5 * np.sum((problem.loss.y - np.mean(problem.loss.y)) ** 2)
    )
    monkeypatch.undo()
    assert solver.solve(0.1).status == "certified"


def test_weight_decay_is_ridge_regression():
    case = Case("gaussian", weighted=True, free=True, mean=True)
    lam, unit = 0.4, case.unit
    found = solve(case.problem(), WeightDecay, lam)
    A = np.c_[case.Phi, case.H]
    decay = np.r_[np.full(case.Phi.shape[1], 2 * lam**2 / unit), 0, 0]
    W = np.diag(case.weights)
    x = np.linalg.solve(A.T @ W @ A + np.diag(decay), A.T @ W @ (case.y - case.mean))
    np.testing.assert_allclose(found.latent, case.mean + A @ x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dense(found, case), x[:-2], atol=1e-7)
    np.testing.assert_allclose(found.beta, x[-2:], rtol=1e-7)


@pytest.mark.parametrize("name", ["huber", "logistic", "quadratic_soft_margin"])
def test_weight_decay_against_a_descent(name):
    case = Case(name, n=25, free=True)

    def objective(x):
        theta = x[:-2]
        f = case.Phi @ theta + case.H @ x[-2:]
        return np.sum(losses(name, case.y, f)) + penalty(case, WeightDecay, 0.7, theta)

    x0 = np.zeros(case.Phi.shape[1] + 2)
    best = minimize(objective, x0, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    found = solve(case.problem(), WeightDecay, 0.7)
    assert found.objective == pytest.approx(best.fun, rel=1e-7)


def ridge_case(width, noise, n=60, free=False):
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, n)
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(n)
    Phi = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2))
    H = np.ones((n, 1)) if free else None
    return Phi, ExpansionProblem.of(ArrayColumns(Phi), NOISES[noise], y, H=H)


@pytest.mark.parametrize("noise", ["gaussian", "huber"])
@pytest.mark.parametrize("width, free", [(3e3, True), (3e3, False), (3.0, False)])
@pytest.mark.parametrize("lam", [1e-5, 1e-8, 1e-20])
def test_weight_decay_is_of_its_coefficients(noise, width, free, lam):
    Phi, problem = ridge_case(width, noise, free=free)
    found = solve(problem, WeightDecay, lam)
    f = Phi[:, found.indices] @ found.coef + (found.beta[0] if free else 0.0)
    size = np.abs(Phi[:, found.indices]) @ np.abs(found.coef) + 1.0
    assert np.all(np.abs(found.latent - f) <= 1e-13 * size)
    decayed = lam**2 / problem.loss.unit * found.coef @ found.coef
    assert found.objective == pytest.approx(problem.value(found.latent) + decayed, rel=1e-6)
    assert (found.status == "certified") == (found.gap <= 1e-6)
    assert found.status == "certified" or lam < 1e-5


@pytest.mark.parametrize("lam", [1e-200, 1e-120, 1e120, 1e200])
def test_weight_decay_out_of_range(lam):
    with pytest.raises(ValueError, match=r"lam = .* weight decay"):
        solve(Case("gaussian").problem(), WeightDecay, lam)
