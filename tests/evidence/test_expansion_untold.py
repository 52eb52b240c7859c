"""What is said where nothing can be told of a penalty, and of which function."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import LaplacianProcessClassifier, LaplacianProcessRegressor
from mercer.errors import UndeterminedWarning
from mercer.evidence.expansion_untold import hold_the_median
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Laplace

ALIKE = "the rows are too few, or too much alike"
TIED = "so many targets are the same"
ONE_SIDED = "as far as functions of this kernel can tell, one of the two classes is the likelier"


def told(model, X, y, **weights):
    """Fit, and return what was undetermined."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **weights)
    return [str(w.message) for w in caught if issubclass(w.category, UndeterminedWarning)]


@pytest.mark.parametrize("n", [6, 15, 25])
def test_rows_that_are_alike_are_not_called_tied(n):
    rng = np.random.default_rng(0)
    model = LaplacianProcessRegressor(RBF(1e8), Laplace(), optimizer=None)
    (text,) = told(model, rng.normal(size=(n, 1)), rng.normal(size=n))
    assert text.startswith(ALIKE) and model.status_ == "certified"


def test_balanced_labels_of_rows_that_are_alike_have_no_likelier_class():
    X = 1.0 + 1e-9 * np.random.default_rng(0).normal(size=(30, 1))
    model = LaplacianProcessClassifier(RBF(1.0), "soft_margin", optimizer=None)
    (text,) = told(model, X, np.repeat([0, 1], 15))
    assert text.startswith(ALIKE)


def test_targets_are_named_where_there_are_several():
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (80, 1))
    counts = rng.poisson(0.1, (2, 80)).astype(float)
    Y = np.column_stack([counts[0], np.sin(X[:, 0]), counts[1]])
    model = LaplacianProcessRegressor(RBF(4.0), Laplace(), optimizer=None)
    (text,) = told(model, X, Y)
    assert text.startswith(f"for targets 0, 2: {TIED}")
    assert [len(own) > 0 for own in model.basis_indices_] == [False, True, False]


def test_classes_are_named_where_there_are_several():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-5, 5, (80, 1)), np.repeat([0, 1, 2], [70, 5, 5])
    model = LaplacianProcessClassifier(RBF(4.0), "soft_margin", optimizer=None)
    texts = told(model, X, np.array(["a", "b", "c"])[y])
    assert [text.split(": ")[0] for text in texts] == ["for classes 'b', 'c' against the rest"]
    assert f" against the rest: {ONE_SIDED}" in texts[0]


def test_two_labels_of_which_all_is_given():
    X, options = [[0.0], [1.0]], {"prior_scale": 1.0, "optimizer": None}
    (text,) = told(LaplacianProcessClassifier(RBF(1.0), "soft_margin", **options), X, [0, 1])
    assert text.startswith(ALIKE) and "margins are not calibrated" in text
    assert "noise" not in text and "Give" not in text
    assert not told(LaplacianProcessClassifier(RBF(1.0), "logistic", **options), X, [0, 1])


@pytest.mark.parametrize("noise", [Laplace(), EpsilonInsensitive(0.1, None)])
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_path_of_ties_begins_where_no_fold_has_a_function(noise, seed):
    """That of all rows, whose ties are more, may begin among functions of every fold."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-3, 3, (150, 2)), rng.poisson(0.3, 150).astype(float)
    model = LaplacianProcessRegressor(RBF(2.0), noise, optimizer=None)
    assert any(TIED in text for text in told(model, X, y))
    assert model.n_active_ == 0
    if model.path_ is not None:
        assert model.path_["n_active"][0] == 0 < model.path_["n_active"][1]


@pytest.mark.parametrize("weight", [1.0, 0.04])
def test_weights_are_blamed_only_if_there_are_any(weight):
    rng = np.random.default_rng(0)
    n = 20 if weight < 1 else 2
    X = rng.uniform(-5, 5, (n, 1))
    model = LaplacianProcessRegressor()
    weights = np.full(n, weight) * (1.0 if weight < 1 else 1.0 - 1e-16 - 2e-16 * np.arange(n))
    (text,) = told(model, X, np.sin(X[:, 0]), sample_weight=weights)
    assert ("rows weigh 0.8 together" in text) == (weight < 1)
    assert ("rows are too few to estimate noise from" in text) == (weight == 1)


def test_a_row_that_outweighs_all_others_is_told_of():
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(-5, 5, (100, 1)), np.full(100, 0.01)
    weights[0] = 99.01
    (text,) = told(LaplacianProcessRegressor(), X, np.sin(X[:, 0]), sample_weight=weights)
    assert text.startswith("one row, or equal ones, outweigh all others together")


def test_ties_are_counted_by_weight():
    y = np.array([0.0, 0.0, 1.0, 2.0])
    assert not hold_the_median(y, np.ones(4))  # half is not more
    assert hold_the_median(y, np.array([2.0, 2.0, 1.0, 1.0]))
    assert not hold_the_median(y, np.array([1.0, 1.0, 9.0, 1.0]))  # a heavy row is no tie
