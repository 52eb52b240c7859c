"""Noise and functions that are those of a few targets far out: targets made to be so, and not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.expansion_outliers import (
    few_that_make,
    is_louder,
    poor_because_of_others,
    scale_of,
)
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace

Y = np.random.default_rng(0).normal(size=200)
ONES = np.ones(200)


@pytest.mark.parametrize(
    "noise", [Gaussian(0.09), Laplace(0.3), Huber(0.3), EpsilonInsensitive(0.1, 0.3)], ids=repr
)
def test_the_scale_is_in_units_of_the_targets(noise):
    assert scale_of(noise) == pytest.approx(0.3, rel=1e-12)


def test_few_targets_far_out_make_the_noise():
    y = Y.copy()
    y[:10] = 1e3
    few = few_that_make(Laplace(50.0), y, ONES)
    assert few is not None and few.scale == 50.0 and few.part == pytest.approx(0.05)
    assert few.half == pytest.approx(np.median(np.abs(y - np.median(y))))
    assert few_that_make(Laplace(1.0), y, ONES) is None  # noise of the others
    assert few_that_make(Laplace(50.0), Y, ONES) is None  # no target is further out
    y[:80] = 1e3
    assert few_that_make(Laplace(50.0), y, ONES) is None  # nor are they few


def test_weights_are_repeated_rows():
    y, weights = np.append(Y, 1e3), np.append(ONES, 10.0)
    repeated = np.append(Y, np.full(10, 1e3))
    few = few_that_make(Laplace(50.0), y, weights)
    assert few == pytest.approx(few_that_make(Laplace(50.0), repeated, np.ones(210)))


@pytest.mark.parametrize(("variance", "so"), [(9.0, False), (11.0, True)])
def test_noise_ten_times_the_residuals_is_too_loud(variance, so):
    residuals = np.where(np.arange(200) % 2, 1.0, -1.0)
    assert is_louder(Gaussian(variance), residuals, ONES, 0) == so
    # of half as many degrees of freedom the residuals have twice the variance
    assert not is_louder(Gaussian(variance), residuals, ONES, 100)


# What a fit leaves of targets of variance 1, the noise, whether it was estimated, what is poor.
@pytest.mark.parametrize(
    ("left", "noise", "is_open", "poor"),
    [
        (0.1, 0.39, True, None),
        (0.1, 0.41, True, "noise"),
        (1.2, 1.2, True, None),
        (1.3, 1.3, True, "fit"),
        (1.3, 5.3, True, "noise"),
        (0.6, 0.14, False, "fit"),
        (0.6, 0.16, False, None),
        (0.4, 0.01, False, None),
    ],
)
def test_what_is_poor_because_of_others(left, noise, is_open, poor):
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    f = y - np.sqrt(left)
    assert poor_because_of_others(Gaussian(noise), y, f, ONES, is_open) == poor
