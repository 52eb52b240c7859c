"""Calibration, PIT, residuals, relevance and history."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.linear_model import BayesianRidge

from mercer import GPClassifier, GPRegressor
from mercer.compat import GaussianProcessRegressor
from mercer.evidence.shares import variance_over
from mercer.kernels import RBF, Linear, Matern, Periodic
from mercer.likelihoods import Gaussian, StudentT
from mercer.plotting import (
    plot_calibration,
    plot_fit,
    plot_history,
    plot_pit,
    plot_relevance,
    plot_residuals,
)

from . import look

CHECKS = [plot_calibration, plot_pit, plot_residuals]


def fresh(d, n=60):
    rng = np.random.default_rng(99)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.2 * rng.standard_normal(n)


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


@pytest.mark.parametrize("plot", CHECKS)
def test_an_infinite_spread_of_rows_left_out(plot):
    X, y = fresh(1)
    model = GPRegressor(likelihood=StudentT(1.5), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match=r"infinite standard deviation.*give X and y"):
        plot(model)
    assert plt.get_fignums() == []


# --- relevance ------------------------------------------------------------------------------------


def bars(ax):
    names = [text.get_text() for text in ax.get_yticklabels()]
    found = {}
    for patch in ax.patches:
        place = round(patch.get_y() + patch.get_height() / 2)
        found.setdefault(names[place], []).append(patch.get_width())
    return found


def test_relevance(frame, ax):
    model, X, _ = frame
    assert plot_relevance(model, ax=ax) is ax
    lengths = model.kernel_.kernel.length_scale
    wanted = np.std(X.to_numpy(), axis=0) / lengths
    assert {k: v[0] for k, v in bars(ax).items()} == pytest.approx(
        dict(zip(X.columns, wanted, strict=True))
    )
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [X.columns[i] for i in np.argsort(-wanted)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top


def test_relevance_of_the_most_and_in_other_units(frame, ax):
    model, X, _ = frame
    plot_relevance(model, 2.0 * X, n_columns=2, ax=ax)
    wanted = np.std(2.0 * X.to_numpy(), axis=0) / model.kernel_.kernel.length_scale
    assert sorted(v[0] for v in bars(ax).values()) == pytest.approx(sorted(wanted)[-2:])


def test_relevance_of_rows_with_weights(ax):
    X, y = fresh(2)
    weights = 1.0 + np.arange(len(X)) % 3
    model = GPRegressor(RBF([0.5, 2.0]), optimizer=None).fit(X, y, sample_weight=weights)
    plot_relevance(model, ax=ax)
    wanted = np.sqrt(np.diag(np.cov(X.T, aweights=weights, ddof=0))) / [0.5, 2.0]
    found = bars(ax)
    assert [found["x0"], found["x1"]] == pytest.approx(wanted[:, None])


def test_relevance_of_parts(ax):
    X, y = fresh(3)
    kernel = RBF(0.5).on(1).on([0, 2]) + 2.0 * Matern([1.0, 4.0]).on([0, 2]) * Periodic(1.0).on(1)
    model = GPRegressor(kernel, optimizer=None).fit(X, y)
    plot_relevance(model, ax=ax)
    spread = X.std(axis=0)
    found = bars(ax)
    terms = model.kernel_.kernels
    rbf, matern = np.sqrt([variance_over(term, X) / variance_over(kernel, X) for term in terms])
    assert found["x0"] == pytest.approx([matern * spread[0] / 1.0])
    assert found["x2"] == pytest.approx([rbf * spread[2] / 0.5, matern * spread[2] / 4.0])
    assert "x1" not in found  # a period's length scale is not in its units
    assert look.labels(ax) == ["RBF(0.5)", "Matern"]


def test_relevance_goes_by_what_a_part_explains(ax):
    X, _ = fresh(3)
    kernel = 3.0 * (0.002 * RBF([9.0, 9.0, 0.1]) + Linear(length_scale=[0.5, 1.0, 90.0]))
    plot_relevance(kernel, X, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x0", "x1", "x2"]
    slopes = X.std(axis=0) / [0.5, 1.0, 90.0]
    whole = np.sqrt(variance_over(kernel, X) / 3.0)
    found = bars(ax)
    assert [found[f"x{i}"][1] for i in range(3)] == pytest.approx(slopes / whole)
    assert found["x2"][0] < 0.5 and "share" in ax.get_xlabel()


def test_relevance_of_unsuitable_models():
    X, y = fresh(2)
    with pytest.raises(ValueError, match="has no length scales"):
        plot_relevance(GPRegressor(Periodic(1.0), optimizer=None).fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        plot_relevance(GPRegressor())
    with pytest.raises(ValueError, match="has no length scales"):
        plot_relevance(BayesianRidge().fit(X, y), X)
    with pytest.raises(ValueError, match="X has 1 columns"):
        plot_relevance(GPRegressor(RBF(1.0), optimizer=None).fit(X, y), X[:, :1])
    assert plt.get_fignums() == []


def test_relevance_of_a_kernel(frame, ax):
    _, X, _ = frame
    plot_relevance(2.0 * RBF([1.0, 2.0, 4.0, 8.0]), X, ax=ax)
    wanted = np.std(X.to_numpy(), axis=0) / [1.0, 2.0, 4.0, 8.0]
    assert {k: v[0] for k, v in bars(ax).items()} == pytest.approx(
        dict(zip(X.columns, wanted, strict=True))
    )
    with pytest.raises(ValueError, match="give X"):
        plot_relevance(RBF(1.0))
    with pytest.raises(ValueError, match="3 values of length_scale, but the inputs have 4"):
        plot_relevance(RBF([1.0, 2.0, 3.0]), X)
    with pytest.raises(ValueError, match="uses column 7, the inputs have 4"):
        plot_relevance(RBF(1.0).on(7), X)
    assert plt.get_fignums() == []


def test_relevance_of_a_kernel_for_each_class(classes, ax):
    model, X = classes
    with pytest.raises(ValueError, match=r"3 kernels, one for each class.*model\.kernel_\[i\]"):
        plot_relevance(model)
    assert plt.get_fignums() == []
    plot_relevance(model.kernel_[2], X, ax=ax)
    (part,) = bars(ax).values()
    assert part == pytest.approx(np.std(X) / model.kernel_[2].kernel.length_scale)


# --- history --------------------------------------------------------------------------------------


def test_history(one, ax):
    model, _, _ = one
    assert plot_history(model, ax=ax) is ax
    values = model.history_["value"]
    number, best = look.line(ax, "best so far")
    np.testing.assert_array_equal(number, np.arange(1, len(values) + 1))
    np.testing.assert_allclose(best, np.maximum.accumulate(values))
    seen = look.points(ax, "evaluations")
    np.testing.assert_allclose(seen[:, 1], values[seen[:, 0].astype(int) - 1])
    low, high = ax.get_ylim()
    assert low < values[0] <= values.max() < high
    assert ax.get_ylabel() == "log evidence and hyperpriors"


def test_steps_that_fell_far_are_marked(one, ax):
    import copy

    model = copy.copy(one[0])
    model.history_ = {"value": np.array([-10.0, -1e9, -5.0, np.nan, -4.0])}
    plot_history(model, ax=ax)
    far = look.points(ax, "evaluations further down")
    np.testing.assert_array_equal(far[:, 0], [2, 4])
    assert ax.get_ylim()[0] > -20
    np.testing.assert_allclose(look.line(ax, "best so far")[1], [-10, -10, -5, -5, -4])


def test_history_of_leave_one_out(ax):
    X, y = fresh(1)
    plot_history(GPRegressor(objective="loo").fit(X, y), ax=ax)
    assert ax.get_ylabel() == "leave-one-out log density"


def test_history_of_each_class(classes, ax):
    model, _ = classes
    plot_history(model, ax=ax)
    assert look.labels(ax) == [f"best so far, {label}" for label in "abc"]
    best = 0.0
    for label, history in zip("abc", model.history_, strict=True):
        number, values = look.line(ax, f"best so far, {label}")
        np.testing.assert_array_equal(number, np.arange(1, len(history["value"]) + 1))
        np.testing.assert_allclose(values, np.maximum.accumulate(history["value"]))
        best += max(history["value"])
    assert ax.get_title(loc="left") == f"best {best:.6g}, {model.status_}"


def test_no_history():
    X, y = fresh(1)
    none = GPClassifier(RBF(1.0), multi_class="one_vs_rest", optimizer=None)
    with pytest.raises(ValueError, match="has no history"):
        plot_history(none.fit(X, np.digitize(y, [-0.5, 0.5])))
    with pytest.raises(ValueError, match="has no history"):
        plot_history(GPRegressor(RBF(1.0), optimizer=None).fit(X, y))
    with pytest.raises(ValueError, match="has no history"):
        plot_history(BayesianRidge().fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        plot_history(GPRegressor())
    assert plt.get_fignums() == []
