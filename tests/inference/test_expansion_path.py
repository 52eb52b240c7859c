"""Penalties along a path: what held-out rows are worth, and what an interrupt leaves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, ndtr

from mercer.inference import _expansion_path, laplacian
from mercer.inference._calibration import Calibration, calibrate, narrowing
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_path import Comparison, Path, descending, scored_path
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_spread import calibrated_spread
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Huber, Logistic, Probit
from mercer.priors import Laplacian, WeightDecay

LINKS = {"soft_margin": (Logistic(), expit), "quadratic_soft_margin": (Probit(), ndtr)}


def of_labels(loss, prior=Laplacian, n=60):
    rng = np.random.default_rng(4)
    x = rng.uniform(-3, 3, n)
    y = np.where(np.sin(2 * x) + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    Phi = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.5)
    weights = rng.uniform(0.5, 2.0, n)
    problem = ExpansionProblem.of(ArrayColumns(Phi), loss, y, H=np.ones((n, 1)), weights=weights)
    model = NoiseModel(None, LINKS[loss][0], prior)
    return problem, Comparison(problem, np.arange(n) % 3, weights, model, 1e-8)


def bars(problem, solution, link, calibration, ridge, at):
    """Return variances at rows (t, k) of functions, from curvatures by finite differences."""
    A = np.hstack([problem.columns.take(solution.indices), problem.H])
    g, step = calibration[0] * solution.latent + calibration[1], 1e-4
    log = link.log_density
    y = problem.loss.y
    W = -(log(y, g + step) - 2 * log(y, g) + log(y, g - step)) / step**2
    P = A.T @ ((problem.weights * W)[:, None] * A) + np.diag(ridge)
    return np.einsum("ij,jk,ik->i", at, np.linalg.inv(P), at)


@pytest.mark.parametrize("loss", list(LINKS))
@pytest.mark.parametrize("prior", [Laplacian, WeightDecay])
def test_error_bars_of_margins_are_the_links_about_the_plain_calibration(loss, prior):
    problem, _ = of_labels(loss, prior, 40)
    solution = laplacian.solve(problem, prior, 2.0)
    calibration = Calibration(2.0, 0.4, (1.5, 0.3))
    spread = calibrated_spread(problem, solution, LINKS[loss][0], prior, 2.0, calibration)
    at = np.hstack([problem.columns.take(solution.indices)[:5], np.ones((5, 1))])
    decay = 2.0 / (1.5 / 2.0) ** 2 if prior is WeightDecay else 0.0  # of coefficients 1.5 theta
    ridge = np.append(np.full(len(solution.indices), decay), 0.0)
    wanted = bars(problem, solution, LINKS[loss][0], (1.5, 0.3), ridge, at)
    np.testing.assert_allclose(spread.var(at), wanted, rtol=1e-4)


@pytest.mark.parametrize("loss", list(LINKS))
def test_margins_are_worth_the_probabilities_that_are_predicted(loss):
    problem, by = of_labels(loss)
    link, function = LINKS[loss]
    lam = 1.0
    path = scored_path(by, np.array([lam]))
    mean, var = np.zeros(60), np.zeros(60)
    ends = {}
    for fold in range(3):
        train = problem.rows(np.flatnonzero(by.folds != fold))
        ends[fold] = train, laplacian.solve(train, Laplacian, lam, tol=1e-10)
        test = np.flatnonzero(by.folds == fold)
        own = ends[fold][1]
        mean[test] = problem.columns.take(own.indices)[test] @ own.coef + own.beta[0]
    plain = calibrate(link, mean, problem.loss.y, by.weights)
    for fold, (train, own) in ends.items():
        test = np.flatnonzero(by.folds == fold)
        at = np.hstack([problem.columns.take(own.indices)[test], np.ones((len(test), 1))])
        var[test] = bars(train, own, link, plain, np.zeros(at.shape[1]), at)
    slope, offset = calibrate(link, mean, problem.loss.y, by.weights, narrowing(link, var))
    found = path.calibrations[0]
    assert (found.slope, found.offset) == pytest.approx((slope, offset), rel=1e-3)
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    g = (slope * mean + offset)[:, None] + np.sqrt(var)[:, None] * nodes
    p = function(problem.loss.y[:, None] * g) @ shares / np.sum(shares)
    assert path.values[0] == pytest.approx(by.weights @ np.log(p) / np.sum(by.weights), abs=2e-4)


def test_margins_that_tell_nothing_are_the_share_of_the_labels():
    problem, by = of_labels("soft_margin")
    path = scored_path(by, np.array([1e3]))  # no function is in use
    assert path.calibrations[0].slope == 0.0
    share = np.sum(by.weights[problem.loss.y > 0]) / np.sum(by.weights)
    assert expit(path.calibrations[0].offset) == pytest.approx(share, abs=0.02)
    assert path.values[0] == pytest.approx(
        share * np.log(share) + (1 - share) * np.log1p(-share), abs=5e-3
    )


@pytest.mark.parametrize("after", [0, 4, 13])
def test_an_interrupt_leaves_the_penalties_that_were_calibrated(monkeypatch, after):
    _, by = of_labels("soft_margin", n=30)
    calls = []

    def counted(*args):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return calibrate(*args)

    monkeypatch.setattr(_expansion_path, "calibrate", counted)
    penalties = descending(10.0, 12)
    if not after:
        with pytest.raises(KeyboardInterrupt):
            scored_path(by, penalties)
        return
    path = scored_path(by, penalties)
    assert not path.is_whole
    assert len(path.penalties) == len(path.values) == len(path.calibrations) == after // 2


def test_an_interrupt_leaves_what_all_folds_were_solved_for(monkeypatch):
    # a longer path is not judged by one of three folds beside what all have said of the first part
    _, by = of_labels("soft_margin", n=30)
    penalties, calls = descending(60.0, 17), []
    first = scored_path(by, penalties[:11])
    assert len(scored_path(by, penalties).penalties) == 17  # the best is among the last
    whole = laplacian.Solver.path

    def broken(*args):
        calls.append(1)
        if len(calls) == 5:  # of the second part one fold is done
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(laplacian.Solver, "path", broken)
    path = scored_path(by, penalties)
    assert len(calls) == 5 and not path.is_whole
    np.testing.assert_array_equal(path.penalties, penalties[:11])
    np.testing.assert_allclose(path.values, first.values, rtol=1e-12)


def test_a_value_that_is_no_number_is_not_the_best():
    for values, best in (([np.nan, 1.0, 1.0], 1), ([-np.inf, np.nan, -5.0], 2)):
        assert Path(np.array([3.0, 2.0, 1.0]), np.array(values), np.zeros(3)).best == best


def smooth_rows(n=150):
    """Return rows of a function without noise, and a kernel so wide that its matrix is singular."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (n, 3))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y - np.mean(y), RBF(2.0)


@pytest.mark.parametrize("noise", [Gaussian(1e-4), Huber(1e-3)], ids=["squares", "huber"])
def test_a_path_ends_where_rounding_leaves_no_proof(noise):
    X, y, kernel = smooth_rows()
    problem = ExpansionProblem.of(KernelColumns(kernel, X), noise, y)
    by = Comparison(problem, np.arange(len(y)) % 3, np.ones(len(y)), NoiseModel(None, noise), 1e-7)
    penalties = descending(laplacian.largest_penalty(problem), 60)
    path = scored_path(by, penalties)
    last = int(np.flatnonzero(np.isfinite(path.values))[-1])
    assert last < 59 and np.all(np.isfinite(path.values[: last + 1]))
    for fold in range(3):
        train = problem.rows(np.flatnonzero(by.folds != fold))
        founds = laplacian.path(train, penalties[: last + 1], tol=1e-7)
        assert founds[-1].status == "certified"
    assert path.best <= last


def test_least_squares_never_end_above_what_they_began_with():
    """Where the Gram matrix is rounding its minimiser is anything, coefficients of 1e10 even."""
    X, y, kernel = smooth_rows()
    problem = ExpansionProblem.of(KernelColumns(kernel, X), Gaussian(1.0), y)
    solver, penalties = (
        laplacian.Solver(problem),
        descending(laplacian.largest_penalty(problem), 75),
    )
    before = None
    for lam in penalties[40:]:
        found = solver.solve(lam)
        assert found.objective <= 0.5 * y @ y
        if before is not None:
            held = before.objective - (before.penalties[0] - lam) * np.sum(np.abs(before.coef))
            assert found.objective <= held * (1 + 1e-9)
        before = found
