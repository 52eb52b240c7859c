"""Length scales of a sample: a target far from the others has no say in them where it may not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import RelevanceVectorRegressor
from mercer.estimators.laplacian_rows import merged
from mercer.estimators.sampled_widths import sampled_widths
from mercer.means import Constant


def waves(n=60, size=30.0):
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (n, 1))
    clean = np.sin(2 * X[:, 0])
    y = clean + 0.1 * rng.standard_normal(n)
    y[5] += size
    return X, y, clean


def width_of(X, y, outliers):
    rows = merged(X, y[:, None], None, np.arange(len(X)), None)
    model, rng = RelevanceVectorRegressor(), np.random.default_rng(0)
    kernel, whole = sampled_widths(model, rows, Constant(), False, outliers, rng)
    assert whole
    return float(kernel.length_scale[0])


@pytest.mark.parametrize("size", [10.0, 1e6])
def test_one_target_far_away_changes_nothing(size):
    X, y, _ = waves(size=size)
    rest = np.arange(len(X)) != 5
    assert width_of(X, y, True) == pytest.approx(width_of(X[rest], y[rest], True), rel=1e-6)
    assert width_of(X, y, True) > 0.3


def test_targets_of_two_kinds_are_no_outliers():
    X, y, _ = waves(size=0.0)
    y[::3] += 20.0  # more than a quarter of them
    assert width_of(X, y, True) == width_of(X, y, False)


def test_a_robust_machine_is_not_misled_by_one_row():
    X, y, clean = waves(size=1e3)
    model = RelevanceVectorRegressor(robust=True).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - clean) ** 2)) < 0.08
    assert np.argmin(model.outlier_weights_) == 5 and model.outlier_weights_[5] < 1e-6
    assert model.n_relevance_ < 12
