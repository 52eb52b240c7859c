"""Hyperparameters of a sample, held against all rows: the scale of all variances."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data, mended
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference._approximations import approximation
from mercer.inference.sparse import solve
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

RNG = np.random.default_rng(3)
X = RNG.uniform(-2.0, 2.0, (60, 2))
Y = 1.5 + np.sin(2.0 * X) + 0.1 * RNG.normal(size=(60, 2))
Z = RNG.uniform(-2.0, 2.0, (10, 2))


def make(noise, mean=None, weights=None):
    data = Data(X, Y, weights, np.ones(2))
    model = 1.3 * RBF([0.9, 1.6]), noise, means.Zero() if mean is None else mean
    return SparseObjective(*model, data, InducingInputs(Z), approximation("fitc"))


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 60)], ids=["plain", "weighted"])
@pytest.mark.parametrize("estimate", ["ml", "integrate"])
def test_the_scale_of_all_variances_maximises_the_evidence(estimate, weights):
    whole = make(Gaussian(0.05), means.Constant(estimate=estimate), weights)
    scale, value = mended._scale(whole)
    at = [
        solve(scaled.problem(*scaled.unpack(scaled.theta))).log_evidence
        for scaled in (mended._times(whole, scale * factor)[0] for factor in (0.99, 1.0, 1.01))
    ]
    assert at[1] == pytest.approx(value, rel=1e-10)
    assert at[0] < at[1] > at[2]


def test_bounds_of_the_noise_hold_back_the_scale_of_all_variances():
    whole = make(Gaussian(Parameter(0.05, bounds=(0.05, 0.15))))
    for scale, wanted in ((0.5, 1.0), (2.0, 2.0), (9.0, 3.0)):
        scaled, factor = mended._times(whole, scale)
        ratio = np.exp(scaled.theta - whole.theta)
        np.testing.assert_allclose(ratio, [wanted, 1.0, 1.0, wanted])
        assert factor == pytest.approx(wanted)


@pytest.mark.parametrize("total", [0.9, 1.0])
def test_weights_worth_no_row_beside_an_integrated_mean_scale_nothing(total):
    mean = means.Constant(estimate="integrate")
    whole = make(Gaussian(0.05), mean, np.full(60, total / 60))
    value = solve(whole.problem(*whole.unpack(whole.theta))).log_evidence
    assert mended._scale(whole) == (1.0, value)
