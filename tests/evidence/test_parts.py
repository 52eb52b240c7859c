"""Which columns the parts of a kernel look at."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.parts import parts, relevances
from mercer.evidence.shares import variance_over, variances_over
from mercer.kernels import RBF, Linear, Matern, Periodic

KERNEL = (2.0 * RBF([1.0, 4.0]).on([2, 0]) + Matern(0.5) * Periodic().on(1)).on([3, 1, 2]) + Linear(
    length_scale=2.0
)


def test_paths_are_those_of_the_parameters():
    found = {part.path: part for part in parts(KERNEL, 4)}
    assert found[""].kernel is KERNEL
    for name in KERNEL.parameter_names:
        path, _, own = name.rpartition(".")
        assert own.partition("[")[0] in found[f"{path}." if path else ""].kernel.parameters


def test_columns_are_those_of_the_whole():
    columns = {type(part.kernel): part.columns.tolist() for part in parts(KERNEL, 4)}
    assert columns[RBF] == [2, 3]  # the third and first of 3, 1, 2
    assert columns[Matern] == [3, 1, 2]
    assert columns[Periodic] == [1]
    assert columns[Linear] == [0, 1, 2, 3]


def test_relevances_are_of_length_scales_in_the_units_of_columns():
    X = np.random.default_rng(0).normal(size=(20, 4)) * [1.0, 2.0, 3.0, 4.0]
    rbf, matern = relevances(KERNEL, X)
    assert (type(rbf.kernel), type(matern.kernel)) == (RBF, Matern)
    np.testing.assert_array_equal(rbf.length_scales, [np.nan, np.nan, 1.0, 4.0])
    np.testing.assert_array_equal(matern.length_scales, [np.nan, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(rbf.values, X.std(axis=0) / rbf.length_scales)
    assert relevances(Linear(), X) == []


def test_a_row_of_weight_two_counts_twice():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(20, 2)), rng.integers(1, 4, 20)
    kernel, twice = 2.0 * RBF([1.0, 4.0]) + Linear(), np.repeat(X, weights, axis=0)
    (got,), (wanted,) = relevances(kernel, X, weights.astype(float)), relevances(kernel, twice)
    np.testing.assert_allclose(got.values, wanted.values)
    assert variance_over(kernel, X, weights) == pytest.approx(variance_over(kernel, twice))
    assert variances_over(kernel, X, weights) == pytest.approx(variances_over(kernel, twice))
    assert variance_over(kernel, X) != pytest.approx(variance_over(kernel, twice), rel=1e-3)
