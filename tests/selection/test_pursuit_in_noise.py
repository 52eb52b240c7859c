"""Matching pursuit where the noise is large, so that the penalty on a coefficient counts."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Linear
from mercer.selection import matching_pursuit


@pytest.mark.parametrize("seed", range(8))
def test_the_first_choice_by_its_formula(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    kernel = RBF(0.5) * Linear(1.0)
    K = kernel(X)
    gains = (K @ y / 50.0) ** 2 / (np.sum(K**2, axis=0) / 50.0 + np.diagonal(K))
    chosen = matching_pursuit(kernel, X, y, 1, 50.0, None)
    assert chosen.indices[0] == np.argmax(gains)
