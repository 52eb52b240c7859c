"""The steps of a search: to them, from them, and derivatives along them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.directions import Directions

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("last", [None, RNG.normal(size=(2, 2))], ids=["unit", "mixed"])
def test_steps_are_the_columns_of_a_matrix(last):
    steps = Directions(5, last)
    T, theta, gradient = steps.matrix(), RNG.normal(size=5), RNG.normal(size=5)
    np.testing.assert_allclose(T @ steps.along(theta), theta, atol=1e-12)
    np.testing.assert_allclose(steps.theta(theta), T @ theta, atol=1e-12)
    np.testing.assert_allclose(steps.pull(gradient), T.T @ gradient, atol=1e-12)
    assert np.array_equal(T[:3, :3], np.eye(3))
    assert np.array_equal(T[3:, 3:], np.eye(2) if last is None else last)
