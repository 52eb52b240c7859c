"""Laplacian processes with Gaussian noise: L1-penalised least squares over kernel columns."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoLars

from benchmarks.children import in_child, resident_bytes
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from benchmarks.uci import made_up
from mercer.datasets import load_table
from mercer.inference._columns import KernelColumns
from mercer.inference._expansion_problem import Expansion
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_squares import Squares
from mercer.kernels import RBF

TOL = 1e-6
PART = 0.01  # lam in units of the least one without columns
LARGE, LARGE_PART = 100_000, 0.002
# Tolerances that a peer is tried with, until its objective is within TOL; and the seconds after
# which it is not tried again with another.
TOLERANCES, PATIENCE = (1e-4, 1e-6, 1e-8, 1e-10), 100.0
MERCER, LARS, LASSO, CELER = "Mercer", "LassoLars", "Lasso", "celer"


class Problem(NamedTuple):
    """Rows, targets, the width of the kernel, and lam."""

    name: str
    X: Any
    y: Any
    width: float
    lam: float


def _problem(name: str, X: Any, y: Any, width: float, part: float = PART) -> Problem:
    largest = np.abs(RBF(width).gram_times(X, y[:, None])).max()
    return Problem(name, X, y, width, float(part * largest))


def abalone(options: Options) -> Problem:
    """Return Abalone, standardised, rings centred."""
    data = made_up() if options.quick else load_table("abalone")
    X, y = data.X[:4000], data.y[:4000]
    width = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(width > 0, width, 1.0)
    return _problem("Abalone", X, y - y.mean(), float(np.sqrt(5.0)))


def synthetic(n: int, part: float = PART) -> Problem:
    """Return a function of some of eight columns, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.cos(2.0 * X[:, 3])
    y = f + 0.5 * rng.normal(size=n)
    return _problem("eight columns", X, y - y.mean(), 2.0, part)


def mercer(problem: Problem) -> Expansion:
    """Solve without the kernel matrix, certificate included."""
    columns = KernelColumns(RBF(problem.width), problem.X)
    return Generation(columns, Squares(problem.y), tol=TOL).solve(problem.lam)


def _peers(problem: Problem, K: Any) -> dict[str, Callable[[float], Any]]:
    alpha, y = problem.lam / len(problem.y), problem.y
    common = {"alpha": alpha, "fit_intercept": False}
    peers = {
        LARS: lambda tol: LassoLars(**common, max_iter=10_000).fit(K, y),
        LASSO: lambda tol: Lasso(**common, tol=tol, max_iter=5_000).fit(K, y),
    }
    if find_spec("celer") is not None:
        from celer import Lasso as Celer

        peers[CELER] = lambda tol: Celer(**common, tol=tol, max_iter=200).fit(K, y)
    return peers


def _until_close(
    fit: Callable[[float], Any], F: Callable[[Any], float], best: float
) -> tuple[float, float]:
    """Return the seconds of a fit that comes within TOL of the best, and how close it comes.

    That of the loosest tolerance that does, or of the last that there was patience for.
    """
    began = time.perf_counter()
    for tol in TOLERANCES:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = fit(tol)
        seconds = time.perf_counter() - start
        off = F(model.coef_) / best - 1.0
        if abs(off) <= TOL or time.perf_counter() - began > PATIENCE:
            break
    return seconds, off


def _against_peers(
    problem: Problem, rounds: int
) -> tuple[list[list[str]], dict[str, float], list[float]]:
    """Return the lines of the table, how many times faster Mercer is than each, and their `off`."""
    found = mercer(problem)
    K = np.asfortranarray(RBF(problem.width)(problem.X))

    def F(coef: Any) -> float:
        e = problem.y - K @ coef
        return 0.5 * float(e @ e) + problem.lam * float(np.abs(coef).sum())

    ours = race([Contender(MERCER, lambda: mercer(problem))], rounds)[MERCER]
    size, n = str(len(found.indices)), str(len(problem.y))
    lines = [[problem.name, n, MERCER, f"{ours:.3f}", "", size, f"{found.gap:.1e}"]]
    leads, offs = {}, []
    for name, fit in _peers(problem, K).items():
        seconds, off = _until_close(fit, F, found.objective)
        leads[name] = seconds / ours
        offs.append(off)
        more = f"{leads[name]:.1f}"
        lines.append([problem.name, n, name, f"{seconds:.3f}", more, "", f"{off:.1e}"])
    return lines, leads, offs


def large(n: int) -> None:
    """Solve a large problem; print seconds, active columns, gap, passes, GB, whether certified."""
    problem = synthetic(n, LARGE_PART)
    start = time.perf_counter()
    found = mercer(problem)
    seconds = time.perf_counter() - start
    size, peak = len(found.indices), resident_bytes("VmHWM") / 1e9
    certified = found.status == "certified"
    print(json.dumps([seconds, size, found.gap, found.n_passes, peak, certified]))


def run(options: Options) -> Result:
    """Race Mercer against peers that are given the kernel matrix, and solve a large problem."""
    n = 200 if options.quick else 4000
    lines, verdicts = [], []
    for problem in (abalone(options), synthetic(n)):
        rows, leads, offs = _against_peers(problem, 1 if options.quick else 5)
        lines += rows
        verdicts.append(
            Verdict(
                f"{problem.name}, n = {len(problem.y)}, objectives agree",
                f"the nearest is {min(map(abs, offs)):.1e} off, the lowest {min(offs):.1e}",
                f"one within {TOL:.0e}, none lower by more",
                min(map(abs, offs)) <= TOL and min(offs) >= -TOL,
            )
        )
        for name, lead in leads.items():
            wanted = 3.0 if name == LARS else 10.0
            verdicts.append(
                Verdict(
                    f"{problem.name}, n = {len(problem.y)}, faster than {name}",
                    f"{lead:.1f} times",
                    f"at least {wanted:.0f} times",
                    lead >= wanted,
                )
            )
    many = 500 if options.quick else LARGE
    code = f"from benchmarks.laplacian import large; large({many})"
    seconds, size, gap, passes, peak, certified = in_child(code)
    verdicts.append(
        Verdict(
            f"n = {many}, memory of the whole process, certified",
            f"{peak:.2f} GB",
            "at most 1.5 GB",
            peak <= 1.5 and certified,
        )
    )
    verdicts.append(
        Verdict(f"n = {many}, active columns", f"{size:.0f}", "at most 500", size <= 500)
    )
    return Result(
        "Laplacian processes",
        f"Gaussian noise: |y - K theta|^2/2 + lam |theta|_1 with lam = {PART} of the least at "
        "which theta is 0, an RBF kernel. Mercer's time has the values of the kernel and the "
        "certificate in it; the peers are given K. A peer's time is that of the loosest of the "
        f"tolerances {', '.join(f'{tol:.0e}' for tol in TOLERANCES)} whose objective is within "
        f"{TOL:.0e} of Mercer's, or of the last before all had taken {PATIENCE:.0f} s. `off`: the "
        "duality gap of Mercer's solution, and a peer's objective less Mercer's, both in units of "
        f"it. The last table is of the second problem with lam = {LARGE_PART} of that least one.",
        [
            table(["rows", "n", "solver", "s", "over Mercer", "active", "off"], lines),
            table(
                ["n", "s", "active", "gap", "passes", "GB"],
                [
                    [
                        str(many),
                        f"{seconds:.1f}",
                        f"{size:.0f}",
                        f"{gap:.1e}",
                        f"{passes:.0f}",
                        f"{peak:.2f}",
                    ]
                ],
            ),
        ],
        verdicts,
    )
