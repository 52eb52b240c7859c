"""A committee in the units of its targets, and what a second fit leaves of the first."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import BayesianCommitteeRegressor
from mercer.errors import JitterWarning
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import X_NEW, X, Y

KERNEL = 1.7 * RBF([1.0, 2.0, 0.7])
TWO = np.column_stack([Y, 30.0 * np.cos(X[:, 1])])


def held(noise=0.2, **options):
    given = {"n_members": 3, "random_state": 0, "optimizer": None, "normalize_y": True}
    return BayesianCommitteeRegressor(KERNEL, Gaussian(noise), **(given | options))


def test_noise_of_joint_predictions_is_in_the_units_of_the_outputs():
    model = held().fit(X, TWO)
    latent, whole = (model.predict_joint(X_NEW, latent=known)[1] for known in (True, False))
    added = np.multiply.outer(np.eye(len(X_NEW)), 0.2 * np.std(TWO, axis=0) ** 2)
    np.testing.assert_allclose(whole - latent, added, atol=1e-9 * np.max(added))


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_the_slope_of_the_evidence_in_the_mean_is_in_the_units_of_the_outputs(mean):
    model = held(mean=mean).fit(X, TWO)
    theta = model.theta_ + 0.1  # the slope in the mean is 0 where the fit has ended
    _, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    steps = 1e-4 * np.eye(theta.size)
    up, down = (
        np.array([model.log_marginal_likelihood(theta + s * e) for e in steps]) for s in (1, -1)
    )
    np.testing.assert_allclose(slope, (up - down) / 2e-4, rtol=1e-5, atol=1e-5)


def test_a_query_belongs_to_its_fit():
    model = held().fit(X, Y, query=X_NEW)
    np.testing.assert_array_equal(model.query_mean_, model.predict_joint(X_NEW)[0])
    model.fit(X, Y)
    assert model.query_ is None and model.query_mean_ is None and model.query_cov_ is None


def test_jitter_is_told_of():
    with pytest.warns(JitterWarning, match="rows may repeat"):
        model = held(noise=1e-20).fit(np.vstack([X, X]), np.append(Y, Y + 1.0))
    assert model.jitter_ > 0
