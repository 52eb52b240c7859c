"""What importing costs, and that a second process compiles nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.children import in_child
from benchmarks.report import Options, Result, Verdict, table

# Mercer's names are loaded on first use: importing one loads what there is to load.
OURS = "from mercer import GPRegressor"
PEERS = ("import sklearn", "import sklearn.gaussian_process")

_IMPORT = """
import time; start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""

# A kernel's value and pullback, the compilations that Numba reports, and the seconds they took.
_FIRST_CALL = """
import json, time
import numpy as np
import mercer
from mercer.kernels import RBF
X = np.random.default_rng(0).normal(size=(64, 3))
start = time.perf_counter()
kernel = 2.0 * RBF([1.0, 1.0, 1.0])
kernel(X)
first = time.perf_counter() - start
kernel.pullback(X, None, np.eye(64))
print(json.dumps([first]))
"""

_COMPILATIONS = """
import numba
from numba.core import event
with event.install_recorder("numba:compile") as record:
    import numpy as np
    from mercer.kernels import RBF
    X = np.random.default_rng(0).normal(size=(64, 3))
    kernel = 2.0 * RBF([1.0, 1.0, 1.0])
    kernel(X)
    kernel.pullback(X, None, np.eye(64))
print(len([1 for _, e in record.buffer if e.is_start]))
"""


def _files(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def run(options: Options) -> Result:
    """Time imports, then the first call with an empty and with a filled cache."""
    rounds = 1 if options.quick else 9
    best = dict.fromkeys((*PEERS, OURS), float("inf"))
    for _ in range(rounds):
        for statement in best:
            seconds = in_child(_IMPORT.format(statement=statement))
            best[statement] = min(best[statement], seconds)
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": folder}
        before = _files(Path(folder))
        (cold,) = in_child(_FIRST_CALL, environment)
        filled = _files(Path(folder))
        (warm,) = in_child(_FIRST_CALL, environment)
        changed = {p for p, t in _files(Path(folder)).items() if filled.get(p) != t}
        compiled = in_child(_COMPILATIONS, environment)
    written = len(filled) - len(before)
    rows = [[statement, f"{seconds:.3f}"] for statement, seconds in best.items()]
    rows += [
        ["first kernel matrix, cache of compiled loops empty", f"{cold:.3f}"],
        ["first kernel matrix, a second process", f"{warm:.3f}"],
    ]
    verdicts = []
    for peer in PEERS:
        more = best[OURS] - best[peer]
        verdicts.append(
            Verdict(
                f"{OURS} less {peer}",
                f"{more:+.3f} s",
                "at most 0.25 s",
                more <= 0.25,
            )
        )
    verdicts.append(
        Verdict(
            "second process: functions compiled, cache files written",
            f"{compiled}, {len(changed)}",
            "0, 0",
            compiled == 0 and not changed and written > 0,
        )
    )
    return Result(
        "Import and first use",
        f"Fresh processes; imports: best of {rounds}. The first process to use a kernel wrote "
        f"{written} files of compiled code.",
        [table(["step", "s"], rows)],
        verdicts,
    )
