"""Widths of columns, noise that a user gives, and the bounds that it gets from the data."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.defaults import bounded_noise, deviation, spread
from mercer.likelihoods import Gaussian
from mercer.params import Parameter


@pytest.mark.parametrize(
    ("start", "bounds"),
    [
        (0.5, (4e-6, 4e2)),
        (1e-9, (1e-10, 4e2)),  # below the range of the data, whose variance is 4
        (1e5, (4e-6, 1e6)),  # above it
    ],
)
def test_bounds_of_the_noise_hold_its_start(start, bounds):
    bounded = bounded_noise(Gaussian(start), 4.0)
    np.testing.assert_allclose(bounded.bounds, np.log([bounds]), rtol=1e-12)
    assert bounded.noise == start


def test_bounds_of_the_users_own_are_kept():
    given = Gaussian(Parameter(1e5, bounds=(1e4, 1e6)))
    for likelihood in (given, Gaussian(Parameter(1e5, fixed=True)), Gaussian(np.ones(3))):
        assert bounded_noise(likelihood, 4.0) is likelihood


@pytest.mark.parametrize("value", [0.1, 0.998, 2.7, -1e300])
@pytest.mark.parametrize("n", [2, 2500, 20_001])
def test_a_constant_column_has_width_one_whatever_its_mean_rounds_to(n, value):
    columns = np.column_stack([np.full(n, value), np.arange(n)])
    weights = np.linspace(0.1, 3.0, n)
    for given in (None, weights):
        width = spread(columns, given)
        assert width[0] == 1.0
        centre = np.average(np.arange(n), weights=given)
        expected = np.sqrt(np.average((np.arange(n) - centre) ** 2, weights=given))
        assert width[1] == pytest.approx(expected, rel=1e-12)


def test_a_first_row_far_off_that_counts_for_nothing():
    values, weights = np.array([[1e16], [1.0], [2.0], [3.0]]), np.array([1e-60, 1.0, 1.0, 1.0])
    assert deviation(values, weights)[0] == pytest.approx(np.sqrt(2.0 / 3.0), rel=1e-12)
    assert deviation(values[::-1], weights[::-1])[0] == pytest.approx(np.sqrt(2.0 / 3.0), rel=1e-12)
