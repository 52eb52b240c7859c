"""Warnings point at the line of the user's that led to them."""

from __future__ import annotations

import inspect
import re
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPClassifier, GPRegressor, OnlineGPRegressor, TransductiveGPClassifier
from mercer.errors import (
    BoundWarning,
    CalibrationWarning,
    ConvergenceWarning,
    JitterWarning,
    MercerWarning,
    UndeterminedWarning,
)
from mercer.evidence.defaults import default_class_kernel
from mercer.kernels import RBF, Linear, Periodic, Scaled
from mercer.likelihoods import Gaussian, Laplace, StudentT
from mercer.params import InverseHalfNormal, Parameter

from .data import X, Y

TWICE = np.repeat(np.linspace(0, 1, 15), 2)[:, None]

FITS = {
    ConvergenceWarning: (GPRegressor(max_iter=1), X, Y),
    BoundWarning: (GPRegressor(RBF(Parameter(1.0, bounds=(0.5, 1.1)))), X, 0.01 * X[:, 0]),
    JitterWarning: (
        GPRegressor(RBF(), Gaussian(np.zeros(30)), mean="zero", optimizer=None),
        TWICE,
        np.sin(TWICE[:, 0]),
    ),
    UndeterminedWarning: (GPRegressor(), X, np.ones(40)),
    CalibrationWarning: (GPRegressor(), X, np.column_stack([Y, np.sin(X[:, 0])])),
}
WRAPPERS = {
    "alone": lambda model: model,
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "search": lambda model: GridSearchCV(model, {"verbose": [0]}, cv=2, error_score="raise"),
}


# not where known noise, one a row, would meet a part of the rows
PAIRS = [(c, w) for c in FITS for w in WRAPPERS if (c, w) != (JitterWarning, "search")]


@pytest.mark.parametrize(("category", "wrapper"), PAIRS)
def test_the_users_line_is_blamed(category, wrapper):
    model, inputs, targets = FITS[category]
    model = WRAPPERS[wrapper](model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        model.fit(inputs, targets)
    ours = [w for w in caught if issubclass(w.category, MercerWarning)]
    assert any(w.category is category for w in ours)
    assert {(w.filename, w.lineno) for w in ours} == {(__file__, line)}


SHORT = Parameter([0.5, 0.5, 0.5], bounds=(0.4, 0.6))


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (RBF(SHORT), ["the length scales of 'x', 'the width' and 'age'"]),
        (
            1.0 * RBF(SHORT) + Linear(length_scale=Parameter([1e-3] * 3, bounds=(5e-4, 2e-3))),
            ["the length scales of [^:]*'age' in Scaled.RBF", "'age' in Linear"],
        ),
        (RBF(Parameter(0.5, bounds=(0.4, 0.6))).on("age"), ["the length scale of 'age'"]),
        (RBF(Parameter(0.5, bounds=(0.4, 0.6))), ["kernel.length_scale"]),
        (
            RBF(Parameter([0.5, 0.5], bounds=(0.4, 0.6))).on(["age", "x"]) * Periodic().on(1),
            ["the length scales of 'age' in On1.RBF"],
        ),
    ],
)
def test_bounds_are_named_by_the_columns_of_frames(kernel, said):
    names = ["x", "the width", "age"]
    straight = 5.0 * X.sum(axis=1)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GPRegressor(kernel).fit(frame, straight)
        text = " ".join(str(w.message) for w in caught if w.category is BoundWarning)
        for words in said:
            assert re.search(words + "[^:;]* at (its|their) ", text), text


def test_without_names_bounds_are_named_by_parameters():
    with pytest.warns(BoundWarning, match=r"and kernel\.RBF\.length_scale\[2\] at their upper"):
        GPRegressor(1.0 * RBF(SHORT)).fit(X, 5.0 * X.sum(axis=1))


def test_a_column_that_does_not_matter_ends_at_its_bound_unmentioned():
    # the hyperprior for labels is level there; without one the same end is told
    def model(hyperprior):
        kernel = default_class_kernel(np.ones(2), 1.0, hyperprior)
        # so near that the evidence still rises there
        length = kernel.kernel.parameters["length_scale"].replace(bounds=(0.01, 30.0))
        return GPClassifier(Scaled(kernel.parameters["variance"], RBF(length)))

    rng = np.random.default_rng(2)
    rows = rng.normal(size=(100, 2))
    labels = rng.uniform(size=100) < 1 / (1 + np.exp(-3 * np.sin(2 * rows[:, 0])))
    # with either sign of that column, so that the labels say nothing about it
    rows, labels = np.vstack([rows, rows * [1.0, -1.0]]), np.tile(labels, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = model(hyperprior=True).fit(rows, labels)
    assert fit.kernel_.kernel.length_scale[1] == pytest.approx(30.0)
    with pytest.warns(BoundWarning, match=r"length_scale\[1\] at its upper bound: hardly any"):
        model(hyperprior=False).fit(rows, labels)


RNG = np.random.default_rng(3)
PLACES = RNG.uniform(-2, 2, (60, 2))
WAVE = np.sin(2 * PLACES[:, 0]) + PLACES[:, 1]
NOISE = RNG.standard_normal(60)


@pytest.mark.parametrize(
    ("kernel", "remedy", "options"),
    [
        (RBF(), r"for noise: .*write 1\.0 \* RBF\(length_scale=1\), or give normalize_y=", {}),
        (RBF() + 0.5 * Linear(), r"^RBF\(length_scale=1\) has no .* 1\.0 \* RBF\(", {}),
        ((RBF() + Linear()).on([0, 1]) * RBF(3.0), r"write 1\.0 \* \(", {}),
        (RBF(), r"leave-one-out density.*1\.0 \* RBF", {"objective": "loo"}),
        (RBF(), r"1\.0 \* RBF.*, or divide y", {"likelihood": Laplace()}),
    ],
    ids=["alone", "in a sum", "product", "loo", "heavy tails"],
)
def test_functions_of_a_fixed_size_that_are_lost(kernel, remedy, options):
    """In thousands, what is not scaled is nothing beside the targets."""
    y = 1e3 * (WAVE + 0.1 * NOISE)
    with pytest.warns(ConvergenceWarning, match=remedy):
        lost = GPRegressor(kernel, **options).fit(PLACES, y)
    residual = y - lost.predict(PLACES)
    assert np.var(residual) > 0.2 * np.var(y)


def test_a_matrix_in_other_units_than_the_targets():
    with pytest.warns(ConvergenceWarning, match=r"kernel matrix has no .* normalize_y=True"):
        GPRegressor("precomputed").fit(RBF()(PLACES), 1e3 * WAVE)


@pytest.mark.parametrize(
    ("kernel", "y", "options"),
    [
        (RBF(), 1e3 * NOISE, {}),
        (RBF() + Linear(), 1e3 * NOISE, {}),
        (1.0 * RBF(), 1e3 * NOISE, {}),
        (1.0 * RBF(), 1e3 * WAVE, {}),
        (Parameter(1.0, fixed=True) * RBF(), 1e3 * (WAVE + 0.1 * NOISE), {}),
        (RBF(), 1e3 * (WAVE + 0.1 * NOISE), {"normalize_y": True}),
        (RBF(), 1e3 * (WAVE + 0.1 * NOISE), {"optimizer": None}),
        (RBF(), WAVE + 2.0 * NOISE, {}),
    ],
    ids=["noise", "sum", "scaled noise", "scaled", "fixed", "normalised", "held", "size of 1"],
)
def test_no_alarm_where_there_is_nothing_to_gain(kernel, y, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GPRegressor(kernel, **options).fit(PLACES, y)
    assert not [w for w in caught if "no variance that could be learned" in str(w.message)]


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_one_row_of_each_class_tells_nothing(labels):
    rows = np.arange(float(len(labels)))[:, None]
    for weights in (None, np.full(len(labels), 0.5)):
        with pytest.warns(UndeterminedWarning, match="no class has more than one row"):
            GPClassifier().fit(rows, labels, sample_weight=weights)
    others = np.append(rows, rows + 0.5, axis=0)
    with (
        pytest.warns(UndeterminedWarning, match="one row with a label") as caught,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", BoundWarning)
        TransductiveGPClassifier(unlabeled="?").fit(others, labels + ["?"] * len(labels))
    assert len(caught) == 1
    assert "probabilities mean little" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = GPClassifier(10.0 * RBF(0.5), optimizer=None).fit(rows, labels)
    np.testing.assert_array_equal(held.predict(rows), labels)


def test_weights_soft_labels_and_kernels_that_are_held_have_other_words():
    rows, two = np.array([[-1.0], [1.0]]), ["a", "b"]
    held = RBF(Parameter(1.0, fixed=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UndeterminedWarning)
        warnings.simplefilter("ignore", BoundWarning)
        GPClassifier().fit(rows, two, sample_weight=[3.0, 3.0])
        GPClassifier(held).fit(rows, two)
        GPClassifier().fit(np.tile(rows, (9, 1)), 9 * two, sample_weight=np.full(18, 1 / 18))
        GPClassifier(soft_labels=True).fit(rows, [[0.5, 0.5], [0.5, 0.5]])


def test_weights_that_count_rows_make_targets_look_free_of_noise():
    rng = np.random.default_rng(0)
    rows, weights = rng.uniform(0, 10, (40, 2)), rng.integers(1, 6, 40)
    y = np.sin(rows[:, 0]) + 0.5 * rng.standard_normal(40) / np.sqrt(weights)
    with pytest.warns(BoundWarning, match="free of noise.*weights count rows.*should average 1"):
        GPRegressor().fit(rows, y, sample_weight=weights)
    # weights that average 1 are not to blame
    with pytest.warns(BoundWarning, match=r"free of noise \(fix it then\)"):
        GPRegressor().fit(rows, np.sin(rows[:, 0]), sample_weight=weights / weights.mean())


@pytest.mark.parametrize("estimator", [GPRegressor, OnlineGPRegressor])
def test_known_variances_are_weights_beside_noise_of_1_that_is_fixed(estimator):
    """What the warning of weights that count rows advises, in the estimators that it comes from."""
    rng = np.random.default_rng(0)
    x, sd = rng.uniform(0, 10, (150, 1)), rng.uniform(0.05, 0.4, 150)
    y = np.sin(x[:, 0]) + sd * rng.standard_normal(150)
    fixed = Gaussian(Parameter(1.0, fixed=True))
    grid = np.linspace(1, 9, 50)[:, None]
    found = []
    for units in (1.0, 1e-6):  # in which weights add up to 1e15, and their normalisers to more
        model = estimator(likelihood=fixed)
        model.fit(x, units * y, sample_weight=1.0 / (units * sd) ** 2)
        assert model.likelihood_.noise == 1.0 and model.n_iter_ > 3
        found.append(model.predict(grid) / units)
    assert np.sqrt(np.mean((found[0] - np.sin(grid[:, 0])) ** 2)) < 0.1
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


def test_weights_of_other_noise_are_no_precisions():
    """They are told of where they make the scale, or the degrees of freedom, run to a bound."""
    rng = np.random.default_rng(0)
    rows, variance = rng.uniform(0, 10, (60, 1)), rng.uniform(0.01, 1.0, 60)
    y = np.sin(rows[:, 0]) + np.sqrt(variance) * rng.standard_normal(60)
    weights = np.mean(variance) / variance
    with pytest.warns(BoundWarning, match="under this noise none of them stands for precision"):
        GPRegressor(1.0 * RBF(1.0), StudentT()).fit(rows, y, sample_weight=weights)


def test_noise_at_its_lower_bound_may_be_outliers_or_too_many_length_scales():
    rng = np.random.default_rng(3)
    plane = rng.uniform(-3, 3, (60, 2))
    far = np.sin(plane[:, 0]) + 0.1 * rng.standard_normal(60)
    far[[5, 20, 40]] += [20.0, -20.0, 15.0]
    with pytest.warns(BoundWarning, match=r"outliers that the function follows \(try StudentT"):
        GPRegressor().fit(plane, far)
    assert 0.05 < GPRegressor(likelihood=StudentT()).fit(plane, far).likelihood_.scale < 0.1
    rng = np.random.default_rng(5)
    many = rng.standard_normal((30, 10))
    y = 2.0 * many[:, 0] - many[:, 1] + many[:, 2] ** 2 + 0.5 * rng.standard_normal(30)
    with pytest.warns(
        BoundWarning, match=r"too few to tell noise from the function \(give one length"
    ):
        GPRegressor().fit(many, y)
    assert GPRegressor(1.0 * RBF(3.0)).fit(many, y).likelihood_.noise > 0.01


def test_a_search_that_rounding_ends_is_not_told_to_go_on(monkeypatch):
    # whether rounding ends a line search depends on the machine: here it does after an iteration
    def ended(*args, options, **kwargs):
        result = minimize(*args, options=options | {"maxiter": 1}, **kwargs)
        result.success, result.status = False, 2  # L-BFGS-B's for such a line search
        return result

    monkeypatch.setattr(import_module("mercer.evidence.maximise"), "minimize", ended)
    rows = np.arange(20.0)[:, None]
    with (
        pytest.warns(ConvergenceWarning, match="nothing better: rounding") as caught,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", BoundWarning)
        GPRegressor().fit(rows, rows[:, 0] ** 2)
    assert not any("max_iter" in str(w.message) for w in caught)


def test_labels_that_can_be_separated_are_said_to_be():
    kernel = Parameter(1.0, bounds=(0.5, 2.0)) * RBF(1.0)
    with pytest.warns(BoundWarning, match="the labels can be separated"):
        GPClassifier(kernel).fit(np.arange(10.0)[:, None], np.arange(10) > 4)


def test_one_length_scale_for_all_columns_is_mentioned_at_its_bound():
    # a bound of the user's own, in the way of a length scale that is longer
    rng = np.random.default_rng(0)
    length = Parameter(1.0, bounds=(0.5, 2.0), prior=InverseHalfNormal(1.0))
    rows = rng.normal(size=(60, 2))
    with pytest.warns(BoundWarning, match=r"kernel\.RBF\.length_scale at its upper bound"):
        GPClassifier(1.0 * RBF(length)).fit(rows, rows.sum(axis=1) > 0)
