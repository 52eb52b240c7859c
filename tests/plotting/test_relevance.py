"""Relevance: which columns a fitted kernel looks at."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from mercer import GPRegressor, RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.evidence.shares import variance_over
from mercer.kernels import RBF, Linear, Matern, Periodic
from mercer.plotting import plot_relevance

from . import look
from .rows import fresh


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


def test_relevance_where_the_rows_are_not_kept(ax):
    X, y = fresh(2)
    model = RelevanceVectorRegressor(RBF([0.5, 2.0]), noise=0.1, optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="does not keep the inputs it was fitted to: give X"):
        plot_relevance(model, ax=ax)  # its vectors have another spread
    plot_relevance(model, X, ax=ax)
    found = bars(ax)
    assert [found["x0"], found["x1"]] == pytest.approx((np.std(X, axis=0) / [0.5, 2.0])[:, None])


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


@pytest.mark.parametrize("machine", [RelevanceVectorRegressor, RelevanceVectorClassifier])
def test_relevance_of_kernels_beside_each_other(machine):
    X, y = fresh(1)
    targets = y if machine is RelevanceVectorRegressor else y > 0
    model = machine([RBF(1.0), RBF(0.3)], optimizer=None).fit(X, targets)
    with pytest.raises(ValueError, match=r"has 2 kernels: give one of them, and X, as in .*\[i\]"):
        plot_relevance(model)
    assert plt.get_fignums() == []
