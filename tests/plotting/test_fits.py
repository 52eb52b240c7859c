"""plot_fit: what is drawn is what the model predicts."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPRegressor, RelevanceVectorRegressor
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Huber, Laplace, Poisson
from mercer.plotting import plot_fit
from mercer.plotting.models import training_rows

from . import look


def test_one_column(one, ax):
    model, X, y = one
    assert plot_fit(model, ax=ax) is ax
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None]))
    width = np.ptp(X)
    np.testing.assert_allclose(x[[0, -1]], [X.min() - 0.1 * width, X.max() + 0.1 * width])
    for label, latent in [("95% for the function", True), ("95% of new observations", False)]:
        at, low, high = look.band(ax, label)
        ends = model.predict_interval(at[:, None], 0.95, latent=latent)
        np.testing.assert_allclose([low, high], ends, atol=1e-12)
    np.testing.assert_allclose(look.points(ax, "data"), np.column_stack([X, y]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")


@pytest.mark.parametrize("latent", [True, False])
def test_one_band(one, ax, latent):
    model, _, _ = one
    plot_fit(model, latent=latent, coverage=0.5, ax=ax)
    kinds = {True: "50% for the function", False: "50% of new observations"}
    at, low, _ = look.band(ax, kinds[latent])
    np.testing.assert_allclose(low, model.predict_interval(at[:, None], 0.5, latent=latent)[0])
    assert kinds[not latent] not in look.labels(ax)


def test_other_data_and_ranges(one, ax):
    model, X, y = one
    plot_fit(model, X[:5], y[:5], margin=0.0, ax=ax, color="red", label="mine")
    assert look.points(ax, "data").shape == (5, 2)
    assert ax.get_xlim() == pytest.approx((X[:5].min(), X[:5].max()))
    assert look.line(ax, "mine")[0].shape == (200,)
    ax.clear()
    plot_fit(model, (-7.0, 9.0), n_points=50, ax=ax)
    x, _ = look.line(ax, "mean")
    assert (len(x), x[0], x[-1]) == (50, -7.0, 9.0)
    assert look.points(ax, "data").shape == (len(y), 2)  # those it was fitted to


def test_new_axes_are_in_a_new_figure(one):
    ax = plot_fit(one[0])
    assert plt.get_fignums() == [ax.figure.number]
    assert not ax.spines["top"].get_visible()


def test_two_columns(two):
    model, X, y = two
    panels = plot_fit(model, n_points=20)
    assert panels.shape == (2,)
    assert [p.get_xlabel() for p in panels] == ["x0", "x0"]
    assert [p.get_ylabel() for p in panels] == ["x1", "x1"]
    scatter = next(c for c in panels[0].collections if len(c.get_offsets()) == len(y))
    np.testing.assert_allclose(scatter.get_offsets(), X)
    np.testing.assert_allclose(scatter.get_array(), y)
    # a contour line runs where the surface has its value
    for panel, column in zip(panels, [0, 1], strict=True):
        lines = [c for c in panel.collections if hasattr(c, "levels") and not c.filled]
        (contour,) = lines
        i = len(contour.levels) // 2
        at = contour.get_paths()[i].vertices
        found = model.predict(at, return_std=True, latent=True)[column]
        # interpolated between 20 points a side
        np.testing.assert_allclose(found, contour.levels[i], atol=0.03 * np.ptp(contour.levels))
    assert "standard deviation of the function" in panels[1].get_title(loc="left")


def test_two_columns_on_given_axes(two, ax):
    model, _, _ = two
    figure = ax.figure
    assert plot_fit(model, n_points=10, ax=ax) is ax
    assert "mean" in ax.get_title(loc="left")
    both = np.array([figure.add_subplot(2, 2, 3), figure.add_subplot(2, 2, 4)])
    panels = plot_fit(model, n_points=10, latent=False, ax=both)
    assert list(panels) == list(both)
    assert "new observation" in panels[1].get_title(loc="left")


def test_a_slice_by_name(frame, ax):
    model, X, _ = frame
    plot_fit(model, columns="age", ax=ax)
    x, mean = look.line(ax, "mean")
    rows = pd.DataFrame([X.median()] * len(x))
    rows["age"] = x
    np.testing.assert_allclose(mean, model.predict(rows))
    assert ax.get_xlabel() == "age"
    assert ax.get_title(loc="left").startswith("width = ")
    marks, _ = look.line(ax, "rows")  # off the slice: only where they are
    np.testing.assert_allclose(marks, X["age"])
    assert "data" not in look.labels(ax)


def test_a_slice_at_given_values(frame, ax):
    model, X, y = frame
    plot_fit(model, X, y, columns=2, at={"width": 1.0, 3: -1.0}, ax=ax)
    x, mean = look.line(ax, "mean")
    rows = pd.DataFrame([X.median()] * len(x)).assign(width=1.0, mass=-1.0, age=x)
    np.testing.assert_allclose(mean, model.predict(rows))
    assert ax.get_ylabel() == "strength"
    ax.clear()
    plot_fit(model, columns=2, at=[0.1, 0.2, 0.3, 0.4], ax=ax)
    rows = pd.DataFrame([[0.1, 0.2, 0.3, 0.4]] * len(x), columns=X.columns).assign(age=x)
    np.testing.assert_allclose(look.line(ax, "mean")[1], model.predict(rows))


def test_a_slice_of_two_columns(frame):
    model, _, _ = frame
    panels = plot_fit(model, columns=["age", 0], n_points=8)
    assert (panels[0].get_xlabel(), panels[0].get_ylabel()) == ("age", "width")
    assert "height = " in panels[0].get_title(loc="left")


def test_one_of_two_columns(two, ax):
    model, X, _ = two
    plot_fit(model, columns=1, ax=ax)
    x, mean = look.line(ax, "mean")
    rows = np.column_stack([np.full(len(x), np.median(X[:, 0])), x])
    np.testing.assert_allclose(mean, model.predict(rows))


def test_many_columns_have_a_short_caption(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 7))
    model = GPRegressor(RBF(2.0), optimizer=None).fit(X, X[:, 0])
    plot_fit(model, columns=0, ax=ax)
    assert ax.get_title(loc="left") == "the other 6 columns held at their medians"


def test_frames_of_polars(ax):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"time": rng.uniform(0, 5, 20)})
    model = GPRegressor(RBF(1.0), optimizer=None).fit(frame, np.sin(frame["time"].to_numpy()))
    plot_fit(model, ax=ax)
    assert ax.get_xlabel() == "time"
    assert look.points(ax, "data").shape == (20, 2)


def test_without_pandas_names_raise_no_warning(frame, ax, monkeypatch):
    import builtins

    original = builtins.__import__

    def refuse(name, *rest, **options):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    plot_fit(frame[0], columns="age", ax=ax)
    assert ax.get_xlabel() == "age"


def test_outputs(outputs, ax):
    model, X, _ = outputs
    with pytest.raises(ValueError, match=r"has 2 outputs.*output, from 0 to 1"):
        plot_fit(model)
    with pytest.raises(ValueError, match="got 2"):
        plot_fit(model, output=2)
    assert plt.get_fignums() == []  # an error leaves no empty figure
    plot_fit(model, output=1, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None])[:, 1])
    np.testing.assert_allclose(look.points(ax, "data")[:, 1], model.y_train_[:, 1])
    assert len(X) == len(look.points(ax, "data"))


def test_a_pruned_model_has_its_data_still(one, ax):
    import copy

    model, X, y = one
    small = copy.copy(model)
    small.posterior_, _ = model.posterior_.prune(5)
    plot_fit(small, ax=ax)
    np.testing.assert_allclose(look.points(ax, "data"), np.column_stack([X, y]))


def test_basis_points_alone_are_a_range_without_data(one, ax):
    import copy

    model, X, y = one
    other = copy.copy(model)
    del other.X_train_
    plot_fit(other, ax=ax)
    assert "data" not in look.labels(ax)
    np.testing.assert_array_equal(look.line(ax, "basis points")[0], X[:, 0])
    ax.clear()
    plot_fit(other, X, y, ax=ax)
    assert len(look.points(ax, "data")) == len(y)


def test_relevance_vectors_are_not_called_rows(one, ax):
    _, X, y = one
    model = RelevanceVectorRegressor(RBF(1.0), optimizer=None).fit(X, y)
    plot_fit(model, ax=ax)
    marks, _ = look.line(ax, "basis points")
    assert len(marks) < len(X) and "rows" not in look.labels(ax)
    assert not training_rows(model).are_rows and training_rows(one[0]).are_rows


@pytest.mark.parametrize("noise", [Laplace(0.2), Huber(0.1)], ids=str)
def test_the_data_of_a_mode_are_its_own(noise, one, ax):
    _, X, y = one
    model = GPRegressor(RBF(), noise, inference="map", optimizer=None).fit(X, y)
    # as many points as rows, or fewer, and in another order
    assert not np.array_equal(model.posterior_.basis.points, X)
    plot_fit(model, ax=ax)
    np.testing.assert_allclose(look.points(ax, "data"), np.column_stack([X, y]))


def test_other_peoples_models(one, ax):
    _, X, y = one
    theirs = GaussianProcessRegressor(alpha=0.04).fit(X, y)
    plot_fit(theirs, ax=ax)
    x, _ = look.line(ax, "mean")
    _, std = theirs.predict(x[:, None], return_std=True)
    at, low, high = look.band(ax, "95% of new observations")
    np.testing.assert_allclose(high - low, 2 * 1.959964 * np.interp(at, x, std), rtol=1e-4)
    ax.clear()
    pipeline = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    plot_fit(pipeline, X, y, ax=ax)
    assert look.points(ax, "data").shape == (len(y), 2)


def test_a_constant_column_and_a_single_row(ax):
    model = GPRegressor(RBF(1.0), optimizer=None).fit([[3.0]], [1.0])
    plot_fit(model, ax=ax)
    assert ax.get_xlim() == pytest.approx((2.7, 3.3))


def test_objects_cannot_be_drawn():
    def shared(a, b):
        return len(set(a) & set(b))

    model = GPRegressor(Callable(shared), optimizer=None).fit(
        ["cat", "dog", "bird"], [1.0, 2.0, 3.0]
    )
    with pytest.raises(ValueError, match="does not tell the inputs"):
        plot_fit(model)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "has 4 columns.*room for two.*columns=0"),
        ({"columns": "weight"}, "no column 'weight'"),
        ({"columns": 4}, "no column 4"),
        ({"columns": [0, 1, 2]}, "one column or two"),
        ({"columns": [1, 1]}, "two different"),
        ({"columns": 0, "at": [1.0]}, "at must hold a value for each of the 4"),
        ({"columns": 0, "at": {"weight": 1.0}}, "no column 'weight'"),
        ({"columns": 0, "coverage": 1.0}, "coverage must lie between 0 and 1"),
        ({"columns": 0, "coverage": "wide"}, "coverage must lie between 0 and 1"),
        ({"columns": 0, "ax": "here"}, "ax must be the axes"),
        ({"columns": [0, 1], "X": (0, 1)}, "for one column"),
        ({"columns": 0, "X": (1.0, 1.0)}, "two ends"),
        ({"columns": 0, "X": np.ones((3, 2))}, "X has 2 columns"),
        ({"columns": 0, "X": np.ones(3)}, "rows and columns"),
        ({"columns": 0, "X": [[np.nan] * 4]}, "NaN"),
        ({"columns": 0, "X": [["a"] * 4]}, "must be numbers"),
        ({"columns": 0, "y": [1.0]}, "give X too"),
        ({"columns": 0, "X": np.ones((3, 4)), "y": [1.0]}, "as many rows"),
    ],
)
def test_wrong_use(frame, options, text):
    with pytest.raises(ValueError, match=text):
        plot_fit(frame[0], **options)
    assert plt.get_fignums() == []


def test_two_axes_are_wanted(two):
    figure, three = plt.subplots(1, 3)
    with pytest.raises(ValueError, match="2 axes"):
        plot_fit(two[0], n_points=5, ax=three)
    plt.close(figure)


def test_unsuitable_models(one):
    _, X, y = one
    with pytest.raises(ValueError, match=r"not fitted: call fit\(X, y\) first; plot_samples"):
        plot_fit(GPRegressor())
    with pytest.raises(ValueError, match="has no predict"):
        plot_fit(RBF(1.0))
    with pytest.raises(ValueError, match="must give standard deviations"):
        plot_fit(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="does not tell the inputs"):
        plot_fit(BayesianRidge().fit(X, y))
    with pytest.raises(ValueError, match="leave latent out"):
        plot_fit(BayesianRidge().fit(X, y), X, y, latent=True)


# --- links ----------------------------------------------------------------------------------------


def test_counts_are_drawn_in_counts(counts, ax):
    model, X, y = counts
    plot_fit(model, X, y, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None]))
    at, *ends = look.band(ax, "95% for the mean of y")
    wanted = np.exp(model.predict_interval(at[:, None], latent=True))
    np.testing.assert_allclose(ends, wanted, rtol=1e-6)
    at, *ends = look.band(ax, "95% of new observations")
    np.testing.assert_allclose(ends, model.predict_interval(at[:, None]), atol=1e-12)
    assert len(look.points(ax, "data")) == len(y)


def test_the_function_beneath_counts_stands_alone(counts, ax):
    model, X, y = counts
    plot_fit(model, X, y, latent=True, ax=ax)
    x, mean = look.line(ax, "mean")
    np.testing.assert_allclose(mean, model.predict(x[:, None], latent=True))
    at, *ends = look.band(ax, "95% for the function")
    np.testing.assert_allclose(ends, model.predict_interval(at[:, None], latent=True))
    assert "data" not in look.labels(ax) and "rows" in look.labels(ax)
    assert ax.get_ylabel() == "latent function of y"


@pytest.mark.parametrize("latent", [None, True])
def test_two_columns_of_counts_have_one_unit(latent):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    y = np.round(np.exp(2.0 + X[:, 0]))
    model = GPRegressor(1.0 * RBF(1.0), Poisson(), optimizer=None).fit(X, y)
    left, right = plot_fit(model, X, y, latent=latent, n_points=8)
    titles = [panel.get_title(loc="left") for panel in (left, right)]
    coloured = [
        c for c in left.collections if c.get_array() is not None and len(c.get_offsets()) == 30
    ]
    if latent:
        assert titles == ["mean of the latent function of y", "standard deviation of the function"]
        assert not coloured
    else:
        assert titles == ["mean of y", "standard deviation of a new observation"]
        assert coloured
