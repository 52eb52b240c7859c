"""Slopes of a committee with members that claim more variance than the prior has."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import exact
from mercer.inference.exact import ExactProblem
from mercer.kernels import RBF
from mercer.means import Zero
from mercer.posterior import Basis, CommitteePredictive, Posterior

from ..inference.sparse_dense import input_differences


@pytest.mark.parametrize("rule", ["bcm", "rbcm", "gpoe"])
def test_such_a_member_bends_no_variance(rule):
    """It is taken to have the prior's, and so are the slopes of its variance."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    kernel = 1.3 * RBF([0.8, 1.4])
    members = [
        exact.posterior(ExactProblem(k, X[s], Y[s], np.full(10, 0.1)), Zero(), np.ones(1))[0]
        for k, s in ((kernel, slice(10)), (40.0 * RBF([0.5, 0.5]), slice(10, 20)))
    ]
    made = CommitteePredictive(members, Posterior(Basis(kernel), np.zeros((0, 1))), rule)
    new = rng.normal(size=(9, 2))
    new = new[members[1].var(new)[:, 0] > 1.5]
    assert len(new) > 2
    slopes = made.gradients(new)
    for got, function in ((slopes.mean, made.mean), (slopes.var, made.var)):
        np.testing.assert_allclose(got, input_differences(function, new), rtol=1e-5, atol=1e-7)
