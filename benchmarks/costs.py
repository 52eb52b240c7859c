"""Measured exponents of time and memory, beside those of BKM Table 1."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from benchmarks.evidence import NOISE, D, problem
from benchmarks.report import table
from mercer import SparseGreedyGPRegressor
from mercer.inference import duals, subspace
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

LENGTH = np.sqrt(D)
STEPS = 20
#: Method: time and memory as published, in n rows and m basis functions (for gradients: steps).
PUBLISHED = {
    "exact": ("n³", "n²"),
    "conjugate gradients": ("m n²", "n²"),
    "sparse decomposition": ("m² n", "m n"),
    "sparse greedy": ("κ m² n", "m n"),
}


def _exact(X: Any, y: Any, m: int) -> None:
    Q = RBF(LENGTH).gram_lower(X)
    Q.reshape(-1, order="F")[:: len(y) + 1] += NOISE
    factor, _ = dpotrf(Q, lower=1, clean=0, overwrite_a=1)
    dpotrs(factor, y, lower=1)


def _gradients(X: Any, y: Any, m: int) -> None:
    K = RBF(LENGTH)(X)
    given = duals.RowProblem(y[:, None], NOISE, lambda A: K @ A)
    start = duals.Dual.of(given, np.zeros((len(y), 1)), np.zeros((len(y), 1)))
    duals.refined_dual(given, start, lambda R: R, STEPS)


def _decomposition(X: Any, y: Any, m: int) -> None:
    kernel, n = RBF(LENGTH), len(y)
    P = np.zeros((n, m))
    P[np.arange(m), np.arange(m)] = 1.0
    given = duals.RowProblem.of(kernel, X, y[:, None], NOISE)
    subspace.solution(given, P, kernel(X, X[:m]))


def _greedy(X: Any, y: Any, m: int) -> None:
    SparseGreedyGPRegressor(
        RBF(LENGTH),
        Gaussian(NOISE),
        mean="zero",
        optimizer=None,
        tol=0.0,
        max_basis=m,
        dual="subset",
        random_state=0,
    ).fit(X, y)


METHODS: dict[str, Callable[[Any, Any, int], None]] = {
    "exact": _exact,
    "conjugate gradients": _gradients,
    "sparse decomposition": _decomposition,
    "sparse greedy": _greedy,
}


def _cost(method: Callable[[Any, Any, int], None], n: int, m: int) -> tuple[float, float]:
    """Return the best seconds of two runs, and the peak of what NumPy allocates in a third."""
    X, y = problem(n)
    seconds = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        method(X, y, m)
        seconds = min(seconds, time.perf_counter() - start)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        method(X, y, m)
        return seconds, float(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


def _slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Return the exponent: the slope of the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def exponents(quick: bool) -> str:
    """Return the table of measured exponents."""
    sizes, m = ((100, 200), 10) if quick else ((2000, 4000, 8000), 100)
    bases, n = ((10, 20), 200) if quick else ((100, 200, 400), 4000)
    lines = []
    for name, method in METHODS.items():
        by_rows = [_cost(method, size, m) for size in sizes]
        cells = [_slope(sizes, [cost[i] for cost in by_rows]) for i in (0, 1)]
        shown = ["", ""]
        if name.startswith("sparse"):
            by_basis = [_cost(method, n, size) for size in bases]
            shown = [f"{_slope(bases, [cost[i] for cost in by_basis]):.1f}" for i in (0, 1)]
        seconds, memory = by_rows[-1]
        lines.append(
            [
                name,
                *PUBLISHED[name],
                f"{cells[0]:.1f}",
                shown[0],
                f"{cells[1]:.1f}",
                shown[1],
                f"{seconds:.2f}",
                f"{memory / 1e6:.0f}",
            ]
        )
    header = [
        "method",
        "published time",
        "memory",
        "time ~ n^",
        "time ~ m^",
        "memory ~ n^",
        "memory ~ m^",
        f"s, n = {sizes[-1]}",
        "MB",
    ]
    return table(header, lines)
