"""Peak extra memory of one evaluation of the evidence and its gradient."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child, resident_bytes
from benchmarks.evidence import NOISE, objective, problem
from benchmarks.peers import GPyTorch, has_gpytorch, sklearn_regressor
from benchmarks.report import Options, Result, Verdict, table
from mercer.kernels import RBF

# The number of hyperparameters, and the columns and length scales that make it: with 2 there is no
# scale factor.
SHAPES = {2: (1, 0), 20: (18, 18)}
MERCER, SKLEARN, GPYTORCH = "Mercer", "scikit-learn", "GPyTorch, Cholesky"


def evaluation(contender: str, n: int, p: int) -> Callable[[], Any]:
    """Return a function that evaluates evidence and gradient once, with p hyperparameters."""
    d, n_lengths = SHAPES[p]
    X, y = problem(n, max(d, 2))
    X = np.ascontiguousarray(X[:, :d])
    lengths: Any = np.full(n_lengths, np.sqrt(d)) if n_lengths else 1.0
    if contender == SKLEARN:
        peer = sklearn_regressor(lengths, NOISE, optimizer=None)
        if p == 2:
            peer.kernel.k1.k1.constant_value_bounds = "fixed"
        peer.fit(X, y)
        theta = peer.kernel_.theta
        assert theta.size == p
        return lambda: peer.log_marginal_likelihood(theta, True, clone_kernel=False)
    if contender == GPYTORCH:
        model = GPyTorch(X, y, lengths, NOISE)
        if p == 2:
            model.model.covar_module.raw_outputscale.requires_grad_(False)
        return model.evaluate_by_cholesky
    ours = objective(X, y, RBF(lengths) if p == 2 else 1.0 * RBF(lengths))
    assert ours.theta.size == p
    return lambda: ours(ours.theta)


def child(contender: str, n: int, p: int) -> None:
    """Measure in this process, which must be fresh, and print the bytes: resident and traced."""
    evaluation(contender, 300, p)()  # compilers, buffers of the BLAS, lazy imports
    ready = evaluation(contender, n, p)
    resident = None
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        try:
            reset.write_text("5")  # peak := now
            before = resident_bytes("VmRSS")
            ready()
            resident = resident_bytes("VmHWM") - before
        except OSError:
            resident = None
    fresh = evaluation(contender, n, p)  # whatever the first evaluation keeps counts as extra
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    fresh()
    traced = tracemalloc.get_traced_memory()[1] - before
    print(json.dumps([resident, traced]))


def run(options: Options) -> Result:
    """Measure each contender, each number of hyperparameters, in a process of its own."""
    n = 300 if options.quick else 2000
    names = [MERCER]
    if "scikit-learn" not in options.without:
        names.append(SKLEARN)
    if has_gpytorch(options):
        names.append(GPYTORCH)
    rows, verdicts = [], []
    for name in names:
        for p in SHAPES:
            code = f"from benchmarks.memory import child; child({name!r}, {n}, {p})"
            resident, traced = (None if b is None else b / (8 * n**2) for b in in_child(code))
            # torch's memory is not NumPy's and cannot be traced.
            shown = "" if name == GPYTORCH else f"{traced:.2f}"
            rows.append([name, str(p), "" if resident is None else f"{resident:.2f}", shown])
            if name == MERCER:
                worst = max(traced, resident or 0.0)
                verdicts.append(
                    Verdict(f"{p} hyperparameters", f"{worst:.2f}", "at most 1.5", worst <= 1.5)
                )
    header = ["contender", "hyperparameters", "resident, n^2 doubles", "traced, n^2 doubles"]
    return Result(
        "Memory",
        f"Peak memory of one evaluation of evidence and gradient, n = {n}, beyond what was there "
        "before it, in units of n^2 doubles: growth of the process's resident memory, and what "
        "NumPy allocated. The larger counts.",
        [table(header, rows)],
        verdicts,
    )
