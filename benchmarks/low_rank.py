"""Laplace's method with a low-rank kernel matrix: its time by the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from benchmarks.classification import D, rows
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.inference import LatentProblem, laplace, low_rank
from mercer.inference.low_rank import LowRankProblem
from mercer.kernels import RBF
from mercer.likelihoods import Logistic
from mercer.selection import random_subset

BARE, SOLVE, GRADIENT = "bare BLAS", "Mercer, mode and evidence", "Mercer, with gradient"
WHOLE = "Mercer, Laplace, whole matrix"


def _problem(n: int, m: int) -> LowRankProblem:
    X, y = rows(n)
    kernel = 4.0 * RBF(np.full(D, np.sqrt(D)))
    points = X[random_subset(X, m, rng=0)]
    return LowRankProblem(kernel, X, y, Logistic(), np.zeros(n), points=points)


def _bare(V: Any, count: int) -> None:
    """The products that nothing can do without: V, then B = 1 + V'W V and its factor, each time."""
    m = V.shape[1]
    dtrsm(1.0, np.eye(m, order="F"), V.T, lower=1, overwrite_b=1)
    for _ in range(count):
        dpotrf(dsyrk(1.0, V.T, 1.0, np.eye(m, order="F"), lower=1, overwrite_c=1), lower=1)


def _times(n: int, m: int, rounds: int) -> tuple[dict[str, float], int]:
    problem = _problem(n, m)
    solution = low_rank.solve(problem)
    V, count = np.ascontiguousarray(solution.basis.V), solution.n_factorisations

    def gradient() -> Any:
        _, adjoints = low_rank.evidence(problem)
        cross = problem.kernel.pullback(problem.X, problem.points, adjoints.cross, inputs=False)
        basis = problem.kernel.pullback(problem.points, None, adjoints.basis, inputs=False)
        return cross.theta + basis.theta

    times = race(
        [
            Contender(BARE, lambda: _bare(V, count)),
            Contender(SOLVE, lambda: low_rank.solve(problem)),
            Contender(GRADIENT, gradient),
        ],
        rounds,
    )
    return times, count


def run(options: Options) -> Result:
    """Race it at two numbers of rows, and Laplace's method at a tenth of the larger."""
    m = 20 if options.quick else 200
    sizes = (200, 800) if options.quick else (5000, 20_000)
    rounds = 1 if options.quick else 5
    raced = {n: _times(n, m, rounds) for n in sizes}
    few = sizes[-1] // 10
    X, y = rows(few)
    whole = LatentProblem(_problem(few, m).kernel, X, y, Logistic(), np.zeros(few))
    times = race([Contender(WHOLE, lambda: laplace.solve(whole))], rounds)
    lines = [
        [
            name,
            *(
                cell
                for each, _ in raced.values()
                for cell in (milliseconds(each[name]), f"{each[name] / each[BARE]:.2f}")
            ),
        ]
        for name in (BARE, SOLVE, GRADIENT)
    ]
    header = ["contender", *(h for n in sizes for h in (f"n = {n}, ms", "ratio"))]
    growth = raced[sizes[1]][0][SOLVE] / raced[sizes[0]][0][SOLVE]
    counts = " and ".join(str(count) for _, count in raced.values())
    return Result(
        "Low-rank Newton",
        f"Logistic, 4.0 * RBF with {D} length scales, {D} columns, m = {m} basis points drawn by "
        f"chance, cold starts, {counts} factorisations. Ratios: to the bare trsm, syrk and potrf "
        "of the same shapes and number; the kernel's values and the passes over the rows are not "
        "in these.",
        [
            table(header, lines),
            table([WHOLE, "ms"], [[f"n = {few}", milliseconds(times[WHOLE])]]),
        ],
        [
            Verdict(
                f"time at n = {sizes[1]} over that at n = {sizes[0]}",
                f"{growth:.2f}",
                "at most 5, linear being 4",
                growth <= 5,
            )
        ],
    )
