"""What goes from a sample, or from a fit before, to a sparse fit of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor, SparseGPRegressor
from mercer.estimators import prepare_sparse
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, StudentT
from mercer.params import Parameter
from mercer.posterior import BlockPredictive

from .data import quiet_fit
from .sparse_data import GROUPS, KERNEL, M, X, Y, Z


def test_hyperparameters_of_the_sample_are_taken_but_for_the_scale_of_all_variances():
    """With no more rows than a sample has they are those of the exact fit."""
    exact = quiet_fit(GPRegressor(KERNEL), X, Y)
    model = quiet_fit(SparseGPRegressor(KERNEL, n_inducing=M, random_state=0), X, Y)
    assert model.approximation_ == "pic"
    change = model.theta_[:4] - exact.theta_[:4]
    np.testing.assert_allclose(change, [change[0], 0.0, 0.0, change[0]], atol=1e-3)


def test_known_noise_holds_back_the_scale_of_variances():
    known = Gaussian(Parameter(0.05, fixed=True))
    exact = quiet_fit(GPRegressor(KERNEL, known), X, Y)
    model = quiet_fit(SparseGPRegressor(KERNEL, known, n_inducing=3, random_state=0), X, Y)
    np.testing.assert_allclose(model.kernel_.theta, exact.kernel_.theta, atol=1e-3)
    assert model.likelihood_.new_variance == pytest.approx(0.05)


def test_a_sample_that_misleads_gives_way_to_a_search(monkeypatch):
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 30)
    rng = np.random.default_rng(0)
    A = rng.uniform(-3.0, 3.0, (400, 1))
    y = np.sin(A[:, 0]) + 0.5 * rng.normal(size=400)
    rough = 1.0 * RBF(Parameter(0.02, bounds=(0.01, 3.0)))
    model = SparseGPRegressor(rough, Gaussian(1e-6), n_inducing=30, max_iter=1, random_state=0)
    quiet_fit(model, A, y)
    assert np.exp(model.theta_[1]) > 0.3
    assert model.likelihood_.new_variance == pytest.approx(0.25, rel=0.3)


def test_inducing_inputs_that_coincide_get_jitter_that_a_sample_had_not():
    model = quiet_fit(SparseGPRegressor(KERNEL, inducing=np.concatenate([Z, Z])), X, Y)
    assert model.approximation_ == "pic" and model.jitter_ > 0
    assert np.all(np.isfinite(model.predict(X)))


def test_groups_are_kept_where_rows_are_few():
    model = quiet_fit(SparseGPRegressor(KERNEL, optimizer=None), X, Y, groups=GROUPS)
    assert isinstance(model.predictive_, BlockPredictive)
    assert list(model.predictive_.blocks.labels) == ["left", "right"]


def test_new_points_are_near_in_the_columns_that_matter():
    kernel = 1.3 * RBF([0.4, 50.0])
    model = SparseGPRegressor(kernel, Gaussian(0.05), approximation="pic", optimizer=None)
    quiet_fit(model.set_params(inducing=Z), X, Y, groups=GROUPS)
    np.testing.assert_allclose(model.predictive_.blocks.widths, [0.4, 50.0])


@pytest.mark.parametrize("likelihood", [None, StudentT()], ids=["gaussian", "student"])
def test_a_warm_start_begins_where_the_last_fit_ended(likelihood):
    name = "vfe" if likelihood is None else "fitc"
    model = SparseGPRegressor(
        likelihood=likelihood,
        approximation=name,
        n_inducing=5,
        learn_inducing=False,
        max_iter=2,
        warm_start=True,
        random_state=0,
    )
    last = quiet_fit(model, X, Y).history_["theta"][np.argmax(model.history_["value"])]
    np.testing.assert_allclose(quiet_fit(model, X, Y).history_["theta"][0], last, rtol=1e-9)


@pytest.mark.parametrize("name", ["vfe", "sod"])
def test_both_bounds_are_in_the_units_of_the_targets(name):
    options = {"normalize_y": True, "optimizer": None}
    exact = GPRegressor(KERNEL, Gaussian(0.05), **options).fit(X, 100.0 * Y)
    model = SparseGPRegressor(KERNEL, Gaussian(0.05), approximation=name, **options)
    value = exact.log_marginal_likelihood_value_
    bounds = quiet_fit(model.set_params(inducing="random"), X, 100.0 * Y).evidence_bounds_
    assert bounds == pytest.approx((value, value), abs=1e-2)
