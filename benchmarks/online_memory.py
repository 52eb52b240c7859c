"""On-line learning of very many rows: resident memory, and the rounding of the inverse."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.children import in_child, resident_bytes
from benchmarks.online import CHUNK, KERNEL, NOISE, D, Steady, function, inputs
from benchmarks.report import Options, Result, Verdict, table
from mercer.inference.online import OnlineProcess
from mercer.likelihoods import Gaussian

CENTRES = 150  # of near-duplicates


def memory_child(marks: list[int]) -> None:
    """Learn so many rows in this process, which must be fresh; print resident bytes at the marks.

    The first is after the first 10,000 rows.
    """
    stream = Steady(100)
    resident = []
    for mark in [10 * CHUNK, *marks]:
        while stream.process.n_seen < mark:
            X, Y = stream.chunk(CHUNK)
            stream.process.learn(X, Y)
        resident.append(resident_bytes("VmRSS"))
    print(json.dumps(resident))


def rounding_child(n: int) -> None:
    """Learn n near-duplicates; print the worst entry of Q K - I on the way, and the points."""
    rng = np.random.default_rng(0)
    centres = inputs(rng, CENTRES)
    process = OnlineProcess(KERNEL, Gaussian(NOISE), max_basis=100)
    worst = 0.0
    for start in range(0, n, CHUNK):
        away = 10.0 ** rng.uniform(-6, 0, size=(CHUNK, 1))
        X = centres[rng.integers(0, CENTRES, CHUNK)] + away * rng.normal(size=(CHUNK, D))
        process.learn(X, (function(X) + np.sqrt(NOISE) * rng.normal(size=CHUNK))[:, None])
        if start % (10 * CHUNK) == 0 or start + CHUNK >= n:
            m = process.n_basis
            product = process.arrays.Q[:m, :m] @ KERNEL(process.points)
            worst = max(worst, float(np.max(np.abs(product - np.eye(m)))))
    print(json.dumps([worst, process.n_basis]))


def run(options: Options) -> Result:
    """Learn ten million rows, and a million near-duplicates, each in a process of its own."""
    marks = [CHUNK] * 3 if options.quick else [10**6, 5 * 10**6, 10**7]
    resident = in_child(f"from benchmarks.online_memory import memory_child; memory_child({marks})")
    grown = resident[-1] - resident[1]
    n = CHUNK if options.quick else 10**6
    code = f"from benchmarks.online_memory import rounding_child; rounding_child({n})"
    worst, points = in_child(code)
    return Result(
        "On-line learning: memory and rounding",
        f"The streams of the section before, of a smooth function; {CHUNK} rows in a call. "
        f"Near-duplicates: {CENTRES} centres, each row 1e-6 to 1 away from one in every column; "
        "the worst entry at any of the checks, every 10,000 rows.",
        [
            table(
                ["rows seen", "resident, MB"],
                [
                    [f"{mark:,}", f"{size / 1e6:.2f}"]
                    for mark, size in zip([10 * CHUNK, *marks], resident, strict=True)
                ],
            )
        ],
        [
            Verdict(
                f"resident memory from {marks[0]:,} to {marks[-1]:,} rows",
                f"{grown / 1e6:+.2f} MB",
                "constant: below +1 MB",
                grown < 1e6,
            ),
            Verdict(
                f"Q times the Gram matrix less the identity, {n:,} near-duplicates",
                f"{worst:.1e} with {points} points",
                "at most 1e-6",
                worst <= 1e-6,
            ),
        ],
    )
