"""What a fresh process pays: nothing is imported or compiled that is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mercer import linalg

ROOT = Path(__file__).resolve().parents[1]

# What only compiled loops, plots, tables or tests need.
UNNEEDED = (
    "numba", "llvmlite", "matplotlib", "pandas", "polars", "torch", "dask", "IPython", "pytest",
    "scipy.stats",
)  # fmt: skip

_MODULES = "import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"

# A kernel's value and pullback, and how many functions Numba has compiled for them and for one that
# it cannot have kept. The compiler tells whoever listens.
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
    import numba
    numba.njit("float64(float64)")(lambda x: x)
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


def test_importing_mercer_imports_nothing_that_it_can_do_without():
    # beside what scikit-learn's own models bring
    loaded, given = (
        set(in_child(_MODULES.format(module=m)))
        for m in ("mercer, mercer.estimators", "sklearn.gaussian_process")
    )
    assert not (loaded - given).intersection(UNNEEDED)


def test_a_second_process_compiles_nothing():
    """The first is whichever of the tests' was the first to want a loop."""
    pytest.importorskip("numba")
    assert linalg.loops().__name__ == "mercer.linalg._compiled"

    def files():
        folder = Path(linalg.__file__).parent / "__pycache__"
        return {p: p.stat().st_mtime_ns for p in folder.glob("_compiled.*.nb?")}

    before = files()
    assert in_child(_COMPILED) == 1
    assert files() == before and (before or "NUMBA_CACHE_DIR" in os.environ)
