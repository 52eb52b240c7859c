"""Scripts written for scikit-learn run with only the import changed, and give the same numbers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = sorted((Path(__file__).parent / "examples").glob("*.py"))
IMPORT = re.compile(r"^from sklearn\.gaussian_process import (GaussianProcess\w+)$", re.MULTILINE)

# Where scikit-learn's search fails, and Mercer's goes on: what comes of it, by the script. In this
# one scikit-learn's Newton's method, which takes full steps, ends up to 60 nats from the mode, and
# L-BFGS-B makes nothing of that.
FAILS = {"exclusive_or": "stationary"}


def _tolerance(name: str) -> float:
    """Return how well a result is known: searches end where the evidence, not theta, settles."""
    if name.endswith(" before") or " prior " in name:  # nothing was searched for
        return 1e-8
    if name.endswith(("probabilities", "losses")):
        # scikit-learn integrates the logistic function by five error functions
        return 1e-3
    if name.startswith("dot product"):
        # A quadratic cannot go through ten points, and 1e-10 on the diagonal is less than rounding.
        # In exact arithmetic the evidence is -1.810918e10 at both ends; what is computed is 6e-5
        # off at scikit-learn's, 7e-6 at Mercer's.
        return 1e-4 if name.endswith("evidence") else 1e-3
    if name.startswith("rational quadratic"):
        # The shape goes to infinity, and r^2/shape is lost beside the 1 that it is added to: at
        # scikit-learn's end, 3e9, it computes -0.0640 for an evidence of -0.0674.
        return 0.1 if name.endswith("evidence") else 0.01
    if name == "polynomial theta":
        return 1e-2  # an offset that goes to 0 is known to be small
    return 1e-7 if name.endswith("evidence") else 1e-4


@cache
def _names(script: Path, package: str) -> dict:
    """Run a script with its class from a package; return all that it has defined."""
    text, n_imports = IMPORT.subn(rf"from {package} import \1", script.read_text(encoding="utf-8"))
    assert n_imports == 1
    names: dict = {"__name__": "script"}
    exec(compile(text, str(script), "exec"), names)
    return names


def test_all_of_them_are_there():
    assert [script.stem for script in SCRIPTS] == [
        "carbon_dioxide",
        "class_probabilities",
        "exclusive_or",
        "irises",
        "kernel_ridge",
        "lines_of_probability",
        "noisy_targets",
        "prior_and_posterior",
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")
@pytest.mark.filterwarnings("ignore:covariance is not symmetric positive-semidefinite")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_same_results(script):
    theirs = _names(script, "sklearn.gaussian_process")["results"]
    ours = _names(script, "mercer.compat")["results"]
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        if name.startswith(FAILS.get(script.stem, "no such name")):
            continue
        rtol = _tolerance(name)
        size = float(np.max(np.abs(expected)))
        np.testing.assert_allclose(
            ours[name], expected, rtol=rtol, atol=rtol * size, err_msg=f"{script.stem}: {name}"
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_scikit_learn_fails_it_agrees_at_its_hyperparameters():
    script = next(script for script in SCRIPTS if script.stem == "exclusive_or")
    theirs = _names(script, "sklearn.gaussian_process")["results"]
    names = _names(script, "mercer.compat")
    assert names["results"]["stationary evidence"] > theirs["stationary evidence"] + 0.5
    kernel = names["kernels"]["stationary"].clone_with_theta(theirs["stationary theta"])
    model = names["GaussianProcessClassifier"](kernel, optimizer=None).fit(names["X"], names["Y"])
    grid = np.column_stack([names["xx"].ravel(), names["yy"].ravel()])
    expected = theirs["stationary probabilities"].ravel()
    np.testing.assert_allclose(model.predict_proba(grid)[:, 1], expected, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_scikit_learn_rounds_the_limits_are_known():
    script = next(script for script in SCRIPTS if script.stem == "prior_and_posterior")
    names = _names(script, "mercer.compat")
    ours = names["results"]
    evidence = ours["rational quadratic: evidence"]  # goes to that of an RBF
    assert evidence == pytest.approx(ours["rbf: evidence"], rel=1e-4)
    line = names["X_train"][:, 0], names["y_train"]
    least_squares = np.polyval(np.polyfit(*line, 2), names["X"][:, 0])
    np.testing.assert_allclose(ours["dot product: mean"], least_squares, atol=1e-3)
