"""What a fresh process pays: nothing is imported or compiled that is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What only compiled loops, plots, tables or tests need.
UNNEEDED = (
    "numba", "llvmlite", "matplotlib", "pandas", "polars", "torch", "dask", "IPython", "pytest",
    "scipy.stats",
)  # fmt: skip

_MODULES = "import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"

# A kernel's value and pullback, and how many functions Numba has compiled for them. The compiler
# tells whoever listens; where it is not asked at all, it has nothing to tell.
_COMPILED = """
import json
from numba.core import event
with event.install_recorder("numba:compile") as record:
    import numpy as np
    from mercer.kernels import RBF
    X = np.random.default_rng(0).normal(size=(64, 3))
    kernel = 2.0 * RBF([1.0, 1.0, 1.0])
    kernel(X)
    kernel.pullback(X, None, np.eye(64))
print(json.dumps(sum(e.is_start for _, e in record.buffer)))
"""


def in_child(code, **environment):
    """What code prints last, as JSON, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", UNNEEDED)
def test_importing_mercer_imports_nothing_that_it_can_do_without(name, imported):
    loaded, given = imported
    assert name not in loaded - given


@pytest.fixture(scope="module")
def imported():
    """The modules after `import mercer`, and those that scikit-learn's own models bring."""
    return tuple(
        set(in_child(_MODULES.format(module=m)))
        for m in ("mercer, mercer.estimators", "sklearn.gaussian_process")
    )


def test_a_second_process_compiles_nothing(tmp_path):
    pytest.importorskip("numba")
    first = in_child(_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    files = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    assert first > 0 and files
    assert in_child(_COMPILED, NUMBA_CACHE_DIR=str(tmp_path)) == 0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == files
