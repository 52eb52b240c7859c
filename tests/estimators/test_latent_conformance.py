"""Regressors without Gaussian noise are held to the rules of all regressors."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Poisson, StudentT
from mercer.testing import check_regressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
COUNTS = RNG.poisson(np.exp(1.0 + X[:, 0])).astype(float)
KERNEL = 1.0 * RBF([1.0, 1.0])


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (GPRegressor(KERNEL, Poisson()), (X, COUNTS)),
        (GPRegressor(KERNEL, StudentT(5.0, 0.3)), ()),
    ],
    ids=["Poisson", "StudentT"],
)
def test_the_rules_of_regressors(model, data):
    report = check_regressor(model, *data)
    assert len(report.held) >= 20
