"""Where searches begin."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data, Objective
from mercer.evidence.starts import starts
from mercer.kernels import RBF, Callable, Periodic
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

T = np.linspace(0, 50, 60)[:, None]


def objective(kernel, bounded=True):
    data = Data(T, np.sin(2 * np.pi * T / 7), None, np.ones(1))
    bounds = None
    if bounded:
        own = kernel.with_bounds_from(np.std(T, axis=0), 0.5)
        bounds = np.concatenate([own.bounds, Gaussian(0.1).bounds])
    return Objective(kernel, Gaussian(0.1), means.Constant(), data, bounds=bounds)


def test_the_first_start_is_the_users_and_all_are_inside_the_bounds():
    target = objective(1.0 * Periodic() + RBF(Parameter(2.0, bounds=(1.9, 2.1))))
    points = starts(target, 6, np.random.default_rng(0))
    assert len(points) == 7
    np.testing.assert_array_equal(points[0], target.theta)
    for point in points:
        assert np.all((point >= target.bounds[:, 0]) & (point <= target.bounds[:, 1]))


def intervals(kernel, X=T):
    """Of the periods, by component."""
    found = np.exp(kernel.start_intervals(X))
    assert found.shape == (kernel.theta.size, 2)
    return {i: pair for i, pair in enumerate(found) if np.all(np.isfinite(pair))}


def test_periods_come_from_what_the_data_can_show():
    found = intervals(Periodic())
    step, extent = T[1, 0] - T[0, 0], np.ptp(T)
    np.testing.assert_allclose(found[1], [2.0 * step, extent], rtol=0.15)
    given = Periodic(periodicity=Parameter(1.0, bounds=(0.5, 20.0)))
    np.testing.assert_allclose(intervals(given)[1], [0.5, 20.0])
    assert intervals(1.0 * RBF()) == {}
    assert intervals(Periodic(periodicity=Parameter(1.0, fixed=True))) == {}
    assert list(intervals(Periodic(Parameter(1.0, fixed=True)))) == [0]


def test_periods_are_found_wherever_they_stand_in_the_units_of_their_columns():
    X = np.hstack([T, 100.0 * T, np.ones_like(T)])
    kernel = 2.0 * RBF() + (3.0 * Periodic() * RBF()).on(1) + Periodic(periodicity=np.ones(3))
    names, found = kernel.parameter_names, intervals(kernel, X)
    assert [names[i] for i in found] == [n for n in names if "periodicity" in n]
    one, (inside, *several, constant) = intervals(Periodic())[1], found.values()
    np.testing.assert_allclose(inside, 100.0 * one)
    np.testing.assert_allclose(several, [one, 100.0 * one])
    assert constant[1] == pytest.approx(3.0)
    shared = intervals(Periodic(), X[:, :2])[1]
    np.testing.assert_allclose(shared, [one[0], 100.0 * one[1]])


def test_rows_that_are_objects():
    mixed = np.empty((60, 2), dtype=object)
    mixed[:, 0], mixed[:, 1] = "word", T[:, 0]
    kernel = Callable(lambda a, b: 1.0) + Periodic().on(1)
    np.testing.assert_allclose(list(intervals(kernel, mixed).values()), [intervals(Periodic())[1]])


def test_the_best_of_the_draws_are_taken():
    target = objective(1.0 * Periodic())
    points = starts(target, 3, np.random.default_rng(0))[1:]
    values = [target(point)[0] for point in points]
    assert values == sorted(values, reverse=True)
    drawn = [starts(objective(1.0 * Periodic()), 3, np.random.default_rng(0)) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
