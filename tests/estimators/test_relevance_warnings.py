"""What a relevance vector machine warns of: functions that are too many."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.cli.summary import with_options
from mercer.errors import BoundWarning, MercerWarning
from mercer.estimators.relevance_warnings import warn_of_many
from mercer.kernels import RBF


@pytest.mark.filterwarnings("ignore:the noise variance is at its floor")
@pytest.mark.parametrize("columns", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_functions_that_follow_single_rows_are_told_of(columns):
    rng = np.random.default_rng(100 * columns)
    X = rng.uniform(-3, 3, (200, columns))
    y = 1 + 0.3 * np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(200)
    y[rng.integers(200)] = 100.0  # which only functions as narrow as can be follow
    with pytest.warns(MercerWarning, match="coefficients to follow 200 rows.*robust") as caught:
        RelevanceVectorRegressor().fit(X, y)
    texts = [with_options(str(one.message)) for one in caught]
    assert any("--robust leaves" in text and "--method gp, whose" in text for text in texts)
    robust = RelevanceVectorRegressor(robust=True).fit(X, y)
    assert robust.n_relevance_ < 20
    with pytest.warns(MercerWarning, match="Otherwise give more `noise`, or try a wider kernel"):
        RelevanceVectorRegressor(RBF(0.02), noise=1e-6, optimizer=None).fit(X, y)


def test_few_functions_that_follow_far_targets_are_not_told_of():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(BoundWarning, match="at its floor") as caught:
        RelevanceVectorRegressor().fit(X, np.exp(4 * X[:, 0]))
    assert len(caught) == 1


class Fit:
    """A fit of k functions, of which the rows determine some, if they may be asked for."""

    def __init__(self, k, determined=None):
        self.indices, self.determined = np.arange(k), determined

    @property
    def n_determined(self):
        assert self.determined is not None, "it takes k^3, and nothing depends on it"
        return self.determined


def told(fit, n=100, far=False, robust=False, noise=False, status="converged", weight=1.0):
    """Return the warnings of a fit to n targets."""
    y = np.linspace(-1.0, 1.0, n)[:, None]
    if far:
        y[0] = 1e3
    frame = SimpleNamespace(
        model=SimpleNamespace(rows=SimpleNamespace(Y=y, weights=np.full(n, weight)))
    )
    end = SimpleNamespace(machines=[SimpleNamespace(fit=fit)], status=status)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_many(frame, end, robust, noise)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("far", "robust", "limit"), [(False, False, 50), (True, False, 10), (True, True, 50)]
)
def test_functions_are_many_by_how_many_coefficients_rows_determine(far, robust, limit):
    assert not told(Fit(90, limit - 0.1), far=far, robust=robust)
    (text,) = told(Fit(90, limit + 0.1), far=far, robust=robust)
    assert f"{limit} coefficients to follow 100 rows" in text
    assert ("Some targets are far" in text) == (far and not robust)
    assert ("robust=True" in text) != robust


def test_weights_that_count_rows_more_than_once_are_named():
    (text,) = told(Fit(90, 80.0), weight=2.0)
    assert text.endswith("let weights that mean precision average 1")
    assert "Rows count 2 times on average, by sample_weight or as equal rows" in text
    assert not any("average" in one for one in told(Fit(90, 80.0), weight=1.1))


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("far", [False, True])
def test_what_to_do_about_many_functions_is_said_in_whole_sentences(far, robust, noise):
    (text,) = told(Fit(90, 80.0), far=far, robust=robust, noise=noise)
    advice = text.partition("say little. ")[2]
    outliers = "Some targets are far" if far else "If targets are far"
    outliers += " from all others: robust=True leaves these to the noise. Otherwise"
    how = "give more `noise`" if noise else "give `noise`"
    assert advice.startswith(f"{'It may help to' if robust else outliers} {how}, or try a wider")


@pytest.mark.parametrize(
    ("classes", "length", "named"),
    [
        (["x", "y", "z"], 20.0, "classes 'x', 'y', 'z'"),
        ([10, 20, 30], 1.0, "class 10"),
    ],
)
def test_classes_without_functions_are_called_by_their_labels(classes, length, named):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(100, 2)), rng.choice(classes, 100)
    text = f"no relevance vector was kept for {named}: .* tells of the labels"
    with pytest.warns(MercerWarning, match=text):
        RelevanceVectorClassifier(RBF(length), optimizer=None).fit(X, labels)


@pytest.mark.parametrize(
    ("fit", "how"),
    [
        (Fit(19), {"n": 19}),
        (Fit(90), {"status": "interrupted"}),
        (Fit(10), {"far": True}),
        (Fit(50), {}),
    ],
)
def test_nothing_is_factorised_where_nothing_depends_on_it(fit, how):
    assert not told(fit, **how)
