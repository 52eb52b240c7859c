"""Points that join the inducing inputs where the noise is next to none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.inference._sparse_predictive import augmented
from mercer.kernels import RBF

from ..inference.sparse_dense import SCALE, make


@pytest.mark.parametrize("name", ["vfe", "fitc", "pep"])
def test_a_row_that_joins_is_known(name):
    """What it leaves of its own variance is rounding, which may be negative."""
    p, mean = make(name, n=12, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X[:6], noise=np.full(12, 1e-18))
    mu, var = augmented(p, mean, SCALE)[0].mean_and_var(p.X)
    assert np.all(np.isfinite(mu)) and np.all(var >= 0)
    if name == "fitc":
        np.testing.assert_allclose(mu, SCALE * p.Y, rtol=1e-6, atol=1e-6)
        assert np.all(var < 1e-12)
