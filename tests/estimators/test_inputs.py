"""Inputs that are no numbers are refused in words that name the columns and say what to do."""

from __future__ import annotations

import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor, means
from mercer.estimators.inputs import require_numbers
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


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series])
def test_missing_targets_are_named_by_row(make):
    y = [1.0, float("nan"), 2.0, float("nan")]
    with pytest.raises(ValueError, match=r"Input y contains NaN: in rows 1, 3 \(counted from 0\)"):
        GPRegressor().fit(np.eye(4), make(y))
    with pytest.raises(ValueError, match=r"Input y contains infinity: in row 0 "):
        GPRegressor().fit(np.eye(4), make([np.inf, 0.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match=r"Input y contains NaN: column 1 in row 2 "):
        GPRegressor().fit(np.eye(4), np.where(np.eye(4) * [0, 0, 1, 0] > 0, np.nan, 1.0)[:, [0, 2]])


def test_numbers_are_looked_at_without_a_copy():
    X = np.zeros((200_000, 5))
    tracemalloc.start()
    require_numbers(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes  # a flag for each number, and no second X


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", object])
def test_missing_values_of_nullable_columns_are_named(kind):
    column = pd.Series([1, pd.NA, 0, pd.NA], dtype=kind)
    frame = pd.DataFrame({"flag": column, "sun": [0.0, 1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"X contains NaN: column 'flag' in rows 1, 3 \(counted"):
        GPRegressor().fit(frame, np.arange(4.0))
    with pytest.raises(ValueError, match=r"Input y contains NaN: in rows 1, 3 \(counted"):
        GPRegressor().fit(np.eye(4), column)
    whole = frame.iloc[[0, 2]]
    assert np.all(np.isfinite(GPRegressor(optimizer=None).fit(whole, [0.0, 1.0]).predict(whole)))


def test_nan_and_infinity_are_each_called_by_name():
    table = np.arange(12.0).reshape(4, 3)
    table[1, 0], table[2, 1], table[3, 2] = np.nan, np.inf, -np.inf
    with pytest.raises(ValueError, match=r"X contains NaN: column 0 in row 1 \(counted"):
        GPRegressor().fit(table, np.arange(4.0))
    table[1, 0] = 0.0
    with pytest.raises(
        ValueError, match=r"X contains infinity: column 1 in row 2; column 2 in row 3 \(counted"
    ):
        GPRegressor().fit(table, np.arange(4.0))
    y = [np.inf, np.nan, 0.0, 1.0]
    with pytest.raises(ValueError, match=r"y contains NaN: in row 1 \(counted"):
        GPRegressor().fit(np.eye(4), y)
    with pytest.raises(ValueError, match=r"y contains infinity: in row 0 \(counted"):
        GPRegressor().fit(np.eye(4), np.nan_to_num(y, posinf=np.inf))
