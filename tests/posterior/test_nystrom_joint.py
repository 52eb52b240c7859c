"""The joint covariance of the Nyström approximation where its negative part is cut off."""

from __future__ import annotations

import warnings

import numpy as np

from mercer.inference._sparse_predictive import nystrom

from ..inference.sparse_dense import SCALE, make


def test_the_joint_covariance_has_the_variances_on_its_diagonal():
    p, mean = make("dtc", m=3)
    made = nystrom(p, mean, SCALE)[0]
    new = np.random.default_rng(7).normal(size=(9, 2))
    new[5:] += 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        var, cov = made.var(new), made.cov(new)
    assert np.any(var == 0) and np.any(var > 0)
    np.testing.assert_allclose(np.einsum("iip->ip", cov), var, rtol=1e-9, atol=1e-12)
