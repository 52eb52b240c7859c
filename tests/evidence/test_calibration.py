"""Mean squares of standardised leave-one-out residuals, from a factor that is there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import means
from mercer.errors import CalibrationWarning
from mercer.evidence import Data, Objective
from mercer.evidence.calibration import mismatch, residual_squares, warn_if_miscalibrated
from mercer.inference import leave_one_out
from mercer.inference.exact import solve
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [means.Zero(), means.Linear(), means.Linear(estimate="integrate")])
def test_agrees_with_leave_one_out(mean, weighted):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    weights = rng.uniform(0.5, 2.0, 30) if weighted else None
    objective = Objective(RBF(), Gaussian(0.3), mean, Data(X, Y, weights, np.ones(3)))
    problem = objective.problem(objective.kernel, objective.likelihood)
    squares, rows = residual_squares(problem, solve(problem), weights)
    _, left = leave_one_out(problem, weights)
    expected = left.residual**2 / left.variance[:, None]
    assert rows == 30
    np.testing.assert_allclose(squares, np.average(expected, axis=0, weights=weights), rtol=1e-10)


def test_a_sample_of_the_rows_will_do(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 2)), rng.normal(size=(400, 2))
    objective = Objective(RBF(), Gaussian(1.0), means.Zero(), Data(X, Y, None, np.ones(2)))
    problem = objective.problem(objective.kernel, objective.likelihood)
    whole, _ = residual_squares(problem, solve(problem))
    monkeypatch.setattr("mercer.evidence.calibration._ROWS", 200)
    some, rows = residual_squares(problem, solve(problem))
    assert rows == 200
    # four standard errors of the mean of 200 squares
    np.testing.assert_allclose(some, whole, rtol=4 * np.sqrt(2 / 200))


def test_rows_that_cannot_be_left_out_are_passed_over():
    X = np.array([[0.0], [1.0]])
    data = Data(X, np.ones((2, 2)), None, np.ones(2))
    objective = Objective(RBF(), Gaussian(1.0), means.Linear(), data)
    problem = objective.problem(objective.kernel, objective.likelihood)
    assert residual_squares(problem, solve(problem))[1] == 0


def test_what_is_said():
    many = mismatch(np.array([9.0] * 8 + [0.1]), 500)
    assert mismatch(np.array([3.0, 1.0]), 500) == "over-confident: output 0 (3)"
    found = mismatch(np.array([1.0, 0.3, 0.0]), 500)
    assert found == "under-confident: output 1 (0.3), output 2 (0)"
    assert many.endswith("output 4 (9), 3 more; under-confident: output 8 (0.1)")
    for squares, rows in (([1.9, 1.0], 500), ([3.0, 3.0], 500), ([1.0, 1.0], 0)):
        assert mismatch(np.array(squares), rows) == ""
    assert mismatch(np.array([3.0, 1.0]), 10) == ""  # chance


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_only_outputs_that_differ_are_warned_of(noise):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 1)), rng.normal(size=(200, 2)) * [1.0, noise]
    objective = Objective(RBF(), Gaussian(1.0), means.Zero(), Data(X, Y, None, np.ones(2)))
    problem = objective.problem(objective.kernel, objective.likelihood)
    if noise == 1.0:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_if_miscalibrated(problem, solve(problem))
        return
    with pytest.warns(
        CalibrationWarning, match=r"under-confident: output 1 .*for y in np.asarray\(Y\)\.T\]"
    ):
        warn_if_miscalibrated(problem, solve(problem))
