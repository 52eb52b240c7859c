"""Warnings of noise that few rows have left none of."""

import warnings

import numpy as np
import pytest

from mercer.evidence.few_rows import warn_of_next_to_no_noise
from mercer.likelihoods import Gaussian


@pytest.mark.parametrize(
    ("weights", "told"), [(None, True), (np.ones(40), True), (np.full(40, 0.5), False)]
)
def test_noise_of_a_weight_of_1_is_not_what_rows_of_others_have_left(weights, told):
    Y = np.random.default_rng(0).normal(size=(40, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_next_to_no_noise(Gaussian(1e-6), np.ones(1), Y, weights, 4)
    assert bool(caught) == told


@pytest.mark.parametrize(("noise", "told"), [(1e-4, True), (1e-2, False)])
def test_noise_is_in_units_of_the_outputs(noise, told):
    Y = 100.0 * np.random.default_rng(0).normal(size=(40, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_next_to_no_noise(Gaussian(noise), np.array([100.0]), Y, None, 4)
    assert bool(caught) == told
