"""Inputs that are no numbers are refused in words that name the columns and say what to do."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor, means
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

Y = np.arange(4.0)
DAYS = pd.date_range("2020-01-01", periods=4)
WORDS = ["red", "blue", "red", "green"]
TEXT = r"'red'\): encode text by .*OneHotEncoder.*OrdinalEncoder.*Categorical\(\)\.on\(column\)"
DATES = "dates or times: turn them into numbers, such as days since the first"

REFUSED = {
    "pandas": (
        pd.DataFrame({"a": Y, "colour": WORDS, "when": DAYS}),
        rf"column 'colour' holds text \({TEXT}.*column 'when' holds {DATES}",
    ),
    "categories": (pd.DataFrame({"c": pd.Categorical(WORDS)}), rf"'c' holds text \({TEXT}"),
    "time zones": (pd.DataFrame({"t": DAYS.tz_localize("UTC")}), f"column 't' holds {DATES}"),
    "durations": (pd.DataFrame({"t": DAYS - DAYS[0], "u": DAYS}), f"columns 't', 'u' hold {DATES}"),
    "dates as objects": (pd.DataFrame({"t": [date(2020, 1, 1)] * 4}), f"'t' holds {DATES}"),
    "polars": (
        pl.DataFrame({"a": Y, "colour": WORDS, "when": [date(2020, 1, 1)] * 4}),
        rf"column 'colour' holds text \({TEXT}.*column 'when' holds {DATES}",
    ),
    "objects": (np.array([Y, WORDS], dtype=object).T, rf"column 1 holds text \({TEXT}"),
    "strings": (np.array([WORDS, WORDS]).T, rf"columns 0, 1 hold text \({TEXT}"),
    "a list": ([[0.0, "red"], [1.0, "blue"], [2.0, "x"], [3.0, "y"]], rf"column 1 .*\({TEXT}"),
    "datetimes": (DAYS.to_numpy()[:, None], f"column 0 holds {DATES}"),
    "many": (pd.DataFrame([WORDS * 2] * 4), r"columns 0, 1, 2, 3, 4 and 3 more hold text"),
    "no columns": (np.zeros((4, 0)), "no columns to learn from"),
    "an empty frame": (pd.DataFrame(index=range(4)), "no columns to learn from"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_are_named(case):
    X, text = REFUSED[case]
    with pytest.raises(ValueError, match=text):
        GPRegressor().fit(X, Y)
    with pytest.raises(ValueError, match=text):
        GPRegressor().predict(X)  # from the prior


def test_predictions_are_checked_in_the_same_words():
    frame = pd.DataFrame({"a": Y})
    model = GPRegressor(RBF(), optimizer=None).fit(frame, Y)
    with pytest.raises(ValueError, match="column 'a' holds text"):
        model.predict(pd.DataFrame({"a": WORDS}))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_matrices(kind):
    with pytest.raises(TypeError, match=r"sparse matrix.*X\.toarray\(\)"):
        GPRegressor().fit(kind(np.eye(4)), Y)


def test_other_objects():
    X = np.array([[{}], [1.0], [2.0], [3.0]], dtype=object)
    with pytest.raises(TypeError, match="column 0 holds objects of type dict"):
        GPRegressor().fit(X, Y)


@pytest.mark.parametrize("y", [WORDS, np.array(WORDS), pd.Series(WORDS)])
def test_targets(y):
    with pytest.raises(ValueError, match=r"y must be numbers, but holds text \('red'\)"):
        GPRegressor().fit(np.eye(4), y)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.array([1, 2, 3, 4], dtype="Int64"), "b": [True, False, True, True]}),
        pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2])}),
        pl.DataFrame({"a": [1, 2, 3, 4], "b": [True, False, True, True]}),
        np.array([[1], [2.5], [True], ["4"]], dtype=object),
        [[1], [2], [3], [4]],
    ],
)
def test_numbers_in_other_dress_are_taken(X):
    model = GPRegressor(RBF(), Gaussian(0.1), optimizer=None).fit(X, Y)
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernel": RBF}, r"did you forget the brackets: RBF\(\)"),
        ({"kernel": sk.Matern}, r"did you forget the brackets: Matern\(\)"),
        ({"likelihood": Gaussian}, r"did you forget the brackets: Gaussian\(\)"),
        ({"mean": means.Linear}, r"did you forget the brackets: Linear\(\)"),
        ({"likelihood": 0.1}, r"mercer\.likelihoods\.Gaussian\(0\.1\)"),
        ({"likelihood": np.ones(4)}, r"mercer\.likelihoods\.Gaussian\(array\)"),
    ],
)
def test_slips_in_the_model(options, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor(**options).fit(np.eye(4), Y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_missing_values_are_named_by_column_and_row(make):
    frame = make({"rain": [1.0, None, 3.0, 4.0], "sun": [0.0, 1.0, 2.0, float("nan")]})
    with pytest.raises(
        ValueError, match=r"Input X contains NaN: column 'rain' in row 1; column 'sun' in row 3"
    ):
        GPRegressor().fit(frame, np.arange(4.0))
    model = GPRegressor(optimizer=None).fit(
        make({"rain": [1.0, 2.0], "sun": [0.0, 1.0]}), [1.0, 2.0]
    )
    with pytest.raises(ValueError, match="column 'rain' in row 1"):
        model.predict(frame)
    with pytest.raises(ValueError, match=r"contains infinity: column 1 in rows 0, 2"):
        GPRegressor().fit([[0.0, np.inf], [1.0, 2.0], [1.0, -np.inf]], [1.0, 2.0, 3.0])
