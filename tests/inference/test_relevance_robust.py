"""Relevance with a variance for each row: its updates against differences, outliers, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from scipy.special import gammaln

from mercer.errors import BoundWarning, ConvergenceWarning
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._relevance_fast import Fast
from mercer.inference.relevance import RelevanceProblem, robust, solve
from mercer.kernels import RBF
from mercer.likelihoods.spread import spread_of

from .relevance_cases import Flat, dense_evidence, gradient, sinc


def spoilt(n=60, every=12):
    X, y = sinc(n)
    clean = np.sinc(X[:, 0] / np.pi)
    y[::every] += 3.0
    columns = KernelColumns(RBF(1.6), X)
    return RelevanceProblem(columns, y, np.zeros(n), None, Flat()), clean


def penalised(Phi, s, v, y, e, scale):
    rate = e * scale
    rows = e * np.log(rate) - gammaln(e) - e * np.log(v) - rate / v
    return dense_evidence(Phi, s, v, y) + np.sum(rows)


def test_outliers_are_found_and_do_no_harm():
    problem, clean = spoilt()
    found = robust(problem)
    assert found.fit.status == "converged"
    outliers = np.zeros(60, dtype=bool)
    outliers[::12] = True
    assert found.weights[outliers].max() < 0.05 < 0.2 < found.weights[~outliers].min()
    assert found.weights.max() <= 1.25 * (1 + 1e-9)
    plain = solve(problem)

    def error(fit):
        return np.sqrt(np.mean((fit.latent - clean) ** 2))

    assert error(found.fit) < 0.1 < error(plain)
    np.testing.assert_allclose(found.fit.noise, found.scale / found.weights)


def test_an_outlier_has_no_say_in_how_little_noise_there_may_be():
    X, y = sinc(60)
    clean = np.sinc(X[:, 0] / np.pi)
    y[7] += 1e6  # a variance of which 1e-8 is more than that of all others
    found = robust(RelevanceProblem(KernelColumns(RBF(1.6), X), y, np.zeros(60), None, Flat()))
    assert found.fit.status == "converged" and found.scale < 0.02
    others = np.arange(60) != 7
    assert np.max(np.abs(found.fit.latent - clean)[others]) < 0.2


@pytest.mark.parametrize("noise", [None, 0.01])
@pytest.mark.parametrize("degrees", [3.0, 4.0])
def test_the_gradient_is_zero_at_the_end(degrees, noise):
    problem, _ = spoilt(40, 10)
    problem = RelevanceProblem(problem.columns, problem.y, problem.mean, None, Flat(), noise=noise)
    found = robust(problem, degrees=degrees, tol=1e-6)
    fit, e, k = found.fit, degrees / 2, len(found.fit.indices)
    Phi = problem.columns.take(fit.indices)

    def value(x):
        scale = np.exp(x[-1]) if noise is None else noise
        return penalised(Phi, np.exp(x[:k]), np.exp(x[k:-1]), problem.y, e, scale)

    at = np.concatenate([np.log(fit.precisions), np.log(fit.noise), [np.log(found.scale)]])
    assert fit.objective == pytest.approx(value(at), abs=1e-6)
    np.testing.assert_allclose(gradient(value, at), 0.0, atol=5e-3)
    wanted = dense_evidence(Phi, fit.precisions, fit.noise, problem.y)
    assert fit.log_evidence == pytest.approx(wanted, abs=1e-7)


def test_flat_variances_have_a_floor_and_a_warning():
    problem, _ = spoilt()
    with pytest.warns(BoundWarning, match="at the floor"):
        found = robust(problem, degrees=None)
    floor = 1e-8 * min(np.var(problem.y), spread_of(problem.y) ** 2)
    assert found.fit.noise.min() == pytest.approx(floor)
    assert np.all(np.diff(found.fit.history) >= -1e-7 * np.abs(found.fit.history).max())


def test_weights_are_rows_repeated_and_removed():
    X, y = sinc(30)
    y[4] += 3
    weights = np.ones(30)
    weights[[4, 9]] = 2.0
    weights[[5, 11]] = 0.0
    rows = np.repeat(np.arange(30), weights.astype(int))
    kernel = RBF(1.6)
    one = robust(RelevanceProblem(KernelColumns(kernel, X), y, np.zeros(30), weights, Flat()))
    two = robust(
        RelevanceProblem(
            KernelColumns(kernel, X[rows], X), y[rows], np.zeros(len(rows)), None, Flat()
        )
    )
    np.testing.assert_array_equal(one.fit.indices, two.fit.indices)
    assert one.fit.objective == pytest.approx(two.fit.objective, abs=1e-5)
    np.testing.assert_allclose(one.fit.noise[rows], two.fit.noise, rtol=1e-3)
    assert one.fit.noise.shape == (30,)
    assert np.all(one.fit.noise > 0)


@settings(max_examples=15, deadline=None)
@drawn(
    st.integers(2, 20), st.integers(1, 6), st.integers(0, 2**31), st.sampled_from([1e-6, 1, 1e6])
)
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_the_history_never_decreases(n, M, seed, scale):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, M))
    y = scale * (Phi[:, 0] + rng.standard_t(1.5, n))
    found = robust(RelevanceProblem(ArrayColumns(Phi), y, np.zeros(n), None, Flat()))
    history = found.fit.history
    assert np.all(np.diff(history) >= -1e-7 * (1 + np.abs(history).max()))
    assert np.all(np.isfinite(found.weights))


def test_ctrl_c_and_what_is_refused():
    problem, _ = spoilt()

    def report(steps, value, k):
        if steps >= 3:
            raise KeyboardInterrupt

    assert robust(problem, report=report).fit.status == "interrupted"
    for bad in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="degrees must be"):
            robust(problem, degrees=bad)


def test_the_first_fit_may_be_interrupted_and_its_steps_count(monkeypatch):
    problem, _ = spoilt()
    whole, steps, calls = robust(problem), Fast._steps, []

    def broken(*args):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return steps(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Fast, "_steps", broken)
        found = robust(problem)
    assert found.fit.status == "interrupted" and len(calls) == 4
    assert np.all(np.isfinite(found.fit.latent)) and np.all(found.weights > 0)
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        few = robust(problem, max_iter=3)
    assert few.fit.status == "stopped" and few.fit.n_iterations == 3
    assert few.fit.objective < whole.fit.objective


@pytest.mark.filterwarnings("ignore:the evidence was still increasing")
def test_searches_between_updates_take_no_more_steps_than_are_left():
    problem, _ = spoilt()
    most = robust(problem).fit.n_iterations
    for limit in (10, 61, 114, 133, most - 1, most):
        fit = robust(problem, max_iter=limit).fit
        assert fit.n_iterations == limit
        assert fit.status == ("stopped" if limit < most else "converged")
