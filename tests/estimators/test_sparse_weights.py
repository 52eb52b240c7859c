"""Weights count rows: the same as repeating them, certificates and blocks included."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SparseGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (120, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=120)
TIMES = RNG.integers(1, 4, 120)
NEW = RNG.uniform(-3, 3, (60, 2))


@pytest.mark.parametrize("name", ["dtc", "fitc", "vfe", "pitc", "pic"])
def test_a_weight_is_a_number_of_rows(name):
    def model():
        options = {"approximation": name, "inducing": X[:15], "optimizer": None}
        return SparseGPRegressor(1.5 * RBF([0.7, 2.0]), Gaussian(0.02), **options)

    groups = {"groups": X[:, 0] > 0} if name in ("pitc", "pic") else {}
    twice = {k: np.repeat(v, TIMES) for k, v in groups.items()}
    a = model().fit(X, Y, sample_weight=TIMES, **groups)
    b = model().fit(np.repeat(X, TIMES, axis=0), np.repeat(Y, TIMES), **twice)
    for got, expected in zip(
        a.predict(NEW, return_std=True), b.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    assert a.evidence_bounds_ == pytest.approx(b.evidence_bounds_, rel=1e-7)
    assert a.unexplained_ == pytest.approx(b.unexplained_, rel=1e-7)


@pytest.mark.filterwarnings("ignore:1 inducing inputs leave")
def test_points_of_no_group_join_the_centre_of_weighted_rows():
    """A heavy row draws the centre of its block."""
    rows = np.array([[0.0], [1.0], [4.0], [5.0]])
    weights = np.array([1.0, 1.0, 9.0, 1.0])  # centres 0.5 and 4.1, and 4.5 without weights
    model = SparseGPRegressor(
        1.0 * RBF(1.0),
        Gaussian(0.1),
        approximation="pic",
        inducing=rows[:1],
        optimizer=None,
    )
    model.fit(rows, [0.0, 1.0, 2.0, 1.0], sample_weight=weights, groups=[0, 0, 1, 1])
    new = np.array([[2.4]])
    np.testing.assert_array_equal(model.predict(new), model.predict(new, groups=[1]))
    assert model.predict(new) != model.predict(new, groups=[0])
