"""Calibration, PIT and residuals."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.linear_model import BayesianRidge

from mercer import GPRegressor
from mercer.compat import GaussianProcessRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, StudentT
from mercer.plotting import plot_calibration, plot_fit, plot_pit, plot_residuals

from . import look
from .rows import fresh

CHECKS = [plot_calibration, plot_pit, plot_residuals]


# --- calibration ----------------------------------------------------------------------------------


def test_the_curve_is_what_intervals_hold(two, ax):
    model, _, _ = two
    X, y = fresh(2)
    assert plot_calibration(model, X, y, n_levels=9, ax=ax) is ax
    nominal, observed = look.line(ax, "observed")
    assert (observed[0], observed[-1]) == (0.0, 1.0)
    for level, share in zip(nominal[1:-1], observed[1:-1], strict=True):
        low, high = model.predict_interval(X, level)
        assert share == np.mean((low <= y) & (y <= high))
    x, low, high = look.band(ax, "chance (95%)")
    np.testing.assert_allclose(low, binom.ppf(0.025, 60, x) / 60)
    np.testing.assert_allclose(high, binom.ppf(0.975, 60, x) / 60)


def test_the_training_rows_are_left_out(one, ax):
    model, _, y = one
    plot_calibration(model, n_levels=9, ax=ax)
    nominal, observed = look.line(ax, "leave-one-out")
    left = model.loo()
    z = np.abs(y - left.mean) / left.std
    wanted = [np.mean(z <= norm.ppf(0.5 + c / 2)) for c in nominal[1:-1]]
    np.testing.assert_allclose(observed[1:-1], wanted)


def test_two_models_share_axes(one, ax):
    model, _, _ = one
    plot_calibration(model, label="first", ax=ax)
    plot_calibration(model, label="second", color="C1", ax=ax)
    assert look.labels(ax) == ["chance (95%)", "first", "second"]


def test_the_histogram_counts(two, ax):
    model, _, _ = two
    X, y = fresh(2)
    assert plot_pit(model, X, y, n_bins=6, ax=ax) is ax
    mean, std = model.predict(X, return_std=True)
    counts, _ = np.histogram(norm.cdf(y, mean, std), bins=6, range=(0, 1))
    bars = [patch for patch in ax.patches if patch.get_width() == pytest.approx(1 / 6)]
    np.testing.assert_allclose([bar.get_height() for bar in bars], counts / 10)
    (span,) = [patch for patch in ax.patches if patch.get_label() == "chance (95%)"]
    low, high = binom.ppf([0.025, 0.975], 60, 1 / 6) / 10
    assert (span.get_y(), span.get_y() + span.get_height()) == pytest.approx((low, high))
    assert span.get_zorder() < min(bar.get_zorder() for bar in bars)


def test_a_likelihood_that_is_not_normal_is_asked(two, ax):
    class Odd(Gaussian):
        def predictive_cdf(self, y, mean, var):
            return np.full(np.shape(y), 0.42)

    import copy

    model = copy.copy(two[0])
    model.likelihood_ = Odd(0.1)
    plot_pit(model, *fresh(2), ax=ax)
    heights = [p.get_height() for p in ax.patches if p.get_width() == pytest.approx(0.1)]
    assert np.argmax(heights) == 4
    assert heights[4] == 10.0


def test_units_of_the_outputs(ax):
    """With outputs of different sizes the likelihood is in units of their scale."""
    X, y = fresh(1)
    Y = np.column_stack([y, 1000 + 500 * y])
    model = GPRegressor().fit(X, Y)
    X_new, y_new = fresh(1, 50)
    plot_pit(model, X_new, np.column_stack([y_new, 1000 + 500 * y_new]), output=1, ax=ax)
    mean, std = model.predict(X_new, return_std=True)
    pit = norm.cdf(1000 + 500 * y_new, mean[:, 1], std[:, 1])
    counts, _ = np.histogram(pit, bins=10, range=(0, 1))
    heights = [p.get_height() for p in ax.patches if p.get_width() == pytest.approx(0.1)]
    np.testing.assert_allclose(heights, counts / 5)


@pytest.mark.parametrize("plot", [plot_calibration, plot_pit])
def test_certain_and_right_is_in_the_middle(plot, ax):
    X = np.arange(4.0)[:, None]
    noise = Gaussian(np.zeros(4))
    model = GPRegressor(RBF(0.5), noise, mean="zero", optimizer=None).fit(X, np.arange(4.0))
    far = np.array([[0.0]])
    mean, std = model.predict(far, return_std=True)
    assert std[0] == 0.0
    plot(model, far, mean, ax=ax)
    if plot is plot_calibration:
        assert np.all(look.line(ax, "observed")[1][1:] == 1.0)
    else:
        heights = [p.get_height() for p in ax.patches if p.get_width() == pytest.approx(0.1)]
        assert np.flatnonzero(heights).tolist() == [5]


# --- residuals ------------------------------------------------------------------------------------


def test_residuals(two, ax):
    model, _, _ = two
    X, y = fresh(2)
    y = y.copy()
    y[3] += 5.0
    assert plot_residuals(model, X, y, ax=ax) is ax
    mean, std = model.predict(X, return_std=True)
    z = (y - mean) / std
    far = np.abs(z) > 3
    near = look.points(ax, "observed")
    np.testing.assert_allclose(near, np.column_stack([mean, z])[~far])
    label = next(text for text in look.labels(ax) if text.startswith("beyond 3: "))
    np.testing.assert_allclose(look.points(ax, label), np.column_stack([mean, z])[far])
    assert far[3]
    low, high = ax.get_ylim()
    assert low < z.min() < z.max() < high
    assert ax.get_ylabel() == "(observed - mean) / standard deviation"


def test_residuals_left_out(frame, ax):
    model, _, y = frame
    plot_residuals(model, outlying=10.0, ax=ax)
    left = model.loo()
    np.testing.assert_allclose(
        look.points(ax, "leave-one-out"), np.column_stack([left.mean, (y - left.mean) / left.std])
    )
    assert ax.get_xlabel() == "leave-one-out prediction of y"


def test_residuals_of_a_frame_have_its_name(frame, ax):
    model, X, y = frame
    plot_residuals(model, X, y, ax=ax)
    assert ax.get_xlabel() == "prediction of strength"


@pytest.mark.parametrize("plot", CHECKS)
def test_outputs(outputs, ax, plot):
    model, X, y = outputs
    with pytest.raises(ValueError, match="2 outputs"):
        plot(model)
    plot(model, output=0, ax=ax)
    plot(model, X, np.column_stack([y, y]), output=1, ax=ax)


@pytest.mark.parametrize("plot", CHECKS)
def test_other_peoples_models(plot, ax):
    X, y = fresh(2)
    model = BayesianRidge().fit(X, y)
    plot(model, X, y, ax=ax)
    with pytest.raises(ValueError, match=r"has no loo\(\).*give X and y"):
        plot(model)


@pytest.mark.parametrize("normalize", [False, True])
def test_data_are_drawn_in_the_units_of_the_targets(normalize, ax):
    X, y = fresh(1)
    y = 100 + 40 * y
    model = GaussianProcessRegressor(alpha=0.04, normalize_y=normalize, optimizer=None).fit(X, y)
    plot_fit(model, ax=ax)
    np.testing.assert_allclose(look.points(ax, "data"), np.column_stack([X[:, 0], y]))


@pytest.mark.parametrize("plot", CHECKS)
def test_wrong_rows(plot, two):
    model, _, _ = two
    X, y = fresh(2)
    with pytest.raises(ValueError, match=r"not fitted: call fit\(X, y\) first"):
        plot(GPRegressor(), X, y)
    with pytest.raises(ValueError, match="give both X and y"):
        plot(model, X)
    with pytest.raises(ValueError, match=r"y must have shape \(60,\)"):
        plot(model, X, y[:5])
    with pytest.raises(ValueError, match="NaN"):
        plot(model, X, np.full(60, np.nan))
    with pytest.raises(ValueError, match="numbers"):
        plot(model, X, ["a"] * 60)
    assert plt.get_fignums() == []


def test_wrong_options(two):
    model, _, _ = two
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        plot_pit(model, n_bins=0)
    with pytest.raises(ValueError, match="n_levels must be a whole number"):
        plot_calibration(model, n_levels=2.5)
    with pytest.raises(ValueError, match="outlying must be"):
        plot_residuals(model, outlying=0.0)


def test_certain_predictions(ax):
    """Without noise a training row has no spread; what is foreseen has residual 0."""
    X = np.arange(4.0)[:, None]
    model = GPRegressor(RBF(0.5), Gaussian(np.zeros(4)), optimizer=None).fit(X, np.arange(4.0))
    plot_residuals(model, X, model.predict(X), ax=ax)
    np.testing.assert_array_equal(look.points(ax, "observed")[:, 1], 0.0)


@pytest.mark.filterwarnings("ignore:.*has no variance")
def test_an_infinite_spread_has_normal_scores(ax):
    X, y = fresh(1)
    model = GPRegressor(likelihood=StudentT(1.5), optimizer=None).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isinf(std))
    y = y.copy()
    y[3] += 50.0
    plot_residuals(model, X, y, outlying=100.0, ax=ax)
    wanted = norm.ppf(model.predict_cdf(X, y))
    np.testing.assert_allclose(look.points(ax, "observed"), np.column_stack([mean, wanted]))
    assert wanted[3] > 2.0
    assert ax.get_ylabel() == "normal score"


@pytest.mark.filterwarnings("ignore:.*has no variance")
@pytest.mark.parametrize("plot", CHECKS)
def test_an_infinite_spread_of_rows_left_out(plot):
    X, y = fresh(1)
    model = GPRegressor(likelihood=StudentT(1.5), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match=r"infinite standard deviation.*give X and y"):
        plot(model)
    assert plt.get_fignums() == []
