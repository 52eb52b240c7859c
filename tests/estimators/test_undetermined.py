"""Data that say nothing about the scale of the process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import GPRegressor, means
from mercer.errors import UndeterminedWarning
from mercer.evidence import Data, undetermined
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Poisson
from mercer.params import Parameter

LINE = np.linspace(0, 1, 9)[:, None]
CASES = {
    "one row": (np.zeros((1, 2)), [3.0], {}, "there is only one row"),
    "one row, loo": (np.zeros((1, 2)), [3.0], {"objective": "loo"}, "there is only one row"),
    "constant": (LINE, np.full(9, 3.0), {}, "the targets are constant"),
    "constant to rounding": (LINE, 0.1 * 3 * np.ones(9) + 1e-17, {}, "the targets are constant"),
    "constant, weighted": (LINE, np.full(9, 3.0), {"sample_weight": LINE[:, 0]}, "are constant"),
    "constant outputs": (LINE, np.full((9, 2), [3.0, -1.0]), {}, "the targets are constant"),
    "integrated": (
        LINE,
        np.full(9, 3.0),
        {"mean": means.Constant(estimate="integrate")},
        "the targets are constant",
    ),
    "all zero": (LINE, np.zeros(9), {"mean": "zero"}, "the targets equal the given mean"),
    "a line": (LINE, 3 * LINE[:, 0] + 1, {"mean": "linear"}, "mean explains the targets without"),
    "a line, integrated": (
        LINE,
        3 * LINE[:, 0] + 1,
        {"mean": means.Linear(estimate="integrate")},
        "mean explains the targets without",
    ),
    "lines": (LINE, LINE * [3.0, -1e6], {"mean": "linear"}, "mean explains the targets without"),
    "a line far away": (
        1e9 + LINE,
        (1e9 + LINE[:, 0]) - 1e9,
        {"mean": "linear"},
        "mean explains the targets without",
    ),
    "constant, linear": (LINE, np.full(9, 3.0), {"mean": "linear"}, "the targets are constant"),
    "more coefficients": (
        np.random.default_rng(0).normal(size=(5, 8)),
        np.arange(5.0),
        {"mean": "linear"},
        r"no more rows \(5\) than coefficients of the mean \(9\)",
    ),
    "as many coefficients": (LINE[:2], [1.0, 2.0], {"mean": "linear"}, r"no more rows \(2\)"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_warning_names_the_reason_and_the_start_is_kept(case):
    X, y, options, text = CASES[case]
    options = dict(options)
    weight = options.pop("sample_weight", None)
    with pytest.warns(UndeterminedWarning, match=text) as caught:
        model = GPRegressor(**options).fit(X, y, weight)
    assert len(caught) == 1 and model.status_ == "fixed"
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


@pytest.mark.parametrize("size", [1e-8, 1.0, -40.0, 1e8])
@pytest.mark.parametrize("n", [1, 9])
def test_error_bars_are_in_units_of_the_targets_size(size, n):
    with pytest.warns(UndeterminedWarning):
        model = GPRegressor().fit(LINE[:n], np.full(n, size))
    mean, std = model.predict([[0.0], [100.0]], return_std=True)
    np.testing.assert_allclose(mean, size)
    # a start of variance 1 and noise 0.1 in these units
    assert 0.3 * abs(size) < std[0] < 0.5 * abs(size)
    assert std[1] == pytest.approx(np.sqrt(1.1) * abs(size))


def test_a_given_kernel_is_what_is_known_of_the_scale():
    with pytest.warns(UndeterminedWarning):
        model = GPRegressor(4.0 * RBF()).fit(LINE, np.full(9, 1e6))
    _, std = model.predict([[1e3]], return_std=True)
    assert std[0] == pytest.approx(np.sqrt(4.4))
    with pytest.warns(UndeterminedWarning):
        model = GPRegressor(4.0 * RBF(), normalize_y=True).fit(LINE, np.full(9, 10.0))
    assert model.predict([[1e3]], return_std=True)[1][0] == pytest.approx(10.0 * np.sqrt(4.1))


def test_what_is_given_and_held_needs_no_warning():
    kernel = Parameter(2.0, fixed=True) * RBF(Parameter(1.0, fixed=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor(kernel, Gaussian(Parameter(0.1, fixed=True))).fit(LINE, np.ones(9))
        GPRegressor(2.0 * RBF(), Gaussian(0.1), optimizer=None).fit(LINE, np.ones(9))


def test_the_warning_says_how_to_silence_it():
    text = r"optimizer=None or Parameter\(\.\.\., fixed=True\)"
    with pytest.warns(UndeterminedWarning, match=text):
        GPRegressor(2.0 * RBF(), Gaussian(0.1)).fit(LINE, np.ones(9))


@pytest.mark.parametrize(
    ("X", "y", "mean"),
    [
        (LINE, 3 * LINE[:, 0] + 1 + 1e-9 * np.cos(50 * LINE[:, 0]), "linear"),
        (LINE, LINE[:, 0], "constant"),
        (LINE, np.column_stack([np.ones(9), LINE[:, 0] ** 2]), "linear"),
        (np.ones((2, 3)), [1.0, 2.0], "linear"),  # fewer than coefficients, but no fit
        (LINE[:1], [1.0], "zero"),
    ],
    ids=["nearly a line", "a line", "one output of two", "repeated rows", "one row"],
)
def test_what_the_mean_leaves_over_is_searched(X, y, mean):
    Y = np.asarray(y).reshape(len(X), -1)
    rows = Data(X, Y, None, np.ones(Y.shape[1]))
    assert undetermined(rows, means.from_spec(mean)) is None


def test_counts_that_are_all_zero():
    with pytest.warns(UndeterminedWarning, match="all counts are 0") as caught:
        model = GPRegressor(likelihood=Poisson()).fit(LINE, np.zeros(9, dtype=int))
    assert len(caught) == 1 and model.status_ == "fixed"
    mean, std = model.predict([[0.5], [100.0]], return_std=True)
    assert 0 < mean[0] < 0.3 < mean[1] < 1.0
    assert np.all(std < 1.5)


def test_a_constant_away_from_a_given_mean_is_fitted():
    with pytest.warns(UserWarning, match="free of noise"):
        model = GPRegressor(mean="zero").fit(LINE, np.full(9, 5.0))
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.predict([[0.31]]), 5.0, rtol=1e-2)
