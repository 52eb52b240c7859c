"""The search for hyperparameters: starts, history, budgets, warnings."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor
from mercer.errors import BoundWarning, ConvergenceWarning, JitterWarning
from mercer.kernels import RBF, Periodic
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

from .data import X_NEW, X, Y, fixed


def test_history_status_and_warm_start():
    model = GPRegressor(warm_start=True).fit(X, Y)
    first = len(model.history_["value"])
    assert model.history_["theta"].shape == (first, 5)
    assert model.status_ == "converged"
    evidence = model.log_marginal_likelihood_value_
    model.fit(X, Y)
    assert len(model.history_["value"]) < first
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-4)


def test_interrupted_fit_keeps_the_best_so_far(monkeypatch):
    from mercer.evidence import Objective

    plain, calls = Objective.__call__, []

    def interrupted(self, theta):
        calls.append(theta)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return plain(self, theta)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = GPRegressor().fit(X, Y)
    assert model.status_ == "interrupted" and len(model.history_["value"]) == 3
    assert np.all(np.isfinite(model.predict(X_NEW)))


def test_too_small_a_budget_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        GPRegressor(max_iter=1).fit(X, Y)


def test_parameters_at_bounds_are_named():
    kernel = RBF(Parameter(1.0, bounds=(0.5, 1.1)))
    with pytest.warns(BoundWarning, match="length_scale at its upper bound"):
        GPRegressor(kernel).fit(X, 0.01 * X[:, 0])


def test_fixed_hyperparameters_stay():
    kernel = Parameter(2.0, fixed=True) * RBF(Parameter(1.5, fixed=True))
    model = GPRegressor(kernel, Gaussian(Parameter(0.3, fixed=True))).fit(X, Y)
    assert model.kernel_.variance == 2.0 and model.likelihood_.noise == 0.3
    assert model.status_ == "fixed"


def test_hyperprior_moves_the_fit_and_can_be_left_out():
    with_prior, without = GPRegressor().fit(X, Y), GPRegressor(hyperprior=None).fit(X, Y)
    assert (
        without.log_marginal_likelihood_value_ >= with_prior.log_marginal_likelihood_value_ - 1e-6
    )
    assert not np.allclose(with_prior.theta_, without.theta_, rtol=1e-3)


def test_callable_optimizer_and_restarts():
    def stay(function, start, bounds):
        return start, function(start)[0]

    model = GPRegressor(RBF(2.0), Gaussian(0.3), optimizer=stay).fit(X, Y)
    assert model.kernel_.length_scale == pytest.approx(2.0)
    one, best = GPRegressor().fit(X, Y), GPRegressor(n_restarts=2, random_state=0).fit(X, Y)
    assert best.history_["value"].max() >= one.history_["value"].max() - 1e-6


def test_periodic_signal_is_extrapolated():
    t = np.linspace(0, 10, 80)[:, None]
    y = np.exp(np.sin(2 * np.pi * t[:, 0] / 2.5))
    y += 0.05 * np.random.default_rng(0).normal(size=80)
    # a start from which the gradient is hundreds of units long: one step of that length would
    # leave the right period for good
    model = GPRegressor(1.0 * Periodic(1.0, 2.4), Gaussian(1e-3)).fit(t, y)
    ahead = np.linspace(20, 25, 30)[:, None]
    np.testing.assert_allclose(
        model.predict(ahead), np.exp(np.sin(2 * np.pi * ahead[:, 0] / 2.5)), atol=0.15
    )
    error = model.standard_errors()["kernel.Periodic.periodicity"]
    assert error < 1e-3
    assert np.log(model.kernel_.kernel.periodicity) == pytest.approx(np.log(2.5), abs=3 * error)


@pytest.mark.parametrize("cycles", [1, 3, 6, 15])
def test_default_model_finds_fast_signals_too(cycles):
    """From one length scale alone, six cycles over the inputs were fitted as noise."""
    x = np.linspace(0, 10, 150)[:, None]
    y = np.sin(2 * np.pi * cycles * x[:, 0] / 10)
    y += 0.1 * np.random.default_rng(0).normal(size=150)
    assert GPRegressor().fit(x, y).score(x, y) > 0.97


def test_length_scales_in_the_wrong_units_are_pointed_out():
    raw = X * [10.0, 5e4, 3e3]
    with pytest.warns(ConvergenceWarning, match="no two rows are near each other"):
        GPRegressor(RBF([1.0] * 3)).fit(raw, Y)


def test_leave_one_out_prints_short():
    assert repr(fixed().fit(X, Y).loo()).startswith("LeaveOneOut(40 rows, log_density ")


@pytest.mark.parametrize("seed", range(4))
def test_restarts_find_a_period_far_from_the_start(seed):
    """A kernel of the user's begins where it says; the random starts look for other periods."""
    rng = np.random.default_rng(1)
    t, ahead = rng.uniform(0, 50, size=(120, 1)), np.linspace(60, 80, 50)[:, None]
    y = np.exp(np.sin(2 * np.pi * t[:, 0] / 7)) + 0.05 * rng.normal(size=120)
    model = GPRegressor(1.0 * Periodic(), n_restarts=5, random_state=seed).fit(t, y)
    # the period, or a multiple, which is one too
    cycles = model.kernel_.kernel.periodicity / 7.0
    assert cycles == pytest.approx(max(1, round(cycles)), rel=2e-3)
    expected = np.exp(np.sin(2 * np.pi * ahead[:, 0] / 7))
    np.testing.assert_allclose(model.predict(ahead), expected, atol=0.15)


def test_a_search_goes_on_with_jitter_where_none_would_end_it():
    """Without it the search ended at the edge of what can be factorised, gradients in hundreds."""
    t = np.linspace(0, 5, 80)[:, None]
    model = GPRegressor(1.0 * RBF(0.05), Gaussian(np.zeros(80)), mean="zero")
    with pytest.warns(JitterWarning) as caught:
        model.fit(t, np.sin(t[:, 0]))
    assert len(caught) == 1 and model.status_ == "converged"
    assert 0 < model.jitter_ < 1e-8
    # At the top: no step finds a better one. (The gradient is of rounding, some tenths: it promises
    # less than the noise of the evidence, 1e-3, whose curvature is 500.)
    theta = model.kernel_.theta
    for step in 0.1 * np.vstack([np.eye(2), -np.eye(2)]):
        assert model.log_marginal_likelihood(theta + step) < model.log_marginal_likelihood_value_
    # what is reported is what the search found, with the jitter that is kept
    assert model.log_marginal_likelihood_value_ == pytest.approx(max(model.history_["value"]))


def test_a_callable_is_told_of_every_evaluation(capsys):
    told = []
    model = GPRegressor(n_restarts=1, random_state=0, verbose=lambda *given: told.append(given))
    model.fit(X, Y)
    starts, counts, values, best = zip(*told, strict=True)
    assert starts == tuple(sorted(starts)) and set(starts) == {1, 2}
    assert (counts[0], best[0]) == (1, values[0])
    np.testing.assert_array_equal(values, model.history_["value"])
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1).fit(X, Y)
    assert "mercer: start 2/2, evaluation 1: " in capsys.readouterr().err


def outlying(seed):
    """A smooth function of the first column, and every ninth target far off."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(80, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    y[::9] += 3.0
    return X, y


@pytest.mark.parametrize("seed", [0, 5, 7])
@pytest.mark.parametrize("units", [1.0, 1e-6])
def test_the_default_model_does_not_end_at_interpolated_noise(seed, units, capsys):
    X, y = outlying(seed)
    model = GPRegressor(verbose=1).fit(units * X, y / units)
    assert 0.7 < units**2 * model.likelihood_.noise < 1.1
    lines = capsys.readouterr().err.splitlines()
    assert "mercer: evaluation 1: " in lines[0] and "mercer: start 2/2, " in lines[-1]
    # all of both starts, of which the second is the better
    values, count = model.history_["value"], sum("start 2/2" in line for line in lines)
    assert len(values) == len(lines)
    assert np.max(values) == np.max(values[-count:]) > np.max(values[:-count]) + 1.0


def test_an_interruption_of_the_second_search_keeps_the_first():
    X, y = outlying(0)
    first = []

    def report(start, count, value, best):
        if start == 2:
            raise KeyboardInterrupt
        first.append(value)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = GPRegressor(verbose=report).fit(X, y)
    assert model.status_ == "interrupted"
    assert len(model.history_["value"]) == len(first) + 1
    assert model.likelihood_.noise < 1e-3


@pytest.mark.parametrize("units", [1.0, 1e-6])
def test_smooth_targets_without_noise_are_interpolated_by_one_search(units):
    t, told = np.linspace(0, 6, 40)[:, None], set()
    model = GPRegressor(verbose=lambda start, *_: told.add(start))
    with pytest.warns(BoundWarning, match="free of noise"):
        model.fit(units * t, np.sin(t[:, 0]) / units)
    np.testing.assert_allclose(units * model.predict(units * t), np.sin(t[:, 0]), atol=1e-3)
    assert told == {1}
