"""Noise that a user gives, and the bounds that it gets from the data."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.defaults import bounded_noise
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
