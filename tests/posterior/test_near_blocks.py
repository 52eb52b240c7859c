"""The block of training rows that a new point is near to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inference._sparse_predictive import predictive
from mercer.kernels import RBF

from ..inference.sparse_dense import SCALE, make


def test_a_column_of_one_value_keeps_points_from_no_block():
    p, mean = make("pic", kernel=1.3 * RBF([0.8, 1.4]))
    X = np.column_stack([np.sort(p.X[:, 0]), np.full(40, 3.0)])
    p = replace(p, X=X, Z=X[::6], groups=np.repeat(np.arange(5), 8))
    made = predictive(p, mean, SCALE)[0]
    np.testing.assert_array_equal(made.blocks.nearest(X[[0, 20, 39]]), [0, 2, 4])
    new = np.array([[X[39, 0], 3.5]])
    np.testing.assert_array_equal(made.mean(new), made.at([4]).mean(new))
