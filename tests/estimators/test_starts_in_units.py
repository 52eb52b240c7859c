"""A variance that can only be in other units than the data: where searches then begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import StudentT
from mercer.params import LogNormal, Parameter

from .data import quiet_fit

RNG = np.random.default_rng(3)
X = np.sort(RNG.uniform(0.0, 6.0, (30, 1)), axis=0)
F = np.sin(2.0 * X[:, 0])
Y = F + 0.1 * RNG.standard_t(3, 30)
LABELS = F + 0.3 * RNG.normal(size=30) > 0
MODELS = {
    "exact": (GPRegressor, {"mean": "zero"}, 1e3 * Y),
    "laplace": (
        GPRegressor,
        {
            "mean": "zero",
            "likelihood": StudentT(Parameter(3.0, fixed=True)),
            "inference": "laplace",
        },
        1e3 * Y,
    ),
    "classes": (GPClassifier, {}, LABELS),
}
# The variance that the data suggest, and one that is far away.
SIZES = {"exact": (1e6, 1.0), "laplace": (1e6, 1.0), "classes": (4.0, 1e9)}


def begun(name, kernel):
    """The variance that a search begins with."""
    make, options, y = MODELS[name]
    starts = []

    def stay(minimised, start, bounds):
        starts.append(start)
        return start, minimised(start)[0]

    quiet_fit(make(kernel, optimizer=stay, **options), X, y)
    return np.exp(starts[0][0])


@pytest.mark.parametrize("name", MODELS)
def test_a_search_from_far_away_ends_where_one_from_near_does(name):
    make, options, y = MODELS[name]
    near, far = (quiet_fit(make(v * RBF(1.0), **options), X, y) for v in SIZES[name])
    value = near.log_marginal_likelihood_value_
    assert far.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-2)
    np.testing.assert_allclose(far.theta_, near.theta_, atol=0.05)


@pytest.mark.parametrize("name", MODELS)
def test_it_begins_in_the_middle_of_what_the_data_suggest(name):
    near, far = SIZES[name]
    assert begun(name, far * RBF(1.0)) == pytest.approx(near, rel=0.6)
    # within four powers of ten it is where the user has put it
    assert begun(name, 30.0 * near * RBF(1.0)) == pytest.approx(30.0 * near)
    prior = LogNormal(np.log(far), 1.0)
    assert begun(name, Parameter(far, prior=prior) * RBF(1.0)) == pytest.approx(far)


@pytest.mark.parametrize("name", MODELS)
def test_without_a_search_it_stays(name):
    make, options, y = MODELS[name]
    far = SIZES[name][1]
    model = quiet_fit(make(far * RBF(1.0), optimizer=None, **options), X, y)
    assert model.kernel_.variance == pytest.approx(far)
