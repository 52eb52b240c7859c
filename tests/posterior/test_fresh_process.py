"""Loading in a process that has imported nothing but the function that loads."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import GPRegressor, save
from mercer.cli.columns import TableColumn
from mercer.cli.model import TableModel
from mercer.kernels import RBF
from mercer.likelihoods import Poisson
from mercer.registry import to_json

ROOT = Path(__file__).resolve().parents[2]


def in_child(code, *arguments):
    """What code prints last, as JSON, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("home", ["mercer", "mercer.posterior"])
def test_a_regressor_and_the_model_of_a_table(home, tmp_path):
    X = np.linspace(0.0, 3.0, 8)[:, None]
    model = GPRegressor(RBF(1.0), optimizer=None).fit(X, np.sin(X[:, 0]))
    save(model, tmp_path / "regressor")
    save(TableModel("y", [TableColumn("x", "number")], model, {}), tmp_path / "table")
    loaded = in_child(
        f"import json, sys; from {home} import load; model, table = map(load, sys.argv[1:]); "
        "print(json.dumps([m.predict([[1.0]]).tolist() for m in (model, table.estimator)]))",
        tmp_path / "regressor",
        tmp_path / "table",
    )
    assert loaded == [model.predict([[1.0]]).tolist()] * 2


def test_a_likelihood_and_a_kernel_as_text():
    code = (
        "import json, sys; from mercer.registry import from_json; "
        "print(json.dumps([repr(from_json(text)) for text in sys.argv[1:]]))"
    )
    parts = [Poisson(), 2.0 * RBF(0.5)]
    assert in_child(code, *map(to_json, parts)) == [repr(part) for part in parts]


def test_every_class_that_can_be_stored_is_found():
    for part in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if not part.name.endswith("__main__"):
            import_module(part.name)
    # without those of tests that have run here
    classes = mercer.registry._CLASSES.items()
    names = [name for name, cls in classes if cls.__module__.startswith("mercer.")]
    assert {"GPRegressor", "Posterior", "TableModel", "Gaussian"} <= set(names)
    missing = in_child(
        "import json, sys; from mercer.registry import _find; "
        "print(json.dumps([name for name in sys.argv[1:] if not _find(name)]))",
        *names,
    )
    assert missing == []
