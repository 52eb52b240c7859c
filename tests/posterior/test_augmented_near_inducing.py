"""Points that are next to inducing inputs, and so have nothing to add."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._sparse_predictive import augmented

from ..inference.sparse_dense import SCALE, make


@pytest.mark.parametrize("name", ["dtc", "fitc", "pitc"])
def test_predictions_next_to_an_inducing_input_are_those_there(name):
    p, mean = make(name, "estimated")
    made = augmented(p, mean, SCALE)[0]
    there = made.mean_and_var(p.Z)
    for away in 10.0 ** np.arange(-12, -6):
        for got, wanted in zip(made.mean_and_var(p.Z + away), there, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
