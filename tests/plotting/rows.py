"""Rows that no fit has seen."""

from __future__ import annotations

import numpy as np


def fresh(d, n=60):
    rng = np.random.default_rng(99)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.2 * rng.standard_normal(n)
