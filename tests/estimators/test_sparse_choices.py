"""What a sparse fit chooses among weighted rows, known noise, and columns that change."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor, SparseGPClassifier, SparseGPRegressor, means
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.selection import information_gain, matching_pursuit

from .data import quiet_fit

RNG = np.random.default_rng(5)
N = 40  # no more than the candidates of a greedy step, so that nothing is left to chance
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 1.5 + np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
X_NEW = RNG.uniform(-2.5, 2.5, (9, 2))
KERNEL, NOISE = 1.3 * RBF([0.9, 1.6]), Gaussian(0.05)
BY_TARGETS = {"information": information_gain, "pursuit": matching_pursuit}


@pytest.mark.parametrize("mean", ["constant", means.Constant(-0.03, estimate=None)], ids=str)
@pytest.mark.parametrize("strategy", BY_TARGETS)
def test_choices_by_targets_know_weights_units_and_the_mean(strategy, mean):
    """Rows of weight w have the noise over w, and targets are less the mean in their units."""
    weights = np.where(np.arange(N) % 5 == 0, 40.0, 0.2)
    model = SparseGPRegressor(
        KERNEL,
        NOISE,
        approximation="vfe",
        optimizer=None,
        inducing=strategy,
        n_inducing=7,
        mean=mean,
        normalize_y=True,
    )
    quiet_fit(model, X, 0.01 * Y, sample_weight=weights)
    centre = 0.01 * np.average(Y, weights=weights) if mean == "constant" else -0.03
    scale = model.predictive_.scale
    order = np.lexsort(X.T[::-1])
    targets = ((0.01 * Y - centre) / scale)[order]
    found = BY_TARGETS[strategy](KERNEL, X[order], targets, 7, 0.05 / weights[order], None)
    np.testing.assert_array_equal(model.inducing_, X[order][found.indices])


@pytest.mark.parametrize("name", ["sod", "vfe"])
def test_equal_rows_of_unequal_noise_are_different(name):
    A, y = np.repeat(X[:10], 2, axis=0), np.repeat(Y[:10], 2)
    known = Gaussian(np.tile([0.01, 1.0], 10))
    exact = GPRegressor(KERNEL, known, optimizer=None).fit(A, y)
    options = {"approximation": name, "optimizer": None, "inducing": "random"}
    model = quiet_fit(SparseGPRegressor(KERNEL, known, **options), A, y)
    for got, wanted in zip(
        model.predict(X_NEW, return_std=True), exact.predict(X_NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_warm_start_with_other_columns_chooses_anew():
    model = SparseGPRegressor(
        RBF(1.0), approximation="vfe", n_inducing=6, max_iter=2, warm_start=True, random_state=0
    )
    quiet_fit(model, X, Y)
    assert quiet_fit(model, X[:, :1], Y).inducing_.shape == (6, 1)
    assert np.all(np.isfinite(model.predict(X_NEW[:, :1])))


def test_a_subset_by_clusters_does_not_depend_on_the_columns_units():
    units = np.array([1.0, 1000.0])
    one, two = (
        quiet_fit(
            SparseGPRegressor(
                1.3 * RBF(np.array([0.9, 1.6]) * u),
                NOISE,
                approximation="sod",
                optimizer=None,
                n_inducing=6,
                random_state=0,
            ),
            X * u,
            Y,
        )
        for u in (np.ones(2), units)
    )
    np.testing.assert_allclose(two.X_train_ / units, one.X_train_, rtol=1e-12)


def test_choices_of_a_classifier_do_not_depend_on_which_class_is_which():
    y = X[:, 0] + 0.3 * np.sin(9.0 * X[:, 1]) > 0.8
    options = {"inducing": "pursuit", "n_inducing": 6, "optimizer": None, "random_state": 0}
    one, two = (quiet_fit(SparseGPClassifier(KERNEL, **options), X, own) for own in (y, ~y))
    np.testing.assert_array_equal(one.inducing_, two.inducing_)
