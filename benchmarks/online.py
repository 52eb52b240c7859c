"""On-line learning: samples a second, an update beside its bare BLAS, memory, any likelihood."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.children import in_child
from benchmarks.memory import _resident
from benchmarks.online_blas import Matrices
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer.inference import online
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian, Likelihood, Logistic, Poisson, Probit, StudentT

D, NOISE = 8, 0.01
KERNEL = RBF(np.full(D, np.sqrt(D)))
CHUNK = 1000  # rows of one call
GROWTH = 0.1  # of the logarithm of targets, a row, where every row takes a point's place
COMPILED, WRAPPED = "BLAS alone, from compiled code", "BLAS alone, by SciPy's wrappers"
UPDATE, VALUES = "Mercer, one row", "of it kernel values"
TIMES = 1.8
CENTRES = 150  # of near-duplicates
FASTEST = 45_000


def inputs(rng: Any, n: int = CHUNK) -> Any:
    """Return n rows."""
    return rng.normal(size=(n, D))


def function(X: Any) -> Any:
    """Return a smooth function of rows."""
    return np.sin(X[:, 0]) + np.cos(X[:, 1] + 0.5 * X[:, 2]) + 0.5 * X[:, 3]


class Steady:
    """A stream of one function, of which most rows are projected on the points there are."""

    def __init__(self, m: int, likelihood: Likelihood | None = None, targets: Any = None) -> None:
        self.rng = np.random.default_rng(m)
        self.targets = targets or (lambda f, rng: f + np.sqrt(NOISE) * rng.normal(size=len(f)))
        self.process = OnlineProcess(KERNEL, likelihood or Gaussian(NOISE), max_basis=m)
        self.rows: list[tuple[Any, Any]] = []

    def draw(self, n: int) -> None:
        """Make the next n rows, in chunks."""
        self.rows = [self.chunk(min(CHUNK, n - i)) for i in range(0, n, CHUNK)]

    def chunk(self, n: int) -> tuple[Any, Any]:
        """Return n rows and targets."""
        X = inputs(self.rng, n)
        return X, self.targets(function(X), self.rng)[:, None]

    def learn(self) -> None:
        """Learn the rows that were made."""
        for X, Y in self.rows:
            self.process.learn(X, Y)

    def replaced(self, n: int = 200) -> float:
        """Return the share of n more rows that each add a point and remove another."""
        changes = 0
        X, Y = self.chunk(n)
        for i in range(n):
            before = np.array(self.process.points)
            self.process.learn(X[i : i + 1], Y[i : i + 1])
            changes += not np.array_equal(before, self.process.points)
        return changes / n


class Turnover(Steady):
    """A stream in which nearly every row adds a point and removes another.

    Each target is larger than the one before, so that it is the oldest point that goes. After a
    chunk the unit of the targets is changed, which mean and weights are linear in: targets would
    overflow.
    """

    def chunk(self, n: int) -> tuple[Any, Any]:
        """Return n rows and targets."""
        signs = self.rng.choice([-1.0, 1.0], size=n)
        return inputs(self.rng, n), (signs * np.exp(GROWTH * np.arange(n)))[:, None]

    def learn(self) -> None:
        """Learn the rows that were made."""
        for X, Y in self.rows:
            self.process.learn(X, Y)
            unit = np.exp(-GROWTH * len(X))
            self.process.arrays.mu[:] *= unit
            self.process.arrays.alpha[:] *= unit


# --- samples a second -----------------------------------------------------------------------------


def _throughput(options: Options) -> tuple[list[list[str]], dict[str, float]]:
    """Return lines of a table, and samples a second: when few rows were seen, and when many."""
    some, many, rounds = (60, 200, 1) if options.quick else (50_000, 1_000_000, 5)
    lines, rates = [], {}
    for name, kind in (("adds and removes a point", Turnover), ("is projected", Steady)):
        fresh, old = kind(100), kind(100)
        for stream in (fresh, old):
            stream.draw(300)
            stream.learn()
        for _ in range(many // some):
            old.draw(some)
            old.learn()
        seen = {"few": fresh.process.n_seen, "many": old.process.n_seen}
        part = some // rounds
        times = race(
            [
                Contender("few", fresh.learn, prepare=partial(fresh.draw, part)),
                Contender("many", old.learn, prepare=partial(old.draw, part)),
            ],
            rounds,
        )
        for which, seconds in times.items():
            rates[f"{which}, {name}"] = part / seconds
            share = (fresh if which == "few" else old).replaced(20 if options.quick else 300)
            lines.append(
                [
                    f"nearly every row {name}",
                    f"{seen[which]:,}",
                    f"{100 * share:.0f}%",
                    f"{part / seconds:,.0f}",
                    f"{1e6 * seconds / part:.1f}",
                ]
            )
    return lines, rates


# --- one update beside its BLAS ------------------------------------------------------------------


def _values(process: OnlineProcess, X: Any) -> None:
    """Find the kernel values that rows need, in blocks as the process does."""
    for start in range(0, len(X), online._BLOCK):
        process._kernel_values(X[start : start + online._BLOCK], process.points)


def _update(m: int, options: Options) -> dict[str, float]:
    """Return the seconds of one row that takes a point's place, and of the BLAS it needs."""
    count, rounds = (30, 1) if options.quick else (CHUNK, 15)
    stream, bare = Turnover(m), Matrices(m)
    stream.draw(m + 2 * CHUNK)
    stream.learn()
    compiled = bare.called_from_compiled_code()
    compiled(1)

    times = race(
        [
            Contender(COMPILED, lambda: compiled(count)),
            Contender(WRAPPED, lambda: bare.called_from_python(count)),
            Contender(UPDATE, stream.learn, prepare=partial(stream.draw, count)),
            Contender(
                VALUES,
                lambda: _values(stream.process, stream.rows[0][0]),
                prepare=partial(stream.draw, count),
            ),
        ],
        rounds,
    )
    return {name: seconds / count for name, seconds in times.items()}


# --- memory and rounding --------------------------------------------------------------------------


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
        resident.append(_resident("VmRSS"))
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


# --- likelihoods ----------------------------------------------------------------------------------


def _cauchy(y: Any, f: Any) -> Any:
    return -np.log(0.3 * np.pi) - np.log1p(((y - f) / 0.3) ** 2)


def _labels(f: Any, rng: Any) -> Any:
    return np.where(f + rng.normal(size=len(f)) > 0.5, 1.0, -1.0)


LIKELIHOODS: dict[str, tuple[Likelihood, Any]] = {
    "Gaussian": (Gaussian(NOISE), None),
    "Probit": (Probit(), _labels),
    "Logistic": (Logistic(), _labels),
    "StudentT": (StudentT(4.0, 0.1), lambda f, rng: f + 0.1 * rng.standard_t(4.0, size=len(f))),
    "Poisson": (Poisson(), lambda f, rng: rng.poisson(np.exp(f)).astype(float)),
    "Custom, a Cauchy density": (
        Custom(_cauchy),
        lambda f, rng: f + 0.3 * rng.standard_cauchy(size=len(f)),
    ),
}


def _likelihoods(options: Options) -> list[list[str]]:
    """Return lines of a table: samples a second."""
    lines = []
    for name, (likelihood, targets) in LIKELIHOODS.items():
        compiled = likelihood.compiled_site() is not None
        n = 20 if options.quick else (10 * CHUNK if compiled else CHUNK)
        stream = Steady(100, likelihood, targets)
        stream.draw(n)
        stream.learn()
        times = race(
            [Contender(name, stream.learn, prepare=partial(stream.draw, n))],
            1 if options.quick else 4,
        )
        how = "compiled" if compiled else "quadrature in Python"
        rate = n / times[name]
        lines.append([name, how, f"{rate:,.0f}", f"{1e6 / rate:.1f}"])
    return lines


# --- all ------------------------------------------------------------------------------------------


def _verdicts(
    rates: dict[str, float], updates: dict[int, dict[str, float]]
) -> tuple[list[Verdict], list[list[str]]]:
    busy = "adds and removes a point"
    few, many = rates[f"few, {busy}"], rates[f"many, {busy}"]
    verdicts = [
        Verdict(
            "samples a second, each adding and removing a point",
            f"{few:,.0f}",
            f"at least {FASTEST:,}",
            few >= FASTEST,
        ),
        Verdict(
            "the same after a million rows, relative to the first",
            f"{many / few:.3f}",
            "at least 0.95",
            many / few >= 0.95,
        ),
    ]
    lines = []
    for m, times in updates.items():
        least = min(times[COMPILED], times[WRAPPED])
        ratio = times[UPDATE] / least
        verdicts.append(
            Verdict(
                f"one row over its bare BLAS, {m} points",
                f"{ratio:.2f}",
                f"at most {TIMES}",
                ratio <= TIMES,
            )
        )
        lines += [
            [f"{m} points: {name}", f"{1e6 * seconds:.1f}", f"{times[UPDATE] / seconds:.2f}"]
            for name, seconds in times.items()
        ]
    return verdicts, lines


def run(options: Options) -> Result:
    """Time streams of rows; the long ones in processes of their own."""
    sizes = (5, 8) if options.quick else (100, 400)
    with threadpool_limits(1):
        throughput, rates = _throughput(options)
        updates = {m: _update(m, options) for m in sizes}
        likelihoods = _likelihoods(options)
    verdicts, lines = _verdicts(rates, updates)
    marks = [CHUNK] * 3 if options.quick else [10**6, 5 * 10**6, 10**7]
    resident = in_child(f"from benchmarks.online import memory_child; memory_child({marks})")
    grown = resident[-1] - resident[1]
    n = CHUNK if options.quick else 10**6
    worst, points = in_child(f"from benchmarks.online import rounding_child; rounding_child({n})")
    verdicts += [
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
    ]
    return Result(
        "On-line learning",
        f"{D} columns, normal; RBF with {D} length scales of sqrt({D}), noise of variance {NOISE}, "
        f"100 points unless said otherwise; criterion kl; `learn` is given {CHUNK} rows at a time, "
        "and BLAS one thread. Where nearly every row adds and removes a point each target is larger "
        "than the last, so that the oldest point goes; `replaced` is the share of rows that do, "
        "counted one at a time after the race. Other targets are a smooth function with noise, and "
        "after the first rows nearly all are projected on the points there are, which takes less. "
        "Bare BLAS: what a row that takes a point's place needs, the products Q k, S e, Q s, S Q_j "
        "and Q w (5 dsymv) and the rank-one updates of S, twice of Q and twice of P (5 dsyr), on "
        "the same sizes; the faster of the two ways to call it counts. A row's time has all in "
        "it: kernel values, the likelihood, the choice of the point that goes, and checks. "
        f"Near-duplicates: {CENTRES} centres, each row 1e-6 to 1 away from one in every "
        "column; the worst entry at any of the checks, every 10,000 rows.",
        [
            table(
                ["", "rows seen before", "replaced", "samples/s", "us a row"],
                throughput,
            ),
            table(["one row", "us", "Mercer / it"], lines),
            table(["likelihood", "average over f", "samples/s", "us a row"], likelihoods),
            table(
                ["rows seen", "resident, MB"],
                [
                    [f"{mark:,}", f"{size / 1e6:.2f}"]
                    for mark, size in zip([10 * CHUNK, *marks], resident, strict=True)
                ],
            ),
        ],
        verdicts,
    )
