"""What relevance vector machines meet in practice: degenerate data, scales, interruptions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import BoundWarning, ConvergenceWarning, NotPositiveDefiniteError, TooLargeError
from mercer.inference import _relevance_run
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._relevance_fast import Fast
from mercer.inference.relevance import ALGORITHMS, RelevanceProblem, solve
from mercer.kernels import RBF
from mercer.priors import GammaPrecision

from .relevance_cases import Flat, sinc


def given(Phi, y, **settings):
    n = len(y)
    options = {"mean": np.zeros(n), "weights": None, "hyperprior": Flat(), **settings}
    columns = ArrayColumns(Phi) if isinstance(Phi, np.ndarray) else Phi
    return RelevanceProblem(columns, np.asarray(y, dtype=float), **options)


def holds(fit):
    assert len(fit.indices) >= 1
    for each in (fit.mean, fit.factor, fit.precisions, fit.latent, fit.history):
        assert np.all(np.isfinite(each))
    assert np.isfinite(fit.log_evidence)
    assert np.all(np.diff(fit.history) >= -1e-7 * (1 + np.abs(fit.history).max()))
    return fit


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("value", [0.0, 5.0, -1e8])
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_a_constant_target(algorithm, value):
    X = np.linspace(-1, 1, 20)[:, None]
    Phi = np.hstack([np.ones((20, 1)), RBF(0.5)(X)])
    fit = holds(solve(given(Phi, np.full(20, value)), algorithm))
    np.testing.assert_allclose(fit.latent, value, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_targets_that_no_function_explains(algorithm):
    # Other implementations prune everything here, and fail when they predict.
    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    Phi -= np.outer(y, y @ Phi) / (y @ y)
    fit = holds(solve(given(Phi, y), algorithm))
    np.testing.assert_allclose(fit.latent, 0.0, atol=1e-3)
    assert fit.noise == pytest.approx(y @ y / 30, rel=1e-2)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_one_row_and_one_function(algorithm):
    fit = holds(solve(given(np.array([[2.0]]), [3.0]), algorithm))
    assert 0 <= fit.latent[0] <= 3.0 * (1 + 1e-6)
    holds(solve(given(np.array([[2.0, 1.0, 0.0]]), [3.0]), algorithm))
    holds(solve(given(np.array([[1.0], [2.0]]), [1.0, 2.0]), algorithm))
    holds(solve(given(np.zeros((3, 2)), [1.0, 2.0, 4.0]), algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_and_columns_that_are_there_twice(algorithm):
    X, y = sinc(30)
    once = RBF(1.6)(X)
    Phi = np.hstack([once, once, once[:, ::-1]])
    fit = holds(solve(given(Phi, y), algorithm))
    assert (
        fit.objective > solve(given(once, y), algorithm).objective - 1.5
        or algorithm == "variational"
    )
    assert fit.status == "converged"
    doubled = np.vstack([once, once])
    holds(solve(given(doubled, np.tile(y, 2)), algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("width", [0.8, 4.0])
def test_data_without_noise(algorithm, width):
    # The noise stops at its floor, with a warning; nothing fails to be positive definite.
    X, _ = sinc(50)
    Phi = RBF(width)(X)
    with pytest.warns(BoundWarning, match="at its floor"):
        fit = holds(solve(given(Phi, Phi[:, 3] - 0.5 * Phi[:, 30]), algorithm))
    assert fit.noise == pytest.approx(1e-8 * np.var(Phi[:, 3] - 0.5 * Phi[:, 30]), rel=1e-6)
    wanted = Phi[:, 3] - 0.5 * Phi[:, 30]
    np.testing.assert_allclose(fit.latent, wanted, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point", "greedy"])
@pytest.mark.parametrize("columns", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("targets", [1e-8, 1.0, 1e8])
def test_scales(algorithm, columns, targets):
    X, y = sinc(40)
    Phi = RBF(1.6)(X)
    plain = solve(given(Phi, y), algorithm)
    fit = holds(solve(given(columns * Phi, targets * y), algorithm))
    assert fit.objective == pytest.approx(plain.objective - 40 * np.log(targets), abs=0.5)
    assert fit.noise == pytest.approx(targets**2 * plain.noise, rel=0.05)


def test_an_offset_far_from_zero():
    X, y = sinc(60)
    Phi = np.hstack([np.ones((60, 1)), RBF(1.6)(X)])
    fit = holds(solve(given(Phi, y + 1e4, always=[0])))
    assert fit.noise < 0.02
    assert 0 in fit.indices


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ctrl_c_returns_the_best_so_far(algorithm):
    X, y = sinc(60)
    problem = given(KernelColumns(RBF(1.6), X), y)
    told = []

    def report(steps, value, k):
        told.append((steps, value, k))
        if len(told) == 5:
            raise KeyboardInterrupt

    fit = holds(solve(problem, algorithm, report=report))
    assert fit.status == "interrupted"
    assert len(told) == 5
    values = [value for _, value, _ in told]
    assert values == sorted(values)
    assert fit.objective >= values[0]
    full = solve(problem, algorithm, report=lambda *_: None)
    assert full.objective >= fit.objective


def test_an_interrupted_trial_of_less_noise_is_undone():
    X, y = sinc(60)
    problem = given(KernelColumns(RBF(1.6), X), y)
    told = []
    solve(problem, report=lambda *each: told.append(each))
    values = []
    for when in range(1, len(told) + 1):
        seen = []

        def report(*each, seen=seen, when=when):
            seen.append(each)
            if len(seen) == when:
                raise KeyboardInterrupt

        fit = holds(solve(problem, report=report))
        values.append(fit.objective)
        assert fit.objective >= seen[-1][1] - 1e-9
    assert np.all(np.diff(values) >= -1e-9)


def test_steps_that_are_too_few():
    X, y = sinc(60)
    for algorithm in ALGORITHMS:
        with pytest.warns(ConvergenceWarning, match="max_steps"):
            fit = solve(given(KernelColumns(RBF(1.6), X), y), algorithm, max_iter=2)
        assert fit.status == "stopped"
        assert fit.n_iterations <= 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("hyperprior", [Flat(), GammaPrecision(1.0, 0.1)], ids=["flat", "gamma"])
def test_a_run_that_wants_no_more_steps_than_it_may_take_has_converged(seed, hyperprior):
    X, y = sinc(60, seed)
    problem = given(KernelColumns(RBF(1.6), X), y, hyperprior=hyperprior)
    full = solve(problem)
    again = solve(problem, max_iter=full.n_iterations)
    assert full.status == "converged"
    for one, other in zip(again, full, strict=True):
        np.testing.assert_array_equal(one, other)
    for most in range(1, full.n_iterations):
        with pytest.warns(ConvergenceWarning, match="max_steps"):
            less = solve(problem, max_iter=most)
        assert less.status == "stopped" and less.n_iterations == most


def test_what_is_refused(monkeypatch):
    X, y = sinc(10)
    columns = KernelColumns(RBF(1.0), X)
    for settings, match in (
        ({"mean": np.zeros(3)}, "mean must have shape"),
        ({"weights": np.zeros(10)}, "all weights are 0"),
        ({"weights": -np.ones(10)}, "must not be negative"),
        ({"noise": 0.0}, "positive variance"),
        ({"noise_prior": (-1.0, 0.0)}, "noise_prior"),
        ({"noise_floor": 2.0}, "between 0 and 1"),
        ({"always": [10]}, "from 0 to 9"),
    ):
        with pytest.raises(ValueError, match=match):
            given(columns, y, **settings)
    with pytest.raises(ValueError, match="finite"):
        given(columns, np.append(y[:-1], np.nan))
    problem = given(columns, y)
    with pytest.raises(ValueError, match="algorithm must be one of"):
        solve(problem, "slow")
    for bad in ({"tol": 0.0}, {"tol": np.nan}, {"max_iter": 0}, {"max_iter": 1.5}):
        with pytest.raises(ValueError, match=r"tol|max_iter"):
            solve(problem, **bad)
    monkeypatch.setattr(_relevance_run, "_MOST", 100)
    with pytest.raises(TooLargeError, match="computes columns as it wants them"):
        solve(problem, "em")


def test_steps_that_are_always_undone_end(monkeypatch):
    """Where rounding makes every step seem to gain, and the evidence computed afresh is lower."""

    def undone(self, steps, tol):
        self._patience *= 0.25
        self._set(self.indices, self.point.s, self.point.v)
        self.history.pop()
        return False

    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(40, 15)), rng.normal(size=40)
    problem = RelevanceProblem(ArrayColumns(Phi), y, np.zeros(40), None, Flat())
    monkeypatch.setattr(Fast, "_move", undone)
    assert solve(problem, tol=1e-12).n_iterations < 1000


@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_rows_that_weigh_much_take_few_steps():
    # Single steps are said to gain hundreds of nats, all of them rounding of 1e10 and more.
    X = np.random.default_rng(0).uniform(-3, 3, (40, 1))
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=40)
    for weight in (1e8, 1e15, 1e30):
        problem = given(KernelColumns(RBF(0.05), X), y, weights=np.full(40, weight))
        fit = holds(solve(problem))
        assert fit.status == "converged" and fit.n_iterations < 5000


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
def test_targets_whose_squares_are_no_doubles_end(algorithm):
    Phi = np.random.default_rng(0).normal(size=(20, 8))
    with pytest.raises((NotPositiveDefiniteError, FloatingPointError)), np.errstate(all="ignore"):
        solve(given(Phi, 1e200 * Phi[:, 0]), algorithm)
