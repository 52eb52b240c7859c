"""Where searches begin."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data, Objective
from mercer.evidence.starts import starts
from mercer.kernels import RBF, Periodic
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


def test_periods_come_from_what_the_data_can_show():
    (interval,) = objective(Periodic()).period_intervals().values()
    step, extent = T[1, 0] - T[0, 0], np.ptp(T)
    assert np.exp(interval) == pytest.approx([2.0 * step, extent], rel=0.15)
    given = Periodic(periodicity=Parameter(1.0, bounds=(0.5, 20.0)))
    (interval,) = objective(given).period_intervals().values()
    np.testing.assert_allclose(np.exp(interval), [0.5, 20.0])
    assert objective(1.0 * RBF()).period_intervals() == {}


def test_the_best_of_the_draws_are_taken():
    target = objective(1.0 * Periodic())
    points = starts(target, 3, np.random.default_rng(0))[1:]
    values = [target(point)[0] for point in points]
    assert values == sorted(values, reverse=True)
    drawn = [starts(objective(1.0 * Periodic()), 3, np.random.default_rng(0)) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
